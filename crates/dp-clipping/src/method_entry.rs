//! A named method and its settings.

use serde::{Deserialize, Serialize};

use crate::{
    ClipConfig, ClipError, CountNoise, FairlensForm, ShareOf,
    bound::{THRESHOLD_RANGE, check_threshold},
    error::check,
};

/// The settings a study varies. A preset reads those it needs; `None` means the value of the
/// method's paper.
///
/// ```
/// use dp_clipping::{PresetParams, registry};
/// let params = PresetParams { clip_norm: 0.5, target: Some(0.3), ..PresetParams::default() };
/// let config = registry::find("adaptive")?.config(&params)?;
/// assert_eq!(config.controller.first_threshold(), 0.5);
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PresetParams {
    /// Clipping norm: `C`, `C0`, or the first threshold of an adaptive method.
    pub clip_norm: f64,
    /// First (or constant) upper bound `Z` of the global methods; 50 by default.
    pub upper_bound: Option<f64>,
    /// Tolerance τ of the geometric controllers.
    pub tolerance: Option<f64>,
    /// Rate η_C of the geometric controllers; η of the weights of `group-dro`.
    pub rate: Option<f64>,
    /// Target γ of the geometric controllers; η_Z of Global-Adapt.
    pub target: Option<f64>,
    /// Lower bound `C_LB` of the bounded methods, a tenth of the first threshold by default; of
    /// `adaptive` and `soft-adaptive`, which have none by default.
    pub lower_bound: Option<f64>,
    /// Bound `L` that the losses of `group-dro` are clamped to, in nats; 1 by default.
    pub loss_bound: Option<f64>,
    /// Noise of every count.
    pub count_noise: CountNoise,
    /// DPSGD-F's divisor of a group's share of clipped gradients.
    pub share_of: ShareOf,
    /// FairLens's γ1 and γ2; both 1 by default.
    pub fairlens_weights: Option<[f64; 2]>,
    /// Whose FairLens.
    pub fairlens_form: FairlensForm,
}

impl Default for PresetParams {
    fn default() -> Self {
        Self {
            clip_norm: 1.0,
            upper_bound: None,
            tolerance: None,
            rate: None,
            target: None,
            lower_bound: None,
            loss_bound: None,
            count_noise: CountNoise::default(),
            share_of: ShareOf::default(),
            fairlens_weights: None,
            fairlens_form: FairlensForm::default(),
        }
    }
}

impl PresetParams {
    /// Checks every given number, by the name that it has here.
    fn validate(&self) -> Result<(), ClipError> {
        let given = |value: Option<f64>, check: &dyn Fn(f64) -> Result<(), ClipError>| value.map_or(Ok(()), check);
        let at_least_0 = "a finite number of at least 0";
        check_threshold("clip_norm", self.clip_norm)?;
        given(self.upper_bound, &|value| check_threshold("upper_bound", value))?;
        given(self.tolerance, &|value| check("tolerance", value, 0.0.., at_least_0))?;
        given(self.rate, &|value| check("rate", value, 0.0.., at_least_0))?;
        given(self.target, &|value| check("target", value, 0.0..=1.0, "a number in [0, 1]"))?;
        given(self.lower_bound, &|value| match value {
            0.0 => Ok(()),
            _ => check("lower_bound", value, THRESHOLD_RANGE, "0, or a number in [2^-60, 2^60]"),
        })?;
        given(self.loss_bound, &|value| check_threshold("loss_bound", value))?;
        self.count_noise.validate()?;
        self.fairlens_weights
            .iter()
            .flatten()
            .try_for_each(|&value| check("fairlens_weights", value, 0.0.., at_least_0))
    }

    /// The value of a setting, as text.
    fn text(&self, setting: &str) -> String {
        serde_json::json!(self)[setting].to_string()
    }
}

/// A named method.
///
/// ```
/// use dp_clipping::{PresetParams, registry};
/// let dpsgd = registry::find("dpsgd")?;
/// let config = dpsgd.config(&PresetParams { clip_norm: 0.5, ..PresetParams::default() })?;
/// assert_eq!(config.rule.name(), "hard");
///
/// let steered = PresetParams { target: Some(0.5), ..PresetParams::default() };
/// let error = dpsgd.config(&steered).unwrap_err();
/// assert_eq!(error.to_string(), "target = 0.5: expected none, because dpsgd does not read it");
/// assert!(registry::find("adaptive")?.config(&steered).is_ok());
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct MethodEntry {
    /// Its one name everywhere, for example `dpsgd-f`.
    pub name: &'static str,
    /// As papers and tables write it, for example `DPSGD-F`.
    pub label: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Where this implementation differs from the published text or code, and why; empty if
    /// nowhere.
    pub differs: &'static str,
    /// Its rule, controller, weights and coupling under these settings, unchecked. Settings that the
    /// method does not read have no effect; [`Self::config`] refuses them.
    pub preset: fn(&PresetParams) -> ClipConfig,
}

impl MethodEntry {
    /// The configuration under these settings.
    ///
    /// # Errors
    /// [`ClipError::InvalidParameter`] for a setting that is out of range, or that differs from the
    /// default and that this method does not read.
    pub fn config(&self, params: &PresetParams) -> Result<ClipConfig, ClipError> {
        params.validate()?;
        if let Some(setting) = self.unread(params).into_iter().next() {
            let expected = format!("none, because {} does not read it", self.name);
            return Err(ClipError::invalid(setting, params.text(setting), expected));
        }
        let config = (self.preset)(params);
        config.validate()?;
        Ok(config)
    }

    /// The configuration under the values of the method's paper.
    pub fn default_config(&self) -> ClipConfig {
        (self.preset)(&PresetParams::default())
    }

    /// The settings that differ from the default and that this method does not read.
    pub fn unread(&self, params: &PresetParams) -> Vec<&'static str> {
        let default = PresetParams::default();
        // Whether two values of a setting make two configurations.
        let reads = |change: &dyn Fn(f64, &mut PresetParams)| {
            let [one, other] = [0.25, 0.75].map(|value| {
                let mut params = default;
                change(value, &mut params);
                (self.preset)(&params)
            });
            one != other
        };
        let unread = |name, is_given: bool, change: &dyn Fn(f64, &mut PresetParams)| {
            (is_given && !reads(change)).then_some(name)
        };
        [
            unread("clip_norm", params.clip_norm != default.clip_norm, &|value, params| params.clip_norm = value),
            unread("upper_bound", params.upper_bound.is_some(), &|value, params| params.upper_bound = Some(value)),
            unread("tolerance", params.tolerance.is_some(), &|value, params| params.tolerance = Some(value)),
            unread("rate", params.rate.is_some(), &|value, params| params.rate = Some(value)),
            unread("target", params.target.is_some(), &|value, params| params.target = Some(value)),
            unread("lower_bound", params.lower_bound.is_some(), &|value, params| params.lower_bound = Some(value)),
            unread("loss_bound", params.loss_bound.is_some(), &|value, params| params.loss_bound = Some(value)),
            unread("count_noise", params.count_noise != default.count_noise, &|value, params| {
                params.count_noise = CountNoise::Multiplier(value);
            }),
            unread("share_of", params.share_of != default.share_of, &|value, params| {
                params.share_of = if value < 0.5 { ShareOf::Batch } else { ShareOf::Groups };
            }),
            unread("fairlens_weights", params.fairlens_weights.is_some(), &|value, params| {
                params.fairlens_weights = Some([value; 2]);
            }),
            unread("fairlens_form", params.fairlens_form != default.fairlens_form, &|value, params| {
                params.fairlens_form = if value < 0.5 { FairlensForm::Paper } else { FairlensForm::Code };
            }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
