//! An observer that takes steps apart and takes the time.

use std::time::Instant;

use dp_clipping::{Coupling, FairlensForm};
use dp_train::analysis::{Analyser, AnalysisSettings, DecompositionObserver};
use dp_train::{Observer, OptimiserConfig, Plan, Records, StepState};
use rand::CryptoRng;
use run_records::AnalysisRecord;

/// How often and how thoroughly steps are taken apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnalysisSchedule {
    /// Steps from one evaluation to the next.
    pub(crate) every: u64,
    /// How much work goes into one.
    pub(crate) settings: AnalysisSettings,
}

/// Evaluations of one run.
pub(crate) struct StepAnalysis<'a> {
    observer: DecompositionObserver<'a>,
    every: u64,
    seconds: f64,
}

impl<'a> StepAnalysis<'a> {
    /// An analysis of a run of this plan; `None` for a run whose steps are not those of clipped and
    /// noisy gradients: without privacy, with one error of clipping alone, or with an optimiser of
    /// its own.
    ///
    /// # Errors
    /// If a setting of the analysis is out of range.
    pub(crate) fn new(
        plan: &'a Plan,
        records: &'a Records,
        schedule: AnalysisSchedule,
        mut key: impl CryptoRng,
    ) -> anyhow::Result<Option<Self>> {
        let config = plan.config();
        let coupling = config.privacy.as_ref().map(|privacy| privacy.clipping.coupling);
        let has_both_errors =
            matches!(coupling, Some(Coupling::None | Coupling::Fairlens { form: FairlensForm::Paper, .. }));
        if !has_both_errors || config.optimiser != (OptimiserConfig::Sgd {}) {
            return Ok(None);
        }
        let analyser = Analyser::new(plan, records, schedule.settings, &mut key)?;
        let observer = DecompositionObserver::new(analyser, schedule.every);
        Ok(Some(Self { observer, every: schedule.every, seconds: 0.0 }))
    }

    pub(crate) fn into_record(self) -> AnalysisRecord {
        AnalysisRecord { every: self.every, seconds: self.seconds, steps: self.observer.into_steps() }
    }
}

impl Observer for StepAnalysis<'_> {
    fn wants_state(&self, step: u64) -> bool {
        self.observer.wants_state(step)
    }

    fn before_step(&mut self, state: &StepState<'_>) -> dp_train::Result<()> {
        let started = Instant::now();
        self.observer.before_step(state)?;
        self.seconds += started.elapsed().as_secs_f64();
        Ok(())
    }
}
