//! Scale rules: `s` from a gradient's norm and a threshold, with the bound on `s‖g‖`.
//!
//! The modules give each formula in real arithmetic; [`cap`](crate::bound::cap) makes its bound hold
//! in floating point.

mod automatic;
mod global_clip;
mod global_drop;
mod global_tanh;
mod hard;
mod normalised;
mod own;
mod tanh;

pub use own::{OwnBound, OwnRule};

use serde::{Deserialize, Serialize};

use crate::{ClipError, Own, bound::check_threshold, error::check};

/// How a record's scale follows from its norm and the threshold in force, a clipping norm `C` or an
/// upper bound `Z`.
///
/// ```
/// use dp_clipping::ScaleRule;
/// // A gradient of norm 4 at threshold 1.
/// assert_eq!((ScaleRule::Hard.scale(4.0, 1.0), ScaleRule::Hard.bound(1.0)), (0.25, 1.0));
/// // At threshold ½ the normalised rule has the bound 1 all the same.
/// assert_eq!((ScaleRule::Normalised.scale(4.0, 0.5), ScaleRule::Normalised.bound(0.5)), (0.25, 1.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ScaleRule {
    /// `min(1, C/‖g‖)`, bound `C` (Abadi et al. 2016).
    Hard,
    /// `min(1/C, 1/‖g‖)`, bound 1 whatever the threshold: hard clipping divided by `C`, so that the
    /// learning rate does not have to follow the threshold (De et al. 2022).
    Normalised,
    /// `C0/Z` up to norm `Z`, 0 above; bound `C0`. All kept gradients are scaled alike, so their
    /// sum keeps the unclipped direction (Bu et al. 2021).
    GlobalDrop {
        /// `C0`.
        clip_norm: f64,
    },
    /// `C0/Z` up to norm `Z`, `C0/‖g‖` above; bound `C0`. Gradients above `Z`, which often belong
    /// to small groups, are kept (Esipova 2023, Algorithm 2).
    GlobalClip {
        /// `C0`.
        clip_norm: f64,
    },
    /// `(C0/Z)·tanh(Z/(‖g‖ + 1e-6))`, bound `C0`: as `GlobalClip`, but large gradients tend to norm
    /// `C0` without becoming equal (new here).
    GlobalTanh {
        /// `C0`.
        clip_norm: f64,
    },
    /// `tanh(C/(‖g‖ + 1e-6))`, bound `C`. Two large gradients keep their order, where hard clipping
    /// makes them equal (Soleymani 2025, Algorithms 2 and 3).
    Tanh,
    /// `C/(‖g‖ + γ)`, bound `C`. Every gradient is normalised; γ keeps the order of small ones (Bu
    /// et al. 2023).
    Automatic {
        /// Stability constant γ: 0.01 in AUTO-S, 0 in AUTO-V.
        stability: f64,
    },
    /// A rule from outside of this crate, held to the bound that is declared beside it.
    ///
    /// ```
    /// use dp_clipping::{
    ///     ClipConfig, Controller, MethodEntry, Own, OwnBound, OwnRule, PresetParams, ScaleRule, Weights, check, registry,
    /// };
    ///
    /// /// `min(1, (C/‖g‖)²)`: large gradients count less than under hard clipping.
    /// #[derive(Debug)]
    /// struct Squared;
    ///
    /// impl OwnRule for Squared {
    ///     fn name(&self) -> &'static str {
    ///         "squared"
    ///     }
    ///     fn scale(&self, norm: f64, threshold: f64, _: &[f64]) -> f64 {
    ///         (threshold / norm).powi(2).min(1.0)
    ///     }
    /// }
    ///
    /// let rule = ScaleRule::Own { rule: Own::rule(&Squared, &[]), bound: OwnBound::Threshold };
    /// assert_eq!((rule.scale(4.0, 1.0), rule.bound(1.0), rule.name()), (0.0625, 1.0, "squared"));
    /// // From norm 1 on its contribution falls, as it is meant to.
    /// assert!(check(&rule).iter().all(|finding| finding.contains("falls")));
    ///
    /// // Known by name from here on, to this whole program.
    /// registry::register(MethodEntry {
    ///     name: "squared-clipping",
    ///     label: "Squared clipping",
    ///     summary: "hard clipping whose scale is squared",
    ///     source: "an example",
    ///     differs: "",
    ///     preset: |params| {
    ///         let rule = ScaleRule::Own { rule: Own::rule(&Squared, &[]), bound: OwnBound::Threshold };
    ///         ClipConfig::new(rule, Controller::Constant { threshold: params.clip_norm }, Weights::Uniform)
    ///     },
    /// })?;
    /// let config = registry::find("squared-clipping")?.config(&PresetParams::default())?;
    /// assert_eq!(config.own_parts(), ["squared"]);
    /// # Ok::<(), dp_clipping::ClipError>(())
    /// ```
    Own {
        /// The rule, with its parameters.
        rule: Own<dyn OwnRule>,
        /// What it declares.
        bound: OwnBound,
    },
}

impl ScaleRule {
    /// `s` for a finite norm, by the formula alone. [`AdvanceScale::scale`](crate::AdvanceScale::scale)
    /// lowers it so that the bound holds in floating point.
    #[inline]
    pub fn scale(&self, norm: f64, threshold: f64) -> f64 {
        match *self {
            Self::Hard => hard::scale(norm, threshold),
            Self::Normalised => normalised::scale(norm, threshold),
            Self::GlobalDrop { clip_norm } => global_drop::scale(norm, threshold, clip_norm),
            Self::GlobalClip { clip_norm } => global_clip::scale(norm, threshold, clip_norm),
            Self::GlobalTanh { clip_norm } => global_tanh::scale(norm, threshold, clip_norm),
            Self::Tanh => tanh::scale(norm, threshold),
            Self::Automatic { stability } => automatic::scale(norm, threshold, stability),
            Self::Own { ref rule, .. } if norm.is_finite() => rule.part().scale(norm, threshold, rule.values()),
            Self::Own { .. } => 0.0,
        }
    }

    /// Bound on `s‖g‖` under a threshold.
    #[inline]
    pub fn bound(&self, threshold: f64) -> f64 {
        match *self {
            Self::Hard | Self::Tanh | Self::Automatic { .. } | Self::Own { bound: OwnBound::Threshold, .. } => {
                threshold
            }
            Self::Normalised => 1.0,
            Self::GlobalDrop { clip_norm } | Self::GlobalClip { clip_norm } | Self::GlobalTanh { clip_norm } => {
                clip_norm
            }
            Self::Own { bound: OwnBound::Constant(bound), .. } => bound,
        }
    }

    /// Name in tables, the same as in JSON; of a rule of one's own, its own.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Normalised => "normalised",
            Self::GlobalDrop { .. } => "global-drop",
            Self::GlobalClip { .. } => "global-clip",
            Self::GlobalTanh { .. } => "global-tanh",
            Self::Tanh => "tanh",
            Self::Automatic { .. } => "automatic",
            Self::Own { rule, .. } => rule.name(),
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ClipError> {
        match *self {
            Self::Hard | Self::Normalised | Self::Tanh => Ok(()),
            Self::GlobalDrop { clip_norm } | Self::GlobalClip { clip_norm } | Self::GlobalTanh { clip_norm } => {
                check_threshold("clip_norm", clip_norm)
            }
            Self::Automatic { stability } => check("stability", stability, 0.0.., "a finite number of at least 0"),
            Self::Own { ref rule, bound } => {
                rule.check_values()?;
                match bound {
                    OwnBound::Threshold => Ok(()),
                    OwnBound::Constant(bound) => check_threshold("bound", bound),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tanh` is the paper's example, norms 1.1 and 1.2 at C = 1: its tanh(0.91) ≈ 0.72 and
    /// tanh(0.83) ≈ 0.68.
    #[test]
    fn formulas_by_hand() {
        assert_eq!(automatic::scale(0.75, 1.0, 0.25), 1.0);
        assert_eq!(automatic::scale(3.75, 1.0, 0.25), 0.25);
        assert_eq!(global_clip::scale(3.0, 50.0, 0.5), 0.01);
        assert_eq!(global_clip::scale(100.0, 50.0, 0.5), 0.005);
        assert_eq!(global_drop::scale(50.0, 50.0, 0.5), 0.01);
        assert_eq!(global_drop::scale(50.1, 50.0, 0.5), 0.0);
        assert!((global_tanh::scale(0.1, 50.0, 0.5) - 0.01).abs() < 1e-12);
        assert!((global_tanh::scale(1e6, 50.0, 0.5) * 1e6 - 0.5).abs() < 1e-8);
        assert_eq!(hard::scale(4.0, 1.0), 0.25);
        assert_eq!(hard::scale(0.5, 1.0), 1.0);
        assert_eq!(normalised::scale(4.0, 0.5), 0.25);
        assert_eq!(normalised::scale(0.25, 0.5), 2.0);
        assert!((tanh::scale(1.1, 1.0) - 0.7207).abs() < 5e-5);
        assert!((tanh::scale(1.2, 1.0) - 0.6823).abs() < 5e-5);
    }
}
