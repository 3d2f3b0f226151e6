//! Threshold controllers: the threshold in force at each step.

pub mod constant;
pub mod geometric;
pub mod per_group;

pub use geometric::{Bits, Counted};
pub use per_group::ShareOf;

use serde::{Deserialize, Serialize};

use crate::{
    ClipBatch, ClipError, CountNoise, CountQuery, PublicContext, bound::check_threshold, count::Release, error::check,
};

/// How the threshold moves between steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Controller {
    /// The same threshold at every step; see [`constant`].
    Constant {
        /// `C` or `Z`.
        threshold: f64,
    },
    /// A geometric update from one noisy count per step; see [`geometric`].
    Geometric {
        /// Threshold of the first step.
        initial: f64,
        /// Target γ of the released fraction.
        target: f64,
        /// Tolerance τ: a norm is compared with `τ` times the threshold.
        tolerance: f64,
        /// Rate η of the update.
        rate: f64,
        /// The threshold never falls below this; 0 for unbounded.
        lower_bound: f64,
        /// Which side of `τ` times the threshold is counted.
        counted: Counted,
        /// Raw or centred bits.
        bits: Bits,
        /// Noise of the count.
        count_noise: CountNoise,
    },
    /// One threshold per group from this step's noisy counts; see [`per_group`].
    PerGroup {
        /// `C0`.
        base: f64,
        /// What a group's share of clipped gradients is divided by.
        #[serde(default)]
        share_of: ShareOf,
        /// Noise of the counts.
        count_noise: CountNoise,
    },
}

/// What a controller decided at one step.
pub(crate) struct Control {
    /// Thresholds in force: one, or one per group.
    pub(crate) thresholds: Vec<f64>,
    /// The noisy count it made.
    pub(crate) query: Option<CountQuery>,
    /// Threshold of the next step, for controllers with memory.
    pub(crate) next: Option<f64>,
}

impl Controller {
    /// Threshold of the first step, for controllers with memory.
    pub(crate) fn initial_threshold(&self) -> Option<f64> {
        match *self {
            Self::Geometric { initial, .. } => Some(initial),
            Self::Constant { .. } | Self::PerGroup { .. } => None,
        }
    }

    /// One step. `memory` is what [`Control::next`] was at the step before.
    pub(crate) fn step(
        &self,
        memory: Option<f64>,
        batch: &ClipBatch<'_>,
        context: &PublicContext,
        release: &mut dyn Release,
    ) -> Control {
        match *self {
            Self::Constant { threshold } => constant::step(threshold),
            Self::Geometric { initial, target, tolerance, rate, lower_bound, counted, bits, count_noise } => {
                let current = memory.unwrap_or(initial);
                let (fraction, query) = geometric::release_fraction(
                    current * tolerance,
                    (counted, bits),
                    count_noise.multiplier(context),
                    batch,
                    context.expected_batch_size,
                    release,
                );
                let next = geometric::next_threshold(current, fraction, counted, target, rate, lower_bound);
                Control { thresholds: vec![current], query: Some(query), next: Some(next) }
            }
            Self::PerGroup { base, share_of, count_noise } => {
                per_group::step(base, share_of, count_noise.multiplier(context), batch, context, release)
            }
        }
    }

    /// Name in tables, the same as in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Constant { .. } => "constant",
            Self::Geometric { .. } => "geometric",
            Self::PerGroup { .. } => "per-group",
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ClipError> {
        match *self {
            Self::Constant { threshold } => check_threshold("threshold", threshold),
            Self::Geometric { initial, target, tolerance, rate, lower_bound, count_noise, .. } => {
                check_threshold("initial", initial)?;
                check("target", target, 0.0..=1.0, "0 to 1")?;
                check("tolerance", tolerance, 0.0.., "a finite number of at least 0")?;
                check("rate", rate, 0.0.., "a finite number of at least 0")?;
                if lower_bound != 0.0 {
                    check_threshold("lower_bound", lower_bound)?;
                }
                count_noise.validate()
            }
            Self::PerGroup { base, count_noise, .. } => {
                check_threshold("base", base)?;
                count_noise.validate()
            }
        }
    }
}
