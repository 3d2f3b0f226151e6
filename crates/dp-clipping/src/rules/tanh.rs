//! Soft clipping: `s = tanh(C/(‖g‖ + 1e-6))`, bound `C`.
//!
//! `tanh(x) < x` gives `s‖g‖ < C`; two large gradients keep their order where hard clipping makes
//! them equal.
//!
//! **Source.** Soleymani 2025, Algorithms 2 (SoftAdaClip) and 3 (Fixed Soft Clipping).

/// The constant that keeps the quotient finite at norm 0.
pub const STABILITY: f64 = 1e-6;

/// `tanh(C/(‖g‖ + 1e-6))`.
///
/// The paper's example, norms 1.1 and 1.2 at C = 1 (its tanh(0.91) ≈ 0.72 and tanh(0.83) ≈ 0.68):
///
/// ```
/// use dp_clipping::rules::tanh;
/// assert!((tanh::scale(1.1, 1.0) - 0.7207).abs() < 5e-5);
/// assert!((tanh::scale(1.2, 1.0) - 0.6823).abs() < 5e-5);
/// ```
#[inline]
pub fn scale(norm: f64, threshold: f64) -> f64 {
    (threshold / (norm + STABILITY)).tanh()
}
