//! What a run costs, the noise for a target, and a statement of what was spent.

use dp_accounting::{
    Accountant, Calibration, Delta, DpEvent, Epsilon, Ledger, NeighbouringRelation, NoiseMultiplier, PldAccountant,
    SamplingRate, Scope, Statement,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (relation, delta) = (NeighbouringRelation::AddRemove, Delta::new(1e-6)?);
    let rate = SamplingRate::new(256.0 / 36_178.0)?;
    let step = |sigma| DpEvent::gaussian(sigma).poisson_sampled(rate);

    let mut accountant = PldAccountant::new(relation);
    accountant.compose(&step(NoiseMultiplier::new(1.0)?), 2_826)?;
    let answer = accountant.epsilon(delta)?;
    println!("noise of 1.0: epsilon at most {:.4}", answer.epsilon.get());
    assert!((answer.epsilon.get() - 2.4133).abs() < 1e-4);

    // The least noise that keeps epsilon at 3.
    let calibration = Calibration::by_pld(relation, Epsilon::new(3.0)?, delta)?;
    let sigma = calibration.noise_multiplier(|sigma| step(sigma).repeated(2_826))?;
    println!("epsilon of 3: noise of {:.4}", sigma.get());
    assert!(sigma.get() < 1.0);

    // A ledger holds events as they happen: class counts once, then the training.
    let mut ledger = Ledger::new(relation);
    ledger.record(&DpEvent::gaussian(NoiseMultiplier::new(5.0)?), 1)?;
    ledger.record(&step(sigma), 2_826)?;
    let scope = Scope::of("one person's record", ["class counts", "the model"]);
    let statement = Statement::new(&ledger, delta, scope)?;
    assert!(ledger.epsilon(delta)?.epsilon.get() > 3.0);
    println!("{statement}");
    Ok(())
}
