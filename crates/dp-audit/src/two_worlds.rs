//! An attack on one release with Gaussian noise: with a unit or without it, told many times.

use dp_accounting::Delta;
use dp_train::{Purpose, RandomStream, Randomness, Result};

use crate::privacy::{epsilon_of_mu, mu_of_many_runs};

/// Runs in either world.
const RUNS: u32 = 20_000;
/// Probability that the lower bound is above the true ε.
pub(crate) const FAILURE: f64 = 1e-3;

/// A lower bound on ε at δ from an attacker who is shown many releases of either world, 0 without the unit and
/// 1 with it, and says of each whether the unit is there.
pub(crate) fn attacked_epsilon(
    delta: Delta,
    randomness: &Randomness,
    mut says_there: impl FnMut(usize, &mut RandomStream) -> Result<bool>,
) -> Result<f64> {
    let mut n_there = [0_u32; 2];
    for (world, count) in n_there.iter_mut().enumerate() {
        let mut rng = randomness.stream(Purpose::Noise, u32::try_from(world).unwrap_or_default(), 0)?;
        for _ in 0..RUNS {
            *count += u32::from(says_there(world, &mut rng)?);
        }
    }
    let mu = mu_of_many_runs((n_there[0], RUNS), (RUNS - n_there[1], RUNS), FAILURE);
    epsilon_of_mu(mu, delta)
}
