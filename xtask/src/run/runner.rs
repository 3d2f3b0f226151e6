//! Trains every method and seed of an experiment, side by side.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};
use dp_accounting::{Ledger, Rounding, decimal};
use dp_clipping::registry;
use dp_train::{DType, Device, Execution, Model, beside};
use rayon::prelude::*;
use run_records::{
    Coordinate, DatasetRecord, ExperimentResults, MethodResults, ModelRecord, PrivacyRecord, RunKey, RunProvenance,
    RunRecord, config_hash,
};
use serde_json::json;

use super::data_setting::Splits;
use super::evaluation::Failure;
use super::experiment::Experiment;
use super::plans::{Beginning, Procedure, procedures};
use super::privacy;
use super::progress::TrainingProgress;
use super::records::{ExperimentData, RecordCache, SplitSummary};
use super::session::Session;
use super::single_run::Run;
use super::step_analysis::AnalysisSchedule;
use super::workload::{Workload, throughput};
use crate::terminal::say;

/// An experiment with a checked procedure per method.
pub(crate) struct Prepared<'a> {
    analysis: Option<AnalysisSchedule>,
    experiment: Experiment,
    data: ExperimentData<'a>,
    /// One per seed.
    splits: Vec<SplitSummary>,
    procedures: Vec<Procedure>,
    /// Configuration of each procedure, and its hash.
    configs: Vec<(serde_json::Value, String)>,
    /// What a ledger costs, by whether it is a guarantee and the ledger's digest: the same for many
    /// runs, and slow to compute.
    privacy: Mutex<BTreeMap<(bool, String), Option<PrivacyRecord>>>,
}

/// One run of one experiment.
#[derive(Debug, Clone, Copy)]
struct Job {
    experiment: usize,
    method: usize,
    seed: usize,
}

impl<'a> Prepared<'a> {
    /// Checks every plan, and looks at the split of every seed.
    ///
    /// # Errors
    /// If a plan is refused, or the splits of the seeds differ in size (their plans would differ).
    pub(crate) fn new(experiment: Experiment, data: ExperimentData<'a>) -> anyhow::Result<Self> {
        let splits = data.summaries()?;
        let facts = splits.first().context("an experiment needs at least one seed")?.facts;
        if let Some(other) = splits.iter().find(|split| split.facts != facts) {
            bail!("{}: splits of different seeds differ: {facts:?} and {:?}", experiment.id, other.facts);
        }
        let given = &splits.first().context("an experiment needs at least one seed")?.given;
        let procedures = procedures(&experiment, facts, given)?;
        let configs = procedures
            .iter()
            .map(|procedure| {
                let config = procedure.config()?;
                let hash = config_hash(&config);
                Ok((config, hash))
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self { analysis: None, experiment, data, splits, procedures, configs, privacy: Mutex::default() })
    }

    /// The same with steps of every private run taken apart.
    pub(crate) fn analysed(self, analysis: Option<AnalysisSchedule>) -> Self {
        Self { analysis, ..self }
    }

    /// Identifier of the experiment.
    pub(crate) fn id(&self) -> &str {
        &self.experiment.id
    }

    /// Runs with so many a method.
    pub(crate) fn n_jobs(&self, n_seeds: u32) -> usize {
        self.procedures.len() * n_seeds as usize
    }

    /// What the runs come to that are trained here, by their positions, and are not there yet.
    ///
    /// # Errors
    /// If the records cannot be loaded, or a step fails; as `is_there`.
    pub(crate) fn workload(
        &self,
        n_seeds: u32,
        is_here: impl Fn(usize) -> bool,
        is_there: impl Fn(&RunKey) -> anyhow::Result<bool>,
        execution: &Execution,
    ) -> anyhow::Result<Workload> {
        let plan = self.procedures.last().context("an experiment needs a method")?.plan();
        let records = self.data.load(0, &execution.device)?;
        let (mut runs, mut drawn) = (0, 0.0);
        for position in (0..self.n_jobs(n_seeds)).filter(|position| is_here(*position)) {
            let (method, seed) = (position / n_seeds as usize, position % n_seeds as usize);
            // Without stored runs only the first split is at hand, and nothing is there.
            let known = Job { experiment: 0, method, seed: seed.min(self.splits.len() - 1) };
            if !is_there(&self.key(known))? {
                runs += 1;
                drawn += self.procedures[method].expected_records() as f64;
            }
        }
        Ok(Workload {
            experiment: self.experiment.id.clone(),
            runs,
            records: drawn,
            records_per_second: throughput(plan, &records.train, execution)?,
        })
    }

    /// Every run of this experiment, seeds of a method next to each other.
    fn jobs(&self, experiment: usize) -> impl Iterator<Item = Job> {
        let n_seeds = self.splits.len();
        (0..self.procedures.len())
            .flat_map(move |method| (0..n_seeds).map(move |seed| Job { experiment, method, seed }))
    }

    fn key(&self, Job { method, seed, .. }: Job) -> RunKey {
        RunKey {
            experiment: self.experiment.id.clone(),
            method: self.experiment.methods[method].id.clone(),
            config_hash: match self.analysis {
                None => self.configs[method].1.clone(),
                // A run that was analysed in another way, or not at all, does not stand for this
                // one.
                Some(schedule) => config_hash(&json!([self.configs[method].0, format!("{schedule:?}")])),
            },
            data_digest: self.splits[seed].digest.clone(),
            index: seed,
        }
    }

    /// The runs of other experiments that those of this one begin.
    ///
    /// # Errors
    /// If a configuration cannot be serialised.
    pub(crate) fn begun(&self) -> anyhow::Result<Vec<RunKey>> {
        let mut begun = Vec::new();
        for job in self.jobs(0) {
            if let Procedure::Beginning(beginning) = &self.procedures[job.method] {
                begun.push(whole(beginning, &self.key(job))?);
            }
        }
        Ok(begun)
    }

    /// Trains one run and stores it, or why there is none.
    fn train(&self, job: Job, key: &RunKey, shared: &Shared<'_>) -> anyhow::Result<()> {
        let session = shared.session;
        let (method, ledger) = self.released(job.method)?;
        let Lane { execution, cache } = shared.lane();
        let records = cache.get(&key.data_digest, || self.data.load(job.seed, &execution.device))?;
        let run = Run { key, records: &records, session, execution, bar: &shared.progress.bar };
        let outcome = match &self.procedures[job.method] {
            Procedure::Training(plan) => run.train(plan, self.analysis)?,
            Procedure::Beginning(beginning) => run.begin(beginning, &whole(beginning, key)?)?,
            Procedure::Conditioned(conditioned) => run.train_conditioned(conditioned)?,
            Procedure::Search(search) => run.search(search)?,
        };
        match outcome {
            Ok(run) => {
                let provenance = Some(RunProvenance {
                    synthetic: self.data.provenance.synthetic,
                    quick: session.is_quick(),
                    data_digest: self.data.public_digest(),
                    code_revision: session.code_revision().to_owned(),
                    numerics: dp_train::NUMERICS,
                });
                session.put_run(key, &method, &ledger, &RunRecord { provenance, ..run })
            }
            Err(Failure(reason)) => session.put_failure(key, &method, &reason),
        }
    }

    /// What a run of the method releases, as its configuration composes it.
    fn ledger(&self, method: usize) -> anyhow::Result<Ledger> {
        match &self.procedures[method] {
            Procedure::Search(search) => privacy::ledger_of_search(search),
            procedure => privacy::ledger(procedure.plan()),
        }
    }

    /// The method without its runs, and the ledger of each.
    fn released(&self, method: usize) -> anyhow::Result<(MethodResults, serde_json::Value)> {
        let ledger = self.ledger(method)?;
        let json = serde_json::to_value(&ledger).context("serialising a ledger")?;
        Ok((self.method(method, &ledger)?, json))
    }

    /// The method without its runs. One that searches lies at the ε of the whole search.
    fn method(&self, method: usize, ledger: &Ledger) -> anyhow::Result<MethodResults> {
        let setting = &self.experiment.methods[method];
        let privacy = self.privacy(method, ledger)?;
        let mut coordinates = setting.coordinates.clone();
        if let Some(privacy) = privacy.as_ref().filter(|privacy| privacy.search.is_some()) {
            let epsilon = privacy.least_epsilon();
            // Upwards: what is said of ε stays true.
            let value = decimal(epsilon, 3, Rounding::Up).parse().unwrap_or(epsilon);
            coordinates.push(Coordinate { name: "ε".to_owned(), value });
        }
        Ok(MethodResults {
            method: setting.id.clone(),
            base: setting.name.to_owned(),
            coordinates,
            config: self.configs[method].0.clone(),
            privacy,
            runs: Vec::new(),
            failures: Vec::new(),
        })
    }

    fn privacy(&self, method: usize, ledger: &Ledger) -> anyhow::Result<Option<PrivacyRecord>> {
        let procedure = &self.procedures[method];
        let certified = procedure.certified();
        // Held while it is computed: another run is about to compute the same.
        let mut known = self.privacy.lock().unwrap_or_else(PoisonError::into_inner);
        match known.entry((certified, ledger.digest())) {
            Entry::Occupied(entry) => Ok(entry.get().clone()),
            Entry::Vacant(entry) => {
                let record = match procedure {
                    Procedure::Training(_) | Procedure::Beginning(_) | Procedure::Conditioned(_) => {
                        privacy::record(procedure.plan(), self.experiment.published.as_ref())?
                    }
                    Procedure::Search(search) => Some(privacy::record_of_search(search, self.experiment.delta)?),
                };
                Ok(entry.insert(record).clone())
            }
        }
    }

    /// What is known before training.
    pub(crate) fn description(&self) -> anyhow::Result<ExperimentResults> {
        let split = &self.splits[0];
        let Experiment { model, loss, .. } = &self.experiment;
        let n_outputs = loss.n_logits(split.facts.n_classes).context("the plans have accepted the loss")?;
        let n_params = Model::new(model, split.facts.n_inputs, n_outputs, DType::F32, &Device::Cpu)?.n_parameters();
        let provenance = self.data.provenance.clone();
        let mut departures = self.experiment.departures.clone();
        let mut differing: Vec<String> = Vec::new();
        for entry in self.experiment.methods.iter().filter_map(|setting| registry::find(setting.name).ok()) {
            let text = format!("{}: {}", entry.label, entry.differs);
            if !entry.differs.is_empty() && !differing.contains(&text) {
                differing.push(text);
            }
        }
        departures.extend(differing);
        Ok(ExperimentResults {
            id: self.experiment.id.clone(),
            title: self.experiment.title.clone(),
            departures,
            dataset: DatasetRecord {
                name: provenance.name,
                synthetic: provenance.synthetic,
                source: provenance.source,
                digest: self.data.public_digest(),
                encoding: self.data.encoding.clone(),
                n_inputs: split.facts.n_inputs,
                group_attribute: split.group_attribute.clone(),
                groups: split.groups.clone(),
                classes: split.classes.clone(),
                notes: provenance.notes.into_iter().chain(split.notes.iter().cloned()).collect(),
                one_partition: self.experiment.data.splits == Splits::First,
            },
            model: ModelRecord { name: model.label(), n_params },
            methods: Vec::new(),
        })
    }
}

/// The run whose first epochs are those of this key.
fn whole(beginning: &Beginning, key: &RunKey) -> anyhow::Result<RunKey> {
    let config_hash = config_hash(&beginning.config_of_whole()?);
    Ok(RunKey { experiment: beginning.experiment.clone(), config_hash, ..key.clone() })
}

/// What the runs of a command share.
struct Shared<'a> {
    session: &'a Session,
    /// On the CPU one for all threads.
    lanes: Vec<Lane>,
    progress: TrainingProgress,
}

/// Where runs are trained one after another, and the records that are there.
struct Lane {
    execution: Execution,
    cache: RecordCache,
}

impl Shared<'_> {
    /// The lane of this thread.
    fn lane(&self) -> &Lane {
        &self.lanes[rayon::current_thread_index().unwrap_or(0) % self.lanes.len()]
    }
}

/// Lanes for this number of runs side by side: on a GPU each has a stream of its own.
fn lanes(execution: &Execution, n_threads: usize) -> anyhow::Result<Vec<Lane>> {
    let lane = |execution| Lane { execution, cache: RecordCache::default() };
    let n_more = if execution.device.is_cpu() { 0 } else { n_threads.saturating_sub(1) };
    let others = (0..n_more).map(|_| {
        let device = beside(&execution.device).context("another stream of the device")?;
        Ok(lane(Execution { device, ..execution.clone() }))
    });
    std::iter::once(Ok(lane(execution.clone()))).chain(others).collect()
}

/// Stores the runs that the session was given and its records lack; how many.
fn take_given(
    experiments: &[Prepared<'_>],
    descriptions: &[ExperimentResults],
    session: &Session,
) -> anyhow::Result<usize> {
    let mut taken = 0;
    for (index, (prepared, description)) in experiments.iter().zip(descriptions).enumerate() {
        let mut is_noted = false;
        for job in prepared.jobs(index) {
            let key = prepared.key(job);
            let Some(given) = session.given_run(description, &key)? else { continue };
            if !std::mem::replace(&mut is_noted, true) {
                session.put_experiment(description)?;
            }
            let (method, ledger) = prepared.released(job.method)?;
            given.ensure_costs(method.privacy.as_ref()).with_context(|| format!("--from: {key}"))?;
            session.put_given(&key, &method, &ledger, &given)?;
            taken += 1;
        }
    }
    Ok(taken)
}

/// Trains all runs of these experiments that the session's records lack, one run on each thread at
/// a time, and stores each as it finishes. A run that diverges is stored as failed; the others go
/// on. Returns the experiments as the records have them; `None` if other shards' runs are missing.
///
/// # Errors
/// If the machine fails in a run; the message names it. Runs that finished before are kept.
pub(crate) fn run_all(
    experiments: &[Prepared<'_>],
    session: &Session,
    execution: &Execution,
) -> anyhow::Result<Option<Vec<ExperimentResults>>> {
    let jobs: Vec<Job> = experiments.iter().enumerate().flat_map(|(index, prepared)| prepared.jobs(index)).collect();
    let keys: Vec<RunKey> = jobs.iter().map(|job| experiments[job.experiment].key(*job)).collect();
    let descriptions = experiments.iter().map(Prepared::description).collect::<anyhow::Result<Vec<_>>>()?;
    for description in &descriptions {
        session.refuse_other_data(description)?;
    }
    for (job, key) in jobs.iter().zip(&keys) {
        session.refuse_other_ledger(key, || experiments[job.experiment].ledger(job.method))?;
    }
    let taken = take_given(experiments, &descriptions, session)?;
    if taken > 0 {
        say!("{taken} of {} runs need no training: they were given.", jobs.len())?;
    }
    let mut missing = session.missing_here(&keys)?;
    for description in &descriptions {
        session.put_experiment(description)?;
    }
    if missing.len() < jobs.len() {
        say!("{} of {} runs to train.", missing.len(), jobs.len())?;
    }
    let expected =
        missing.iter().map(|&i| experiments[jobs[i].experiment].procedures[jobs[i].method].expected_records()).sum();
    let progress = TrainingProgress::begin(missing.len(), expected);
    let lanes = lanes(execution, session.n_threads().min(missing.len()))?;
    let shared = Shared { session, lanes, progress };
    // Runs on the same records one after another, so that few records are in memory; of these the
    // longest first, since a long one at the end would leave the other threads idle.
    missing.sort_by_cached_key(|&position| {
        let Job { experiment, method, seed } = jobs[position];
        (experiment, seed, Reverse(experiments[experiment].procedures[method].expected_work()))
    });
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(session.n_threads()).build().context("cannot start threads")?;
    pool.install(|| {
        // A bridge hands them out in order.
        missing.into_iter().par_bridge().try_for_each(|position| {
            let (job, key) = (jobs[position], &keys[position]);
            shared.progress.bar.set_message(format!("{}, seed {}", key.method, key.index + 1));
            experiments[job.experiment].train(job, key, &shared).with_context(|| key.to_string())?;
            shared.progress.run_finished();
            anyhow::Ok(())
        })
    })?;
    drop(shared);
    session.join()?;
    if !session.is_first() {
        return session.shared(None);
    }
    if !session.has_all(&keys)? {
        return session.shared(None);
    }
    let mut results = Vec::new();
    for (index, prepared) in experiments.iter().enumerate() {
        let own: Vec<RunKey> =
            jobs.iter().zip(&keys).filter(|(job, _)| job.experiment == index).map(|(_, key)| key.clone()).collect();
        results.push(session.experiment(&prepared.experiment.id, &own)?);
    }
    session.shared(Some(results))
}
