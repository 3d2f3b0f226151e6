//! Global scaling with a soft limit: `s = (C0/Z)·tanh(Z/(‖g‖ + 1e-6))`, bound `C0`. The threshold
//! is `Z`.
//!
//! Small gradients are scaled by `C0/Z` as under [`super::global_clip`], large ones tend to norm
//! `C0` without becoming equal.
//!
//! **Source.** New here: the rule that joins Soleymani 2025 with Esipova 2023, Algorithm 2.

use super::tanh;

/// `(C0/Z)·tanh(Z/(‖g‖ + 1e-6))`.
///
/// ```
/// use dp_clipping::rules::global_tanh;
/// assert!((global_tanh::scale(0.1, 50.0, 0.5) - 0.01).abs() < 1e-12);
/// assert!((global_tanh::scale(1e6, 50.0, 0.5) * 1e6 - 0.5).abs() < 1e-8);
/// ```
#[inline]
pub fn scale(norm: f64, threshold: f64, clip_norm: f64) -> f64 {
    clip_norm / threshold * tanh::scale(norm, threshold)
}
