//! The normal distribution where `erfc` underflows, and cells too narrow to be a difference of tails.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

/// `ln √(2π)`.
pub(crate) const LOG_SQRT_TAU: f64 = 0.918_938_533_204_672_8;

/// Natural logarithm of the complementary error function, for any argument.
///
/// `erfc` underflows at 26.5; beyond 20 the continued fraction of the Mills ratio is exact to rounding in 12 terms.
pub(crate) fn log_erfc(x: f64) -> f64 {
    if x < 20.0 {
        return libm::erfc(x).ln();
    }
    // erfc(x) = exp(-x²)/√π · 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + ...)))).
    let mut tail = x;
    for k in (1..=12).rev() {
        tail = x + 0.5 * f64::from(k) / tail;
    }
    -x * x - 0.5 * PI.ln() - tail.ln()
}

/// Probability that a standard normal exceeds `x`.
pub(crate) fn survival(x: f64) -> f64 {
    0.5 * libm::erfc(x * FRAC_1_SQRT_2)
}

/// Natural logarithm of [`survival`].
pub(crate) fn log_survival(x: f64) -> f64 {
    log_erfc(x * FRAC_1_SQRT_2) - LN_2
}

/// Natural logarithm of the standard normal density.
pub(crate) fn log_density(x: f64) -> f64 {
    -0.5 * x * x - LOG_SQRT_TAU
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_erfc_is_continuous_and_right_far_out() {
        // mpmath 1.3, 50 digits: log(erfc(19.9)), log(erfc(20.1)), log(erfc(30)), log(erfc(1000)).
        for (x, expected) in [
            (19.9, -399.574_343_308_275),
            (20.1, -407.584_318_545_200_4),
            (30.0, -903.974_117_110_643_9),
            (1000.0, -1_000_007.480_120_721_9),
        ] {
            assert!((log_erfc(x) / expected - 1.0).abs() < 1e-14, "{x}: {} {expected}", log_erfc(x));
        }
    }

    #[test]
    fn tails_are_complementary() {
        for x in [-40.0, -3.0, -0.5, 0.0, 0.5, 3.0] {
            assert!((survival(x) + survival(-x) - 1.0).abs() < 1e-15);
            assert!((log_survival(x) - survival(x).ln()).abs() < 1e-13);
        }
    }
}
