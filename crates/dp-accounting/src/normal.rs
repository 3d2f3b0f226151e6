//! The normal distribution.

/// `ln √(2π)`.
const LOG_SQRT_TAU: f64 = 0.918_938_533_204_672_8;

/// Natural logarithm of the standard normal density.
pub(crate) fn log_density(x: f64) -> f64 {
    -0.5 * x * x - LOG_SQRT_TAU
}
