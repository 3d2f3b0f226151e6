//! One method for the whole grid: rule × controller × weights.

use rand::RngCore;

use crate::{
    ClipBatch, ClipConfig, ClipError, ClipMethod, Clipped, MethodState, PublicContext,
    batch::is_valid_norm,
    bound::{cap, check_threshold},
};

/// A configuration at work.
#[derive(Debug)]
pub(crate) struct GridMethod {
    config: ClipConfig,
    context: PublicContext,
    steps: u64,
    threshold: Option<f64>,
}

impl GridMethod {
    pub(crate) fn new(config: ClipConfig, context: PublicContext) -> Self {
        Self { config, context, steps: 0, threshold: config.controller.initial_threshold() }
    }
}

impl ClipMethod for GridMethod {
    fn clip(&mut self, batch: &ClipBatch<'_>, rng: &mut dyn RngCore) -> Result<Clipped, ClipError> {
        batch.validate(self.context.n_groups)?;
        let ClipConfig { rule, controller, weights, .. } = self.config;

        let control = controller.step(self.threshold, batch, &self.context, rng);
        let weighting = weights.step(batch, &self.context, rng);

        let n_groups = self.context.n_groups;
        let threshold = |group: usize| control.thresholds[if control.thresholds.len() == 1 { 0 } else { group }];
        let weight = |group: usize| weighting.weights[if weighting.weights.len() == 1 { 0 } else { group }];
        // Over all declared groups, not those present: presence is private.
        let group_bounds: Vec<f64> = (0..n_groups).map(|group| weight(group) * rule.bound(threshold(group))).collect();
        let bound = group_bounds.iter().copied().fold(0.0, f64::max);

        let scales = batch
            .norms
            .iter()
            .zip(batch.groups)
            .map(|(&norm, &group)| cap(weight(group) * rule.scale(norm, threshold(group)), norm, group_bounds[group]))
            .collect();

        self.steps += 1;
        self.threshold = control.next;
        Ok(Clipped {
            scales,
            bound,
            group_bounds,
            queries: control.query.into_iter().chain(weighting.query).collect(),
            thresholds: control.thresholds,
            n_non_finite: batch.norms.iter().filter(|&&norm| !is_valid_norm(norm)).count(),
        })
    }

    fn state(&self) -> MethodState {
        MethodState { config: self.config, steps: self.steps, threshold: self.threshold }
    }

    fn restore(&mut self, state: &MethodState) -> Result<(), ClipError> {
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
