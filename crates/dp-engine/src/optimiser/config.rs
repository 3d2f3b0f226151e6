//! Optimisers by name.

use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result};

/// An optimiser with its settings, under PyTorch's names and with its update rules.
///
/// All of them work on the private gradient, the noisy clipped mean plus `l2 · w`: post-processing,
/// at no cost in privacy. Adam on it is what the literature calls DP-Adam. Its second moment
/// contains the noise's variance, which `adam-bc` subtracts.
///
/// **Example**
/// ```
/// use dp_engine::OptimiserConfig;
/// let adam: OptimiserConfig = serde_json::from_str(r#"{"name": "adam"}"#)?;
/// assert_eq!(adam, OptimiserConfig::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8 });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum OptimiserConfig {
    /// `w ← w − ηg`.
    Sgd {},
    /// `v ← μv + g`, then `w ← w − ηv`, or `w ← w − η(g + μv)` with Nesterov's look-ahead. No
    /// dampening; the rate multiplies the velocity as a whole, as in PyTorch, so that a change of
    /// rate acts at once.
    Momentum {
        /// μ, at least 0 and below 1.
        momentum: f64,
        /// Nesterov's look-ahead.
        #[serde(default)]
        nesterov: bool,
    },
    /// Kingma and Ba 2015: `m ← β₁m + (1 − β₁)g`, `v ← β₂v + (1 − β₂)g²`, `w ← w − η m̂/(√v̂ + ε)`
    /// with bias-corrected moments.
    Adam {
        /// β₁, at least 0 and below 1.
        #[serde(default = "defaults::beta_1")]
        beta_1: f64,
        /// β₂, at least 0 and below 1.
        #[serde(default = "defaults::beta_2")]
        beta_2: f64,
        /// ε, above 0.
        #[serde(default = "defaults::epsilon")]
        epsilon: f64,
    },
    /// Adam whose second moment is that of the gradient before its noise: `v ← β₂v + (1 − β₂)(g² −
    /// Φ)` with the variance `Φ` of the noise in an element of the mean gradient, then `w ← w − η
    /// m̂/(√max(v̂, 0) + ε)`. Without noise it is Adam.
    ///
    /// **Guarantee.** Post-processing: `Φ = (σS/B)²` follows from the plan and the step's bound,
    /// which is public or released.
    ///
    /// **Edge cases.** Where noise outweighs the gradient, `v` is often negative. The step is then
    /// `η m̂/ε`, so ε has no default: about the standard deviation of the noise, or more.
    ///
    /// **Source.** Tang, Shpilevskiy and Lécuyer 2024 (DP-AdamBC). They bound `v̂` from below, where
    /// this adds ε to the root, and take `Φ` for constant, where here it follows each step's bound.
    AdamBc {
        /// β₁, at least 0 and below 1.
        #[serde(default = "defaults::beta_1")]
        beta_1: f64,
        /// β₂, at least 0 and below 1.
        #[serde(default = "defaults::beta_2")]
        beta_2: f64,
        /// ε, above 0.
        epsilon: f64,
    },
    /// Loshchilov and Hutter 2019: `w ← (1 − ηλ)w` before Adam's step. As `l2`, the decay acts on
    /// weights and leaves biases alone (PyTorch decays whatever is in the parameter group).
    #[serde(rename = "adamw")]
    AdamW {
        /// β₁, at least 0 and below 1.
        #[serde(default = "defaults::beta_1")]
        beta_1: f64,
        /// β₂, at least 0 and below 1.
        #[serde(default = "defaults::beta_2")]
        beta_2: f64,
        /// ε, above 0.
        #[serde(default = "defaults::epsilon")]
        epsilon: f64,
        /// λ, at least 0.
        #[serde(default = "defaults::weight_decay")]
        weight_decay: f64,
    },
}

/// PyTorch's defaults.
mod defaults {
    pub(super) fn beta_1() -> f64 {
        0.9
    }
    pub(super) fn beta_2() -> f64 {
        0.999
    }
    pub(super) fn epsilon() -> f64 {
        1e-8
    }
    pub(super) fn weight_decay() -> f64 {
        1e-2
    }
}

impl Default for OptimiserConfig {
    fn default() -> Self {
        Self::Sgd {}
    }
}

impl OptimiserConfig {
    /// Names of the moments it keeps between steps, each of the size of the model.
    pub fn moments(&self) -> &'static [&'static str] {
        match self {
            Self::Sgd {} => &[],
            Self::Momentum { .. } => &["velocity"],
            Self::Adam { .. } | Self::AdamBc { .. } | Self::AdamW { .. } => &["first-moment", "second-moment"],
        }
    }

    /// # Errors
    /// [`EngineError::InvalidParameter`] for the first setting that is out of range.
    pub fn validate(&self) -> Result<()> {
        let share = |name, value: f64| {
            if (0.0..1.0).contains(&value) {
                return Ok(());
            }
            Err(EngineError::invalid(name, value, "at least 0, below 1"))
        };
        match *self {
            Self::Sgd {} => Ok(()),
            Self::Momentum { momentum, .. } => share("optimiser.momentum", momentum),
            Self::Adam { beta_1, beta_2, epsilon }
            | Self::AdamBc { beta_1, beta_2, epsilon }
            | Self::AdamW { beta_1, beta_2, epsilon, .. } => {
                share("optimiser.beta_1", beta_1)?;
                share("optimiser.beta_2", beta_2)?;
                if !(epsilon.is_finite() && epsilon > 0.0) {
                    return Err(EngineError::invalid("optimiser.epsilon", epsilon, "a finite number above 0"));
                }
                match *self {
                    Self::AdamW { weight_decay, .. } if !(weight_decay.is_finite() && weight_decay >= 0.0) => Err(
                        EngineError::invalid("optimiser.weight_decay", weight_decay, "a finite number of at least 0"),
                    ),
                    _ => Ok(()),
                }
            }
        }
    }
}
