//! Global scaling that drops large gradients: `s = C0/Z` if `‖g‖ ≤ Z`, else 0; bound `C0`. The
//! threshold is `Z`.
//!
//! All kept gradients are scaled alike, so the direction of their sum is the unclipped one.
//!
//! **Source.** Bu et al. 2021; Esipova 2023, Algorithm 2 (without the parentheses).

/// `C0/Z` if `‖g‖ ≤ Z`, else 0.
#[inline]
pub(super) fn scale(norm: f64, threshold: f64, clip_norm: f64) -> f64 {
    if norm <= threshold { clip_norm / threshold } else { 0.0 }
}
