//! A method's input and output.

use crate::{
    CountQuery,
    bound::{MAX_SCALE, MIN_SCALE, is_valid_norm},
    error::ClipError,
};

/// One Poisson batch as a method sees it: never the gradients, only their norms, and the group of
/// each record.
///
/// **Shapes.** Both slices `[batch]`; empty for a noise-only step.
#[derive(Debug, Clone, Copy)]
pub struct ClipBatch<'a> {
    /// L2 norm of each per-sample gradient, accurate to about 1e-6 relative.
    pub norms: &'a [f64],
    /// Group of each record, `0..K`. Methods without group labels still check the length.
    pub groups: &'a [usize],
}

impl ClipBatch<'_> {
    /// Checks lengths and group indices.
    pub(crate) fn validate(&self, n_groups: usize) -> Result<(), ClipError> {
        if self.norms.len() != self.groups.len() {
            return Err(ClipError::LengthMismatch {
                left: "norms",
                left_len: self.norms.len(),
                right: "groups",
                right_len: self.groups.len(),
            });
        }
        match self.groups.iter().position(|&group| group >= n_groups) {
            Some(record) => Err(ClipError::GroupOutOfRange { record, group: self.groups[record], n_groups }),
            None => Ok(()),
        }
    }

    /// Norm and group of every record that takes part. A record without a valid norm is treated as
    /// absent everywhere, in the sum and in the counts, so that it is as private as a record that
    /// was not drawn.
    pub(crate) fn valid(&self) -> impl Iterator<Item = (f64, usize)> {
        self.norms.iter().copied().zip(self.groups.iter().copied()).filter(|&(norm, _)| is_valid_norm(norm))
    }
}

/// A method's answer to one batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Clipped {
    /// `s_i`, `[batch]`: 0, or between [`Self::MIN_SCALE`] and [`Self::MAX_SCALE`]. `s_i‖g_i‖ ≤
    /// bound·(1 − 2⁻¹⁸)` for every `i`: the headroom covers the rounding of norms, scales and
    /// products in f32. Exactly 0 for a norm that is not finite.
    pub scales: Vec<f64>,
    /// `S`: the sensitivity of `Σ s_i g_i` when one record is added or removed. The noise is `N(0,
    /// (σS)²)`.
    pub bound: f64,
    /// `S_k`, `[K]`: the bound for the records of group `k`; `bound` is their largest. Where it does
    /// not depend on this batch, group `k` has the larger noise multiplier `σ·S/S_k` at this step.
    pub group_bounds: Vec<f64>,
    /// Every noisy count made on this batch, in the order of
    /// [`crate::ClipConfig::count_noise_multipliers`].
    pub queries: Vec<CountQuery>,
    /// Thresholds in force at this step: one value, or one per group.
    pub thresholds: Vec<f64>,
    /// Records whose norm was not a finite number: they contribute nothing to the sum and to the
    /// counts. A diagnostic without noise, not to be released.
    pub n_non_finite: usize,
}

impl Clipped {
    /// Smallest scale but 0: the smallest normal f32, 2⁻¹²⁶.
    pub const MIN_SCALE: f64 = MIN_SCALE;
    /// Largest scale, 2⁹⁶: finite in f32, with room for the product.
    pub const MAX_SCALE: f64 = MAX_SCALE;
}
