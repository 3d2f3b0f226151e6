//! One command that trains runs of a study: its records, its randomness and its share of the work.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, bail};
use dp_accounting::Ledger;
use dp_train::ranks::Collective;
use dp_train::{Purpose, RandomStream, RandomStreams, Randomness};
use rand::TryRngCore;
use rand::rngs::OsRng;
use run_records::ledger::refuse_other;
use run_records::output::Output;
use run_records::rank_records::{self, RankRecords};
use run_records::shell;
use run_records::{
    Database, DatasetRecord, ExperimentResults, FailureRecord, MethodResults, RunKey, RunRecord, SessionId,
    SessionRecord, Source, StudyResults, add_all, config_hash,
};
use serde_json::json;

use super::checkpoints::RunCheckpoints;
use super::given::{GivenRun, GivenRuns};
use super::options::StudyOptions;
use super::shard::Shard;
use crate::host;
use crate::ranks::ranks;
use crate::terminal::say;

/// The records of a study while it is trained.
///
/// **Randomness.** Partitions and initial parameters are public, and follow from the split seed,
/// which is kept with the records: every method of a seed has the same, in whichever session it is
/// trained. Batches, noise and noisy counts come from a key that no file holds. With `--seed` it
/// follows from the seed; without, each session draws a fresh one from the operating system, so a
/// resumed study needs no secret from the session that was interrupted. Under the key every run has
/// streams of its own, named by experiment, method and configuration: its result does not depend on
/// which others are run.
pub(crate) struct Session {
    database: Mutex<Database>,
    id: SessionId,
    source: Source,
    code_revision: String,
    public: Randomness,
    secret: Randomness,
    shard: Option<Shard>,
    any_revision: bool,
    n_threads: usize,
    started: Instant,
    ranks: Arc<dyn Collective>,
    /// `None` without a seed: nothing on the disk is to tell the noise.
    checkpoints: Option<RunCheckpoints>,
    /// Of a rank that is not the first.
    rank_records: Option<Mutex<RankRecords>>,
    /// Runs that need no training.
    given: Option<GivenRuns>,
    /// Their commands, as far as a run of theirs was stored.
    given_sessions: Mutex<Vec<(SessionRecord, SessionId)>>,
}

impl Session {
    /// Opens the records that the options name, or new ones. Records that are there and are not to
    /// be resumed are moved aside, not deleted. Runs that were given need no training.
    ///
    /// # Errors
    /// If the records or the runs that were given belong to another study or seed, or another
    /// process is writing the records.
    pub(crate) fn begin(study: &str, options: &StudyOptions, given: Option<GivenRuns>) -> anyhow::Result<Self> {
        let accept = |source: &Source| given.as_ref().map_or(Ok(()), |given| given.ensure_of(source));
        let path = options.records(study);
        let ranks = ranks();
        let mut rank_records = None;
        let database = if ranks.rank() > 0 {
            // Partitions are the first's, which by then has taken up what an earlier command left.
            let split_seed = ranks.broadcast(Vec::new())?.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let source = Source { study: study.to_owned(), quick: options.quick, seed: options.seed, split_seed };
            let (records, database) = RankRecords::create(&path, ranks.rank(), &source)?;
            rank_records = Some(Mutex::new(records));
            database
        } else if path.exists() {
            let mut earlier = Database::open(&path)?;
            if options.resume {
                options.ensure_same_source(study, &earlier)?;
                accept(&earlier.source()?)?;
            }
            rank_records::take_up(&mut earlier)?;
            if options.resume {
                earlier
            } else {
                drop(earlier);
                if let Some(earlier) = Database::set_aside(&path, study)? {
                    say!("Earlier records are now {} (--resume would have gone on with them).", shell::path(&earlier))?;
                }
                Database::create(&path, &new_source(study, options)?)?
            }
        } else {
            let source = new_source(study, options)?;
            accept(&source)?;
            rank_records::set_aside(&path, study)?;
            Database::create(&path, &source)?
        };
        let source = database.source()?;
        if ranks.rank() == 0 {
            ranks.broadcast(source.split_seed.to_le_bytes().to_vec())?;
        }
        let secret = match source.seed {
            Some(seed) => Randomness::from_seed(seed),
            None => Randomness::from_os().context("--seed was not given")?,
        };
        // Of all ranks in one place: whichever continues a run finds its checkpoint.
        let is_shared = database.path().parent() == path.parent();
        let checkpoints = RunCheckpoints::beside(if is_shared { &path } else { database.path() });
        if !options.resume && ranks.rank() == 0 {
            checkpoints.remove(None)?;
        }
        let code_revision = host::code_revision();
        let record = SessionRecord {
            command: std::iter::once("cargo xtask".to_owned()).chain(shell::portable_arguments()).collect(),
            code_revision: code_revision.clone(),
            host: host::description(),
            threads: options.n_threads(),
            n_runs: 0,
            wall_seconds: 0.0,
        };
        Ok(Self {
            id: database.begin_session(&record)?,
            database: Mutex::new(database),
            public: Randomness::from_seed(source.split_seed),
            checkpoints: (!secret.is_private()).then_some(checkpoints),
            secret,
            source,
            code_revision,
            shard: options.shard,
            any_revision: options.any_revision,
            n_threads: options.n_threads(),
            started: Instant::now(),
            ranks,
            rank_records,
            given,
            given_sessions: Mutex::default(),
        })
    }

    /// A run that was given and is not stored yet.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub(crate) fn given_run(&self, experiment: &ExperimentResults, key: &RunKey) -> anyhow::Result<Option<GivenRun>> {
        let Some(given) = self.given.as_ref().and_then(|given| given.find(experiment, key)) else { return Ok(None) };
        Ok(self.database().revision_of(key)?.is_none().then_some(given))
    }

    /// Stores a run that was given, under the command that trained it.
    pub(crate) fn put_given(
        &self,
        key: &RunKey,
        method: &MethodResults,
        ledger: &serde_json::Value,
        given: &GivenRun,
    ) -> anyhow::Result<()> {
        let (mut database, wall_seconds) = (self.database(), given.session.wall_seconds);
        let mut sessions = self.given_sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = sessions.iter().find(|(session, _)| *session == given.session).map(|(_, id)| *id);
        let id = noted.map_or_else(|| database.begin_session(&given.session), Ok)?;
        if noted.is_none() {
            sessions.push((given.session.clone(), id));
        }
        match &given.outcome {
            Ok(run) => database.put_run(key, id, wall_seconds, method, ledger, run)?,
            Err(reason) => database.put_failure(key, id, wall_seconds, method, reason)?,
        }
        self.forget_checkpoint(key)
    }

    /// The source of partitions and initial parameters, which are public.
    pub(crate) fn public(&self) -> &Randomness {
        &self.public
    }

    /// Whether runs are shortened.
    pub(crate) fn is_quick(&self) -> bool {
        self.source.quick
    }

    /// Revision of this program's code.
    pub(crate) fn code_revision(&self) -> &str {
        &self.code_revision
    }

    /// Whether this is the rank that has all records.
    pub(crate) fn is_first(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// Runs side by side.
    pub(crate) fn n_threads(&self) -> usize {
        self.n_threads
    }

    /// Whether the runs trained here follow from a seed: they then have checkpoints, and can be made
    /// again.
    pub(crate) fn is_seeded(&self) -> bool {
        !self.secret.is_private()
    }

    /// The random streams of one run, or of one trial of a search: initial parameters are the same
    /// for all. Without a seed they are handed out once.
    pub(crate) fn streams(&self, key: &RunKey, trial: u16) -> anyhow::Result<RandomStreams> {
        let run = index(key)?;
        let streams = self.secret.derived(&self.name(key)).streams(run, trial)?;
        Ok(streams.initialised_from(&self.public, run)?)
    }

    /// The stream that an analysis of one run draws from.
    pub(crate) fn analysis_stream(&self, key: &RunKey) -> anyhow::Result<RandomStream> {
        Ok(self.secret.derived(&self.name(key)).stream(Purpose::Analysis, index(key)?, 0)?)
    }

    /// The stream of the releases before a training.
    pub(crate) fn conditioning_stream(&self, key: &RunKey) -> anyhow::Result<RandomStream> {
        Ok(self.secret.derived(&self.name(key)).stream(Purpose::Conditioning, index(key)?, 0)?)
    }

    /// The stream that a search draws from: number and points of its trials, noise of their scores.
    pub(crate) fn search_stream(&self, key: &RunKey) -> anyhow::Result<RandomStream> {
        let search = self.secret.derived(&self.name(key)).derived("search");
        Ok(search.stream(Purpose::Counts, index(key)?, 0)?)
    }

    /// Where one training of a run keeps its checkpoint; `None` in a study without a seed.
    pub(crate) fn checkpoint(&self, key: &RunKey, training: u16) -> Option<PathBuf> {
        Some(self.checkpoints.as_ref()?.path(&self.run_name(key), training))
    }

    /// Tells a run from those of other seeds, data and revisions, in the name of its checkpoint.
    fn run_name(&self, key: &RunKey) -> String {
        let Source { study, quick, seed, split_seed } = &self.source;
        let RunKey { experiment, method, config_hash: config, data_digest, index } = key;
        let all = json!([
            [study, experiment, method, config, data_digest, self.code_revision],
            [quick, seed, split_seed, index]
        ]);
        config_hash(&all)[..16].to_owned()
    }

    /// Names the random streams of a method. The digest of the data is not in it: noise owes
    /// nothing to the data.
    fn name(&self, key: &RunKey) -> String {
        [&self.source.study, &key.experiment, &key.method, &key.config_hash].map(String::as_str).join("\n")
    }

    /// Which of a study's runs are still to be trained here, in order.
    ///
    /// # Errors
    /// If two runs have the same key, or a run is there that other code has made.
    pub(crate) fn missing(&self, keys: &[RunKey]) -> anyhow::Result<Vec<usize>> {
        let mut seen = std::collections::BTreeSet::new();
        let mut missing = Vec::new();
        for (position, key) in keys.iter().enumerate() {
            if !seen.insert(key) {
                bail!("{key}: the study has this method with this configuration twice");
            }
            // A failed run is a result: trained again until it succeeds, a method would be judged
            // by its lucky runs.
            let revision = self.database().revision_of(key)?;
            let other = if revision.is_none() { self.database().other_data_of(key)? } else { None };
            if let Some(other) = other {
                bail!(
                    "--resume: {key} is in the records {}, trained on other data (digest {}…, now {}…); bring those data back, or start \
                     new records (without --resume)",
                    self.database().path().display(),
                    other.get(..12).unwrap_or(&other),
                    key.data_digest.get(..12).unwrap_or(&key.data_digest)
                );
            }
            match revision {
                None if self.shard.is_none_or(|shard| shard.has(position)) => missing.push(position),
                Some(revision) if revision != self.code_revision && !self.any_revision => bail!(
                    "{}: {key} was made by code revision {revision}, and this is {}; go back to that, start new records (without \
                     --resume), or take both as equal (--any-revision)",
                    self.database().path().display(),
                    self.code_revision
                ),
                _ => {}
            }
        }
        Ok(missing)
    }

    /// Which of a study's runs this rank is to train: of those that the first one's records lack,
    /// every `size`-th.
    ///
    /// # Errors
    /// Those of [`Self::missing`].
    pub(crate) fn missing_here(&self, keys: &[RunKey]) -> anyhow::Result<Vec<usize>> {
        let ranks = &self.ranks;
        let missing = if ranks.rank() == 0 { self.missing(keys)? } else { Vec::new() };
        let all: Vec<usize> = serde_json::from_slice(&ranks.broadcast(serde_json::to_vec(&missing)?)?)?;
        Ok(all.into_iter().skip(ranks.rank()).step_by(ranks.size()).collect())
    }

    /// Brings the runs of all ranks into the first one's records.
    ///
    /// # Errors
    /// If a database cannot be read or written, or a rank is gone.
    pub(crate) fn join(&self) -> anyhow::Result<()> {
        let ranks = &self.ranks;
        if ranks.size() == 1 {
            return Ok(());
        }
        let folder = tempfile::tempdir().context("a folder for the records of other ranks")?;
        let own = folder.path().join("own.db");
        let part = if ranks.rank() > 0 {
            self.database().copy_to(&own)?;
            std::fs::read(&own).with_context(|| format!("reading {}", own.display()))?
        } else {
            Vec::new()
        };
        let parts = ranks.gather(part)?;
        if ranks.rank() == 0 {
            for (rank, part) in parts.iter().enumerate().skip(1) {
                let path = folder.path().join(format!("rank-{rank}.db"));
                Output::new(&path, &[])?.write_bytes(part)?;
                add_all(&mut self.database(), &[Database::read(&path)?])?;
            }
        }
        // Only then may the others forget theirs.
        ranks.broadcast(Vec::new())?;
        self.note_handed_over(true);
        Ok(())
    }

    fn note_handed_over(&self, handed_over: bool) {
        if let Some(records) = &self.rank_records {
            records.lock().unwrap_or_else(PoisonError::into_inner).note(handed_over);
        }
    }

    /// The experiments of the first rank, on all.
    ///
    /// # Errors
    /// If a rank is gone.
    pub(crate) fn shared(
        &self,
        experiments: Option<Vec<ExperimentResults>>,
    ) -> anyhow::Result<Option<Vec<ExperimentResults>>> {
        if self.ranks.size() == 1 {
            return Ok(experiments);
        }
        let text = self.ranks.broadcast(serde_json::to_vec(&experiments)?)?;
        if self.ranks.rank() == 0 { Ok(experiments) } else { Ok(serde_json::from_slice(&text)?) }
    }

    /// Whether every one of these runs is in the records.
    pub(crate) fn has_all(&self, keys: &[RunKey]) -> anyhow::Result<bool> {
        for key in keys {
            if self.database().revision_of(key)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Refuses an experiment that the records have runs of, on other data.
    ///
    /// # Errors
    /// Names what differs.
    pub(crate) fn refuse_other_data(&self, now: &ExperimentResults) -> anyhow::Result<()> {
        let database = self.database();
        if !database.has_runs_of(&now.id)? {
            return Ok(());
        }
        let earlier = database.experiment(&now.id)?.dataset;
        let words = |data: &DatasetRecord| {
            let mark = if data.synthetic { "SYNTHETIC data" } else { "real data" };
            format!("{mark} of digest {}, encoded as {}", data.digest, data.encoding)
        };
        let (earlier, now_on) = (words(&earlier), words(&now.dataset));
        if earlier != now_on {
            bail!(
                "--resume: the runs of {} in {} were trained on {earlier}, and this is {now_on}; bring those data back, or start new \
                 records (without --resume)",
                now.id,
                database.path().display()
            );
        }
        Ok(())
    }

    /// Refuses a stored run whose ledger is not the one that its configuration composes today, by
    /// whichever revision it was made: a report shows it under the ε of the configuration.
    ///
    /// # Errors
    /// Names what differs.
    pub(crate) fn refuse_other_ledger(
        &self,
        key: &RunKey,
        composed: impl FnOnce() -> anyhow::Result<Ledger>,
    ) -> anyhow::Result<()> {
        let database = self.database();
        let Some(stored) = database.ledger_of(key)? else { return Ok(()) };
        let composed = serde_json::to_value(composed()?).context("serialising a ledger")?;
        refuse_other(&stored, &composed).with_context(|| {
            format!(
                "--resume: {key} in {}: go back to the revision that made it, or start new records (without --resume)",
                database.path().display()
            )
        })
    }

    /// Notes an experiment whose runs will follow.
    pub(crate) fn put_experiment(&self, experiment: &ExperimentResults) -> anyhow::Result<()> {
        self.database().put_experiment(experiment)
    }

    /// Stores a finished run.
    pub(crate) fn put_run(
        &self,
        key: &RunKey,
        method: &MethodResults,
        ledger: &serde_json::Value,
        run: &RunRecord,
    ) -> anyhow::Result<()> {
        let wall_seconds = self.started.elapsed().as_secs_f64();
        self.note_handed_over(false);
        self.database().put_run(key, self.id, wall_seconds, method, ledger, run)?;
        self.forget_checkpoint(key)
    }

    /// Stores that a run failed.
    pub(crate) fn put_failure(&self, key: &RunKey, method: &MethodResults, reason: &str) -> anyhow::Result<()> {
        let wall_seconds = self.started.elapsed().as_secs_f64();
        self.note_handed_over(false);
        self.database().put_failure(key, self.id, wall_seconds, method, reason)?;
        self.forget_checkpoint(key)
    }

    /// Removes the checkpoint of a run that is stored, or will never be.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub(crate) fn forget_checkpoint(&self, key: &RunKey) -> anyhow::Result<()> {
        self.checkpoints.as_ref().map_or(Ok(()), |checkpoints| checkpoints.remove(Some(&self.run_name(key))))
    }

    /// An experiment with these runs, as the records have it. Runs of a method follow each other.
    pub(crate) fn experiment(&self, id: &str, keys: &[RunKey]) -> anyhow::Result<ExperimentResults> {
        let database = self.database();
        let mut experiment = database.experiment(id)?;
        for runs in keys.chunk_by(|a, b| (&a.method, &a.config_hash) == (&b.method, &b.config_hash)) {
            let mut method = database.method(&runs[0])?;
            for key in runs {
                match database.failure(key)? {
                    Some(reason) => method.failures.push(FailureRecord { index: key.index, reason }),
                    None => method.runs.push(database.run(key)?),
                }
            }
            experiment.methods.push(method);
        }
        Ok(experiment)
    }

    /// Everything the report is made from.
    pub(crate) fn results(&self, experiments: Vec<ExperimentResults>) -> anyhow::Result<StudyResults> {
        Ok(StudyResults::new(self.source.clone(), self.database().sessions()?, experiments))
    }

    /// What to do when other shards' runs are missing.
    pub(crate) fn how_to_merge(&self) -> String {
        format!(
            "This part's runs are in {}. Join all parts with `cargo xtask results merge OUT IN...`, then make the report with the \
             study's own command and `--resume --records OUT`.",
            shell::path(self.database().path())
        )
    }

    fn database(&self) -> std::sync::MutexGuard<'_, Database> {
        // A transaction that a panic cut short was rolled back: the database behind a poisoned lock
        // is sound.
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn index(key: &RunKey) -> anyhow::Result<u32> {
    u32::try_from(key.index).context("index of the seed")
}

fn new_source(study: &str, options: &StudyOptions) -> anyhow::Result<Source> {
    if let (Some(shard), None, None) = (options.shard, options.seed, options.split_seed) {
        bail!(
            "--shard {shard}: without --seed, all parts need the same --split-seed, or methods of one seed would be compared on \
             different partitions"
        );
    }
    let split_seed = match options.seed.or(options.split_seed) {
        Some(seed) => seed,
        None => OsRng.try_next_u64().context("a seed for the partitions, from the operating system")?,
    };
    Ok(Source { study: study.to_owned(), quick: options.quick, seed: options.seed, split_seed })
}
