//! Exact integers with Gaussian noise.

use dp_accounting::{DpEvent, Ledger, NoiseMultiplier};
use rand_chacha::ChaCha20Rng;

use crate::error::Result;
use dp_engine::noise::StepNoise;

/// Notes a Gaussian release in the ledger: before it is made, so that what cannot be noted is not
/// released.
pub(super) fn record(ledger: &mut Ledger, noise_multiplier: NoiseMultiplier) -> Result<()> {
    Ok(ledger.record(&DpEvent::gaussian(noise_multiplier), 1)?)
}

/// Adds noise of standard deviation `std` to exact integers; both in the same unit.
///
/// **Guarantee.** Exact sums and noise that is exactly rounded to a public grid: post-processing of
/// the Gaussian mechanism on real numbers, with nothing left over for rounding.
pub(super) fn add_noise(values: &mut [f64], std: f64, rng: &mut ChaCha20Rng) {
    StepNoise::draw(rng, std).add_f64(0, values);
}
