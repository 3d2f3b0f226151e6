//! Sample weights: a factor per group on every scale.

mod naive;

use serde::{Deserialize, Serialize};

use crate::{ClipBatch, ClipError, CountNoise, CountQuery, PublicContext, count::Release};

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
}

/// The weights of one step.
pub(crate) struct Weighting {
    /// One weight, or one per group.
    pub(crate) weights: Vec<f64>,
    /// The noisy count behind them.
    pub(crate) query: Option<CountQuery>,
}

impl Weights {
    pub(crate) fn step(&self, batch: &ClipBatch<'_>, context: &PublicContext, release: &mut dyn Release) -> Weighting {
        match *self {
            Self::Uniform => Weighting { weights: vec![1.0], query: None },
            Self::Naive { count_noise } => naive::step(count_noise.multiplier(context), batch, context, release),
        }
    }

    /// Name in tables, the same as in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Naive { .. } => "naive",
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ClipError> {
        match self {
            Self::Uniform => Ok(()),
            Self::Naive { count_noise } => count_noise.validate(),
        }
    }
}
