//! From records to layers, by whichever method was chosen.

use std::num::NonZeroUsize;
use std::path::Path;

use dp_accounting::Delta;

use super::FitPlan;
use super::checkpoint::Checkpoints;
use crate::by_method::{self, Run};
use crate::choice::Method;
use crate::error::Result;
use crate::key::Key;
use crate::model::Layer;
use crate::parts::PartRows;
use crate::solver::{self, FeatureFacts, Settings, State};

/// What training needs besides records.
pub(super) struct Training<'a> {
    pub(super) plan: &'a FitPlan,
    pub(super) settings: &'a Settings,
    pub(super) n_classes: usize,
    pub(super) n_groups: usize,
    pub(super) threads: NonZeroUsize,
    pub(super) pool: &'a rayon::ThreadPool,
    pub(super) key: &'a Key,
}

/// A model without its pipeline.
pub(super) struct Trained {
    pub(super) layers: Vec<Layer>,
    /// Shares of the classes, from noisy counts.
    pub(super) priors: Vec<f64>,
}

/// Where a run was, and where it is kept.
pub(super) type Kept<'a> = (Option<State>, &'a mut Checkpoints, &'a Path);

impl Training<'_> {
    /// Trains with the plan's noise.
    pub(super) fn run(
        &self,
        rows: &PartRows<'_>,
        facts: FeatureFacts,
        kept: Option<Kept<'_>>,
        say: &mut (dyn FnMut(String) + Send),
    ) -> Result<Trained> {
        self.with(self.settings, true, rows, facts, kept, say)
    }

    /// The same next to without noise: for comparison, never for release.
    pub(super) fn without_privacy(
        &self,
        rows: &PartRows<'_>,
        facts: FeatureFacts,
        say: &mut (dyn FnMut(String) + Send),
    ) -> Result<Trained> {
        self.with(&self.settings.without_noise()?, false, rows, facts, None, say)
    }

    fn with(
        &self,
        settings: &Settings,
        is_private: bool,
        rows: &PartRows<'_>,
        facts: FeatureFacts,
        kept: Option<Kept<'_>>,
        say: &mut (dyn FnMut(String) + Send),
    ) -> Result<Trained> {
        let (saved, mut checkpoints, place) = match kept {
            Some((saved, checkpoints, place)) => (saved, Some(checkpoints), Some(place)),
            None => (None, None, None),
        };
        let n_steps = self.plan.release("gradients")?.count;
        let mut note = |step: u64| {
            if is_private && step.is_multiple_of(n_steps.div_ceil(4)) {
                say(format!("step {step} of {n_steps}"));
            }
        };
        match &self.plan.choice.method {
            Method::FullDescent => {
                let linear = self.pool.install(|| {
                    solver::train(rows, self.n_classes, facts, settings, self.key, saved, &mut |state| {
                        note(state.step);
                        checkpoints.as_mut().map_or(Ok(()), |checkpoints| checkpoints.save(state))
                    })
                })?;
                Ok(Trained { layers: vec![Layer::of(&linear)], priors: linear.priors })
            }
            Method::Named(named) => {
                let prepared = self.pool.install(|| solver::prepare(rows, self.n_classes, facts, settings, self.key));
                let run = Run {
                    architecture: &self.plan.choice.architecture,
                    named,
                    noise_multiplier: is_private.then_some(settings.gradients),
                    delta: Delta::new(self.plan.delta)?,
                    records_per_unit: settings.records_per_unit,
                    n_classes: self.n_classes,
                    n_groups: self.n_groups,
                    threads: self.threads,
                    checkpoint: place.map(Path::to_path_buf),
                    stream: 0,
                };
                let layers = by_method::train(rows, &prepared, facts, &run, self.key, &mut note)?;
                Ok(Trained { layers, priors: prepared.priors })
            }
        }
    }
}
