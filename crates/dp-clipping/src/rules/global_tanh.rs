//! Global scaling with a soft limit: `s = (C0/Z)·tanh(Z/(‖g‖ + 1e-6))`, bound `C0`. The threshold
//! is `Z`.
//!
//! Small gradients are scaled by `C0/Z` as under [`super::global_clip`], large ones tend to norm
//! `C0` without becoming equal.
//!
//! **Source.** New here: the rule that joins Soleymani 2025 with Esipova 2023, Algorithm 2.

use super::tanh;

/// `(C0/Z)·tanh(Z/(‖g‖ + 1e-6))`.
#[inline]
pub(super) fn scale(norm: f64, threshold: f64, clip_norm: f64) -> f64 {
    clip_norm / threshold * tanh::scale(norm, threshold)
}
