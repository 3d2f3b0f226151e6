//! Training by a method of `dp_clipping::registry`: gradients of single records, bounded by the
//! method and summed by `dp_train`.
//!
//! Class counts and mean squares are released as for [`crate::solver`]. Features are then scaled to
//! mean square 1 and rows to a public length, the intercepts start at the classes' shares, and
//! `dp_train` takes the steps. A released model works on the features of the encoding: the scales
//! become part of the first layer. A network on pixels takes them from 0 to 1, and nothing is released of them.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use dp_accounting::{Delta, DpEvent, NoiseMultiplier};
use dp_linear::{FeatureFacts, Pace, Prepared, Streams as _};
use dp_train::ranks::{Alone, Collective};
use dp_train::{
    Activation, BatchPlan, CheckpointInterval, Checkpoints, DType, Device, Execution, Generators, LearningRate, Loss,
    ModelConfig, Observer, OptimiserConfig, Plan, PrivacyConfig, PublicFacts, RandomStreams, Records, StepState,
    StepView, TrainConfig, Trainer,
};

use crate::error::{FairdpError, Result};
use crate::key::NoiseKey;
use crate::model::Layer;
use crate::network::{layers_of, pixel_factor};
use crate::recipe::{Architecture, SgdMethod};
use crate::subsets::GroupedRows;

/// Most bytes of all features, which are held in memory.
const MOST_BYTES: usize = 4 << 30;
/// Rate of the first step of a network's optimiser, which scales every coordinate by itself.
const NETWORK_RATE: f64 = 0.02;
/// The same of one that corrects a released network: a step is as long whatever it finds, and a correction is short.
const CORRECTION_RATE: f64 = NETWORK_RATE / 4.0;
/// The same of a network on pixels, with its momentum: those of `cargo xtask reproduce beyond`, where the rate is
/// the best of four for `dpsgd` on held-out training records of MNIST with a rare class.
const PIXEL_RATE: f64 = 2.0;
const PIXEL_MOMENTUM: f64 = 0.9;
/// Seconds between two checkpoints.
const INTERVAL: u64 = 1;

/// The settings of a training run, without its records.
pub(crate) struct SgdRun<'a> {
    pub(crate) architecture: &'a Architecture,
    pub(crate) named: &'a SgdMethod,
    /// Noise of the gradients over the largest change by one unit; without it the run is not
    /// private.
    pub(crate) noise_multiplier: Option<NoiseMultiplier>,
    pub(crate) delta: Delta,
    pub(crate) records_per_unit: u64,
    pub(crate) n_classes: usize,
    pub(crate) n_groups: usize,
    pub(crate) threads: NonZeroUsize,
    /// The device of gradients, their sums and noise.
    pub(crate) device: Device,
    /// The file of checkpoints during the run.
    pub(crate) checkpoint: Option<PathBuf>,
    pub(crate) ranks: Arc<dyn Collective>,
    /// The layers of a released network that the training starts from, on the features as they are.
    pub(crate) start: Option<&'a [Layer]>,
}

/// What is known of the inputs before the first step.
#[derive(Clone, Copy)]
pub(crate) enum Inputs<'a> {
    /// Scales of the features and shares of the classes, released.
    Scaled(&'a Prepared),
    /// Of pixels, which need no scales, the shares of the classes.
    Pixels(&'a [f64]),
}

impl Inputs<'_> {
    fn priors(&self) -> &[f64] {
        match self {
            Self::Scaled(prepared) => &prepared.priors,
            Self::Pixels(priors) => priors,
        }
    }

    fn scaled(&self) -> Result<&Prepared> {
        match self {
            Self::Scaled(prepared) => Ok(prepared),
            Self::Pixels(_) => Err(FairdpError::Internal("pixels have no scales".into())),
        }
    }
}

/// Trains a model: its layers on the features as they are; of a network on pixels, on these.
pub(crate) fn train(
    rows: &impl GroupedRows,
    known: Inputs<'_>,
    facts: FeatureFacts,
    run: &SgdRun<'_>,
    key: &NoiseKey,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Vec<Layer>> {
    let inputs = InputScaling::new(known, facts, run)?;
    let n_inputs = rows.width() - 1;
    let public = PublicFacts { n_records: rows.len(), n_inputs, n_classes: run.n_classes, n_groups: run.n_groups };
    let plan = Plan::new(config(rows, known, facts, run)?, public)?;
    // Without privacy a sum depends on how it is split: every rank makes all of it.
    let ranks = if run.noise_multiplier.is_some() { run.ranks.clone() } else { Arc::new(Alone) };
    let records = inputs.records(rows, plan.held_by(ranks.rank(), ranks.size()), public, run)?;
    if let Some(sigma) = run.noise_multiplier {
        let (accounted, _) = run.named.releases(sigma.times(run.records_per_unit)?, run.n_groups, 1)?;
        match run.named.group_sampling {
            Some(_) => compare(&accounted, &plan.event())?,
            None => compare(&accounted, plan.step_event())?,
        }
    }
    let generators = Generators {
        initialisation: key.draws("initial weights", 0).into(),
        sampling: key.draws("batches", 0).into(),
        noise: key.stream("noise of gradients", 0).into(),
        counts: key.stream("noise of counts", 0).into(),
        dropout: key.draws("dropout", 0).into(),
    };
    let streams = RandomStreams::from_generators(generators, key.drawn().seed.is_none())?;
    // A CUDA device is driven by one thread.
    let threads = if run.device.is_cpu() { run.threads } else { NonZeroUsize::MIN };
    let execution = Execution { threads, device: run.device.clone(), ranks: ranks.clone(), ..Execution::default() };
    let mut trainer = Trainer::new(&plan, &records, streams, execution)?;
    match run.start {
        Some(layers) => {
            let values = inputs.parameters(layers);
            trainer.model().parameters().set(&values).map_err(dp_train::TrainError::from)?;
        }
        None => inputs.begin(&mut trainer, known.priors())?,
    }
    if let Some(path) = &run.checkpoint {
        let is_there = ranks.broadcast(vec![u8::from(path.exists())])?;
        if is_there == [1] {
            trainer.restore_checkpoint(path)?;
        }
        trainer = trainer.with_checkpoints(Checkpoints::new(path, CheckpointInterval::Seconds(INTERVAL)))?;
    }
    let mut steps = StepCounter { progress, ended: None };
    let run = match key.attack() {
        Some(attack) => attack.on_trainer(&plan, &mut trainer, |trainer| trainer.run(&mut steps))?,
        None => trainer.run(&mut steps),
    };
    match steps.ended {
        Some(error) => return Err(error),
        None => run?,
    };
    match known {
        Inputs::Scaled(_) => inputs.layers(&mut trainer),
        Inputs::Pixels(_) => layers_of(trainer.model().parameters()),
    }
}

/// The event of the account is that of the run.
fn compare(accounted: &DpEvent, trained: &DpEvent) -> Result<()> {
    let inner = match trained {
        DpEvent::PoissonSampled { sampling_rate, event } if sampling_rate.get() >= 1.0 => event,
        event => event,
    };
    if accounted == inner {
        return Ok(());
    }
    Err(FairdpError::NotAccounted { released: Box::new(inner.clone()), accounted: Box::new(accounted.clone()) })
}

fn config(rows: &impl GroupedRows, known: Inputs<'_>, facts: FeatureFacts, run: &SgdRun<'_>) -> Result<TrainConfig> {
    let named = run.named;
    let loss = if run.n_classes == 2 { Loss::BceWithLogits } else { Loss::SoftmaxCrossEntropy };
    let batches = BatchPlan::new(named.sampling_rate, named.steps, 1);
    let (model, rate, optimiser, l2) = match run.architecture {
        Architecture::Additive => {
            let prepared = known.scaled()?;
            let bound = prepared.scales.row_bound;
            let sigma = run.noise_multiplier.map_or(0.0, NoiseMultiplier::get) * run.records_per_unit as f64;
            let expected = named.sampling_rate.get() * rows.len() as f64;
            let noise = sigma * bound / (named.steps as f64).sqrt() / expected;
            let pace = Pace::of(noise, rows.len() as f64, rows.width(), &prepared.priors, facts);
            (
                ModelConfig::LogisticRegression,
                pace.rate * bound * bound,
                OptimiserConfig::Momentum { momentum: pace.momentum, nesterov: true },
                pace.ridge / (bound * bound),
            )
        }
        Architecture::Mlp { hidden } => (
            ModelConfig::Mlp { hidden: hidden.clone(), activation: Activation::Tanh },
            if run.start.is_some() { CORRECTION_RATE } else { NETWORK_RATE },
            OptimiserConfig::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8 },
            0.0,
        ),
        Architecture::Network { network, image } => (
            network.config(*image),
            PIXEL_RATE,
            OptimiserConfig::Momentum { momentum: PIXEL_MOMENTUM, nesterov: false },
            0.0,
        ),
    };
    let rates = LearningRate::Cosine { first: named.learning_rate.unwrap_or(rate), last: 0.0 };
    let privacy = match run.noise_multiplier {
        None => None,
        Some(sigma) => Some(PrivacyConfig {
            require_guarantee: true,
            ..PrivacyConfig::new(named.clipping, sigma.times(run.records_per_unit)?, run.delta)
        }),
    };
    // Without privacy all records are drawn alike.
    let group_sampling = privacy.as_ref().and_then(|_| named.group_sampling.clone());
    let rates_by_loss = privacy.as_ref().and_then(|_| named.rates_by_loss.clone());
    Ok(TrainConfig {
        optimiser,
        l2,
        group_sampling,
        rates_by_loss,
        privacy,
        ..TrainConfig::new(model, loss, batches, rates)
    })
}

/// Noise of a unit of several records.
trait Times: Sized {
    fn times(self, records: u64) -> Result<Self>;
}

impl Times for NoiseMultiplier {
    fn times(self, records: u64) -> Result<Self> {
        Ok(Self::new(self.get() * records as f64)?)
    }
}

/// How features become a model's inputs: all but the constant, each times its factor.
struct InputScaling {
    factors: Vec<f64>,
    constant: usize,
    /// Root of the mean square length of a row.
    length: f64,
}

impl InputScaling {
    fn new(known: Inputs<'_>, facts: FeatureFacts, run: &SgdRun<'_>) -> Result<Self> {
        let (constant, scale) = facts.constant;
        // The gradients of a network's first two layers are then about as long as each other.
        let length = match run.architecture {
            Architecture::Additive => 1.0,
            Architecture::Mlp { hidden } => (hidden[0] as f64).sqrt(),
            Architecture::Network { image, .. } => {
                // With this length the first weights stay as they are drawn.
                let length = (image.len() as f64).sqrt();
                return Ok(Self { factors: vec![pixel_factor(scale); image.len() + 1], constant, length });
            }
        };
        let scales = &known.scaled()?.scales;
        let scale = length / scales.row_bound;
        let factors = scales.factors.iter().map(|factor| factor * scale).collect();
        Ok(Self { factors, constant, length })
    }

    /// The records of a rank as `dp_train` takes them. One that was blanked has no numbers for
    /// features: it adds 0 to every sum and count.
    fn records(
        &self,
        rows: &impl GroupedRows,
        held: Range<usize>,
        facts: PublicFacts,
        run: &SgdRun<'_>,
    ) -> Result<Records> {
        let width = facts.n_inputs;
        let needed = held.len().saturating_mul(rows.width()).saturating_mul(size_of::<f32>());
        if needed > MOST_BYTES {
            let gib = |bytes: usize| bytes as f64 / 2f64.powi(30);
            return Err(FairdpError::NotForThisTable {
                parameter: "features in memory",
                value: format!("{:.1} GiB, {} records of {}", gib(needed), held.len(), rows.width()),
                expected: format!(
                    "at most {:.0} GiB for method `{}`: use fewer columns or bins, more processes, or the additive model with \
                     method \"auto\", which reads them again in every step",
                    gib(MOST_BYTES),
                    run.named.name
                ),
            });
        }
        let mut features = vec![0.0_f32; held.len() * width];
        let mut labels = vec![0; held.len()];
        rows.visit(held.clone(), &mut |index, row| {
            let index = index - held.start;
            let inputs = &mut features[index * width..(index + 1) * width];
            labels[index] = row.label as u32;
            if row.is_blank() {
                inputs.fill(f32::NAN);
            }
            for (column, value) in row.features().filter(|(column, _)| *column != self.constant) {
                inputs[column] = (value * self.factors[column]) as f32;
            }
        });
        let groups = rows.groups(held.clone());
        Ok(Records::part(&features, &labels, &groups, held, facts, DType::F32, &run.device)?)
    }

    /// Sets the initial parameters: last biases from the class counts, and first layers scaled to
    /// the length of the inputs.
    fn begin(&self, trainer: &mut Trainer<'_>, priors: &[f64]) -> Result<()> {
        let parameters = trainer.model().parameters();
        let mut values = parameters.to_vec().map_err(dp_train::TrainError::from)?;
        let specs = parameters.specs();
        let is_linear = specs.len() == 2;
        let mut start = 0;
        for (place, spec) in specs.iter().enumerate() {
            let size: usize = spec.shape.iter().product();
            let part = &mut values[start..start + size];
            if place == 0 {
                let factor = if is_linear { 0.0 } else { ((self.factors.len() - 1) as f64).sqrt() / self.length };
                for value in part {
                    *value *= factor;
                }
            } else if place + 1 == specs.len() {
                for (class, value) in part.iter_mut().enumerate() {
                    *value = if size == 1 { (priors[1] / priors[0]).ln() } else { priors[class].ln() };
                }
            }
            start += size;
        }
        Ok(parameters.set(&values).map_err(dp_train::TrainError::from)?)
    }

    /// The parameters of a network with these layers.
    fn parameters(&self, layers: &[Layer]) -> Vec<f64> {
        let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
        let of = |(place, layer): (usize, &Layer)| {
            let weights = wide(&layer.weights);
            let weights = if place == 0 { self.scaled(&weights) } else { weights };
            [weights, wide(&layer.biases)].concat()
        };
        layers.iter().enumerate().flat_map(of).collect()
    }

    /// Weights on a model's inputs, of those on the features as they are: that of the constant is 0.
    fn scaled(&self, weights: &[f64]) -> Vec<f64> {
        let of_input = |(weight, factor): (&f64, &f64)| if *factor > 0.0 { weight / factor } else { 0.0 };
        let rows = weights.chunks_exact(self.factors.len());
        rows.flat_map(|row| row.iter().zip(&self.factors).take(self.factors.len() - 1).map(of_input)).collect()
    }

    /// The layers, the first one on the features as they are.
    fn layers(&self, trainer: &mut Trainer<'_>) -> Result<Vec<Layer>> {
        let parameters = trainer.model().parameters();
        let values = parameters.to_vec().map_err(dp_train::TrainError::from)?;
        let mut layers = Vec::new();
        let mut rest = &values[..];
        for pair in parameters.specs().chunks_exact(2) {
            let [outputs, inputs] = pair[0].shape[..] else {
                return Err(FairdpError::Internal(format!("parameter `{}` is no matrix", pair[0].name)));
            };
            let (weights, after) = rest.split_at(outputs * inputs);
            let (biases, after) = after.split_at(outputs);
            rest = after;
            let weights = if layers.is_empty() { self.unscaled(weights) } else { weights.to_vec() };
            let single = |values: &[f64]| values.iter().map(|&value| value as f32).collect();
            layers.push(Layer { weights: single(&weights), biases: single(biases) });
        }
        Ok(layers)
    }

    /// Weights on the features as they are, with one of 0 for the constant, which is last.
    fn unscaled(&self, weights: &[f64]) -> Vec<f64> {
        let width = self.factors.len();
        let rows = weights.chunks_exact(width - 1);
        rows.flat_map(|row| {
            row.iter().zip(&self.factors).map(|(weight, factor)| weight * factor).chain(std::iter::once(0.0))
        })
        .collect()
    }
}

/// Counts steps, and ends the run if the progress callback fails.
struct StepCounter<'a> {
    progress: &'a mut dyn FnMut(u64) -> Result<()>,
    ended: Option<FairdpError>,
}

impl Observer for StepCounter<'_> {
    fn wants_state(&self, _step: u64) -> bool {
        self.ended.is_some()
    }

    /// Called only when the run must end. Any error ends it; the stored one replaces it.
    fn before_step(&mut self, state: &StepState<'_>) -> dp_train::Result<()> {
        Err(dp_train::TrainError::Diverged { step: state.step })
    }

    fn on_step(&mut self, view: &StepView<'_>) {
        self.ended = (self.progress)(view.step + 1).err();
    }
}
