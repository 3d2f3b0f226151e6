//! One method for every combination of rule, controller and weights.

use rand::CryptoRng;
use serde_json::Value;

use crate::{
    AdvanceScale, ClipBatch, ClipConfig, ClipError, ClipMethod, Clipped, Controller, CountQuery, MethodState,
    PublicContext, Weights,
    bound::is_valid_norm,
    bound::{cap, check_threshold},
    count::{Fresh, Planned, Recorded, Release},
};

/// A configuration at work.
#[derive(Debug)]
pub(crate) struct CombinedMethod {
    config: ClipConfig,
    context: PublicContext,
    steps: u64,
    threshold: Option<f64>,
}

impl CombinedMethod {
    pub(crate) fn new(config: ClipConfig, context: PublicContext) -> Self {
        Self { config, context, steps: 0, threshold: config.controller.initial_threshold() }
    }
}

/// One step: the answer, and the threshold of the next step.
fn step(
    config: &ClipConfig,
    context: &PublicContext,
    memory: Option<f64>,
    batch: &ClipBatch<'_>,
    release: &mut dyn Release,
) -> (Clipped, Option<f64>) {
    let ClipConfig { rule, controller, weights, .. } = config;
    let control = controller.step(memory, batch, context, release);
    let weighting = weights.step(batch, context, release);

    let threshold = |group: usize| of_group(&control.thresholds, group);
    let weight = |group: usize| of_group(&weighting.weights, group);
    // Over all declared groups, not those present: presence is private.
    let group_bounds: Vec<f64> =
        (0..context.n_groups).map(|group| weight(group) * rule.bound(threshold(group))).collect();
    let bound = group_bounds.iter().copied().fold(0.0, f64::max);
    let scales = batch
        .norms
        .iter()
        .zip(batch.groups)
        .map(|(&norm, &group)| cap(weight(group) * rule.scale(norm, threshold(group)), norm, group_bounds[group]))
        .collect();

    let clipped = Clipped {
        scales,
        bound,
        group_bounds,
        queries: control.query.into_iter().chain(weighting.query).collect(),
        thresholds: control.thresholds,
        n_non_finite: batch.norms.iter().filter(|&&norm| !is_valid_norm(norm)).count(),
        // A rule is a formula in real arithmetic: `cap` above is part of the method.
        n_capped: 0,
    };
    (clipped, control.next)
}

/// The value of a group where there is one per group, else the only value.
fn of_group(values: &[f64], group: usize) -> f64 {
    if let [only] = values { *only } else { values[group] }
}

/// A step under counts that were released before; see [`ClipConfig::replay`].
pub(crate) fn replay(
    config: &ClipConfig,
    context: &PublicContext,
    threshold: Option<f64>,
    batch: &ClipBatch<'_>,
    released: &[Vec<f64>],
) -> Result<Clipped, ClipError> {
    batch.validate(context.n_groups)?;
    let mut recorded = Recorded::new(released);
    let (clipped, _) = step(config, context, threshold, batch, &mut recorded);
    if recorded.fits() {
        Ok(clipped)
    } else {
        Err(ClipError::StateMismatch { what: "number or finiteness of the released counts" })
    }
}

/// The queries that a step will make; see [`ClipConfig::queries`].
pub(crate) fn planned_queries(config: &ClipConfig, context: &PublicContext) -> Vec<CountQuery> {
    let empty = ClipBatch::new(&[], &[]);
    let (clipped, _) = step(config, context, config.controller.initial_threshold(), &empty, &mut Planned);
    clipped.queries.into_iter().map(|query| CountQuery { released: Vec::new(), ..query }).collect()
}

impl ClipMethod for CombinedMethod {
    fn clip(&mut self, batch: &ClipBatch<'_>, rng: &mut dyn CryptoRng) -> Result<Clipped, ClipError> {
        batch.validate(self.context.n_groups)?;
        let (clipped, next) = step(&self.config, &self.context, self.threshold, batch, &mut Fresh(rng));
        self.steps += 1;
        self.threshold = next;
        Ok(clipped)
    }

    fn scale_in_advance(&self, _group: usize) -> Option<AdvanceScale> {
        let threshold = match (self.config.controller, self.config.weights) {
            (Controller::Constant { threshold }, Weights::Uniform) => threshold,
            (Controller::Geometric { .. }, Weights::Uniform) => self.threshold?,
            (Controller::PerGroup { .. }, _) | (_, Weights::Naive { .. }) => return None,
        };
        Some(AdvanceScale { rule: self.config.rule, threshold })
    }

    fn state(&self) -> Value {
        MethodState { config: self.config, steps: self.steps, threshold: self.threshold }.to_value()
    }

    fn restore(&mut self, state: &Value) -> Result<(), ClipError> {
        let state = MethodState::from_value(state)?;
        if state.config != self.config {
            return Err(ClipError::StateMismatch { what: "configuration" });
        }
        if state.threshold.is_some() != self.threshold.is_some() {
            return Err(ClipError::StateMismatch { what: "presence of a threshold" });
        }
        if let Some(threshold) = state.threshold {
            check_threshold("threshold", threshold)?;
        }
        self.steps = state.steps;
        self.threshold = state.threshold;
        Ok(())
    }
}
