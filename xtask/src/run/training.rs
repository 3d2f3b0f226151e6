//! One model, trained as a plan says.

use std::path::Path;

use anyhow::{Context, ensure};
use dp_train::{Engine, Execution, Plan, RandomStreams, RunCounts, TrainError, Trainer};
use indicatif::ProgressBar;
use run_records::{MetricsRecord, RunRecord};

use super::checkpoints::checkpoints;
use super::evaluation::{Failure, evaluate};
use super::plans::Beginning;
use super::privacy;
use super::recorder::Recorder;
use super::records::SeedRecords;
use super::step_analysis::StepAnalysis;
use crate::host;
use crate::terminal::say;

/// A training, or its first steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch<'a> {
    /// What is announced: it ends with this plan's last step.
    pub(crate) plan: &'a Plan,
    /// What is trained.
    pub(crate) of: &'a Plan,
    /// Whether all parameters begin at 0.
    pub(crate) at_zero: bool,
}

impl<'a> From<&'a Plan> for Stretch<'a> {
    fn from(plan: &'a Plan) -> Self {
        Self { plan, of: plan, at_zero: false }
    }
}

impl<'a> From<&'a Beginning> for Stretch<'a> {
    fn from(beginning: &'a Beginning) -> Self {
        Self { plan: &beginning.plan, of: &beginning.whole, at_zero: false }
    }
}

/// A trained model, not yet looked at with test records.
pub(crate) struct TrainedModel<'a> {
    trainer: Trainer<'a>,
    plan: &'a Plan,
    records: &'a SeedRecords,
    execution: &'a Execution,
    recorder: Recorder,
    analysis: Option<StepAnalysis<'a>>,
    counts: RunCounts,
    thresholds: Option<Vec<f64>>,
}

/// Trains a model. With a place for a checkpoint it goes on from the one that is there, if that is
/// of this run, and writes its own; not when its steps are analysed, since no checkpoint holds what
/// an analysis has seen. First steps leave a checkpoint of their end.
///
/// # Errors
/// If the device fails, or the run released something else than its plan announced. Divergence is
/// no error but a [`Failure`].
pub(crate) fn train<'a>(
    stretch: impl Into<Stretch<'a>>,
    records: &'a SeedRecords,
    streams: RandomStreams,
    execution: &'a Execution,
    analysis: Option<StepAnalysis<'a>>,
    checkpoint: Option<&Path>,
    bar: &ProgressBar,
) -> anyhow::Result<Result<TrainedModel<'a>, Failure>> {
    let Stretch { plan, of, at_zero } = stretch.into();
    let mut trainer = Trainer::new(of, &records.train, streams, execution.clone())?;
    if at_zero {
        let parameters = trainer.engine_mut().model().parameters();
        parameters.set(&vec![0.0; parameters.len()])?;
    }
    if of.config().early_stopping.is_some() {
        let validation = records.validation.as_ref().context("early stopping needs validation records")?;
        trainer = trainer.with_validation(validation)?;
    }
    if let Some(path) = checkpoint.filter(|_| analysis.is_none()) {
        let checkpoints = checkpoints(path, &host::code_revision());
        let is_first = plan.config().batches.steps < of.config().batches.steps;
        trainer = trainer.with_checkpoints(if is_first { checkpoints } else { checkpoints.not_at_the_end() })?;
        if path.exists() {
            match trainer.restore_checkpoint(path) {
                Ok(()) => {}
                Err(
                    error @ (TrainError::Io { .. } | TrainError::Checkpoint { .. } | TrainError::Differences { .. }),
                ) => {
                    say!("A run begins anew: {:#}", anyhow::Error::from(error))?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    let (batches, all) = (plan.config().batches, of.config().batches);
    let recorder = Recorder::new(plan.facts().n_groups, all.steps, all.epochs, bar.clone());
    let mut observer = (recorder, analysis);
    let counts = match trainer.run_until(batches.steps, &mut observer) {
        Ok(counts) => counts,
        Err(error @ (TrainError::Diverged { .. } | TrainError::Clipping(_) | TrainError::InvalidParameter { .. })) => {
            return Ok(Err(Failure(error.to_string())));
        }
        Err(error) => return Err(error.into()),
    };
    trainer.ledger().verify().context("the run's ledger")?;
    ensure!(
        trainer.ledger().digest() == privacy::ledger(plan)?.digest(),
        "the run's ledger differs from what its plan announced"
    );
    let (recorder, analysis) = observer;
    Ok(Ok(TrainedModel { trainer, plan, records, execution, recorder, analysis, counts, thresholds: None }))
}

impl TrainedModel<'_> {
    /// The model, to read or change its parameters.
    pub(crate) fn engine_mut(&mut self) -> &mut Engine {
        self.trainer.engine_mut()
    }

    /// The same with decisions by a threshold of each group, if there are any.
    pub(crate) fn with_thresholds(self, thresholds: Option<Vec<f64>>) -> Self {
        Self { thresholds, ..self }
    }

    /// What the model says about the validation records; `None` without any.
    ///
    /// # Errors
    /// If the device fails. A loss that is not finite is no error but a [`Failure`].
    pub(crate) fn validation(&mut self) -> anyhow::Result<Result<Option<MetricsRecord>, Failure>> {
        let Some(validation) = &self.records.validation else { return Ok(Ok(None)) };
        Ok(evaluate(self.trainer.engine_mut(), validation, self.thresholds.as_deref(), self.execution)?.map(Some))
    }

    /// Evaluates the model on all parts: the run of seed `index`, which took this many seconds so
    /// far.
    ///
    /// # Errors
    /// If the device fails. A loss that is not finite is no error but a [`Failure`].
    pub(crate) fn into_run(
        mut self,
        index: usize,
        seconds: impl FnOnce() -> f64,
    ) -> anyhow::Result<Result<RunRecord, Failure>> {
        let validation = match self.validation()? {
            Ok(validation) => validation,
            Err(failure) => return Ok(Err(failure)),
        };
        let [train, test] = [&self.records.train, &self.records.test]
            .map(|records| evaluate(self.trainer.engine_mut(), records, self.thresholds.as_deref(), self.execution));
        let (train, test) = match (train?, test?) {
            (Ok(train), Ok(test)) => (train, test),
            (Err(failure), _) | (_, Err(failure)) => return Ok(Err(failure)),
        };
        Ok(Ok(RunRecord {
            index,
            test,
            validation,
            train,
            analysis: self.analysis.map(StepAnalysis::into_record),
            search: None,
            provenance: None,
            seconds: seconds(),
            n_non_finite: self.counts.non_finite,
            n_empty_batches: self.counts.empty_batches,
            epochs: self.recorder.seen.epochs,
            group_epsilons: privacy::group_epsilons(self.plan, &self.recorder.seen.group_bounds)?,
            thresholds: self.recorder.seen.thresholds,
        }))
    }
}
