//! One sampled batch and what it does to each group.

use super::terms::BatchOnGroup;
use super::vector::{dot, norm};

/// A Poisson batch that was clipped as the run clips its own; gradients are over the expected batch
/// size.
pub(super) struct SampledBatch {
    pub(super) plain: Vec<f64>,
    pub(super) clipped: Vec<f64>,
    pub(super) bound: f64,
    pub(super) thresholds: Vec<f64>,
    /// Sums of per-sample norms before and after clipping and number of records, by group.
    pub(super) norms: Vec<[f64; 3]>,
    /// Quadratic forms of the plain and the clipped gradient, by group.
    pub(super) bends: Vec<[f64; 2]>,
}

impl SampledBatch {
    /// The effect of the batch on a group with this mean gradient.
    pub(super) fn on(&self, group: usize, gradient: &[f64]) -> BatchOnGroup {
        let [plain_bend, clipped_bend] = self.bends[group];
        BatchOnGroup {
            plain_norm: norm(&self.plain),
            clipped_norm: norm(&self.clipped),
            plain_slope: dot(gradient, &self.plain),
            clipped_slope: dot(gradient, &self.clipped),
            plain_bend,
            clipped_bend,
        }
    }
}
