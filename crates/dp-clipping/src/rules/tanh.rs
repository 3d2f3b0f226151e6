//! Soft clipping: `s = tanh(C/(‖g‖ + 1e-6))`, bound `C`.
//!
//! `tanh(x) < x` gives `s‖g‖ < C`; two large gradients keep their order where hard clipping makes
//! them equal.
//!
//! **Source.** Soleymani 2025, Algorithms 2 (SoftAdaClip) and 3 (Fixed Soft Clipping).

/// The constant that keeps the quotient finite at norm 0.
const STABILITY: f64 = 1e-6;

/// `tanh(C/(‖g‖ + 1e-6))`.
#[inline]
pub(super) fn scale(norm: f64, threshold: f64) -> f64 {
    (threshold / (norm + STABILITY)).tanh()
}
