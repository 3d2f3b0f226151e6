//! A clipping method as plain data.

use serde::{Deserialize, Serialize};

use crate::{
    ClipBatch, ClipError, ClipMethod, Clipped, Controller, CountNoise, CountQuery, Coupling, MethodState,
    PublicContext, ScaleRule, Weights,
    bound::NOISE_MULTIPLIER_RANGE,
    combined::{self, CombinedMethod, Memory},
    error::check,
};

/// A scale rule, a threshold controller and sample weights, with everything they need but the
/// public context.
///
/// Any rule works with any controller and any weights. Parameters are checked when it is read from
/// JSON and again by [`ClipConfig::build`].
///
/// ```
/// use dp_clipping::ClipConfig;
/// let json = r#"{
///     "rule": {"kind": "tanh"},
///     "controller": {"kind": "geometric", "initial": 1.0, "target": 0.5, "tolerance": 2.5, "rate": 0.2,
///                    "lower_bound": 0.1, "counted": "above", "bits": "raw", "count_noise": {"times_gradient": 10.0}},
///     "weights": {"kind": "uniform"}
/// }"#;
/// let config: ClipConfig = serde_json::from_str(json)?;
/// assert!(config.certified() && !config.needs_groups());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct ClipConfig {
    /// `s_i` from the norm and the threshold.
    pub rule: ScaleRule,
    /// How the threshold moves between steps.
    pub controller: Controller,
    /// Weight of each group.
    pub weights: Weights,
    /// Influence of the records of a batch on each other; anything but `None` is not certified.
    pub coupling: Coupling,
}

/// [`ClipConfig`] as written, before its numbers are checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    rule: ScaleRule,
    controller: Controller,
    weights: Weights,
    #[serde(default)]
    coupling: Coupling,
}

impl TryFrom<Unchecked> for ClipConfig {
    type Error = ClipError;

    fn try_from(raw: Unchecked) -> Result<Self, ClipError> {
        let config = Self { rule: raw.rule, controller: raw.controller, weights: raw.weights, coupling: raw.coupling };
        config.validate()?;
        Ok(config)
    }
}

impl ClipConfig {
    /// A config without coupling.
    pub fn new(rule: ScaleRule, controller: Controller, weights: Weights) -> Self {
        Self { rule, controller, weights, coupling: Coupling::None }
    }

    /// The same configuration with this noise on all counts.
    #[must_use]
    pub fn with_count_noise(mut self, noise: CountNoise) -> Self {
        if let Controller::Geometric { count_noise, .. }
        | Controller::PerGroup { count_noise, .. }
        | Controller::Own { count_noise, .. } = &mut self.controller
        {
            *count_noise = noise;
        }
        if let Weights::Naive { count_noise }
        | Weights::Multiplicative { count_noise, .. }
        | Weights::RatesByLoss { count_noise, .. }
        | Weights::Own { count_noise, .. } = &mut self.weights
        {
            *count_noise = noise;
        }
        self
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// [`ClipError::InvalidParameter`] for the first number out of range, and for a part of one's own
    /// that is not registered ([`registry::register`](crate::registry::register)).
    pub fn validate(&self) -> Result<(), ClipError> {
        self.check_values()?;
        if let ScaleRule::Own { rule, .. } = &self.rule {
            rule.check_registered()?;
        }
        if let Controller::Own { controller, .. } = &self.controller {
            controller.check_registered()?;
        }
        if let Weights::Own { weights, .. } = &self.weights {
            weights.check_registered()?;
        }
        Ok(())
    }

    /// Checks every number.
    pub(crate) fn check_values(&self) -> Result<(), ClipError> {
        self.rule.validate()?;
        self.controller.validate()?;
        self.weights.validate()?;
        self.coupling.validate()
    }

    /// The method that this describes, at its first step.
    ///
    /// # Errors
    /// [`ClipError::InvalidParameter`] for a parameter or a context out of range.
    pub fn build(&self, context: &PublicContext) -> Result<Box<dyn ClipMethod>, ClipError> {
        self.validate()?;
        context.validate()?;
        for multiplier in self.count_noise_multipliers(context) {
            check("count_noise", multiplier, NOISE_MULTIPLIER_RANGE, "a noise multiplier in [0, 2^60]")?;
        }
        Ok(Box::new(CombinedMethod::new(*self, *context)))
    }

    /// A step under counts that were released before: everything of [`ClipMethod::clip`] that
    /// happens after the noise.
    ///
    /// The guarantee is a statement about this function: for the same `state` and `released`, one
    /// record more or less in the batch changes `Σ s_i g_i` by at most [`Clipped::bound`] in L2. It
    /// makes the guarantee testable where thresholds follow the counts of the same step.
    ///
    /// # Errors
    /// As [`ClipMethod::clip`]; [`ClipError::StateMismatch`] if the state or the counts belong to
    /// another configuration.
    pub fn replay(
        &self,
        context: &PublicContext,
        state: &MethodState,
        batch: &ClipBatch<'_>,
        released: &[Vec<f64>],
    ) -> Result<Clipped, ClipError> {
        self.validate()?;
        context.validate()?;
        let mut method = CombinedMethod::new(*self, *context);
        method.restore(&state.to_value())?;
        combined::replay(self, context, &Memory::of(state), batch, released)
    }

    /// Noise multipliers of the count queries of every step, known before the first one, so that a
    /// plan can state the step's event: `σ_eff = (σ⁻² + Σ_j σ_j⁻²)^(-1/2)`.
    ///
    /// An entry of 0 is a count without noise: its privacy loss is infinite.
    pub fn count_noise_multipliers(&self, context: &PublicContext) -> Vec<f64> {
        self.queries(context).iter().map(|query| query.noise_multiplier).collect()
    }

    /// Noise multipliers of everything that a step releases: the gradient sum, then the counts. All
    /// are taken of one batch, so a step is one joint event.
    pub fn step_noise_multipliers(&self, context: &PublicContext) -> Vec<f64> {
        std::iter::once(context.noise_multiplier).chain(self.count_noise_multipliers(context)).collect()
    }

    /// The count queries of every step, known before the first one; their `released` is empty.
    pub fn queries(&self, context: &PublicContext) -> Vec<CountQuery> {
        combined::planned_queries(self, context)
    }

    /// Names of its parts that are from outside of this crate: rule, controller, weights. The guarantee
    /// of such a configuration comes from the cap on scales and from the form of counts, on condition
    /// that each of these parts is a function of what it is given.
    pub fn own_parts(&self) -> Vec<&'static str> {
        let rule = if let ScaleRule::Own { rule, .. } = &self.rule { Some(rule.name()) } else { None };
        let controller =
            if let Controller::Own { controller, .. } = &self.controller { Some(controller.name()) } else { None };
        let weights = if let Weights::Own { weights, .. } = &self.weights { Some(weights.name()) } else { None };
        [rule, controller, weights].into_iter().flatten().collect()
    }

    /// Whether the declared bound is a proven sensitivity. If not, an ε computed from it is
    /// nominal. For parts of one's own see [`Self::own_parts`].
    pub fn certified(&self) -> bool {
        self.coupling == Coupling::None
    }

    /// Whether the group labels influence training.
    pub fn needs_groups(&self) -> bool {
        let by_controller = match &self.controller {
            Controller::Constant { .. } | Controller::Geometric { .. } => false,
            Controller::ByRate { .. } | Controller::PerGroup { .. } => true,
            Controller::Own { controller, .. } => controller.part().needs_groups(),
        };
        by_controller || !matches!(self.weights, Weights::Uniform) || matches!(self.coupling, Coupling::Fairlens { .. })
    }

    /// Whether a batch must have the losses of its records ([`ClipBatch::with_losses`]).
    pub fn needs_losses(&self) -> bool {
        match &self.weights {
            Weights::Uniform | Weights::Naive { .. } => false,
            Weights::Multiplicative { .. } | Weights::RatesByLoss { .. } => true,
            Weights::Own { weights, .. } => weights.part().needs_losses(),
        }
    }
}
