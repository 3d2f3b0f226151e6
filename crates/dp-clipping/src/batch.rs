//! A method's input and output.

use serde::{Deserialize, Serialize};

use crate::{
    CountQuery,
    bound::{MAX_SCALE, MIN_SCALE, breaks, cap, is_valid_norm},
    error::{ClipError, check, check_lengths},
};

/// One Poisson batch as a method sees it: never the gradients, only their norms, the group of each
/// record and, where the caller has them, the losses.
///
/// **Shapes.** All slices `[batch]`; empty for a noise-only step.
///
/// ```
/// use dp_clipping::ClipBatch;
/// let batch = ClipBatch::new(&[0.5, 2.0], &[0, 1]);
/// assert_eq!((batch.norms[1], batch.groups[1]), (2.0, 1));
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ClipBatch<'a> {
    /// L2 norm of each per-sample gradient, accurate to about 1e-6 relative.
    pub norms: &'a [f64],
    /// Group of each record, `0..K`. Methods without group labels still check the length.
    pub groups: &'a [usize],
    /// Loss of each record; [`ClipConfig::needs_losses`](crate::ClipConfig::needs_losses) says which
    /// methods look at it.
    pub losses: Option<&'a [f64]>,
}

/// Without the norms, groups and losses, which are private.
impl std::fmt::Debug for ClipBatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClipBatch").field("n_records", &self.norms.len()).finish_non_exhaustive()
    }
}

impl<'a> ClipBatch<'a> {
    /// A batch of these norms and groups, without losses. They are checked by
    /// [`ClipMethod::clip`](crate::ClipMethod::clip).
    pub fn new(norms: &'a [f64], groups: &'a [usize]) -> Self {
        Self { norms, groups, losses: None }
    }

    /// The same batch with the loss of each record, or without.
    ///
    /// ```
    /// use dp_clipping::ClipBatch;
    /// let batch = ClipBatch::new(&[0.5, 2.0], &[0, 1]).with_losses(&[0.1, 0.7][..]);
    /// assert_eq!(batch.losses, Some(&[0.1, 0.7][..]));
    /// ```
    #[must_use]
    pub fn with_losses(self, losses: impl Into<Option<&'a [f64]>>) -> Self {
        Self { losses: losses.into(), ..self }
    }

    /// Checks lengths and group indices.
    pub(crate) fn validate(&self, n_groups: usize) -> Result<(), ClipError> {
        check_lengths("norms", self.norms.len(), "groups", self.groups.len())?;
        if let Some(losses) = self.losses {
            check_lengths("losses", losses.len(), "norms", self.norms.len())?;
        }
        match self.groups.iter().position(|&group| group >= n_groups) {
            Some(index) => Err(ClipError::GroupOutOfRange { index, value: self.groups[index], n_groups }),
            None => Ok(()),
        }
    }

    /// Norm and group of every record that takes part. A record without a valid norm is treated as
    /// absent everywhere, in the sum and in the counts, so that it is as private as a record that
    /// was not drawn.
    pub(crate) fn valid(&self) -> impl Iterator<Item = (f64, usize)> {
        self.norms.iter().copied().zip(self.groups.iter().copied()).filter(|&(norm, _)| is_valid_norm(norm))
    }

    /// Norm, unless it is not valid, and group of every record.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Option<f64>, usize)> {
        let norm = |norm: f64| is_valid_norm(norm).then_some(norm);
        self.norms.iter().map(move |&value| norm(value)).zip(self.groups.iter().copied())
    }

    /// Loss and group of every record that takes part; no records without losses.
    pub(crate) fn valid_losses(&self) -> impl Iterator<Item = (f64, usize)> {
        let losses = self.losses.unwrap_or_default().iter().copied();
        let records = self.norms.iter().zip(self.groups.iter().copied()).zip(losses);
        records.filter(|&((norm, _), _)| is_valid_norm(*norm)).map(|((_, group), loss)| (loss, group))
    }
}

/// A method's answer to one batch.
///
/// [`Self::new`] makes one. The fields of the same name take counts and thresholds afterwards.
///
/// **Example**
/// ```
/// use dp_clipping::rand::SeedableRng;
/// use dp_clipping::rand_chacha::ChaCha20Rng;
/// use dp_clipping::{ClipBatch, PresetParams, PublicContext, registry};
/// let context = PublicContext { n_groups: 1, expected_batch_size: 2.0, noise_multiplier: 1.0 };
/// let mut method = registry::find("dpsgd")?.config(&PresetParams::default())?.build(&context)?;
/// let clipped = method.clip(&ClipBatch::new(&[0.25, 4.0], &[0, 0]), &mut ChaCha20Rng::from_seed([0; 32]))?;
/// assert_eq!((clipped.bound, clipped.queries.len()), (1.0, 0));
/// assert!(clipped.scales[0] > 0.999 && clipped.scales[1] * 4.0 <= clipped.bound);
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Clipped {
    /// `s_i`, `[batch]`: 0, or between [`Self::MIN_SCALE`] and [`Self::MAX_SCALE`]. `s_i‖g_i‖ ≤
    /// bound·(1 − 2⁻¹⁸)` for every `i`: the headroom covers the rounding of norms, scales and
    /// products in f32. Exactly 0 for a norm that is not finite.
    pub scales: Vec<f64>,
    /// `S`: the sensitivity of `Σ s_i g_i` when one record is added or removed. The noise is `N(0,
    /// (σS)²)`.
    pub bound: f64,
    /// `S_k`, `[K]`: the bound for the records of group `k`; `bound` is their largest. Where it does
    /// not depend on this batch, group `k` has the larger noise multiplier `σ·S/S_k` at this step.
    pub group_bounds: Vec<f64>,
    /// Every noisy count made on this batch, in the order of
    /// [`crate::ClipConfig::count_noise_multipliers`].
    pub queries: Vec<CountQuery>,
    /// Thresholds in force at this step: one value, or one per group.
    pub thresholds: Vec<f64>,
    /// Records whose norm was not a finite number: they contribute nothing to the sum and to the
    /// counts. A diagnostic without noise, not to be released.
    pub n_non_finite: usize,
    /// Records with a finite norm whose scale was lowered because it broke the method's bound or was
    /// not a number. Always 0 for rules of this crate. A diagnostic without noise, not to be released.
    pub n_capped: usize,
}

impl Clipped {
    /// Smallest scale but 0: the smallest normal f32, 2⁻¹²⁶.
    pub const MIN_SCALE: f64 = MIN_SCALE;
    /// Largest scale, 2⁹⁶: finite in f32, with room for the product.
    pub const MAX_SCALE: f64 = MAX_SCALE;

    /// The answer with these scales, lowered where the bound of a record's group asks for it. It
    /// holds no counts and no thresholds.
    ///
    /// **Shapes.** `scales`: `[batch]`, `group_bounds`: `[K]`; the largest becomes [`Self::bound`].
    ///
    /// **Guarantee.** For every scale and every norm, NaN and ∞ included, `s_i‖g_i‖` is at most the
    /// bound of the record's group.
    ///
    /// # Errors
    /// [`ClipError::LengthMismatch`] unless there is one scale for each record;
    /// [`ClipError::GroupOutOfRange`] for a record of a group without a bound;
    /// [`ClipError::InvalidParameter`] for a bound that is negative or not finite, or for no bounds.
    ///
    /// ```
    /// use dp_clipping::{ClipBatch, Clipped};
    /// let batch = ClipBatch::new(&[0.5, 3_000.0, f64::NAN], &[0, 1, 1]);
    /// let clipped = Clipped::new(&batch, vec![1.0; 3], vec![1.0, 2.0])?;
    /// assert_eq!((clipped.bound, clipped.scales[0], clipped.scales[2]), (2.0, 1.0, 0.0));
    /// assert!(clipped.scales[1] * 3_000.0 <= 2.0);
    /// assert_eq!((clipped.n_capped, clipped.n_non_finite), (1, 1));
    /// # Ok::<(), dp_clipping::ClipError>(())
    /// ```
    pub fn new(batch: &ClipBatch<'_>, scales: Vec<f64>, group_bounds: Vec<f64>) -> Result<Self, ClipError> {
        check("length of group_bounds", group_bounds.len() as f64, 1.0.., "at least 1")?;
        let bound = group_bounds.iter().copied().fold(0.0, f64::max);
        let mut clipped = Self {
            scales,
            bound,
            group_bounds,
            queries: Vec::new(),
            thresholds: Vec::new(),
            n_non_finite: 0,
            n_capped: 0,
        };
        clipped.enforce(batch)?;
        Ok(clipped)
    }

    /// Lowers every scale until the bounds hold for these norms, and counts the records whose scale
    /// broke them. Any change of `scales`, `bound` or `group_bounds` after [`Self::new`] asks for
    /// this call before a sum is formed; [`clip_gradients`](crate::clip_gradients) makes it.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn enforce(&mut self, batch: &ClipBatch<'_>) -> Result<(), ClipError> {
        check_lengths("scales", self.scales.len(), "norms", batch.norms.len())?;
        batch.validate(self.group_bounds.len())?;
        for &bound in std::iter::once(&self.bound).chain(&self.group_bounds) {
            check("bound", bound, 0.0.., "a finite number of at least 0")?;
        }
        for ((scale, &norm), &group) in self.scales.iter_mut().zip(batch.norms).zip(batch.groups) {
            let bound = self.group_bounds[group].min(self.bound);
            self.n_capped += usize::from(breaks(*scale, norm, bound));
            *scale = cap(*scale, norm, bound);
        }
        self.n_non_finite = batch.norms.iter().filter(|&&norm| !is_valid_norm(norm)).count();
        Ok(())
    }
}
