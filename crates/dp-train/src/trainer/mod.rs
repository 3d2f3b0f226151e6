//! The training loop: batch, per-sample norms, clipping, noise, update, ledger.

#[cfg(feature = "audit")]
mod before_noise;
mod by_group;
mod certified;
mod coupling;
mod fairlens;
#[cfg(feature = "audit")]
mod fixed_counts;
mod gradient;
mod in_advance;
mod micro_batch;
mod shared;

use std::num::NonZeroUsize;
use std::sync::Arc;

use candle_core::Device;
use dp_accounting::{Delta, DpEvent, Ledger, Mark, Scope, Statement};
use dp_clipping::{ClipMethod, Coupling, MethodState};
use dp_engine::noise::NoiseSource;
use dp_engine::{
    Blocks, ClippedSum, DropoutKey, Engine, Model, Optimiser, OptimiserStep, ParameterVector, PublicFacts, Records,
    WeightedSum, ops,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "audit")]
pub use self::before_noise::BeforeNoise;
use self::by_group::ByGroup;
pub(crate) use self::coupling::{adds_noise, check_coupling};
pub(crate) use self::fairlens::{FairLens, Regularised, Usable};
#[cfg(feature = "audit")]
pub use self::fixed_counts::FixedStep;
use crate::checkpoint::{Checkpoints, DataDigests};
use crate::early_stopping::Patience;
use crate::error::{Result, TrainError};
use crate::observer::{Observer, StepState, StepView};
use crate::plan::Plan;
use crate::random_streams::RandomStreams;
use crate::ranks::{Alone, Collective, with_device};
use crate::sampler::PoissonSampler;

/// Options that change only the speed of a run. They change neither its privacy nor its result: no
/// bit of a certified run's, and of another run's only its rounding.
///
/// **Example**
/// ```
/// use std::thread::available_parallelism;
/// use dp_train::Execution;
/// let execution = Execution { threads: available_parallelism()?, ..Execution::default() };
/// assert!(execution.device.is_cpu() && execution.records_at_once() == 1_024);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Execution {
    /// Records that are in memory with their activations at once, at least 1, or one piece
    /// ([`TrainConfig::block_records`](crate::TrainConfig)). A larger batch is worked off in
    /// chunks. Where a scale depends on the rest of the batch (noisy counts of the step, or a
    /// coupling), each is computed twice: once for the norms, once for the sum. FairLens has the
    /// whole batch in memory, and on linear networks computes it once, on one thread.
    ///
    /// `None`: 1,024; a certified run on a CUDA device has as many as a quarter of the memory holds
    /// that is free when the trainer is built.
    pub micro_batch: Option<usize>,
    /// Threads that share each micro-batch.
    pub threads: NonZeroUsize,
    /// Where the arithmetic is done; the records must be there too. For a CUDA device see
    /// [`cuda_device`](crate::cuda_device).
    pub device: Device,
    /// Where the noise of a run on a CUDA device is made.
    pub noise: NoiseSource,
    /// The processes that share the run, each with its part of the records ([`Plan::held_by`]):
    /// certified methods alone.
    pub ranks: Arc<dyn Collective>,
}

impl Default for Execution {
    fn default() -> Self {
        Self {
            micro_batch: None,
            threads: NonZeroUsize::MIN,
            device: Device::Cpu,
            noise: NoiseSource::Device,
            ranks: Arc::new(Alone),
        }
    }
}

impl Execution {
    /// Records at once where they are not chosen by the memory that is free.
    pub fn records_at_once(&self) -> usize {
        self.micro_batch.unwrap_or(1_024)
    }
}

/// Counters of a run so far. Computed from the data: **not private**, except `steps`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RunCounts {
    /// Steps taken.
    pub steps: u64,
    /// Batches without a record.
    pub empty_batches: u64,
    /// Records, over all steps, whose gradient was not finite; they contributed zero.
    pub non_finite: u64,
    /// Records drawn, over all steps.
    pub records: u64,
}

/// A model in training.
///
/// **Guarantee.** Each step releases what [`Plan::step_event`] says and nothing else: Poisson
/// batch, per-sample gradients scaled to the method's bound `S`, their sum with `N(0, (σS')² I)`,
/// divided by the expected batch size, where `S'` is `S` and what rounding adds to it
/// (docs/threat-model.md). That one record moves the sum by at most `S'`, and each count by at most
/// its declared sensitivity, holds in the arithmetic that is executed. Losses, norms and counters
/// that an [`Observer`] sees are outside of it.
///
/// **Edge cases.** An empty batch is a step of noise (without privacy: of regularisation alone). A
/// record whose gradient is not finite contributes exactly 0 to sums and counts and is counted in
/// [`RunCounts::non_finite`].
///
/// **Source.** Abadi 2016, Algorithm 1, with the expected in place of the realised batch size as
/// divisor, which under Poisson sampling is private.
///
/// **Example**
/// ```
/// use dp_train::dp_accounting::Delta;
/// use dp_train::*;
/// let facts = PublicFacts { n_records: 200, n_inputs: 1, n_classes: 2, n_groups: 1 };
/// let features: Vec<f32> = (0..200).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
/// let labels: Vec<u32> = (0..200).map(|i| u32::from(i % 2 == 0)).collect();
/// let records = Records::new(&features, &labels, &[0; 200], facts, DType::F32, &Device::Cpu)?;
///
/// let text = r#"
/// model = { name = "logistic-regression" }
/// loss = "bce-with-logits"
/// learning_rate = { constant = 2.0 }
/// batches = { expected_size = 50, epochs = 5 }
/// privacy = { method = "dpsgd", noise_multiplier = 2.0, delta = 1e-3 }
/// "#;
/// let plan = Plan::new(TrainConfig::from_toml(text, facts)?, facts)?;
/// let streams = Randomness::from_os()?.streams(0, 0)?;
/// let mut trainer = Trainer::new(&plan, &records, streams, Execution::default())?;
/// assert_eq!(trainer.run(&mut Unobserved)?.steps, 20);
///
/// let statement = trainer.statement("one person's record", Delta::new(1e-3)?)?;
/// assert!(statement.epsilon.epsilon().get() < 2.0);
/// assert_eq!(trainer.model().predict(&[1.0, -1.0])?, [1, 0]);
/// # Ok::<(), TrainError>(())
/// ```
pub struct Trainer<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) records: &'a Records,
    pub(crate) engine: Engine,
    pub(crate) method: Option<Box<dyn ClipMethod>>,
    fairlens: Option<FairLens>,
    pub(crate) optimiser: Optimiser,
    pub(crate) streams: RandomStreams,
    pub(crate) execution: Execution,
    batching: Batching,
    buffers: StepBuffers,
    /// Where groups have rates of their own.
    by_group: Option<ByGroup>,
    pub(crate) control: RunControl<'a>,
    pub(crate) ledger: Ledger,
    pub(crate) counts: RunCounts,
    /// A step was begun and did not end: random streams and counts no longer belong together.
    pub(crate) is_broken: bool,
}

/// What is public of a run: no counter but the steps, no stream, no parameter.
impl std::fmt::Debug for Trainer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer")
            .field("plan", &self.plan)
            .field("records", &self.records)
            .field("engine", &self.engine)
            .field("execution", &self.execution)
            .field("steps", &self.counts.steps)
            .finish_non_exhaustive()
    }
}

/// The draw of a batch, and its division into blocks and micro-batches.
struct Batching {
    sampler: PoissonSampler,
    blocks: Blocks,
    /// Records at once.
    micro_batch: usize,
}

/// Memory that every step uses again.
struct StepBuffers {
    /// Record numbers of the batch.
    batch: Vec<usize>,
    /// The clipped sum; with noise and divided, the step's gradient.
    sum: StepSum,
    group_gradients: Vec<ParameterVector>,
}

/// Validation, early stopping and checkpoints of a run.
#[derive(Default)]
pub(crate) struct RunControl<'a> {
    pub(crate) validation: Option<&'a Records>,
    pub(crate) patience: Patience,
    pub(crate) checkpoints: Option<Checkpoints>,
    /// Digests of training and validation records, once a checkpoint needed them.
    pub(crate) digests: Option<DataDigests>,
    /// The observer's memory in the checkpoint that this run continues from.
    pub(crate) remembered: Value,
}

/// A step's sum in the making.
enum StepSum {
    /// The sum of a certified method. Its sensitivity holds in the arithmetic that is executed.
    Clipped(ClippedSum),
    /// The sum of a run without privacy, or of a method in which records act on each other: without
    /// a guarantee.
    Plain(WeightedSum),
}

impl StepSum {
    /// The vector that holds the step's gradient once noise is added.
    fn gradient(&mut self) -> Result<&ParameterVector> {
        match self {
            Self::Clipped(sum) => Ok(sum.gradient()?),
            Self::Plain(sum) => Ok(sum.gather()?.0),
        }
    }
}

impl<'a> Trainer<'a> {
    /// Builds model, sampler, clipping method and ledger from one plan, and draws the initial
    /// parameters. Several ranks agree beforehand that they have one plan, the same streams and the
    /// same arithmetic.
    ///
    /// # Errors
    /// [`TrainError::Differences`] and [`TrainError::Ranks`] if ranks differ;
    /// [`TrainError::Mismatch`] if the public facts of the records are not those the plan was made
    /// for, or the records are on another device; [`TrainError::InvalidParameter`] if the loss does
    /// not fit the number of classes, or a width or the micro-batch is 0.
    pub fn new(
        plan: &'a Plan,
        records: &'a Records,
        mut streams: RandomStreams,
        mut execution: Execution,
    ) -> Result<Self> {
        if records.facts() != plan.facts() {
            let (expected, got) = (format!("{:?}", plan.facts()), format!("{:?}", records.facts()));
            return Err(TrainError::mismatch("records of the plan", expected, got));
        }
        if execution.micro_batch == Some(0) {
            return Err(TrainError::invalid("micro_batch", 0, "at least 1"));
        }
        records.check_device(&execution.device)?;
        shared::check(plan, records, &*execution.ranks)?;
        shared::agree(plan, records, &streams, &execution)?;
        execution.ranks = with_device(execution.ranks, &execution.device)?;
        let config = plan.config();
        let engine = Engine::new(&config.model, config.loss.clone(), records, &execution.device)?
            .for_batches_of(plan.expected_batch_size().ceil() as usize)?
            .with_threads(execution.threads)?;
        engine.model().initialise(&mut streams.initialisation)?;
        let fairlens = FairLens::of(config, records)?;
        let method = match &config.privacy {
            Some(privacy) => Some(privacy.clipping.build(plan.context())?),
            None => None,
        };
        let is_certified = plan.certified() && plan.coupling() == Coupling::None;
        let batching = Batching {
            sampler: PoissonSampler::new(plan.facts().n_records, config.batches.sampling_rate)?
                .in_blocks(plan.blocks().block()),
            blocks: plan.blocks(),
            micro_batch: micro_batch::of(&execution, &engine, is_certified),
        };
        let sum =
            if is_certified { StepSum::Clipped(engine.clipped_sum()?) } else { StepSum::Plain(engine.empty_sum()?) };
        Ok(Self {
            optimiser: Optimiser::new(config.optimiser, || engine.zero_gradient())?,
            batching,
            buffers: StepBuffers { batch: Vec::new(), sum, group_gradients: Vec::new() },
            by_group: plan.rates_at(None).map(|rates| ByGroup::new(config.batches.sampling_rate.get(), &rates)),
            control: RunControl::default(),
            ledger: plan.ledger(0)?,
            counts: RunCounts::default(),
            is_broken: false,
            plan,
            records,
            engine,
            method,
            fairlens,
            streams,
            execution,
        })
    }

    /// Evaluates the model on these records after every epoch of [`Self::run`]: for
    /// [`EarlyStopping`](crate::EarlyStopping), and for [`Observer::on_validation`]. They must be
    /// neither training records nor the test set.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if there are no records, or if their inputs or classes differ from
    /// the training records'.
    pub fn with_validation(mut self, validation: &'a Records) -> Result<Self> {
        let (ours, theirs) = (self.records.facts(), validation.facts());
        if validation.is_empty() {
            return Err(TrainError::mismatch("validation records", "at least 1", 0));
        }
        if (theirs.n_inputs, theirs.n_classes) != (ours.n_inputs, ours.n_classes) {
            let shape = |facts: PublicFacts| format!("{} inputs and {} classes", facts.n_inputs, facts.n_classes);
            return Err(TrainError::mismatch("validation records", shape(ours), shape(theirs)));
        }
        self.control.validation = Some(validation);
        self.control.digests = None;
        Ok(self)
    }

    /// Writes checkpoints during [`Self::run`], the last one at its end. To continue from one, see
    /// [`Self::restore_checkpoint`].
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] if the interval is 0 steps.
    pub fn with_checkpoints(mut self, checkpoints: Checkpoints) -> Result<Self> {
        checkpoints.validate()?;
        self.control.checkpoints = Some(checkpoints);
        Ok(self)
    }

    /// Whether [`Self::run`] ended because validation no longer improved. The model then has the
    /// parameters of the best epoch, and the ledger holds all steps of the plan.
    pub fn stopped_early(&self) -> bool {
        self.control.patience.stopped
    }

    /// Runs all remaining steps; at the end of a run it does nothing.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the plan stops early and there are no validation records;
    /// [`TrainError::Diverged`] if the parameters are not finite at the end of an epoch;
    /// [`TrainError::Io`] if a checkpoint cannot be written; the errors of [`Self::step`].
    pub fn run(&mut self, observer: &mut dyn Observer) -> Result<RunCounts> {
        self.advance(self.plan.config().batches.steps, observer)
    }

    /// Runs what remains of the first `steps` steps. A run that goes on from there, or from a
    /// checkpoint of that moment, is bit for bit the one that never paused.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the plan has fewer steps, or more have been taken; the errors of
    /// [`Self::run`].
    pub fn run_until(&mut self, steps: u64, observer: &mut dyn Observer) -> Result<RunCounts> {
        let (taken, planned) = (self.counts.steps, self.plan.config().batches.steps);
        if !(taken..=planned).contains(&steps) {
            let expected = format!("{taken} (taken) to {planned} (planned)");
            return Err(TrainError::mismatch("steps to run until", expected, steps));
        }
        self.advance(steps, observer)
    }

    fn advance(&mut self, until: u64, observer: &mut dyn Observer) -> Result<RunCounts> {
        let batches = self.plan.config().batches;
        if self.plan.config().early_stopping.is_some() && self.control.validation.is_none() {
            return Err(TrainError::mismatch("validation records for early stopping", "some", "none"));
        }
        self.agree_to_run(until)?;
        self.compare_ranks()?;
        if self.control.checkpoints.is_some() && self.execution.ranks.size() > 1 {
            // All ranks together, and not only when one of them finds that a checkpoint is due.
            self.data_digests()?;
        }
        match std::mem::take(&mut self.control.remembered) {
            Value::Null => {}
            memory => observer.remember(memory)?,
        }
        while self.counts.steps < until && !self.control.patience.stopped {
            let step = self.counts.steps;
            self.take_step(observer)?;
            self.compare_ranks_if_due()?;
            if let Some(epoch) = batches.epoch_ending_at(step) {
                if self.engine.model().parameters().to_vec()?.iter().any(|p| !p.is_finite()) {
                    return Err(TrainError::Diverged { step });
                }
                self.validate(epoch, observer)?;
                observer.on_epoch(epoch, step + 1);
            }
            self.checkpoint_if_due(until, observer)?;
        }
        self.compare_ranks()?;
        Ok(self.counts)
    }

    /// Takes one step: draws a batch, sums its clipped gradients, adds noise and updates the
    /// parameters.
    ///
    /// A step beyond the plan's last one is possible and enters the ledger as well. After an early
    /// stop no step is possible: the parameters belong to an earlier epoch.
    ///
    /// # Errors
    /// [`TrainError::Stopped`] after an early stop; [`TrainError::Ranks`] if ranks differ.
    /// [`TrainError::Mismatch`] if the clipping method reports a query that the plan did not
    /// announce: an unaccounted release stops the run before anything of it is used.
    /// [`TrainError::Tensor`] if the device fails. After either the trainer is
    /// [`TrainError::Broken`] until a checkpoint is restored.
    pub fn step(&mut self, observer: &mut dyn Observer) -> Result<()> {
        self.agree_to_step()?;
        self.take_step(observer)?;
        self.compare_ranks()
    }

    /// The state of the clipping method between two steps; `None` without privacy.
    pub(crate) fn method_state(&self) -> Result<Option<MethodState>> {
        Ok(self.method.as_ref().map(|method| MethodState::from_value(&method.state())).transpose()?)
    }

    fn take_step(&mut self, observer: &mut dyn Observer) -> Result<()> {
        self.ensure_whole()?;
        if self.control.patience.stopped {
            return Err(TrainError::Stopped { steps: self.counts.steps });
        }
        let step = self.counts.steps;
        if observer.wants_state(step) {
            let method = self.method_state()?;
            observer.before_step(&StepState {
                step,
                learning_rate: self.plan.learning_rate(step),
                parameters: &self.engine.model().parameters().to_vec()?,
                method: method.as_ref(),
            })?;
        }
        self.is_broken = true;
        self.move_rates()?;
        let mut rows = std::mem::take(&mut self.buffers.batch);
        self.batching.sampler.next_batch(&mut self.streams.sampling, &mut rows);
        if let Some(by_group) = &mut self.by_group {
            by_group.draw(&mut self.streams.sampling, &rows);
        }
        let is_shared = self.execution.ranks.size() > 1;
        let wants_groups = !is_shared && observer.wants_group_gradients(step);
        // One key for all passes of the step, for the norms and for the sum.
        self.engine.set_dropout(Some(DropoutKey::draw(&mut self.streams.dropout)));

        let (pass, weighting) = self.form_gradient(&rows, wants_groups)?;
        self.update(step, weighting.bound)?;

        self.counts.steps += 1;
        self.counts.records += rows.len() as u64;
        self.counts.empty_batches += u64::from(rows.is_empty());
        self.counts.non_finite += pass.blanked.len() as u64;
        let group_gradient_norms = if wants_groups { Some(self.group_gradient_norms(&pass)?) } else { None };
        observer.on_step(&StepView {
            step,
            groups: &pass.groups,
            losses: &pass.losses,
            norms: &pass.norms,
            scales: &weighting.scales,
            thresholds: &weighting.thresholds,
            group_bounds: &weighting.group_bounds,
            group_gradient_norms: group_gradient_norms.as_deref(),
        });
        self.buffers.batch = rows;
        self.is_broken = false;
        Ok(())
    }

    /// Moves rates that follow losses to where the method's weights, out of earlier releases, have them.
    fn move_rates(&mut self) -> Result<()> {
        if self.plan.config().rates_by_loss.is_none() {
            return Ok(());
        }
        let weights = self.method_state()?.and_then(|state| state.weights);
        if let (Some(by_group), Some(rates)) = (&mut self.by_group, self.plan.rates_at(weights.as_deref())) {
            by_group.set(&rates);
        }
        Ok(())
    }

    /// Whether every step that was begun has ended.
    pub(crate) fn ensure_whole(&self) -> Result<()> {
        if self.is_broken { Err(TrainError::Broken { step: self.counts.steps }) } else { Ok(()) }
    }

    /// The model, as trained so far. A clone outlives the trainer, and follows further training;
    /// [`Model::copy`] does not.
    pub fn model(&self) -> &Model {
        self.engine.model()
    }

    /// The model and its buffers, to evaluate it between steps.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Whether nobody can know batches and noise of this run, which no seed then fixes.
    pub fn is_private(&self) -> bool {
        self.streams.is_private()
    }

    /// States what the run has released so far: the ε of the whole ledger at this δ with its mark,
    /// what it covers, and what it is conditional on ([`Self::scope`]).
    ///
    /// `unit_of_privacy` names one record, for example `one person's record`.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] if the plan has no guarantee to state: it is not private, or
    /// its method is not certified; [`TrainError::Accounting`] if the ledger cannot be composed.
    pub fn statement(&self, unit_of_privacy: &str, delta: Delta) -> Result<Statement> {
        let Some(scope) = self.scope(unit_of_privacy) else {
            let value = self.plan.config().privacy.as_ref().map_or("none", |_| "a method without a proof");
            return Err(TrainError::invalid("privacy", value, "a certified method: there is no guarantee to state"));
        };
        Ok(Statement::new(&self.ledger, delta, scope)?)
    }

    /// The scope of a [`Statement`](dp_accounting::Statement) about this run: [`Plan::scope`] with
    /// the run's streams. The scope of a seeded run says that it is not private.
    pub fn scope(&self, unit_of_privacy: &str) -> Option<Scope> {
        self.plan.scope(unit_of_privacy, self.is_private())
    }

    /// The mark of an ε of this run: [`Plan::mark`] with the run's streams.
    pub fn mark(&self) -> Option<Mark> {
        self.plan.mark(self.is_private())
    }

    /// Everything that was released so far, for neighbours in which one record is blanked.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Writes a checkpoint, if one is due, in a run of `until` steps.
    fn checkpoint_if_due(&mut self, until: u64, observer: &dyn Observer) -> Result<()> {
        let is_last = self.counts.steps >= until || self.control.patience.stopped;
        let Some(checkpoints) = self.control.checkpoints.as_mut().filter(|_| self.execution.ranks.rank() == 0) else {
            return Ok(());
        };
        if !checkpoints.is_due(self.counts.steps, is_last) {
            return Ok(());
        }
        let path = checkpoints.path().to_owned();
        self.save_with(&path, observer.memory()?)
    }

    /// Evaluates on the validation records, if there are any, and stops the run where the plan says
    /// so.
    fn validate(&mut self, epoch: u64, observer: &mut dyn Observer) -> Result<()> {
        let Some(validation) = self.control.validation else { return Ok(()) };
        let evaluation = self.engine.evaluate(validation, self.execution.records_at_once())?;
        observer.on_validation(epoch, &evaluation);
        let Some(rule) = &self.plan.config().early_stopping else { return Ok(()) };
        let figure = rule.criterion.figure(&evaluation, validation);
        let parameters = self.engine.model().parameters();
        self.control.patience.note(rule, figure, || Ok(parameters.to_vec()?))?;
        if self.control.patience.stopped {
            if let Some((_, best)) = &self.control.patience.best {
                parameters.set(best)?;
            }
            // The moment of the stop reveals something of the data: only the whole plan's ε holds
            // for it.
            let remaining = self.plan.config().batches.steps.saturating_sub(self.counts.steps);
            self.enter(remaining)?;
        }
        Ok(())
    }

    /// Enters the next steps in the ledger. What a record meets in all steps is one entry, which
    /// then holds these as well.
    pub(super) fn enter(&mut self, steps: u64) -> Result<()> {
        if matches!(self.plan.step_event(), DpEvent::OneOf(_)) {
            self.ledger = self.plan.ledger(self.counts.steps.saturating_add(steps))?;
            return Ok(());
        }
        Ok(self.ledger.record(self.plan.step_event(), steps)?)
    }

    /// Regularisation and the optimiser's step, both on the private gradient.
    fn update(&mut self, step: u64, bound: f64) -> Result<()> {
        let of = OptimiserStep { step, rate: self.plan.learning_rate(step), noise_std: self.gradient_noise_std(bound) };
        let config = self.plan.config();
        let (parameters, threads) = (self.engine.model().parameters(), self.engine.threads());
        let gradient = self.buffers.sum.gradient()?;
        if config.l2 > 0.0 {
            let views = gradient.views().iter().zip(parameters.views()).zip(parameters.specs());
            for ((gradient, parameter), _) in views.filter(|(_, spec)| spec.decays) {
                ops::scale_add(gradient, parameter, 1.0, config.l2, threads)?;
            }
        }
        Ok(self.optimiser.step(parameters, gradient, of, threads)?)
    }

    /// Standard deviation of the noise in every element of a step's mean gradient, 0 for none. A
    /// function of the plan and of the bound, which is released.
    fn gradient_noise_std(&self, bound: f64) -> f64 {
        let privacy = self.plan.config().privacy.as_ref().filter(|_| adds_noise(self.plan.coupling()));
        let sensitivity = match self.buffers.sum {
            StepSum::Clipped(_) => self.sensitivity(bound),
            StepSum::Plain(_) => bound,
        };
        privacy.map_or(0.0, |privacy| privacy.noise_multiplier.get() * sensitivity / self.plan.expected_batch_size())
    }
}
