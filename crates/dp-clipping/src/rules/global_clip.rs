//! Global scaling that clips large gradients: `s = C0/Z` if `‖g‖ ≤ Z`, else `C0/‖g‖`; bound `C0`.
//! The threshold is `Z`.
//!
//! **Source.** Esipova 2023, Algorithm 2 (in parentheses): gradients above `Z`, which
//! often belong to small groups, are kept.

/// `C0/Z` if `‖g‖ ≤ Z`, else `C0/‖g‖`.
#[inline]
pub(super) fn scale(norm: f64, threshold: f64, clip_norm: f64) -> f64 {
    clip_norm / norm.max(threshold)
}
