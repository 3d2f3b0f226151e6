//! The public facts that a method may use.

use serde::{Deserialize, Serialize};

use crate::{
    bound::NOISE_MULTIPLIER_RANGE,
    bound::THRESHOLD_RANGE,
    error::{ClipError, check},
};

/// The public facts a method needs; nothing in it may depend on the records.
///
/// **Units.** `noise_multiplier` is σ: standard deviation of the gradient noise divided by the
/// bound.
///
/// ```
/// use dp_clipping::PublicContext;
/// let context = PublicContext { n_groups: 2, expected_batch_size: 256.0, noise_multiplier: 1.0 };
/// assert!(context.validate().is_ok());
/// let no_groups = PublicContext { n_groups: 0, ..context };
/// assert_eq!(no_groups.validate().unwrap_err().to_string(), "n_groups = 0: expected at least 1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicContext {
    /// Number of groups `K`, at least 1.
    pub n_groups: usize,
    /// Expected size `B = q·n` of a Poisson batch, the denominator of every released mean. The
    /// realised size is private.
    pub expected_batch_size: f64,
    /// Noise multiplier σ of the gradient query, 0 for an analysis without noise.
    pub noise_multiplier: f64,
}

impl PublicContext {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`ClipError::InvalidParameter`] for no groups, a batch size outside 2⁻⁶⁰ to 2⁶⁰, or a noise
    /// multiplier outside 0 to 2⁶⁰.
    pub fn validate(&self) -> Result<(), ClipError> {
        check("n_groups", self.n_groups as f64, 1.0.., "at least 1")?;
        check("expected_batch_size", self.expected_batch_size, THRESHOLD_RANGE, "a number in [2^-60, 2^60]")?;
        check("noise_multiplier", self.noise_multiplier, NOISE_MULTIPLIER_RANGE, "a number in [0, 2^60]")
    }
}
