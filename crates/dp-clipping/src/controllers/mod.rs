//! Threshold controllers: the threshold in force at each step.

mod constant;
mod geometric;
mod own;
mod per_group;

pub use geometric::{Bits, Counted};
pub use own::OwnController;
pub use per_group::ShareOf;

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::{
    ClipBatch, ClipError, CountNoise, CountQuery, Own, PublicContext,
    bound::{THRESHOLD_RANGE, check_threshold},
    count::Release,
    error::check,
};

/// How the threshold moves between steps.
///
/// ```
/// use dp_clipping::Controller;
/// let constant = Controller::Constant { threshold: 0.5 };
/// assert_eq!((constant.name(), constant.first_threshold()), ("constant", 0.5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Controller {
    /// The same public threshold at every step, without a count.
    Constant {
        /// `C` or `Z`.
        threshold: f64,
    },
    /// The same, of the group that is drawn least often. A group that is drawn more often has a smaller
    /// threshold, so that the guarantee of every group is the same: the share of `C` follows from the
    /// rates, which the trainer knows. Where all groups are drawn alike it is 1.
    ByRate {
        /// `C`.
        threshold: f64,
    },
    /// A geometric update from one noisy count per step, which steers a fraction of the batch
    /// towards a target.
    ///
    /// If the norms above `τC` are counted, `C ← max(C_LB, C·exp(η(b̃ − γ)))`; if those within, `C ←
    /// max(C_LB, C·exp(−η(b̃ − γ)))`. The released fraction is `b̃ = (Σ bits + noise)/B` with the
    /// public expected batch size `B`.
    ///
    /// | method | counted | τ | η | γ |
    /// |---|---|---|---|---|
    /// | Andrew 2021; SoftAdaClip | within | 1 | η_C | γ |
    /// | Esipova 2023 (Global-Adapt, threshold `Z`) | above | τ | 1 | η_Z |
    /// | Zhao 2025 | above | τ | η_C | γ |
    ///
    /// **Edge cases.** An empty batch moves the threshold by noise alone. The threshold stays in
    /// [`Self::THRESHOLD_RANGE`].
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
    /// One threshold per group, from the noisy counts of the same step.
    ///
    /// `m_k` records of group `k` have a norm above `C0`, `o_k` do not. From the noisy `m̃_k, õ_k`:
    /// `C_k = C0·(1 + (m̃_k/b̃_k)/(m̃/B))` with `b̃_k = m̃_k + õ_k`, `m̃ = Σ m̃_k` and the public
    /// expected batch size `B`.
    ///
    /// **Guarantee.** One record changes one of the `2K` counts by one: L2 sensitivity 1. The
    /// thresholds are post-processing, so the gradient's noise must scale with `max_k C_k` over
    /// *all* groups.
    ///
    /// **Edge cases.** Negative noisy counts are clamped as the authors' code does, `max(⌊·⌋, 0)`;
    /// a group whose `b̃_k` is 0, and every group when `m̃` is 0, gets `C_k = C0`
    /// ([`ShareOf::Groups`] differs). `C_k ≤ C0·(1 + B)` follows.
    ///
    /// **Source.** Xu 2021, Algorithm 2. Esipova 2023, Algorithm 3 prints noise `σ2·C0`, which is
    /// too little; Esipova's code uses the largest `C_k` among groups present in the batch, which
    /// is private, and the unweighted mean of the groups' ratios in place of `m̃/B`
    /// ([`ShareOf::Groups`]).
    PerGroup {
        /// `C0`.
        base: f64,
        /// Divisor of a group's share of clipped gradients.
        #[serde(default)]
        share_of: ShareOf,
        /// Noise of the counts.
        count_noise: CountNoise,
    },
    /// A controller from outside of this crate ([`OwnController`]).
    Own {
        /// The controller, with its parameters.
        controller: Own<dyn OwnController>,
        /// Threshold of the first step.
        initial: f64,
        /// Noise of its counts, if it has any.
        count_noise: CountNoise,
    },
}

/// A controller's decision at one step.
pub(crate) struct Control {
    /// Thresholds in force: one, or one per group.
    pub(crate) thresholds: Vec<f64>,
    /// The noisy count it made.
    pub(crate) query: Option<CountQuery>,
    /// Threshold of the next step, for controllers with memory.
    pub(crate) next: Option<f64>,
}

impl Controller {
    /// Range of every threshold and clipping norm, 2⁻⁶⁰ to 2⁶⁰, so that neither they nor their squares
    /// leave the normal range of f32. A controller that would run to 0 or ∞ stops here; stopping is
    /// post-processing.
    pub const THRESHOLD_RANGE: RangeInclusive<f64> = THRESHOLD_RANGE;

    /// The threshold that the controller begins with: constant, initial or base.
    pub fn first_threshold(&self) -> f64 {
        match *self {
            Self::Constant { threshold } | Self::ByRate { threshold } => threshold,
            Self::Geometric { initial, .. } | Self::Own { initial, .. } => initial,
            Self::PerGroup { base, .. } => base,
        }
    }

    /// Threshold of the first step, for controllers with memory.
    pub(crate) fn initial_threshold(&self) -> Option<f64> {
        match *self {
            Self::Geometric { initial, .. } | Self::Own { initial, .. } => Some(initial),
            Self::Constant { .. } | Self::ByRate { .. } | Self::PerGroup { .. } => None,
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
            Self::Constant { threshold } | Self::ByRate { threshold } => constant::step(threshold),
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
            Self::Own { ref controller, initial, count_noise } => {
                let current = memory.unwrap_or(initial);
                own::step(controller, current, count_noise.multiplier(context), batch, context, release)
            }
        }
    }

    /// Name in tables, the same as in JSON; of a controller of one's own, its own.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Constant { .. } => "constant",
            Self::ByRate { .. } => "by-rate",
            Self::Geometric { .. } => "geometric",
            Self::PerGroup { .. } => "per-group",
            Self::Own { controller, .. } => controller.name(),
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ClipError> {
        match *self {
            Self::Constant { threshold } | Self::ByRate { threshold } => check_threshold("threshold", threshold),
            Self::Geometric { initial, target, tolerance, rate, lower_bound, count_noise, .. } => {
                check_threshold("initial", initial)?;
                check("target", target, 0.0..=1.0, "a number in [0, 1]")?;
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
            Self::Own { ref controller, initial, count_noise } => {
                controller.check_values()?;
                check_threshold("initial", initial)?;
                count_noise.validate()
            }
        }
    }
}
