//! Training by the method of a recipe: from records to layers.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use dp_accounting::Delta;
use dp_linear::conditioning::ColumnBlock;
use dp_linear::{
    self as solver, ConditionedSettings, FeatureFacts, Goal, Objective, Prepared, RecallBiases, RecallBiasesConfig,
    Settings, State, WeightNoise, WhitenedBlocks,
};
use dp_table::{Encoding, NumberLabel, Schema};
use dp_train::Device;
use dp_train::ranks::{Alone, Collective};

use super::candidates::Candidate;
use super::checkpoint::Checkpoints;
use super::journal::Journal;
use super::trial_score::ScoreGoal;
use super::{
    CLASS_COUNTS, FitOptions, FitPlan, LABEL_MOMENTS, LENGTHS_OF_BLOCKS, RECALL, RIGHT_ANSWERS, SQUARES_OF_FEATURES,
    Start,
};
use crate::blocks::{column_blocks, purposes};
use crate::config::{Config, Decision, NetworkName};
use crate::curves::{CurveNoise, Curves, cells};
use crate::error::{FairdpError, Result};
use crate::key::NoiseKey;
use crate::model::{FittedModel, Layer, Pipeline};
use crate::recipe::{Method, Recipe};
use crate::sgd::{self, Inputs, SgdRun};
use crate::subsets::{GroupedRows, feature_facts};

/// A weight of a rare value is taken for noise within this many standard deviations of it.
const WITHIN: f64 = 0.5;

/// The context of training, without the records.
pub(super) struct Training<'a> {
    pub(super) plan: &'a FitPlan,
    pub(super) records_per_unit: u64,
    /// None of a number.
    pub(super) n_classes: usize,
    pub(super) n_groups: usize,
    pub(super) threads: NonZeroUsize,
    pub(super) device: Device,
    pub(super) pool: &'a rayon::ThreadPool,
    pub(super) facts: FeatureFacts,
    /// Columns that conditioned training whitens together.
    pub(super) blocks: Vec<ColumnBlock>,
    /// Features of values, whose frequency tells whether they can be learnt.
    pub(super) cells: Vec<usize>,
    pub(super) ranks: Arc<dyn Collective>,
    /// The decision that the configuration asks for.
    decision: Option<Decision>,
    /// What the trials of a search are compared by.
    pub(super) goal: ScoreGoal,
    /// The released model that is corrected.
    pub(super) start: Option<Arc<Start>>,
}

/// A model without its pipeline.
pub(super) struct Trained {
    pub(super) layers: Vec<Layer>,
    /// Shares of the classes, from noisy counts.
    pub(super) priors: Vec<f64>,
    /// The network on pixels whose layers they are, if they are.
    pub(super) network: Option<NetworkName>,
}

impl Trained {
    /// The model with this pipeline.
    pub(super) fn into_model(self, schema: Schema, decision: Decision) -> Result<FittedModel> {
        let layers = match &schema.label.number {
            Some(range) => self.layers.into_iter().map(|layer| layer.in_range(range)).collect(),
            None => self.layers,
        };
        FittedModel::new(Pipeline { network: self.network, ..Pipeline::new(schema, self.priors, decision) }, layers)
    }
}

/// The state of a run that is continued, and the places of its checkpoints.
pub(super) struct Continuation<'a> {
    pub(super) state: Option<State>,
    pub(super) checkpoints: &'a mut Checkpoints,
    /// The file of `dp_train`'s trainer.
    pub(super) trainer: &'a Path,
}

/// The releases that come before the first gradient, for the methods that a run may train by.
pub(super) struct Before {
    /// Shares of the classes; none of a number.
    pub(super) priors: Vec<f64>,
    /// Weight of all records.
    total: f64,
    /// Scales of the features.
    scaled: Option<Prepared>,
    /// What conditioned training whitens by.
    whitened: Option<WhitenedBlocks>,
}

impl Before {
    fn scaled(&self) -> Result<&Prepared> {
        self.scaled.as_ref().ok_or_else(|| FairdpError::Internal("the features have no scales".into()))
    }

    fn whitened(&self) -> Result<&WhitenedBlocks> {
        self.whitened.as_ref().ok_or_else(|| FairdpError::Internal("the features are not whitened".into()))
    }
}

impl<'a> Training<'a> {
    /// The context of a run of this plan.
    pub(super) fn new(
        config: &Config,
        plan: &'a FitPlan,
        encoding: &Encoding,
        options: &FitOptions,
        device: Device,
        pool: &'a rayon::ThreadPool,
    ) -> Self {
        Self {
            plan,
            records_per_unit: config.records_per_unit(),
            n_classes: encoding.schema().label.classes.len(),
            n_groups: encoding.groups().len(),
            threads: options.threads,
            device,
            pool,
            facts: feature_facts(encoding),
            blocks: column_blocks(encoding),
            cells: cells(encoding),
            ranks: options.ranks.clone(),
            decision: config.model.decision,
            goal: ScoreGoal::of(config),
            start: config.start.clone(),
        }
    }
}

impl Training<'_> {
    /// The same context for this process alone.
    pub(super) fn alone(&self) -> Self {
        Self {
            device: self.device.clone(),
            ranks: Arc::new(Alone),
            start: self.start.clone(),
            blocks: self.blocks.clone(),
            cells: self.cells.clone(),
            ..*self
        }
    }

    /// What answers with this recipe's decisions.
    pub(super) fn decision(&self, recipe: &Recipe) -> Decision {
        recipe.decision().or(self.decision).unwrap_or_default()
    }

    fn conditioned(&self, settings: &Settings) -> Result<ConditionedSettings> {
        let [mut means, mut covariances] = [settings.gradients; 2];
        if let Some(block) = self.blocks.first() {
            let [mean, covariance] = purposes(block);
            means = self.plan.release(&mean)?.noise_multiplier;
            covariances = self.plan.release(&covariance)?.noise_multiplier;
        }
        Ok(ConditionedSettings {
            means,
            covariances,
            lengths: self.plan.release(LENGTHS_OF_BLOCKS)?.noise_multiplier,
            gradients: settings.gradients,
            steps: settings.steps,
            records_per_unit: self.records_per_unit,
        })
    }

    fn settings(&self, candidate: &Candidate) -> Result<Settings> {
        let scales = self.plan.release(SQUARES_OF_FEATURES);
        Ok(Settings {
            counts: self.plan.release(if self.n_classes == 0 { LABEL_MOMENTS } else { CLASS_COUNTS })?.noise_multiplier,
            // Of features that are not scaled nothing is released.
            squares: scales.map_or(candidate.noise_multiplier, |planned| planned.noise_multiplier),
            gradients: candidate.noise_multiplier,
            steps: candidate.steps,
            records_per_unit: self.records_per_unit,
            objective: match candidate.recipe.method {
                Method::FullDescent(objective) => objective,
                Method::Sgd(_) | Method::Conditioned { .. } => Objective::Population,
            },
        })
    }

    /// Makes the releases that come before the first gradient.
    pub(super) fn prepare(&self, candidate: &Candidate, rows: &impl GroupedRows, key: &NoiseKey) -> Result<Before> {
        let before = self.prepare_with(&self.settings(candidate)?, true, rows, key)?;
        let Some(start) = self.start.as_ref().and_then(|start| start.linear()) else { return Ok(before) };
        Ok(Before {
            scaled: before.scaled.map(|scaled| scaled.starting_from(start.clone())).transpose()?,
            whitened: before.whitened.map(|blocks| blocks.starting_from(start.clone(), rows.width())).transpose()?,
            ..before
        })
    }

    fn prepare_with(
        &self,
        settings: &Settings,
        is_private: bool,
        rows: &impl GroupedRows,
        key: &NoiseKey,
    ) -> Result<Before> {
        self.pool.install(|| {
            let (units, n_classes) = (settings.records_per_unit, self.n_classes);
            // The stream of the counts is the same for both, so they are released once.
            let counts = match n_classes {
                0 => solver::number_priors(rows, settings.counts, units, key)?,
                n_classes => solver::class_priors(rows, n_classes, settings.counts, units, key)?,
            };
            let scaled = match self.plan.release(SQUARES_OF_FEATURES) {
                Ok(_) => Some(solver::prepare(rows, n_classes, self.facts, settings, key)?),
                Err(_) => None,
            };
            let whitened = match self.plan.release(LENGTHS_OF_BLOCKS) {
                Ok(_) => {
                    let own = self.conditioned(settings)?;
                    let own = if is_private { own } else { own.without_noise()? };
                    Some(WhitenedBlocks::fit(rows, counts.clone(), &self.blocks, &own, key)?)
                }
                Err(_) => None,
            };
            Ok(Before { priors: counts.priors, total: counts.total, scaled, whitened })
        })
    }

    /// Trains with the candidate's noise.
    pub(super) fn run(
        &self,
        candidate: &Candidate,
        rows: &impl GroupedRows,
        prepared: &Before,
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
        rows: &impl GroupedRows,
        key: &NoiseKey,
        journal: &mut Journal<'_>,
    ) -> Result<Trained> {
        let settings = self.settings(candidate)?.without_noise()?;
        let prepared = self.prepare_with(&settings, false, rows, key)?;
        self.with(candidate, &settings, false, rows, &prepared, key, None, journal)
    }

    /// An additive model in which values that are too rare to be learnt add 0: their released frequency cannot be
    /// told from 0, and neither can what they add.
    fn without_rare(
        &self,
        mut layers: Vec<Layer>,
        candidate: &Candidate,
        settings: &Settings,
        prepared: &Before,
    ) -> Result<Vec<Layer>> {
        let ([layer], Some(noise)) = (&mut layers[..], self.weight_noise(candidate, settings, prepared)?) else {
            return Ok(layers);
        };
        let width = layer.n_inputs();
        for &cell in &self.cells {
            let is_rare = match &candidate.recipe.method {
                Method::Conditioned { .. } => prepared.whitened()?.is_too_rare(cell),
                Method::FullDescent(_) | Method::Sgd(_) => prepared.scaled()?.is_too_rare(cell),
            };
            let mut weights = layer.weights.iter_mut().skip(cell).step_by(width);
            let is_within = |(output, weight): (usize, &mut f32)| {
                f64::from(weight.abs()) <= WITHIN * noise.std(output, &[(cell, 1.0)])
            };
            if is_rare && weights.by_ref().enumerate().all(is_within) {
                layer.weights.iter_mut().skip(cell).step_by(width).for_each(|weight| *weight = 0.0);
            }
        }
        Ok(layers)
    }

    /// How much of a trained candidate's weights is noise; `None` where it is not known, as that of a model that it
    /// started from.
    fn weight_noise<'b>(
        &self,
        candidate: &Candidate,
        settings: &Settings,
        prepared: &'b Before,
    ) -> Result<Option<WeightNoise<'b>>> {
        if self.start.is_some() {
            return Ok(None);
        }
        Ok(match &candidate.recipe.method {
            Method::FullDescent(_) => Some(prepared.scaled()?.weight_noise(self.facts, settings)),
            Method::Conditioned { .. } => {
                let own = ConditionedSettings { gradients: settings.gradients, ..self.conditioned(settings)? };
                Some(prepared.whitened()?.weight_noise(&own))
            }
            Method::Sgd(_) => None,
        })
    }

    /// The curves of a model that a candidate has trained.
    pub(super) fn curves(&self, model: &FittedModel, candidate: &Candidate, prepared: &Before) -> Result<Curves> {
        let settings = self.settings(candidate)?;
        let unit = model.number().map_or(1.0, NumberLabel::half);
        let scale = f64::from(model.encoding().scale());
        let width = model.encoding().width();
        let of_squares = |prepared: &Prepared| -> Vec<f64> {
            prepared.scales.mean_squares.iter().map(|square| square / (scale * scale)).collect()
        };
        let shares = match &candidate.recipe.method {
            Method::Conditioned { .. } => {
                let whitened = prepared.whitened()?;
                (0..width).map(|column| whitened.mean_of(column).unwrap_or_default() / scale).collect()
            }
            Method::Sgd(_) if candidate.recipe.architecture.network().is_some() => Vec::new(),
            Method::FullDescent(_) | Method::Sgd(_) => of_squares(prepared.scaled()?),
        };
        let noise = self.weight_noise(candidate, &settings, prepared)?;
        let noise = noise.map(|weights| CurveNoise { weights, unit });
        Ok(Curves::of(model, noise.as_ref(), Some(&shares)))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one computation, each of another origin")]
    fn with(
        &self,
        candidate: &Candidate,
        settings: &Settings,
        is_private: bool,
        rows: &impl GroupedRows,
        prepared: &Before,
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
                    solver::train(rows, prepared.scaled()?, self.facts, settings, key, saved, &mut |state| {
                        journal.step(state.step, settings.steps)?;
                        checkpoints.as_mut().map_or(Ok(()), |checkpoints| checkpoints.save(state))
                    })
                })?;
                vec![Layer::of(&linear)]
            }
            Method::Conditioned { goal, .. } => {
                let own = ConditionedSettings { gradients: settings.gradients, ..self.conditioned(settings)? };
                let linear = self.pool.install(|| {
                    let whitened = prepared.whitened()?;
                    let linear = whitened.train(rows, &own, key, saved, &mut |state| {
                        journal.step(state.step, own.steps)?;
                        checkpoints.as_mut().map_or(Ok(()), |checkpoints| checkpoints.save(state))
                    })?;
                    if *goal != Goal::EqualRecall {
                        return Ok::<_, FairdpError>(linear);
                    }
                    let mut config = RecallBiasesConfig::within(self.plan.budget, RECALL)?;
                    if is_private {
                        config.noise_multiplier = self.plan.release(RIGHT_ANSWERS)?.noise_multiplier;
                    } else {
                        config.noise_multiplier = settings.counts;
                    }
                    let units = settings.records_per_unit;
                    let biases = RecallBiases::of_model(&config, &linear, rows, prepared.total, units, key)?;
                    Ok(linear.with_biases(&biases))
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
                    start: self.start.as_ref().filter(|_| is_private).map(|start| start.layers()),
                };
                let inputs = match run.architecture.network() {
                    Some(_) => Inputs::Pixels(&prepared.priors),
                    None => Inputs::Scaled(prepared.scaled()?),
                };
                sgd::train(rows, inputs, self.facts, &run, key, &mut |done| journal.step(done, named.steps))?
            }
        };
        let layers = self.without_rare(layers, candidate, settings, prepared)?;
        let network = candidate.recipe.architecture.network();
        Ok(Trained { layers, priors: prepared.priors.clone(), network })
    }
}
