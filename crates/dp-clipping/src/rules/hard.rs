//! Hard clipping: `s = min(1, C/‖g‖)`, bound `C`.
//!
//! **Source.** Abadi et al. 2016; Xu 2021, Algorithms 1 to 3.

/// `min(1, C/‖g‖)`.
#[inline]
pub(super) fn scale(norm: f64, threshold: f64) -> f64 {
    // 0/0 cannot arise (thresholds are positive) and C/0 = ∞ loses against 1.
    (threshold / norm).min(1.0)
}
