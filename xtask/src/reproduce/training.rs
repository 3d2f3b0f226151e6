//! One model, trained as a plan says.

use anyhow::{Context, ensure};
use dp_train::{Engine, Execution, Plan, RandomStreams, RunCounts, TrainError, Trainer};
use indicatif::ProgressBar;

use super::evaluation::evaluate;
use super::privacy;
use super::recorder::Recorder;
use super::records::SeedRecords;
use super::step_analysis::StepAnalysis;
use crate::results::{MetricsRecord, RunRecord};

/// Why a run has no model: something that the method did, and will do again with the same numbers. A fault of the machine is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

/// A trained model, not yet looked at with test records.
pub(crate) struct TrainedModel<'a> {
    trainer: Trainer<'a>,
    plan: &'a Plan,
    records: &'a SeedRecords,
    execution: &'a Execution,
    recorder: Recorder,
    analysis: Option<StepAnalysis<'a>>,
    counts: RunCounts,
}

/// Trains a model.
///
/// # Errors
/// If the device fails, or the run released something else than its plan announced. Divergence is no error but a [`Failure`].
pub(crate) fn train<'a>(
    plan: &'a Plan,
    records: &'a SeedRecords,
    streams: RandomStreams,
    execution: &'a Execution,
    analysis: Option<StepAnalysis<'a>>,
    bar: &ProgressBar,
) -> anyhow::Result<Result<TrainedModel<'a>, Failure>> {
    let mut trainer = Trainer::new(plan, &records.train, streams, execution.clone())?;
    if plan.config().early_stopping.is_some() {
        let validation = records.validation.as_ref().context("early stopping needs validation records")?;
        trainer = trainer.with_validation(validation)?;
    }
    let batches = plan.config().batches;
    let mut observer = (Recorder::new(plan.facts().n_groups, batches.steps, batches.epochs, bar.clone()), analysis);
    let counts = match trainer.run(&mut observer) {
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
    Ok(Ok(TrainedModel { trainer, plan, records, execution, recorder, analysis, counts }))
}

impl TrainedModel<'_> {
    /// The model, to read or change its parameters.
    pub(crate) fn engine_mut(&mut self) -> &mut Engine {
        self.trainer.engine_mut()
    }

    /// What the model says about the validation records; `None` without any.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn validation(&mut self) -> anyhow::Result<Option<MetricsRecord>> {
        let validation = self.records.validation.as_ref();
        validation.map(|validation| evaluate(self.trainer.engine_mut(), validation, self.execution)).transpose()
    }

    /// Evaluates the model on all parts: the run of seed `index`, which took this many seconds so far.
    ///
    /// # Errors
    /// If the device fails. A training loss that is not finite is no error but a [`Failure`].
    pub(crate) fn into_run(
        mut self,
        index: usize,
        seconds: impl FnOnce() -> f64,
    ) -> anyhow::Result<Result<RunRecord, Failure>> {
        let validation = self.validation()?;
        let engine = self.trainer.engine_mut();
        let train = evaluate(engine, &self.records.train, self.execution)?;
        if let Some(loss) = train.overall.loss.filter(|loss| !loss.is_finite()) {
            let reason = format!("the mean loss of the training records is {loss} after the last step");
            return Ok(Err(Failure(reason)));
        }
        Ok(Ok(RunRecord {
            index,
            test: evaluate(engine, &self.records.test, self.execution)?,
            validation,
            train,
            analysis: self.analysis.map(StepAnalysis::into_record),
            search: None,
            provenance: None,
            seconds: seconds(),
            n_non_finite: self.counts.non_finite,
            n_empty_batches: self.counts.empty_batches,
            epochs: self.recorder.epochs,
            group_epsilons: privacy::group_epsilons(self.plan, &self.recorder.group_bounds)?,
            thresholds: self.recorder.thresholds,
        }))
    }
}
