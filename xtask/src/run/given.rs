//! Runs that were trained elsewhere and are in a compact file: a study goes on with them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use run_records::ledger::refuse_other_cost;
use run_records::{
    ExperimentResults, MethodResults, PrivacyRecord, RunKey, RunRecord, SessionRecord, Source, StudyResults, compact,
    config_hash,
};

/// The runs of a compact file.
pub(crate) struct GivenRuns {
    path: PathBuf,
    results: StudyResults,
}

/// One of them.
pub(crate) struct GivenRun {
    /// The command that trained it.
    pub(crate) session: SessionRecord,
    /// Its record, or why it failed.
    pub(crate) outcome: Result<RunRecord, String>,
    /// What it cost.
    privacy: Option<PrivacyRecord>,
}

impl GivenRun {
    /// Refuses a run whose ledger is not the one that its configuration composes today: it would be
    /// stored under an ε that is not its own.
    ///
    /// # Errors
    /// Names the difference.
    pub(crate) fn ensure_costs(&self, composed: Option<&PrivacyRecord>) -> anyhow::Result<()> {
        refuse_other_cost(self.privacy.as_ref(), composed)
    }
}

impl GivenRuns {
    /// Those of a file, which must be of this study.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub(crate) fn read(path: &Path, study: &str) -> anyhow::Result<Self> {
        Ok(Self { path: path.to_owned(), results: compact::read(path, study).context("--from")? })
    }

    /// Refuses runs under other seeds.
    ///
    /// # Errors
    /// Names the difference.
    pub(crate) fn ensure_of(&self, source: &Source) -> anyhow::Result<()> {
        let StudyResults { study, quick, seed, split_seed, .. } = &self.results;
        let own = Source { study: study.clone(), quick: *quick, seed: *seed, split_seed: *split_seed };
        match own.difference(source) {
            None => Ok(()),
            Some(difference) => bail!("--from: the runs of {} are of {difference}", self.path.display()),
        }
    }

    /// The run with this key, if it was trained in these settings, on these data and with this
    /// model.
    pub(crate) fn find(&self, experiment: &ExperimentResults, key: &RunKey) -> Option<GivenRun> {
        let is_experiment = |given: &&ExperimentResults| {
            let (data, asked) = (&given.dataset, &experiment.dataset);
            let is_same =
                (&data.digest, &data.encoding, data.synthetic) == (&asked.digest, &asked.encoding, asked.synthetic);
            given.id == experiment.id && is_same && given.model == experiment.model
        };
        let is_method =
            |given: &&MethodResults| given.method == key.method && config_hash(&given.config) == key.config_hash;
        let method = self.results.experiments.iter().find(is_experiment)?.methods.iter().find(is_method)?;
        let run = method.runs.iter().find(|run| run.index == key.index);
        let failure = method.failures.iter().find(|failure| failure.index == key.index);
        let revision = run.and_then(|run| Some(&run.provenance.as_ref()?.code_revision));
        let sessions = || self.results.sessions.iter();
        let session =
            sessions().find(|session| Some(&session.code_revision) == revision).or_else(|| sessions().next())?;
        let outcome = match (run, failure) {
            (Some(run), _) => Ok(run.clone()),
            (None, Some(failure)) => Err(failure.reason.clone()),
            (None, None) => return None,
        };
        Some(GivenRun { session: session.clone(), outcome, privacy: method.privacy.clone() })
    }
}
