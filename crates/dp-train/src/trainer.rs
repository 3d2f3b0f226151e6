//! The training loop: batch, per-sample norms, clipping, noise, update, ledger.

use std::cell::RefCell;

use candle_core::Device;
use dp_accounting::{Ledger, NeighbouringRelation};
use dp_clipping::{ClipBatch, ClipMethod, Clipped};

use crate::engine::Engine;
use crate::error::{Result, TrainError};
use crate::observer::{Observer, StepView};
use crate::ops::{Axpy, Finite, Privatise};
use crate::parameters::ParameterVector;
use crate::plan::Plan;
use crate::randomness::RandomStreams;
use crate::records::Records;
use crate::sampler::PoissonSampler;

/// Options that change only how fast a run is. They cannot change its privacy, nor, beyond rounding, its result.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Records that are in memory with their activations at once, at least 1. A larger batch is worked off in pieces, each
    /// computed twice: once for the norms, once for the sum.
    pub micro_batch: usize,
    /// Where the arithmetic is done; the records must be there too.
    pub device: Device,
}

impl Default for Execution {
    fn default() -> Self {
        Self { micro_batch: 1_024, device: Device::Cpu }
    }
}

/// Counters of a run so far. Computed from the data: **not private**, except `steps`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
/// **Guarantee.** Each step releases what [`Plan::step_event`] says and nothing else: Poisson batch, per-sample gradients scaled to the
/// method's bound `S`, their sum with `N(0, (σS)² I)`, divided by the expected batch size. Losses, norms and counters that an
/// [`Observer`] sees are outside of it.
///
/// **Edge cases.** An empty batch is a step of noise (without privacy: of regularisation alone). A record whose gradient is not
/// finite contributes exactly 0 to sums and counts and is counted in [`RunCounts::non_finite`].
///
/// **Source.** Abadi 2016, Algorithm 1, with the expected in place of the realised batch size as divisor, which under Poisson
/// sampling is private.
pub struct Trainer<'a> {
    plan: &'a Plan,
    records: &'a Records,
    engine: Engine,
    method: Option<Box<dyn ClipMethod>>,
    streams: RandomStreams,
    sampler: PoissonSampler,
    execution: Execution,
    gradient: ParameterVector,
    group_gradients: Vec<ParameterVector>,
    ledger: Ledger,
    batch: Vec<usize>,
    counts: RunCounts,
}

/// How much of each record enters the sum, and how much noise that takes.
#[derive(Default)]
struct Weighting {
    scales: Vec<f64>,
    bound: f64,
    group_bounds: Vec<f64>,
    thresholds: Vec<f64>,
}

/// A batch's losses and norms, before any sum.
struct Pass {
    losses: Vec<f64>,
    norms: Vec<f64>,
    /// Positions in the batch of records whose gradient is known not to be finite.
    blanked: Vec<usize>,
}

impl<'a> Trainer<'a> {
    /// Builds model, sampler, clipping method and ledger from one plan, and draws the initial parameters.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the public facts of the records are not those the plan was made for;
    /// [`TrainError::InvalidParameter`] if the loss does not fit the number of classes, or a width or the micro-batch is 0.
    pub fn new(plan: &'a Plan, records: &'a Records, mut streams: RandomStreams, execution: Execution) -> Result<Self> {
        if records.facts() != plan.facts() {
            let (expected, got) = (format!("{:?}", plan.facts()), format!("{:?}", records.facts()));
            return Err(TrainError::mismatch("records of the plan", expected, got));
        }
        if execution.micro_batch == 0 {
            return Err(TrainError::invalid("micro_batch", 0, "at least 1"));
        }
        let config = plan.config();
        let mut engine = Engine::new(&config.model, config.loss, records, &execution.device)?;
        engine.model_mut().initialise(&mut streams.initialisation)?;
        let method = match &config.privacy {
            Some(privacy) => Some(privacy.clipping.build(plan.context())?),
            None => None,
        };
        Ok(Self {
            sampler: PoissonSampler::new(records.len(), config.batches.sampling_rate)?,
            gradient: engine.zero_gradient()?,
            group_gradients: Vec::new(),
            ledger: Ledger::new(NeighbouringRelation::AddRemove),
            batch: Vec::new(),
            counts: RunCounts::default(),
            plan,
            records,
            engine,
            method,
            streams,
            execution,
        })
    }

    /// Runs all remaining steps; at the end of a run it does nothing.
    ///
    /// # Errors
    /// [`TrainError::Diverged`] if the parameters are not finite at the end of an epoch; those of [`Self::step`].
    pub fn run(&mut self, observer: &mut dyn Observer) -> Result<RunCounts> {
        let batches = self.plan.config().batches;
        while self.counts.steps < batches.steps {
            let step = self.counts.steps;
            self.step(observer)?;
            if let Some(epoch) = batches.epoch_ending_at(step) {
                if self.engine.model().parameters().to_vec()?.iter().any(|p| !p.is_finite()) {
                    return Err(TrainError::Diverged { step });
                }
                observer.on_epoch(epoch, step + 1);
            }
        }
        Ok(self.counts)
    }

    /// Takes one step: draws a batch, sums its clipped gradients, adds noise and updates the parameters.
    ///
    /// A step beyond the plan's last one is possible and enters the ledger as well.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the clipping method reports a query that the plan did not announce: an unaccounted release
    /// stops the run before anything of it is used. [`TrainError::Tensor`] if the device fails.
    pub fn step(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let step = self.counts.steps;
        let mut rows = std::mem::take(&mut self.batch);
        self.sampler.next_batch(&mut self.streams.sampling, &mut rows);
        let groups: Vec<usize> = rows.iter().map(|&row| self.records.groups()[row]).collect();
        let wants_groups = observer.wants_group_gradients(step);

        let mut pass = self.first_pass(&rows, self.method.is_some() || wants_groups)?;
        let mut weighting = self.weighting(&pass, &groups)?;
        // Before anything of the step is used: what cannot be recorded is not released.
        self.ledger.record(self.plan.step_event(), 1)?;
        self.second_pass(&rows, &groups, &pass, &weighting.scales, wants_groups)?;
        if self.method.is_none() && !wants_groups && !self.gradient_is_finite()? {
            // A run that needs no norms does not know which records to leave out until one has spoilt the sum.
            pass.blanked = self.first_pass(&rows, true)?.blanked;
            weighting = self.weighting(&pass, &groups)?;
            self.second_pass(&rows, &groups, &pass, &weighting.scales, wants_groups)?;
        }
        self.update(weighting.bound)?;

        self.counts.steps += 1;
        self.counts.records += rows.len() as u64;
        self.counts.empty_batches += u64::from(rows.is_empty());
        self.counts.non_finite += pass.blanked.len() as u64;
        let group_gradient_norms =
            if wants_groups { Some(self.group_gradient_norms(&groups, &pass.blanked)?) } else { None };
        observer.on_step(&StepView {
            step,
            groups: &groups,
            losses: &pass.losses,
            norms: &pass.norms,
            thresholds: &weighting.thresholds,
            group_bounds: &weighting.group_bounds,
            group_gradient_norms: group_gradient_norms.as_deref(),
        });
        self.batch = rows;
        Ok(())
    }

    /// The model and its buffers, to evaluate it or to read its parameters between steps.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Everything that was released so far, under addition or removal of one record.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Losses and, where something needs them, norms of the whole batch. Afterwards the layers hold the factors of the last
    /// micro-batch: of the whole batch, if it fits.
    fn first_pass(&mut self, rows: &[usize], needs_norms: bool) -> Result<Pass> {
        let mut pass = Pass { losses: Vec::with_capacity(rows.len()), norms: Vec::new(), blanked: Vec::new() };
        for rows in rows.chunks(self.execution.micro_batch) {
            self.engine.differentiate(self.records, rows, &[])?;
            pass.losses.extend(self.engine.losses()?);
            if needs_norms {
                pass.norms.extend(self.engine.gradient_norms()?);
            }
        }
        pass.blanked = pass.norms.iter().enumerate().filter(|(_, v)| !v.is_finite()).map(|(i, _)| i).collect();
        Ok(pass)
    }

    fn weighting(&mut self, pass: &Pass, groups: &[usize]) -> Result<Weighting> {
        let Some(method) = &mut self.method else {
            let mut scales = vec![1.0; pass.losses.len()];
            for &i in &pass.blanked {
                scales[i] = 0.0;
            }
            return Ok(Weighting { scales, ..Weighting::default() });
        };
        let Clipped { scales, bound, group_bounds, queries, thresholds, .. } =
            method.clip(&ClipBatch { norms: &pass.norms, groups }, &mut self.streams.counts)?;
        let made: Vec<f64> = queries.iter().map(|query| query.noise_multiplier).collect();
        let announced = self.plan.count_noise_multipliers();
        if made != announced {
            let (announced, made) = (format!("{announced:?}"), format!("{made:?}"));
            return Err(TrainError::mismatch("noise multipliers of the step's count queries", announced, made));
        }
        Ok(Weighting { scales, bound, group_bounds, thresholds })
    }

    /// `Σ s_i g_i` into the gradient; also each group's mean gradient before clipping, if asked for.
    fn second_pass(
        &mut self,
        rows: &[usize],
        groups: &[usize],
        pass: &Pass,
        scales: &[f64],
        wants_groups: bool,
    ) -> Result<()> {
        let size = self.execution.micro_batch;
        let n_chunks = rows.len().div_ceil(size).max(1);
        if wants_groups && self.group_gradients.is_empty() {
            let n_groups = self.records.facts().n_groups;
            self.group_gradients = (0..n_groups).map(|_| self.engine.zero_gradient()).collect::<Result<_>>()?;
        }
        for chunk in 0..n_chunks {
            let range = chunk * size..((chunk + 1) * size).min(rows.len());
            let blanked: Vec<usize> =
                pass.blanked.iter().filter(|i| range.contains(i)).map(|i| i - range.start).collect();
            // The factors are still there if the batch is one chunk and nothing in it must be blanked.
            if n_chunks > 1 || !blanked.is_empty() || rows.is_empty() {
                self.engine.differentiate(self.records, &rows[range.clone()], &blanked)?;
            }
            self.engine.weighted_sum(&scales[range.clone()], &self.gradient, chunk > 0)?;
            if wants_groups {
                for (group, gradient) in self.group_gradients.iter().enumerate() {
                    let mut weights: Vec<f64> =
                        groups[range.clone()].iter().map(|&g| f64::from(u8::from(g == group))).collect();
                    for &i in &blanked {
                        weights[i] = 0.0;
                    }
                    self.engine.weighted_sum(&weights, gradient, chunk > 0)?;
                }
            }
        }
        Ok(())
    }

    fn gradient_is_finite(&self) -> Result<bool> {
        let finite = Finite::default();
        self.gradient.flat().inplace_op1(&finite)?;
        Ok(finite.all.get())
    }

    /// Noise, division by the public expected batch size, regularisation, and the step downhill.
    fn update(&mut self, bound: f64) -> Result<()> {
        let config = self.plan.config();
        let std = config.privacy.as_ref().map_or(0.0, |privacy| privacy.noise_multiplier.get() * bound);
        if config.privacy.is_some() && !(std.is_finite() && std > 0.0) {
            return Err(TrainError::invalid("noise_std", std, "a finite number above 0"));
        }
        self.gradient.flat().inplace_op1(&Privatise {
            std,
            normaliser: self.plan.expected_batch_size(),
            rng: RefCell::new(&mut self.streams.noise),
        })?;
        let parameters = self.engine.model().parameters();
        if config.l2 > 0.0 {
            let views = self.gradient.views().iter().zip(parameters.views()).zip(parameters.specs());
            for ((gradient, parameter), _) in views.filter(|(_, spec)| spec.decays) {
                gradient.inplace_op2(parameter, &Axpy { alpha: config.l2 })?;
            }
        }
        let rate = config.learning_rate.at(config.batches.steps);
        Ok(parameters.flat().inplace_op2(self.gradient.flat(), &Axpy { alpha: -rate })?)
    }

    /// Norm of each group's mean gradient over the batch; `None` for a group without a usable record in it.
    fn group_gradient_norms(&self, groups: &[usize], blanked: &[usize]) -> Result<Vec<Option<f64>>> {
        let mut norms = Vec::with_capacity(self.group_gradients.len());
        for (group, gradient) in self.group_gradients.iter().enumerate() {
            let of_group =
                |positions: &mut dyn Iterator<Item = usize>| positions.filter(|&i| groups[i] == group).count();
            let n = of_group(&mut (0..groups.len())) - of_group(&mut blanked.iter().copied());
            let norm = gradient.to_vec()?.iter().map(|g| g * g).sum::<f64>().sqrt();
            norms.push((n > 0).then(|| norm / n as f64));
        }
        Ok(norms)
    }
}
