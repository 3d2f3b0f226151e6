//! One run: a training, or a search over several.

use std::time::Instant;

use anyhow::Context;
use dp_linear::Trial;
use dp_train::{Execution, Plan};
use indicatif::ProgressBar;
use run_records::{RunKey, RunRecord, SearchRecord};

use super::conditioned::ConditionedPlan;
use super::evaluation::Failure;
use super::plans::Beginning;
use super::random_search::SearchPlan;
use super::records::SeedRecords;
use super::session::Session;
use super::step_analysis::{AnalysisSchedule, StepAnalysis};
use super::training::{Stretch, TrainedModel, train};

/// A run about to be made.
pub(crate) struct Run<'a> {
    pub(crate) key: &'a RunKey,
    pub(crate) records: &'a SeedRecords,
    pub(crate) session: &'a Session,
    pub(crate) execution: &'a Execution,
    pub(crate) bar: &'a ProgressBar,
}

impl Run<'_> {
    /// Trains once, with an analysis of its steps if there is a schedule.
    pub(crate) fn train(
        &self,
        plan: &Plan,
        schedule: Option<AnalysisSchedule>,
    ) -> anyhow::Result<Result<RunRecord, Failure>> {
        let started = Instant::now();
        let analysis = match schedule {
            Some(schedule) => {
                let stream = self.session.analysis_stream(self.key)?;
                StepAnalysis::new(plan, &self.records.train, schedule, stream)?
            }
            None => None,
        };
        match self.variant(self.key, plan, 0, analysis)? {
            Ok(model) => model.into_run(self.key.index, || started.elapsed().as_secs_f64()),
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// Trains the first epochs of the run that is named `whole`, which can go on from there: with its
    /// streams, if they follow from a seed. Without one there is no checkpoint to go on from, and no
    /// noise is in two releases.
    pub(crate) fn begin(&self, beginning: &Beginning, whole: &RunKey) -> anyhow::Result<Result<RunRecord, Failure>> {
        let started = Instant::now();
        let run = if self.session.is_seeded() { whole } else { self.key };
        match self.variant(run, beginning, 0, None)? {
            Ok(model) => model.into_run(self.key.index, || started.elapsed().as_secs_f64()),
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// Conditions the inputs, and trains on what they became.
    pub(crate) fn train_conditioned(
        &self,
        conditioned: &ConditionedPlan,
    ) -> anyhow::Result<Result<RunRecord, Failure>> {
        let started = Instant::now();
        let mut rng = self.session.conditioning_stream(self.key)?;
        let prepared = conditioned.prepare(self.records, &self.execution.device, &mut rng)?;
        let streams = self.session.streams(self.key, 0)?;
        let checkpoint = self.session.checkpoint(self.key, 0);
        let (stretch, records) = (conditioned.stretch(&prepared), &prepared.records);
        match train(stretch, records, streams, self.execution, None, checkpoint.as_deref(), self.bar)? {
            Ok(mut model) => {
                let thresholds = conditioned.finish(&prepared, model.engine_mut(), self.execution, &mut rng)?;
                model.with_thresholds(thresholds).into_run(self.key.index, || started.elapsed().as_secs_f64())
            }
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// Makes the trials of a search, and lets go of all but the best.
    pub(crate) fn search(&self, search: &SearchPlan) -> anyhow::Result<Result<RunRecord, Failure>> {
        let started = Instant::now();
        let mut rng = self.session.search_stream(self.key)?;
        let trials = search.draw(&mut rng)?;
        let mut made = Vec::new();
        let mut best: Option<Trial<TrainedModel<'_>>> = None;
        let mut last_failure = None;
        for (number, trial) in (0..).zip(&trials) {
            let variant = u16::try_from(number).context("number of trials")?;
            let scored = match self.variant(self.key, &trial.plan, variant, None)? {
                Ok(mut model) => search.score(&mut model, &mut rng)?.map(|score| (score, model)),
                Err(failure) => Err(failure),
            };
            match scored {
                Ok((score, model)) => {
                    made.push(trial.record(Some(score)));
                    let trial = Trial { number, score, made: model };
                    best = Some(match best {
                        Some(best) => best.better(trial),
                        None => trial,
                    });
                }
                Err(failure) => {
                    made.push(trial.record(None));
                    last_failure = Some(failure);
                }
            }
        }
        let Some(Trial { number: released, made: model, .. }) = best else {
            let reason = last_failure.map_or_else(String::new, |Failure(reason)| format!("; the last: {reason}"));
            return Ok(Err(Failure(format!("every trial diverged ({}){reason}", made.len()))));
        };
        let run = model.into_run(self.key.index, || started.elapsed().as_secs_f64())?;
        let search = SearchRecord { trials: made, released: usize::try_from(released)? };
        Ok(run.map(|run| RunRecord { search: Some(search), ..run }))
    }

    /// Trains with the random streams of that run and number.
    fn variant<'a>(
        &'a self,
        run: &RunKey,
        stretch: impl Into<Stretch<'a>>,
        number: u16,
        analysis: Option<StepAnalysis<'a>>,
    ) -> anyhow::Result<Result<TrainedModel<'a>, Failure>> {
        let (streams, checkpoint) = (self.session.streams(run, number)?, self.session.checkpoint(run, number));
        train(stretch, self.records, streams, self.execution, analysis, checkpoint.as_deref(), self.bar)
    }
}
