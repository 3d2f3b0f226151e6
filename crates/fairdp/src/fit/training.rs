//! Training by the method of a recipe: from records to layers.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use dp_accounting::Delta;
use dp_linear::{self as solver, FeatureFacts, Objective, Prepared, Settings, State};
use dp_train::Device;
use dp_train::ranks::{Alone, Collective};

use super::FitPlan;
use super::candidates::Candidate;
use super::checkpoint::Checkpoints;
use super::journal::Journal;
use crate::error::Result;
use crate::key::NoiseKey;
use crate::model::Layer;
use crate::recipe::Method;
use crate::sgd::{self, SgdRun};
use crate::subsets::SubsetRows;

/// The context of training, without the records.
pub(super) struct Training<'a> {
    pub(super) plan: &'a FitPlan,
    pub(super) records_per_unit: u64,
    pub(super) n_classes: usize,
    pub(super) n_groups: usize,
    pub(super) threads: NonZeroUsize,
    pub(super) device: Device,
    pub(super) pool: &'a rayon::ThreadPool,
    pub(super) facts: FeatureFacts,
    pub(super) ranks: Arc<dyn Collective>,
}

/// A model without its pipeline.
pub(super) struct Trained {
    pub(super) layers: Vec<Layer>,
    /// Shares of the classes, from noisy counts.
    pub(super) priors: Vec<f64>,
}

/// The state of a run that is continued, and the places of its checkpoints.
pub(super) struct Continuation<'a> {
    pub(super) state: Option<State>,
    pub(super) checkpoints: &'a mut Checkpoints,
    /// The file of `dp_train`'s trainer.
    pub(super) trainer: &'a Path,
}

impl Training<'_> {
    /// The same context for this process alone.
    pub(super) fn alone(&self) -> Self {
        Self { device: self.device.clone(), ranks: Arc::new(Alone), ..*self }
    }

    fn settings(&self, candidate: &Candidate) -> Result<Settings> {
        Ok(Settings {
            counts: self.plan.release("class counts")?.noise_multiplier,
            squares: self.plan.release("mean squares of the features")?.noise_multiplier,
            gradients: candidate.noise_multiplier,
            steps: candidate.steps,
            records_per_unit: self.records_per_unit,
            objective: match candidate.recipe.method {
                Method::FullDescent(objective) => objective,
                Method::Sgd(_) => Objective::Population,
            },
        })
    }

    /// Makes the releases that come before the first gradient.
    pub(super) fn prepare(&self, candidate: &Candidate, rows: &SubsetRows<'_>, key: &NoiseKey) -> Result<Prepared> {
        let settings = self.settings(candidate)?;
        Ok(self.pool.install(|| solver::prepare(rows, self.n_classes, self.facts, &settings, key))?)
    }

    /// Trains with the candidate's noise.
    pub(super) fn run(
        &self,
        candidate: &Candidate,
        rows: &SubsetRows<'_>,
        prepared: &Prepared,
        key: &NoiseKey,
        continuation: Option<Continuation<'_>>,
        journal: &mut Journal<'_>,
    ) -> Result<Trained> {
        let settings = self.settings(candidate)?;
        self.with(candidate, &settings, true, rows, prepared, key, continuation, journal)
    }

    /// Trains with next to no noise: for comparison, never for release.
    pub(super) fn without_privacy(
        &self,
        candidate: &Candidate,
        rows: &SubsetRows<'_>,
        key: &NoiseKey,
        journal: &mut Journal<'_>,
    ) -> Result<Trained> {
        let settings = self.settings(candidate)?.without_noise()?;
        let prepared = self.pool.install(|| solver::prepare(rows, self.n_classes, self.facts, &settings, key))?;
        self.with(candidate, &settings, false, rows, &prepared, key, None, journal)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one computation, each of another origin")]
    fn with(
        &self,
        candidate: &Candidate,
        settings: &Settings,
        is_private: bool,
        rows: &SubsetRows<'_>,
        prepared: &Prepared,
        key: &NoiseKey,
        continuation: Option<Continuation<'_>>,
        journal: &mut Journal<'_>,
    ) -> Result<Trained> {
        let (saved, mut checkpoints, trainer) = match continuation {
            Some(Continuation { state, checkpoints, trainer }) => (state, Some(checkpoints), Some(trainer)),
            None => (None, None, None),
        };
        let layers = match &candidate.recipe.method {
            Method::FullDescent(_) => {
                let linear = self.pool.install(|| {
                    solver::train(rows, prepared, self.facts, settings, key, saved, &mut |state| {
                        journal.step(state.step, settings.steps)?;
                        checkpoints.as_mut().map_or(Ok(()), |checkpoints| checkpoints.save(state))
                    })
                })?;
                vec![Layer::of(&linear)]
            }
            Method::Sgd(named) => {
                let run = SgdRun {
                    architecture: &candidate.recipe.architecture,
                    named,
                    noise_multiplier: is_private.then_some(settings.gradients),
                    delta: Delta::new(self.plan.delta)?,
                    records_per_unit: settings.records_per_unit,
                    n_classes: self.n_classes,
                    n_groups: self.n_groups,
                    threads: self.threads,
                    device: self.device.clone(),
                    checkpoint: trainer.map(Path::to_path_buf),
                    ranks: self.ranks.clone(),
                };
                sgd::train(rows, prepared, self.facts, &run, key, &mut |done| journal.step(done, named.steps))?
            }
        };
        Ok(Trained { layers, priors: prepared.priors.clone() })
    }
}
