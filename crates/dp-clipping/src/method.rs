//! The interface between clipping and training.

use rand::CryptoRng;
use serde::{Deserialize, Serialize};

use crate::{ClipBatch, ClipConfig, ClipError, Clipped, ScaleRule, bound::cap};

/// A per-sample transform: norms and groups in, scales and their bound out, every noisy count
/// reported.
///
/// **Guarantee.** Given the counts already released, adding or removing one record changes `Σ s_i
/// g_i` by at most [`Clipped::bound`] in L2 and each count by at most its declared sensitivity. The
/// bound and the thresholds are functions of released values only.
pub trait ClipMethod: Send {
    /// Scales for one Poisson batch; moves the thresholds on to the next step.
    ///
    /// **Edge cases.** An empty batch is a noise-only step: no scales, and the counts are noise. A
    /// norm that is not finite gets scale 0 and counts nowhere.
    ///
    /// # Errors
    /// [`ClipError::LengthMismatch`] and [`ClipError::GroupOutOfRange`] for a malformed batch; the
    /// state is then unchanged.
    fn clip(&mut self, batch: &ClipBatch<'_>, rng: &mut dyn CryptoRng) -> Result<Clipped, ClipError>;

    /// The scale that the next [`ClipMethod::clip`] will give to the records of a group, if it does
    /// not depend on that batch. Norms and sum then take one pass over the gradients; see
    /// [`crate::clip_gradients`].
    fn scale_in_advance(&self, _group: usize) -> Option<AdvanceScale> {
        None
    }

    /// The state for a checkpoint.
    fn state(&self) -> MethodState;

    /// Continues from a checkpoint.
    ///
    /// # Errors
    /// [`ClipError::StateMismatch`] if the state was saved by another configuration,
    /// [`ClipError::InvalidParameter`] if a threshold is out of range.
    fn restore(&mut self, state: &MethodState) -> Result<(), ClipError>;
}

/// A rule at a threshold: the scale of a record where it does not depend on the other records of the
/// batch.
///
/// ```
/// use dp_clipping::{AdvanceScale, ScaleRule};
/// let hard = AdvanceScale { rule: ScaleRule::Hard, threshold: 1.0 };
/// assert_eq!(hard.scale(0.5), 1.0);
/// assert!(hard.scale(4.0) * 4.0 <= 1.0 && hard.scale(4.0) > 0.2499);
/// assert_eq!(hard.scale(f64::NAN), 0.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdvanceScale {
    /// The rule.
    pub rule: ScaleRule,
    /// The threshold in force.
    pub threshold: f64,
}

impl AdvanceScale {
    /// The scale of a record with this norm, bounded in floating point: for every norm, NaN and ∞
    /// included, `scale·norm` is at most the rule's bound.
    #[inline]
    pub fn scale(&self, norm: f64) -> f64 {
        cap(self.rule.scale(norm, self.threshold), norm, self.rule.bound(self.threshold))
    }
}

/// State of a method between two steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MethodState {
    /// The configuration that the state belongs to.
    pub config: ClipConfig,
    /// Steps taken.
    pub steps: u64,
    /// Threshold of the next step; `None` where the controller has no memory.
    pub threshold: Option<f64>,
}
