//! Sample weights: a factor per group on every scale.

mod multiplicative;
mod naive;
mod own;

pub use own::OwnWeights;

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::{
    ClipBatch, ClipError, CountNoise, CountQuery, Own, PublicContext, bound::THRESHOLD_RANGE, count::Release,
    error::check,
};

/// Range of every weight, 2⁻³⁰ to 2³⁰, so that a weighted bound is neither 0 nor ∞. Only absurd
/// releases come near it.
const WEIGHT_RANGE: RangeInclusive<f64> = 1.0 / ((1_u64 << 30) as f64)..=(1_u64 << 30) as f64;

/// Steps of a share from 0 to 1. Sums of their multiples are exact for up to 2³³ records.
const STEPS: f64 = (1_u64 << 20) as f64;

/// What a record adds to a sum of values that a bound limits, in units of it: a multiple of 2⁻²⁰ in
/// [0, 1].
fn share_of_bound(value: f64, bound: f64) -> f64 {
    let share = value / bound;
    if share.is_nan() { 0.0 } else { (share.clamp(0.0, 1.0) * STEPS).floor() / STEPS }
}

/// The nearest permitted weight; the smallest for what is not a number.
fn clamp_weight(weight: f64) -> f64 {
    weight.max(*WEIGHT_RANGE.start()).min(*WEIGHT_RANGE.end())
}

/// Checks a weight of a saved state.
pub(crate) fn check_weight(weight: f64) -> Result<(), ClipError> {
    check("weights", weight, WEIGHT_RANGE, "numbers in [2^-30, 2^30]")
}

/// How much the records of each group count.
///
/// ```
/// use dp_clipping::{ClipConfig, Controller, CountNoise, ScaleRule, Weights};
/// let weights = Weights::Naive { count_noise: CountNoise::default() };
/// let config = ClipConfig::new(ScaleRule::Tanh, Controller::Constant { threshold: 1.0 }, weights);
/// assert!(config.needs_groups() && config.certified());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Weights {
    /// 1 for every record.
    #[default]
    Uniform,
    /// Naive re-weighting: `θ_k = (B/K)/b̃_k` from the noisy group sizes `b̃_k = b_k + N(0, σ1²)` of
    /// the same step.
    ///
    /// **Guarantee.** One record changes one group size by one: L2 sensitivity 1. The bound of group
    /// `k` becomes `θ_k` times the rule's, and the noise scales with the largest over *all* groups.
    ///
    /// **Edge cases.** A `b̃_k` below 1 is clamped to 1, so `θ_k ≤ B/K`; Xu leaves this open. Weights
    /// stay within 2⁻³⁰ to 2³⁰.
    ///
    /// **Source.** Xu 2021, Algorithm 3, with the expected batch size for `b`.
    Naive {
        /// Noise of the group sizes.
        count_noise: CountNoise,
    },
    /// Multiplicative weights: groups of larger loss count more from step to step,
    /// `w_k ← w_k·exp(η·l̃_k)`, then divided by their mean over the groups. The first step has 1 for
    /// every group.
    ///
    /// A step releases the number of records of each group in the batch, `b̃_k = b_k + N(0, σ1²)`, and
    /// the sum of their losses in units of the bound `L`, `ũ_k = Σ clamp(loss, 0, L)/L + N(0, σ1²)`.
    /// The group's mean loss is `l̃_k = L·ũ_k/max(b̃_k, 1)`, clamped to [0, L].
    ///
    /// **Guarantee.** The weights of a step follow from releases of earlier steps alone. One record
    /// changes one count by 1 and one sum of losses by at most 1: two queries of L2 sensitivity 1. The
    /// bound of group `k` is `w_k` times the rule's, and the noise scales with the largest over *all*
    /// groups.
    ///
    /// **Edge cases.** A loss that is not a number counts as 0, an infinite one as `L`. A loss is
    /// rounded down to a multiple of `L·2⁻²⁰`, so that sums are exact in any order. The clamped mean of
    /// a group that is small beside the noise lies anywhere in [0, L]. Weights stay within 2⁻³⁰ to 2³⁰.
    ///
    /// **Source.** Sagawa et al. 2020, Algorithm 1; Zhou & Bassily 2024 for worst-group risk under privacy.
    Multiplicative {
        /// η, at least 0.
        rate: f64,
        /// `L`, in nats.
        loss_bound: f64,
        /// Noise of the counts, and of the sums of losses.
        count_noise: CountNoise,
    },
    /// 1 for every record, and multiplicative weights in the state: they are for whoever draws the
    /// batches, who draws groups of larger loss more often.
    ///
    /// **Guarantee.** As [`Self::Multiplicative`], with the same two queries. Rates that follow from the
    /// state follow from releases of earlier steps.
    ///
    /// **Source.** Cairney-Leeming, Sanyal & Lampert 2026.
    RatesByLoss {
        /// η, at least 0.
        rate: f64,
        /// `L`, in nats.
        loss_bound: f64,
        /// Noise of the counts, and of the sums of losses.
        count_noise: CountNoise,
    },
    /// Weights from outside of this crate ([`OwnWeights`]).
    Own {
        /// The weights, with their parameters.
        weights: Own<dyn OwnWeights>,
        /// Noise of their counts, if they have any.
        count_noise: CountNoise,
    },
}

/// The weights of one step.
pub(crate) struct Weighting {
    /// One weight, or one per group.
    pub(crate) weights: Vec<f64>,
    /// The noisy counts that it made.
    pub(crate) queries: Vec<CountQuery>,
    /// Weights of the next step, where they have a memory.
    pub(crate) next: Option<Vec<f64>>,
}

impl Weights {
    /// Weights of the first step, where they have a memory.
    pub(crate) fn initial(&self, context: &PublicContext) -> Option<Vec<f64>> {
        self.have_memory().then(|| vec![1.0; context.n_groups])
    }

    /// Whether the weights of a step follow from earlier ones.
    pub fn have_memory(&self) -> bool {
        matches!(self, Self::Multiplicative { .. } | Self::RatesByLoss { .. } | Self::Own { .. })
    }

    pub(crate) fn step(
        &self,
        memory: Option<&[f64]>,
        batch: &ClipBatch<'_>,
        context: &PublicContext,
        release: &mut dyn Release,
    ) -> Weighting {
        match *self {
            Self::Uniform => Weighting { weights: vec![1.0], queries: Vec::new(), next: None },
            Self::Naive { count_noise } => naive::step(count_noise.multiplier(context), batch, context, release),
            Self::Multiplicative { rate, loss_bound, count_noise } => {
                let noise_multiplier = count_noise.multiplier(context);
                let settings = multiplicative::Settings { rate, loss_bound, noise_multiplier };
                multiplicative::step(&settings, memory, batch, context, release)
            }
            Self::RatesByLoss { rate, loss_bound, count_noise } => {
                let of_rates = Self::Multiplicative { rate, loss_bound, count_noise };
                Weighting { weights: vec![1.0], ..of_rates.step(memory, batch, context, release) }
            }
            Self::Own { ref weights, count_noise } => {
                own::step(weights, count_noise.multiplier(context), memory, batch, context, release)
            }
        }
    }

    /// Name in tables, the same as in JSON; of weights of one's own, their own.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Naive { .. } => "naive",
            Self::Multiplicative { .. } => "multiplicative",
            Self::RatesByLoss { .. } => "rates-by-loss",
            Self::Own { weights, .. } => weights.name(),
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ClipError> {
        match self {
            Self::Uniform => Ok(()),
            Self::Naive { count_noise } => count_noise.validate(),
            Self::Multiplicative { rate, loss_bound, count_noise }
            | Self::RatesByLoss { rate, loss_bound, count_noise } => {
                check("rate", *rate, 0.0.., "a finite number of at least 0")?;
                check("loss_bound", *loss_bound, THRESHOLD_RANGE, "a number in [2^-60, 2^60]")?;
                count_noise.validate()
            }
            Self::Own { weights, count_noise } => {
                weights.check_values()?;
                count_noise.validate()
            }
        }
    }
}
