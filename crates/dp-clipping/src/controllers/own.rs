//! A controller of one's own; see [`Controller::Own`](super::Controller::Own).

use std::any::Any;
use std::fmt::Debug;

use super::Control;
use crate::{ClipBatch, Own, PublicContext, bound::clamp_threshold, count::Release};

/// A threshold controller from outside of this crate: what it counts at a step, and how the threshold
/// follows from the noisy counts.
///
/// **Guarantee.** The number of counts is fixed before a norm is seen. A record adds 1 to one count or
/// to none, so that the L2 sensitivity is 1 by construction. This crate sums, adds the noise and
/// reports the query. The controller sees the noisy values alone, and the threshold stays in
/// [`Controller::THRESHOLD_RANGE`](super::Controller::THRESHOLD_RANGE). It must be a function of what
/// it is given, without a memory; statements name that as a condition.
///
/// ```
/// use dp_clipping::{ClipConfig, Controller, CountNoise, Own, OwnController, PublicContext, ScaleRule, Weights};
///
/// /// The threshold falls to a share of itself after every step: public, and without a count.
/// #[derive(Debug)]
/// struct Falling;
///
/// impl OwnController for Falling {
///     fn name(&self) -> &'static str {
///         "falling"
///     }
///     fn parameters(&self) -> &'static [&'static str] {
///         &["share"]
///     }
///     fn next(&self, threshold: f64, _: &[f64], _: &PublicContext, parameters: &[f64]) -> f64 {
///         threshold * parameters[0]
///     }
/// }
///
/// let controller = Controller::Own {
///     controller: Own::controller(&Falling, &[0.99]),
///     initial: 1.0,
///     count_noise: CountNoise::default(),
/// };
/// let config = ClipConfig::new(ScaleRule::Hard, controller, Weights::Uniform);
/// let context = PublicContext { n_groups: 1, expected_batch_size: 2.0, noise_multiplier: 1.0 };
/// assert!(config.queries(&context).is_empty() && config.certified());
/// ```
pub trait OwnController: Any + Debug + Send + Sync {
    /// Its name: lower-case letters, digits and hyphens, and not the name of another controller.
    fn name(&self) -> &'static str;

    /// Names of its parameters, at most 4.
    fn parameters(&self) -> &'static [&'static str] {
        &[]
    }

    /// Number of counts that a step releases; none by default.
    fn n_counts(&self, _n_groups: usize) -> usize {
        0
    }

    /// Whether it counts by groups. If not, each record is shown as one of group 0.
    fn needs_groups(&self) -> bool {
        false
    }

    /// Index of the count that a record adds 1 to, if any. An index beyond the counts is none.
    fn counted(&self, _norm: f64, _group: usize, _threshold: f64, _parameters: &[f64]) -> Option<usize> {
        None
    }

    /// The threshold of the next step, from that of this step and the noisy counts.
    fn next(&self, threshold: f64, released: &[f64], context: &PublicContext, parameters: &[f64]) -> f64;
}

/// What the counts of a step are called in reports.
pub(super) const COUNTS: &str = "counts of the controller";

pub(super) fn step(
    own: &Own<dyn OwnController>,
    current: f64,
    noise_multiplier: f64,
    batch: &ClipBatch<'_>,
    context: &PublicContext,
    release: &mut dyn Release,
) -> Control {
    let (part, values) = (own.part(), own.values());
    let mut counts = vec![0.0; part.n_counts(context.n_groups)];
    let query = (!counts.is_empty()).then(|| {
        let by_group = part.needs_groups();
        for (norm, group) in batch.valid() {
            let group = if by_group { group } else { 0 };
            let counted = part.counted(norm, group, current, values);
            if let Some(count) = counted.and_then(|index| counts.get_mut(index)) {
                *count += 1.0;
            }
        }
        release.release(COUNTS, &counts, 1.0, noise_multiplier)
    });
    let released = query.as_ref().map_or(&[][..], |query| &query.released);
    let next = clamp_threshold(part.next(current, released, context, values));
    Control { thresholds: vec![current], query, next: Some(next) }
}
