//! One sampled batch and what it does to each group.

use super::error_bound::best_bound;
use super::terms::BatchOnGroup;
use super::vector::{dot, norm};

/// A Poisson batch that was clipped as the run clips its own; gradients are over the expected batch
/// size.
pub(super) struct SampledBatch {
    pub(super) plain: Vec<f64>,
    pub(super) clipped: Vec<f64>,
    pub(super) bound: f64,
    pub(super) thresholds: Vec<f64>,
    /// Norms of the records' gradients before and after clipping, by group.
    pub(super) norms: Vec<Vec<[f64; 2]>>,
    /// Quadratic forms of the plain and the clipped gradient, by group.
    pub(super) bends: Vec<[f64; 2]>,
}

impl SampledBatch {
    /// Mean length of what clipping takes from a record of the group, and the best bound for its
    /// records under a noise of `w` times the bound; `None` without a record.
    pub(super) fn bias_and_best_bound(&self, group: usize, w: f64) -> Option<[f64; 2]> {
        let norms = &self.norms[group];
        let before: Vec<f64> = norms.iter().map(|[before, _]| *before).collect();
        let bias = norms.iter().map(|[before, after]| (before - after).abs()).sum::<f64>() / norms.len() as f64;
        (!norms.is_empty()).then(|| [bias, best_bound(&before, w)])
    }

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
