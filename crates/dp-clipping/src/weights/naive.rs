//! Weights from noisy group sizes; see [`Weights::Naive`](super::Weights::Naive).

use super::{Weighting, clamp_weight};
use crate::{ClipBatch, PublicContext, count::Release};

pub(super) fn step(
    noise_multiplier: f64,
    batch: &ClipBatch<'_>,
    context: &PublicContext,
    release: &mut dyn Release,
) -> Weighting {
    let mut sizes = vec![0.0; context.n_groups];
    for (_, group) in batch.valid() {
        sizes[group] += 1.0;
    }
    let query = release.release("group sizes", &sizes, 1.0, noise_multiplier);
    let weights = weights(&query.released, context.expected_batch_size);
    Weighting { weights, queries: vec![query], next: None }
}

/// `θ_k` from the released sizes.
fn weights(released: &[f64], expected_batch_size: f64) -> Vec<f64> {
    let share = expected_batch_size / released.len() as f64;
    released.iter().map(|size| clamp_weight(share / size.max(1.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_batch() {
        // B = 100, K = 2, sizes 80 and 20: θ = 50/80 and 50/20; a negative size counts as 1.
        assert_eq!(weights(&[80.0, 20.0], 100.0), vec![0.625, 2.5]);
        assert_eq!(weights(&[80.0, -3.0], 100.0), vec![0.625, 50.0]);
    }
}
