//! Sample weights: a factor per group on every scale.

pub mod naive;

use serde::{Deserialize, Serialize};

use crate::{ClipBatch, ClipError, CountNoise, CountQuery, PublicContext, count::Release};

/// How much the records of each group count.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Weights {
    /// 1 for every record.
    #[default]
    Uniform,
    /// `θ_k = (B/K)/b̃_k` from this step's noisy group sizes; see [`naive`].
    Naive {
        /// Noise of the group sizes.
        count_noise: CountNoise,
    },
}

/// What the weights were at one step.
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
