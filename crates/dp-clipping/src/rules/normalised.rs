//! Normalised clipping: `s = min(1/C, 1/‖g‖)`, bound 1 whatever the threshold.
//!
//! It is hard clipping divided by `C`, so that the learning rate does not have to follow the
//! threshold.
//!
//! **Source.** De et al. 2022; Zhao 2025, Algorithms 1 and 2. Zhao's code computes `min(1/(‖g‖ +
//! 1e-6), 1/C)`; the 1e-6 is not in the text and not here (a zero norm gives `1/C`).

/// `min(1/C, 1/‖g‖)`.
#[inline]
pub(super) fn scale(norm: f64, threshold: f64) -> f64 {
    1.0 / norm.max(threshold)
}
