//! Weights of one's own; see [`Weights::Own`](super::Weights::Own).

use std::any::Any;
use std::fmt::Debug;

use super::{Weighting, clamp_weight, share_of_bound};
use crate::{ClipBatch, Own, PublicContext, count::Release};

/// Sample weights from outside of this crate: what they count at a step, and how the weights of the
/// next step follow from the noisy counts. The first step has 1 for every group.
///
/// **Guarantee.** The number of counts is fixed before a record is seen. A record adds a share, from 0
/// to 1, to one count or to none, so that the L2 sensitivity is 1 by construction. This crate sums,
/// adds the noise and reports the query. The weights are functions of earlier releases alone, and the
/// noise scales with the largest over all groups. They must be functions of what they are given,
/// without a memory; statements name that as a condition.
///
/// **Edge cases.** Shares are rounded down to multiples of 2⁻²⁰, so that their sums are exact in any
/// order; a share that is not a number is 0. Weights stay within 2⁻³⁰ to 2³⁰. A group for which no
/// weight is returned keeps its own.
///
/// ```
/// use dp_clipping::{ClipConfig, Controller, CountNoise, Own, OwnWeights, PublicContext, ScaleRule, Weights};
///
/// /// Groups count by the inverse of their noisy size at the step before.
/// #[derive(Debug)]
/// struct Inverse;
///
/// impl OwnWeights for Inverse {
///     fn name(&self) -> &'static str {
///         "inverse"
///     }
///     fn n_counts(&self, n_groups: usize) -> usize {
///         n_groups
///     }
///     fn counted(&self, _: f64, _: f64, group: usize, _: &[f64]) -> Option<(usize, f64)> {
///         Some((group, 1.0))
///     }
///     fn next(&self, _: &[f64], released: &[f64], context: &PublicContext, _: &[f64]) -> Vec<f64> {
///         let share = context.expected_batch_size / context.n_groups as f64;
///         released.iter().map(|size| share / size.max(1.0)).collect()
///     }
/// }
///
/// let weights = Weights::Own { weights: Own::weights(&Inverse, &[]), count_noise: CountNoise::default() };
/// let config = ClipConfig::new(ScaleRule::Hard, Controller::Constant { threshold: 1.0 }, weights);
/// let context = PublicContext { n_groups: 2, expected_batch_size: 8.0, noise_multiplier: 1.0 };
/// assert_eq!(config.count_noise_multipliers(&context), [10.0]);
/// ```
pub trait OwnWeights: Any + Debug + Send + Sync {
    /// Their name: lower-case letters, digits and hyphens, and not the name of other weights.
    fn name(&self) -> &'static str;

    /// Names of their parameters, at most 4.
    fn parameters(&self) -> &'static [&'static str] {
        &[]
    }

    /// Number of counts that a step releases; none by default.
    fn n_counts(&self, _n_groups: usize) -> usize {
        0
    }

    /// Whether [`Self::counted`] looks at losses. If not, each record is shown with the loss 0.
    fn needs_losses(&self) -> bool {
        false
    }

    /// Index of the count that a record adds to, and the share of 1 that it adds, if any. An index
    /// beyond the counts is none.
    fn counted(&self, _norm: f64, _loss: f64, _group: usize, _parameters: &[f64]) -> Option<(usize, f64)> {
        None
    }

    /// The weights of the groups at the next step, `[K]`, from those of this step and the noisy
    /// counts.
    fn next(&self, weights: &[f64], released: &[f64], context: &PublicContext, parameters: &[f64]) -> Vec<f64>;
}

pub(super) fn step(
    own: &Own<dyn OwnWeights>,
    noise_multiplier: f64,
    memory: Option<&[f64]>,
    batch: &ClipBatch<'_>,
    context: &PublicContext,
    release: &mut dyn Release,
) -> Weighting {
    let (part, values) = (own.part(), own.values());
    let weights = memory.map_or_else(|| vec![1.0; context.n_groups], <[f64]>::to_vec);
    let mut counts = vec![0.0; part.n_counts(context.n_groups)];
    let query = (!counts.is_empty()).then(|| {
        let losses = batch.losses.filter(|_| part.needs_losses());
        for (record, (norm, group)) in batch.all().enumerate() {
            let Some(norm) = norm else { continue };
            let loss = losses.map_or(0.0, |losses| losses[record]);
            let Some((index, share)) = part.counted(norm, loss, group, values) else { continue };
            if let Some(count) = counts.get_mut(index) {
                *count += share_of_bound(share, 1.0);
            }
        }
        release.release("counts of the weights", &counts, 1.0, noise_multiplier)
    });
    let released = query.as_ref().map_or(&[][..], |query| &query.released);
    let mut next = weights.clone();
    next.iter_mut()
        .zip(part.next(&weights, released, context, values))
        .for_each(|(kept, weight)| *kept = clamp_weight(weight));
    Weighting { weights, queries: query.into_iter().collect(), next: Some(next) }
}
