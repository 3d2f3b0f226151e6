//! Automatic clipping: `s = C/(‖g‖ + γ)`, bound `C`.
//!
//! Every gradient is normalised; γ keeps the order of small ones. With `C = 1` this is AUTO-S with
//! its default γ = 0.01, with γ = 0 it is AUTO-V, which at norm 0 is capped at
//! [`MAX_SCALE`](crate::bound::MAX_SCALE).
//!
//! **Source.** Bu et al. 2023, "Automatic clipping".

/// `C/(‖g‖ + γ)`.
#[inline]
pub(super) fn scale(norm: f64, threshold: f64, stability: f64) -> f64 {
    threshold / (norm + stability)
}
