//! Trains every method and seed of an experiment, side by side.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, bail};
use dp_accounting::{
    Accountant, Calibration, DpEvent, Epsilon, Ledger, NeighbouringRelation, NoiseMultiplier, RdpAccountant,
};
use dp_clipping::{ClipConfig, PublicContext, registry};
use dp_data::{Dataset, Provenance, Split};
use dp_train::{
    BatchPlan, DType, Engine, Evaluation, Execution, Plan, PrivacyConfig, PublicFacts, Records, TrainConfig, Trainer,
};
use fair_metrics::{Groups, accuracy_by_group, class_recall, mean_loss_by_group};
use indicatif::ProgressBar;
use rayon::prelude::*;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::experiment::{BatchCounting, BatchSize, Experiment, MethodSetting, NON_PRIVATE, Noise};
use super::privacy;
use super::progress::training_bar;
use super::recorder::Recorder;
use super::session::Session;
use super::step_analysis::{AnalysisSchedule, StepAnalysis};
use crate::results::{
    DatasetRecord, ExperimentResults, GroupMetrics, GroupSize, MethodResults, MetricsRecord, ModelRecord,
    PrivacyRecord, RunKey, RunRecord, config_hash,
};

/// Data of one experiment: one split per seed.
pub(crate) struct ExperimentData {
    /// Where the records came from.
    pub(crate) provenance: Provenance,
    /// Encoding by name.
    pub(crate) encoding: &'static str,
    /// One per seed.
    pub(crate) splits: Vec<Split>,
}

/// An experiment with a checked plan per method.
pub(crate) struct Prepared {
    analysis: Option<AnalysisSchedule>,
    experiment: Experiment,
    data: ExperimentData,
    records: Vec<SplitRecords>,
    plans: Vec<Plan>,
    /// Configuration of each plan, and its hash.
    configs: Vec<(serde_json::Value, String)>,
    /// What a method costs, by the digest of the ledger that its runs left: the same for all of them, and slow to compute.
    privacy: Mutex<BTreeMap<(usize, String), Option<PrivacyRecord>>>,
}

struct SplitRecords {
    train: Records,
    test: Records,
    validation: Option<Records>,
    /// sha256 of all of them.
    digest: String,
}

/// One run of one experiment.
#[derive(Debug, Clone, Copy)]
struct Job {
    experiment: usize,
    method: usize,
    seed: usize,
}

impl Prepared {
    /// Checks every plan and moves the records to the device.
    ///
    /// # Errors
    /// If a plan is refused, or the splits of the seeds differ in size (their plans would differ).
    pub(crate) fn new(experiment: Experiment, data: ExperimentData, execution: &Execution) -> anyhow::Result<Self> {
        let records = data
            .splits
            .iter()
            .map(|split| {
                let on_device = |part| to_records(part, &execution.device);
                Ok(SplitRecords {
                    train: on_device(&split.train)?,
                    test: on_device(&split.test)?,
                    validation: split.validation.as_ref().map(on_device).transpose()?,
                    digest: split_digest(split),
                })
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        let facts = records.first().context("an experiment needs at least one seed")?.train.facts();
        if let Some(other) = records.iter().find(|records| records.train.facts() != facts) {
            bail!("{}: splits of different seeds differ: {facts:?} and {:?}", experiment.id, other.train.facts());
        }
        let plans = plans(&experiment, facts)?;
        let configs = plans
            .iter()
            .map(|plan| {
                let config = serde_json::to_value(plan.config()).context("serialising a configuration")?;
                let hash = config_hash(&config);
                Ok((config, hash))
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self { analysis: None, experiment, data, records, plans, configs, privacy: Mutex::default() })
    }

    /// The same with steps of every private run taken apart.
    pub(crate) fn analysed(self, analysis: Option<AnalysisSchedule>) -> Self {
        Self { analysis, ..self }
    }

    /// Records that a run of this method will draw, about.
    fn expected_records(&self, method: usize) -> u64 {
        let plan = &self.plans[method];
        (plan.expected_batch_size() * plan.config().batches.steps as f64) as u64
    }

    /// Every run of this experiment, seeds of a method next to each other.
    fn jobs(&self, experiment: usize) -> impl Iterator<Item = Job> {
        let n_seeds = self.records.len();
        (0..self.plans.len()).flat_map(move |method| (0..n_seeds).map(move |seed| Job { experiment, method, seed }))
    }

    fn key(&self, Job { method, seed, .. }: Job) -> RunKey {
        RunKey {
            experiment: self.experiment.id.clone(),
            method: self.experiment.methods[method].id.clone(),
            config_hash: match self.analysis {
                None => self.configs[method].1.clone(),
                // A run that was analysed in another way, or not at all, does not stand for this one.
                Some(schedule) => config_hash(&json!([self.configs[method].0, format!("{schedule:?}")])),
            },
            data_digest: self.records[seed].digest.clone(),
            index: seed,
        }
    }

    /// Trains one run and stores it.
    fn train(
        &self,
        Job { method, seed, .. }: Job,
        key: &RunKey,
        session: &Session,
        execution: &Execution,
        bar: &ProgressBar,
    ) -> anyhow::Result<()> {
        let (plan, records) = (&self.plans[method], &self.records[seed]);
        let started = Instant::now();
        let streams = session.streams(key)?;
        let mut trainer = Trainer::new(plan, &records.train, streams, execution.clone())?;
        let batches = plan.config().batches;
        let n_groups = plan.facts().n_groups;
        let recorder = Recorder::new(n_groups, batches.steps, batches.epochs, bar.clone());
        let analysis = match self.analysis {
            Some(schedule) => StepAnalysis::new(plan, &records.train, schedule, session.analysis_stream(key)?)?,
            None => None,
        };
        let mut observer = (recorder, analysis);
        let counts = trainer.run(&mut observer)?;
        let (recorder, analysis) = observer;
        let setting = &self.experiment.methods[method];
        let method = MethodResults {
            method: setting.id.clone(),
            base: setting.name.to_owned(),
            coordinates: setting.coordinates.clone(),
            config: self.configs[method].0.clone(),
            privacy: self.privacy(method, trainer.ledger())?,
            runs: Vec::new(),
        };
        let ledger = serde_json::to_value(trainer.ledger()).context("serialising a ledger")?;
        let engine = trainer.engine_mut();
        let run = RunRecord {
            index: seed,
            test: evaluate(engine, &records.test, execution)?,
            validation: records
                .validation
                .as_ref()
                .map(|validation| evaluate(engine, validation, execution))
                .transpose()?,
            train: evaluate(engine, &records.train, execution)?,
            analysis: analysis.map(StepAnalysis::into_record),
            seconds: started.elapsed().as_secs_f64(),
            n_non_finite: counts.non_finite,
            n_empty_batches: counts.empty_batches,
            epochs: recorder.epochs,
            group_epsilons: privacy::group_epsilons(plan, &recorder.group_bounds)?,
            thresholds: recorder.thresholds,
        };
        session.put_run(key, &method, &ledger, &run)
    }

    fn privacy(&self, method: usize, ledger: &Ledger) -> anyhow::Result<Option<PrivacyRecord>> {
        // Held while it is computed: another seed of the method would compute the same.
        let mut known = self.privacy.lock().unwrap_or_else(PoisonError::into_inner);
        match known.entry((method, ledger.digest())) {
            Entry::Occupied(entry) => Ok(entry.get().clone()),
            Entry::Vacant(entry) => {
                let record = privacy::record(&self.plans[method], ledger, self.experiment.published.as_ref())?;
                Ok(entry.insert(record).clone())
            }
        }
    }

    /// What is known before training.
    fn description(&self) -> anyhow::Result<ExperimentResults> {
        let facts = self.records[0].train.facts();
        let engine =
            Engine::new(&self.experiment.model, self.experiment.loss, &self.records[0].train, &dp_train::Device::Cpu)?;
        let model = ModelRecord { name: self.experiment.model.label(), n_params: engine.model().parameters().len() };
        let split = &self.data.splits[0];
        let (train, test) = (&split.train, &split.test);
        let sizes = train.group_names.iter().zip(train.group_sizes()).zip(test.group_sizes());
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
                digest: provenance.digest,
                encoding: self.data.encoding.to_owned(),
                n_inputs: facts.n_inputs,
                group_attribute: train.group_attribute.clone(),
                groups: sizes
                    .map(|((name, n_train), n_test)| GroupSize { name: name.clone(), n_train, n_test })
                    .collect(),
                classes: train.class_names.clone(),
                notes: provenance.notes.into_iter().chain(split.notes.iter().cloned()).collect(),
            },
            model,
            methods: Vec::new(),
        })
    }
}

/// Trains all runs of these experiments that the session's records lack, one run on each thread at a time, and stores each as it
/// finishes. Returns the experiments as the records have them; `None` if other shards' runs are missing.
///
/// # Errors
/// If any run fails; the message names it. Runs that finished before are kept.
pub(crate) fn run_all(
    experiments: &[Prepared],
    session: &Session,
    execution: &Execution,
) -> anyhow::Result<Option<Vec<ExperimentResults>>> {
    for prepared in experiments {
        session.put_experiment(&prepared.description()?)?;
    }
    let jobs: Vec<Job> = experiments.iter().enumerate().flat_map(|(index, prepared)| prepared.jobs(index)).collect();
    let keys: Vec<RunKey> = jobs.iter().map(|job| experiments[job.experiment].key(*job)).collect();
    let missing = session.missing(&keys)?;
    if missing.len() < jobs.len() {
        println!("{} of {} runs to train.", missing.len(), jobs.len());
    }
    let expected = missing.iter().map(|&i| experiments[jobs[i].experiment].expected_records(jobs[i].method)).sum();
    let bar = training_bar(expected);
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(session.n_threads()).build().context("cannot start threads")?;
    pool.install(|| {
        missing.into_par_iter().with_max_len(1).try_for_each(|position| {
            let (job, key) = (jobs[position], &keys[position]);
            bar.set_message(format!("{}, seed {}", key.method, key.index + 1));
            experiments[job.experiment].train(job, key, session, execution, &bar).with_context(|| key.to_string())
        })
    })?;
    bar.finish_and_clear();
    if !session.has_all(&keys)? {
        return Ok(None);
    }
    let mut results = Vec::new();
    for (index, prepared) in experiments.iter().enumerate() {
        let own: Vec<RunKey> =
            jobs.iter().zip(&keys).filter(|(job, _)| job.experiment == index).map(|(_, key)| key.clone()).collect();
        results.push(session.experiment(&prepared.experiment.id, &own)?);
    }
    Ok(Some(results))
}

/// sha256 of everything in a split that training or evaluation sees.
fn split_digest(split: &Split) -> String {
    let mut digest = Sha256::new();
    for part in [&split.train, &split.test].into_iter().chain(&split.validation) {
        for n in [part.len(), part.n_inputs(), part.class_names.len(), part.group_names.len()] {
            digest.update((n as u64).to_le_bytes());
        }
        let mut row_bytes = Vec::with_capacity(4 * part.n_inputs());
        for row in part.features.rows() {
            row_bytes.clear();
            row_bytes.extend(row.iter().flat_map(|value| value.to_le_bytes()));
            digest.update(&row_bytes);
        }
        for (label, group) in part.labels.iter().zip(&part.groups) {
            digest.update(label.to_le_bytes());
            digest.update((*group as u64).to_le_bytes());
        }
    }
    hex::encode(digest.finalize())
}

fn to_records(part: &Dataset, device: &dp_train::Device) -> anyhow::Result<Records> {
    let facts = PublicFacts {
        n_records: part.len(),
        n_inputs: part.n_inputs(),
        n_classes: part.class_names.len(),
        n_groups: part.group_names.len(),
    };
    let features = part.features.as_standard_layout();
    let features = features.as_slice().context("features are not contiguous")?;
    Ok(Records::new(features, &part.labels, &part.groups, facts, DType::F32, device)?)
}

/// A plan per method.
fn plans(experiment: &Experiment, facts: PublicFacts) -> anyhow::Result<Vec<Plan>> {
    let batch_plan = match experiment.counting {
        BatchCounting::Exact => BatchPlan::exact,
        BatchCounting::LoaderLength => BatchPlan::loader,
    };
    experiment
        .methods
        .iter()
        .map(|setting| {
            let context = || format!("{}: {}", experiment.id, setting.id);
            let (batch_size, epochs) = setting.batches.unwrap_or((experiment.batch_size, experiment.epochs));
            let batch_size = match batch_size {
                BatchSize::Records(records) => records,
                BatchSize::Full => facts.n_records,
            };
            let batches = batch_plan(facts.n_records, batch_size, epochs).with_context(context)?;
            let plan = plan(experiment, setting, batches, facts).with_context(context)?;
            if !experiment.matches_dpsgd_budget || plan.count_noise_multipliers().is_empty() {
                return Ok(plan);
            }
            let steps = steps_within_dpsgd_budget(experiment, &plan).with_context(context)?;
            self::plan(experiment, setting, BatchPlan { steps, ..batches }, facts)
        })
        .collect()
}

fn plan(
    experiment: &Experiment,
    setting: &MethodSetting,
    batches: BatchPlan,
    facts: PublicFacts,
) -> anyhow::Result<Plan> {
    let privacy = if setting.name == NON_PRIVATE {
        None
    } else {
        let clipping = registry::find(setting.name)?.config(&setting.params);
        let noise_multiplier = match setting.noise.unwrap_or(experiment.noise) {
            Noise::Multiplier(multiplier) => multiplier,
            Noise::Within(epsilon) => calibrate(epsilon, experiment, &clipping, &batches, facts)?,
        };
        Some(PrivacyConfig::new(clipping, noise_multiplier, experiment.delta))
    };
    let config = TrainConfig {
        optimiser: setting.optimiser,
        l2: experiment.l2,
        privacy,
        ..TrainConfig::new(experiment.model.clone(), experiment.loss, batches, setting.learning_rate)
    };
    Ok(Plan::new(config, facts)?)
}

/// The smallest noise multiplier with which all steps, counts included, stay within `epsilon`.
fn calibrate(
    epsilon: Epsilon,
    experiment: &Experiment,
    clipping: &ClipConfig,
    batches: &BatchPlan,
    facts: PublicFacts,
) -> anyhow::Result<NoiseMultiplier> {
    let expected_batch_size = batches.sampling_rate.get() * facts.n_records as f64;
    let run = |gradient: NoiseMultiplier| {
        let context = PublicContext { n_groups: facts.n_groups, expected_batch_size, noise_multiplier: gradient.get() };
        let counts = clipping.count_noise_multipliers(&context).into_iter().map(NoiseMultiplier::new);
        match std::iter::once(Ok(gradient)).chain(counts).collect::<Result<Vec<_>, _>>() {
            Ok(all) => DpEvent::joint_gaussian(all).poisson_sampled(batches.sampling_rate).repeated(batches.steps),
            // A count whose noise is out of range has no guarantee, and no gradient noise makes up for it.
            Err(_) => DpEvent::NonPrivate,
        }
    };
    Ok(Calibration::new(NeighbouringRelation::AddRemove, epsilon, experiment.delta)?.noise_multiplier(run)?)
}

/// The largest number of steps of `plan` whose ε, counts included, is at most that of all steps without counts.
fn steps_within_dpsgd_budget(experiment: &Experiment, plan: &Plan) -> anyhow::Result<u64> {
    let batches = plan.config().batches;
    let privacy = plan.config().privacy.as_ref().context("only a private method makes counts")?;
    let gradient = DpEvent::gaussian(privacy.noise_multiplier).poisson_sampled(batches.sampling_rate);
    let mut dpsgd = RdpAccountant::new(NeighbouringRelation::AddRemove);
    dpsgd.compose(&gradient, batches.steps)?;
    let target = dpsgd.epsilon(experiment.delta)?.epsilon;
    let calibration = Calibration::new(NeighbouringRelation::AddRemove, target, experiment.delta)?;
    Ok(calibration.steps(plan.step_event())?.min(batches.steps))
}

/// Accuracy and loss by group, without regularisation.
fn evaluate(engine: &mut Engine, records: &Records, execution: &Execution) -> anyhow::Result<MetricsRecord> {
    let Evaluation { losses, predictions } = engine.evaluate(records, execution.micro_batch)?;
    let facts = records.facts();
    let metrics = |assignment: &[usize], n_groups| -> anyhow::Result<Vec<GroupMetrics>> {
        let groups = Groups::new(assignment, n_groups)?;
        let losses = mean_loss_by_group(&losses, &groups)?;
        let accuracies = accuracy_by_group(&predictions, records.labels(), &groups)?;
        let metrics = accuracies.iter().zip(losses).map(|(accuracy, loss)| GroupMetrics {
            n: accuracy.n,
            accuracy: accuracy.value,
            loss: loss.value,
        });
        Ok(metrics.collect())
    };
    let recalls = class_recall(&predictions, records.labels(), facts.n_classes)?;
    Ok(MetricsRecord {
        overall: metrics(&vec![0; records.len()], 1)?.remove(0),
        groups: metrics(records.groups(), facts.n_groups)?,
        class_recall: recalls.iter().map(|recall| recall.value).collect(),
        class_sizes: recalls.iter().map(|recall| recall.n).collect(),
    })
}
