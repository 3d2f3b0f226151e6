//! Whether values look like independent standard normal ones. Seeds are fixed, so a pass is a pass
//! for ever.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::GRID;

/// Standard normal distribution function.
pub(super) fn phi(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// Kolmogorov and Smirnov: the statistic exceeds 2.23/√n with probability 2 exp(−2 · 2.23²) < 1e-4.
/// Values are on the grid; each is moved to a random place between its neighbours' halves.
pub(super) fn assert_normal(mut values: Vec<f64>) {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    for value in &mut values {
        *value += rng.random_range(-0.5..0.5) / GRID;
    }
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let distance = values
        .iter()
        .enumerate()
        .map(|(i, &x)| (phi(x) - i as f64 / n).abs().max((phi(x) - (i + 1) as f64 / n).abs()))
        .fold(0.0, f64::max);
    assert!(distance * n.sqrt() < 2.23, "{}", distance * n.sqrt());
}

/// The mean product of values so far apart has standard deviation 1/√n; one of six beyond 5 of
/// those by chance: 4e-6.
pub(super) fn assert_uncorrelated(values: &[f64], lags: [usize; 6]) {
    let n = values.len() as f64;
    for lag in lags {
        let correlation = values.iter().zip(&values[lag..]).map(|(a, b)| a * b).sum::<f64>() / n;
        assert!(correlation.abs() * n.sqrt() < 5.0, "lag {lag}: {correlation}");
    }
}
