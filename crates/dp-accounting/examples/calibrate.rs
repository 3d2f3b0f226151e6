//! Noise, sampling rate or steps for a target: the parameter that a plan leaves open.

use dp_accounting::{
    AccountingError, Calibration, Delta, DpEvent, Epsilon, NeighbouringRelation, NoiseMultiplier, SamplingRate,
};

pub(crate) fn main() -> Result<(), AccountingError> {
    let (target, delta) = (Epsilon::new(3.0)?, Delta::new(1e-6)?);
    let (sigma, rate, steps) = (NoiseMultiplier::new(1.0)?, SamplingRate::new(0.01)?, 1_000);
    let event = |sigma, rate| DpEvent::gaussian(sigma).poisson_sampled(rate);
    let calibration = Calibration::by_pld(NeighbouringRelation::AddRemove, target, delta)?;

    let found = calibration.noise_multiplier(|sigma| event(sigma, rate).repeated(steps))?;
    println!("noise multiplier for {steps} steps at rate {rate}: {found:.4}");
    assert!(calibration.epsilon_of(&event(found, rate), steps)?.get() <= target.get());

    let found = calibration.sampling_rate(|rate| event(sigma, rate).repeated(steps))?;
    println!("sampling rate for {steps} steps at noise multiplier {sigma}: {found:.5}");
    assert!(calibration.epsilon_of(&event(sigma, found), steps)?.get() <= target.get());

    let found = calibration.steps(&event(sigma, rate))?;
    println!("steps at rate {rate} and noise multiplier {sigma}: {found}");
    assert!(calibration.epsilon_of(&event(sigma, rate), found + 1)?.get() > target.get());
    Ok(())
}
