//! Noisy counts: how much noise they get, and what is reported about them.

use rand::CryptoRng;
use serde::{Deserialize, Serialize};

use crate::{
    PublicContext,
    bound::NOISE_MULTIPLIER_RANGE,
    error::{ClipError, check},
    noise::StepNoise,
};

/// One noisy count (or vector of counts) that was released on a batch: a Gaussian query that the
/// accountant must charge.
///
/// It sees the same Poisson batch as the gradient, so a step with noise multipliers `σ, σ_1, …` is
/// one sampled Gaussian with `σ_eff = (σ⁻² + σ_1⁻² + …)^(-1/2)`, also where the gradient's bound
/// was chosen from the counts.
///
/// ```
/// use dp_clipping::{PublicContext, registry};
/// let context = PublicContext { n_groups: 2, expected_batch_size: 256.0, noise_multiplier: 1.0 };
/// let queries = registry::find("dpsgd-f")?.default_config().queries(&context);
/// assert_eq!((queries.len(), queries[0].l2_sensitivity, queries[0].noise_multiplier), (1, 1.0, 10.0));
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CountQuery {
    /// The counted quantity, for example `norms above the threshold`.
    pub name: String,
    /// Standard deviation of the noise divided by `l2_sensitivity`.
    pub noise_multiplier: f64,
    /// Largest change in L2 when one record is added or removed.
    pub l2_sensitivity: f64,
    /// The noisy values as released, before any clamping or rounding.
    pub released: Vec<f64>,
}

/// How much noise a count gets.
///
/// ```
/// use dp_clipping::{CountNoise, PublicContext};
/// let context = PublicContext { n_groups: 2, expected_batch_size: 256.0, noise_multiplier: 1.5 };
/// assert_eq!(CountNoise::TimesGradient(10.0).multiplier(&context), 15.0);
/// assert_eq!(CountNoise::Multiplier(10.0).multiplier(&context), 10.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountNoise {
    /// This noise multiplier.
    Multiplier(f64),
    /// This factor times the gradient's noise multiplier.
    TimesGradient(f64),
}

impl Default for CountNoise {
    /// Ten times the gradient's noise multiplier, as in Xu (σ1 = 10 σ2) and Zhao (σ_count = 10
    /// σ_grad): the counts then lower the effective noise multiplier by half a per cent.
    fn default() -> Self {
        Self::TimesGradient(10.0)
    }
}

impl CountNoise {
    /// The noise multiplier under a context.
    pub fn multiplier(&self, context: &PublicContext) -> f64 {
        match *self {
            Self::Multiplier(multiplier) => multiplier,
            Self::TimesGradient(factor) => factor * context.noise_multiplier,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ClipError> {
        let (Self::Multiplier(value) | Self::TimesGradient(value)) = *self;
        check("count_noise", value, NOISE_MULTIPLIER_RANGE, "a number in [0, 2^60]")
    }
}

/// Turns exact counts into released ones. Methods reach exact counts through this alone.
pub(crate) trait Release {
    fn release(&mut self, name: &str, exact: &[f64], l2_sensitivity: f64, noise_multiplier: f64) -> CountQuery;
}

/// Fresh noise `N(0, (noise_multiplier·l2_sensitivity)²)` on each count, rounded exactly to a
/// public grid (see [`crate::noise`]). A multiplier of 0 releases the counts as they are, which
/// costs ε = ∞.
pub(crate) struct Fresh<'a>(pub(crate) &'a mut dyn CryptoRng);

impl Release for Fresh<'_> {
    fn release(&mut self, name: &str, exact: &[f64], l2_sensitivity: f64, noise_multiplier: f64) -> CountQuery {
        let mut released = exact.to_vec();
        let noise_std = noise_multiplier * l2_sensitivity;
        if noise_std > 0.0 {
            StepNoise::draw(&mut *self.0, noise_std).add_f64(0, &mut released);
        }
        CountQuery { name: name.to_owned(), noise_multiplier, l2_sensitivity, released }
    }
}

/// Exact counts of an empty batch, which need no noise.
pub(crate) struct Planned;

impl Release for Planned {
    fn release(&mut self, name: &str, exact: &[f64], l2_sensitivity: f64, noise_multiplier: f64) -> CountQuery {
        CountQuery { name: name.to_owned(), noise_multiplier, l2_sensitivity, released: exact.to_vec() }
    }
}

/// Values released before, whatever the exact counts are now.
pub(crate) struct Recorded<'a> {
    values: std::slice::Iter<'a, Vec<f64>>,
    fits: bool,
}

impl<'a> Recorded<'a> {
    pub(crate) fn new(values: &'a [Vec<f64>]) -> Self {
        Self { values: values.iter(), fits: true }
    }

    /// Whether exactly the recorded values were asked for, and all are finite.
    pub(crate) fn fits(&self) -> bool {
        self.fits && self.values.len() == 0
    }
}

impl Release for Recorded<'_> {
    fn release(&mut self, name: &str, exact: &[f64], l2_sensitivity: f64, noise_multiplier: f64) -> CountQuery {
        let recorded = self
            .values
            .next()
            .filter(|values| values.len() == exact.len() && values.iter().all(|value| value.is_finite()));
        self.fits &= recorded.is_some();
        let released = recorded.cloned().unwrap_or_else(|| vec![0.0; exact.len()]);
        CountQuery { name: name.to_owned(), noise_multiplier, l2_sensitivity, released }
    }
}
