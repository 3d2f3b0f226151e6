//! The interface between clipping and training.

use std::fmt::Debug;

use rand::CryptoRng;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ClipBatch, ClipConfig, ClipError, Clipped, ScaleRule, bound::cap};

/// A per-sample transform: norms, groups and losses in, scales and their bound out, every noisy
/// count reported.
///
/// **Guarantee.** Given the counts already released, adding or removing one record changes `Σ s_i
/// g_i` by at most [`Clipped::bound`] in L2 and each count by at most its declared sensitivity. The
/// bound and the thresholds are functions of released values only.
///
/// # A rule of your own
/// [`Clipped::new`] lowers every scale until the declared bounds hold, and
/// [`clip_gradients`](crate::clip_gradients) does so again with the norms that it measured. A rule
/// with a mistake can therefore spoil a model, but not exceed its bounds. It remains for the rule
/// to derive bounds from public and released values alone, and to report every count.
///
/// ```
/// use dp_clipping::{ClipBatch, ClipError, ClipMethod, Clipped, clip_gradients};
/// use dp_clipping::kernels::{KernelExecution, Gradients};
/// use dp_clipping::rand::{CryptoRng, SeedableRng};
/// use dp_clipping::rand_chacha::ChaCha20Rng;
///
/// /// `min(1, (C/‖g‖)²)`: large gradients count less than under hard clipping.
/// #[derive(Debug)]
/// struct Squared {
///     threshold: f64,
///     n_groups: usize,
/// }
///
/// impl ClipMethod for Squared {
///     fn clip(&mut self, batch: &ClipBatch<'_>, _: &mut dyn CryptoRng) -> Result<Clipped, ClipError> {
///         let scales = batch.norms.iter().map(|norm| (self.threshold / norm).powi(2).min(1.0)).collect();
///         Clipped::new(batch, scales, vec![self.threshold; self.n_groups])
///     }
/// }
///
/// let mut method = Squared { threshold: 1.0, n_groups: 1 };
/// let gradients = Gradients::from_slice(&[0.0, 2.0, 0.5, 0.0, f64::NAN, 1.0], 2)?;
/// let (mut sum, mut rng) = ([0.0; 2], ChaCha20Rng::seed_from_u64(7));
/// let clipped = clip_gradients(&mut method, &gradients, &[0, 0, 0], &mut rng, &mut sum, &KernelExecution::default())?;
/// // (0, 2)·¼ + (½, 0); the record that is not a number adds nothing.
/// assert_eq!(sum, [0.5, 0.5]);
/// assert_eq!((clipped.bound, clipped.n_non_finite, clipped.n_capped), (1.0, 1, 0));
/// # Ok::<(), ClipError>(())
/// ```
pub trait ClipMethod: Debug + Send {
    /// Scales for one Poisson batch; moves the thresholds on to the next step.
    ///
    /// **Edge cases.** An empty batch is a noise-only step: no scales, and the counts are noise. A
    /// norm that is not finite gets scale 0 and counts nowhere.
    ///
    /// # Errors
    /// [`ClipError::LengthMismatch`] and [`ClipError::GroupOutOfRange`] for a malformed batch;
    /// [`ClipError::InvalidParameter`] for a batch without losses where the method needs them. The
    /// state is then unchanged.
    fn clip(&mut self, batch: &ClipBatch<'_>, rng: &mut dyn CryptoRng) -> Result<Clipped, ClipError>;

    /// The scale that the next [`ClipMethod::clip`] will give to the records of a group, if it does
    /// not depend on that batch. Norms and sum then take one pass over the gradients; see
    /// [`crate::clip_gradients`].
    fn scale_in_advance(&self, _group: usize) -> Option<AdvanceScale> {
        None
    }

    /// The state for a checkpoint, in a form of the method's choice: a [`MethodState`] for the
    /// methods of this crate, `null` by default for a method that keeps nothing between steps.
    fn state(&self) -> Value {
        Value::Null
    }

    /// Continues from [`Self::state`]. A method that keeps nothing takes `null` and nothing else.
    ///
    /// # Errors
    /// [`ClipError::StateMismatch`] if the state was saved by another configuration,
    /// [`ClipError::InvalidParameter`] if a threshold is out of range.
    fn restore(&mut self, state: &Value) -> Result<(), ClipError> {
        if state.is_null() { Ok(()) } else { Err(ClipError::StateMismatch { what: "form" }) }
    }
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
        cap(self.rule.scale(norm, self.threshold), norm, self.bound())
    }

    /// The rule's bound on `scale·norm`.
    #[inline]
    pub fn bound(&self) -> f64 {
        self.rule.bound(self.threshold)
    }
}

/// State between two steps of a method that a [`ClipConfig`] built.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MethodState {
    /// The configuration that the state belongs to.
    pub config: ClipConfig,
    /// Steps taken.
    pub steps: u64,
    /// Threshold of the next step; `None` where the controller has no memory.
    pub threshold: Option<f64>,
    /// Weights of the groups at the next step, `[K]`; `None` where they have no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f64>>,
}

impl MethodState {
    /// Reads the state that [`ClipMethod::state`] returned.
    ///
    /// # Errors
    /// [`ClipError::StateMismatch`] if it has another form or its configuration is out of range.
    pub fn from_value(state: &Value) -> Result<Self, ClipError> {
        Self::deserialize(state).map_err(|_| ClipError::StateMismatch { what: "form" })
    }

    /// The form that [`ClipMethod::restore`] takes.
    pub fn to_value(&self) -> Value {
        // Cannot fail: numbers, names and no keys but texts.
        serde_json::json!(self)
    }
}
