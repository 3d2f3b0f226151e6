//! One method for every combination of rule, controller and weights.

use rand::CryptoRng;
use serde_json::Value;

use crate::{
    AdvanceScale, ClipBatch, ClipConfig, ClipError, ClipMethod, Clipped, Controller, CountQuery, MethodState,
    PublicContext, ScaleRule, Weights,
    bound::{breaks, cap, check_threshold, is_valid_norm},
    count::{Fresh, Planned, Recorded, Release},
    weights::check_weight,
};

/// A configuration at work.
#[derive(Debug)]
pub(crate) struct CombinedMethod {
    config: ClipConfig,
    context: PublicContext,
    steps: u64,
    memory: Memory,
}

/// The values that steps hand on.
#[derive(Debug)]
pub(crate) struct Memory {
    threshold: Option<f64>,
    weights: Option<Vec<f64>>,
}

impl Memory {
    /// Before the first step.
    fn initial(config: &ClipConfig, context: &PublicContext) -> Self {
        Self { threshold: config.controller.initial_threshold(), weights: config.weights.initial(context) }
    }

    pub(crate) fn of(state: &MethodState) -> Self {
        Self { threshold: state.threshold, weights: state.weights.clone() }
    }
}

impl CombinedMethod {
    pub(crate) fn new(config: ClipConfig, context: PublicContext) -> Self {
        Self { config, context, steps: 0, memory: Memory::initial(&config, &context) }
    }
}

/// Refuses a malformed batch, and one without losses where they have a part in the step.
fn check_batch(config: &ClipConfig, context: &PublicContext, batch: &ClipBatch<'_>) -> Result<(), ClipError> {
    batch.validate(context.n_groups)?;
    if config.needs_losses() && batch.losses.is_none() {
        let expected = format!("the loss of each record, which the weights `{}` follow", config.weights.name());
        return Err(ClipError::invalid("losses", "none", expected));
    }
    Ok(())
}

/// One step: the answer, and what it hands on to the next.
fn step(
    config: &ClipConfig,
    context: &PublicContext,
    memory: &Memory,
    batch: &ClipBatch<'_>,
    release: &mut dyn Release,
) -> (Clipped, Memory) {
    let ClipConfig { rule, controller, weights, .. } = config;
    let control = controller.step(memory.threshold, batch, context, release);
    let weighting = weights.step(memory.weights.as_deref(), batch, context, release);

    let threshold = |group: usize| of_group(&control.thresholds, group);
    let weight = |group: usize| of_group(&weighting.weights, group);
    // Over all declared groups, not those present: presence is private.
    let group_bounds: Vec<f64> =
        (0..context.n_groups).map(|group| weight(group) * rule.bound(threshold(group))).collect();
    let bound = group_bounds.iter().copied().fold(0.0, f64::max);
    // A rule of this crate is a formula in real arithmetic: the cap is part of it, and lowers nothing
    // that is to be counted.
    let is_own = matches!(rule, ScaleRule::Own { .. });
    let mut n_capped = 0;
    let scales = batch
        .norms
        .iter()
        .zip(batch.groups)
        .map(|(&norm, &group)| {
            let scale = weight(group) * rule.scale(norm, threshold(group));
            n_capped += usize::from(is_own && breaks(scale, norm, group_bounds[group]));
            cap(scale, norm, group_bounds[group])
        })
        .collect();

    let clipped = Clipped {
        scales,
        bound,
        group_bounds,
        queries: control.query.into_iter().chain(weighting.queries).collect(),
        thresholds: control.thresholds,
        n_non_finite: batch.norms.iter().filter(|&&norm| !is_valid_norm(norm)).count(),
        n_capped,
    };
    (clipped, Memory { threshold: control.next, weights: weighting.next })
}

/// The value of a group where there is one per group, else the only value.
fn of_group(values: &[f64], group: usize) -> f64 {
    if let [only] = values { *only } else { values[group] }
}

/// A step under counts that were released before; see [`ClipConfig::replay`].
pub(crate) fn replay(
    config: &ClipConfig,
    context: &PublicContext,
    memory: &Memory,
    batch: &ClipBatch<'_>,
    released: &[Vec<f64>],
) -> Result<Clipped, ClipError> {
    check_batch(config, context, batch)?;
    let mut recorded = Recorded::new(released);
    let (clipped, _) = step(config, context, memory, batch, &mut recorded);
    if recorded.fits() {
        Ok(clipped)
    } else {
        Err(ClipError::StateMismatch { what: "number or finiteness of the released counts" })
    }
}

/// The queries that a step will make; see [`ClipConfig::queries`].
pub(crate) fn planned_queries(config: &ClipConfig, context: &PublicContext) -> Vec<CountQuery> {
    let empty = ClipBatch::new(&[], &[]);
    let (clipped, _) = step(config, context, &Memory::initial(config, context), &empty, &mut Planned);
    clipped.queries.into_iter().map(|query| CountQuery { released: Vec::new(), ..query }).collect()
}

impl ClipMethod for CombinedMethod {
    fn clip(&mut self, batch: &ClipBatch<'_>, rng: &mut dyn CryptoRng) -> Result<Clipped, ClipError> {
        check_batch(&self.config, &self.context, batch)?;
        let (clipped, next) = step(&self.config, &self.context, &self.memory, batch, &mut Fresh(rng));
        self.steps += 1;
        self.memory = next;
        Ok(clipped)
    }

    fn scale_in_advance(&self, _group: usize) -> Option<AdvanceScale> {
        let threshold = match (self.config.controller, self.config.weights) {
            (
                Controller::Constant { threshold } | Controller::ByRate { threshold },
                Weights::Uniform | Weights::RatesByLoss { .. },
            ) => threshold,
            (Controller::Geometric { .. } | Controller::Own { .. }, Weights::Uniform | Weights::RatesByLoss { .. }) => {
                self.memory.threshold?
            }
            (Controller::PerGroup { .. }, _)
            | (_, Weights::Naive { .. } | Weights::Multiplicative { .. } | Weights::Own { .. }) => {
                return None;
            }
        };
        Some(AdvanceScale { rule: self.config.rule, threshold })
    }

    fn state(&self) -> Value {
        let Memory { threshold, weights } = &self.memory;
        MethodState { config: self.config, steps: self.steps, threshold: *threshold, weights: weights.clone() }
            .to_value()
    }

    fn restore(&mut self, state: &Value) -> Result<(), ClipError> {
        let state = MethodState::from_value(state)?;
        if state.config != self.config {
            return Err(ClipError::StateMismatch { what: "configuration" });
        }
        if state.threshold.is_some() != self.memory.threshold.is_some() {
            return Err(ClipError::StateMismatch { what: "presence of a threshold" });
        }
        if let Some(threshold) = state.threshold {
            check_threshold("threshold", threshold)?;
        }
        // One weight per group, or none.
        if state.weights.as_ref().map(Vec::len) != self.memory.weights.as_ref().map(Vec::len) {
            return Err(ClipError::StateMismatch { what: "number of weights" });
        }
        state.weights.iter().flatten().try_for_each(|&weight| check_weight(weight))?;
        self.steps = state.steps;
        self.memory = Memory::of(&state);
        Ok(())
    }
}
