//! A record used in one of two steps: bounds on the profile that need no quadrature.
//!
//! The likelihood ratio is `(W₁ + W₂)/2`, `W = e^(μu - μ²/2)`, `u ~ N(0, 1)`. Both profiles are
//! expectations of a convex function of `W₁`, which has a formula (Black & Scholes 1973). On each
//! cell of `u` it lies above its value at the mean (Jensen's inequality) and below its chord.

use super::ball::Ball;
use super::exact::Direction;
use super::normal::survival;

/// Cells of u, for bounds some percent apart, and for a bound that need not be close.
pub(super) const FINE: u32 = 64;
pub(super) const COARSE: u32 = 12;

/// δ at an ε, as all numbers between a lower and an upper bound.
pub(super) fn pair_delta(sigma: f64, direction: Direction, epsilon: &Ball, cells: u32) -> Ball {
    let mu = Ball::exact(1.0) / Ball::exact(sigma);
    let half = || Ball::exact(0.5);
    let drift = mu.clone() * mu.clone() * half();
    let ratio = |u: &Ball| (mu.clone() * u.clone() - drift.clone()).exp();
    let gamma = epsilon.exp();
    let inner = |w: &Ball| match direction {
        Direction::Remove => half() * call(&mu, &(Ball::exact(2.0) * gamma.clone() - w.clone())),
        Direction::Add => half() * gamma.clone() * put(&mu, &(Ball::exact(2.0) / gamma.clone() - w.clone())),
    };
    let (low, high) = (-4.5, 7.0 + sigma.recip());
    let ends: Vec<Ball> =
        (0..=cells).map(|i| Ball::exact(low + (high - low) * f64::from(i) / f64::from(cells))).collect();
    // Probability beyond an end, and the mean of W there.
    let beyond: Vec<[Ball; 2]> = ends.iter().map(|u| [survival(u), survival(&(u.clone() - mu.clone()))]).collect();
    let ratios: Vec<Ball> = ends.iter().map(&ratio).collect();
    let values: Vec<Ball> = ratios.iter().map(&inner).collect();
    let one = Ball::exact(1.0);
    let cell = |[p, m]: [Ball; 2], [from, to]: [&Ball; 2], [at_from, at_to]: [&Ball; 2]| {
        let mean = m / p.clone();
        let share = (to.clone() - mean.clone()) / (to.clone() - from.clone());
        let chord = share.clone() * at_from.clone() + (Ball::exact(1.0) - share) * at_to.clone();
        [p.clone() * inner(&mean), p * chord]
    };
    let zero = Ball::exact(0.0);
    let first = [one.clone() - beyond[0][0].clone(), one - beyond[0][1].clone()];
    let mut sums = cell(first, [&zero, &ratios[0]], [&inner(&zero), &values[0]]);
    for i in 1..ends.len() {
        let inside = [0, 1].map(|j| beyond[i - 1][j].clone() - beyond[i][j].clone());
        let parts = cell(inside, [&ratios[i - 1], &ratios[i]], [&values[i - 1], &values[i]]);
        sums = [sums[0].clone() + parts[0].clone(), sums[1].clone() + parts[1].clone()];
    }
    // Beyond the last end the function rises by half of W at most.
    let (Some([p, m]), Some(ratio), Some(value)) = (beyond.last(), ratios.last(), values.last()) else { return zero };
    let least = p.clone() * inner(&(m.clone() / p.clone()));
    let rise = match direction {
        Direction::Remove => half() * (m.clone() - p.clone() * ratio.clone()),
        Direction::Add => zero,
    };
    let most = p.clone() * value.clone() + rise;
    (sums[0].clone() + least).hull(&(sums[1].clone() + most))
}

/// `E[(W - k)⁺]`.
fn call(mu: &Ball, k: &Ball) -> Ball {
    if !k.is_certainly_positive() {
        return Ball::exact(1.0) - k.clone();
    }
    let z = k.ln() / mu.clone() + mu.clone() * Ball::exact(0.5);
    survival(&(z.clone() - mu.clone())) - k.clone() * survival(&z)
}

/// `E[(k - W)⁺]`.
fn put(mu: &Ball, k: &Ball) -> Ball {
    if !k.is_certainly_positive() {
        return Ball::exact(0.0);
    }
    let z = k.ln() / mu.clone() + mu.clone() * Ball::exact(0.5);
    k.clone() * survival(&-z.clone()) - survival(&(mu.clone() - z))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encloses_values_of_thirty_digits() {
        // mpmath 1.3: σ, ε, remove, add.
        for (sigma, epsilon, removed, added) in [
            (1.0, 1.0, 0.059_206_501_085_892_65, 0.050_197_662_369_488_24),
            (1.0, 3.0, 1.677_027_714_117_893_3e-4, 1.590_265_081_872_704_3e-5),
            (2.0, 0.5, 0.018_326_594_760_935_13, 0.017_397_485_846_783_53),
        ] {
            for (direction, exact) in [(Direction::Remove, removed), (Direction::Add, added)] {
                let delta = pair_delta(sigma, direction, &Ball::exact(epsilon), FINE);
                assert!(!delta.is_certainly_below(&Ball::exact(exact * (1.0 - 1e-14))), "{sigma} {epsilon}");
                assert!(!Ball::exact(exact * (1.0 + 1e-14)).is_certainly_below(&delta), "{sigma} {epsilon}");
                // And closely.
                assert!(Ball::exact(0.95 * exact).is_certainly_below(&delta), "{sigma} {epsilon}");
                assert!(delta.is_certainly_below(&Ball::exact(1.05 * exact)), "{sigma} {epsilon}");
            }
        }
    }
}
