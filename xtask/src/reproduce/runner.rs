//! Trains every method and seed of an experiment, side by side.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use dp_accounting::{Accountant, Calibration, DpEvent, Epsilon, NeighbouringRelation, NoiseMultiplier, RdpAccountant};
use dp_clipping::{ClipConfig, PublicContext, registry};
use dp_data::{Dataset, Provenance, Split};
use dp_train::{
    BatchPlan, DType, Engine, Evaluation, Execution, Plan, PrivacyConfig, PublicFacts, Purpose, Randomness, Records,
    TrainConfig, Trainer,
};
use fair_metrics::{Groups, accuracy_by_group, class_recall, mean_loss_by_group};
use indicatif::ProgressBar;
use rayon::prelude::*;

use super::experiment::{BatchCounting, BatchSize, Experiment, MethodSetting, NON_PRIVATE, Noise};
use super::privacy;
use super::recorder::Recorder;
use super::step_analysis::{AnalysisSchedule, StepAnalysis};
use crate::results::{
    DatasetRecord, ExperimentResults, GroupMetrics, GroupSize, MethodResults, MetricsRecord, ModelRecord,
    PrivacyRecord, RunRecord,
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
    records: Vec<Arc<SplitRecords>>,
    plans: Vec<Plan>,
}

struct SplitRecords {
    train: Records,
    test: Records,
    validation: Option<Records>,
}

/// One trained model, before it is sorted into its method.
struct Outcome {
    method: usize,
    run: RunRecord,
    privacy: Option<PrivacyRecord>,
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
                Ok(Arc::new(SplitRecords {
                    train: on_device(&split.train)?,
                    test: on_device(&split.test)?,
                    validation: split.validation.as_ref().map(on_device).transpose()?,
                }))
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        let facts = records.first().context("an experiment needs at least one seed")?.train.facts();
        if let Some(other) = records.iter().find(|records| records.train.facts() != facts) {
            bail!("{}: splits of different seeds differ: {facts:?} and {:?}", experiment.id, other.train.facts());
        }
        let plans = plans(&experiment, facts)?;
        Ok(Self { analysis: None, experiment, data, records, plans })
    }

    /// The same with steps of every private run taken apart.
    pub(crate) fn analysed(self, analysis: Option<AnalysisSchedule>) -> Self {
        Self { analysis, ..self }
    }

    /// Records that training will draw, about.
    pub(crate) fn expected_records(&self) -> u64 {
        let per_seed: f64 =
            self.plans.iter().map(|plan| plan.expected_batch_size() * plan.config().batches.steps as f64).sum();
        (per_seed * self.records.len() as f64) as u64
    }

    /// Every (method, seed) of this experiment, as jobs that may run in any order.
    fn jobs(&self) -> impl Iterator<Item = (usize, usize)> {
        let n_seeds = self.records.len();
        (0..self.plans.len()).flat_map(move |method| (0..n_seeds).map(move |seed| (method, seed)))
    }

    fn train(
        &self,
        (method, seed): (usize, usize),
        variant: u16,
        randomness: &Randomness,
        execution: &Execution,
        bar: &ProgressBar,
    ) -> anyhow::Result<Outcome> {
        let (plan, records) = (&self.plans[method], &self.records[seed]);
        let started = Instant::now();
        let streams = randomness.streams(u32::try_from(seed)?, variant);
        let mut trainer = Trainer::new(plan, &records.train, streams, execution.clone())?;
        let batches = plan.config().batches;
        let n_groups = plan.facts().n_groups;
        let recorder = Recorder::new(n_groups, batches.steps, batches.epochs, bar.clone());
        let key = randomness.stream(Purpose::Analysis, u32::try_from(seed)?, variant);
        let analysis = match self.analysis {
            Some(schedule) => StepAnalysis::new(plan, &records.train, schedule, key)?,
            None => None,
        };
        let mut observer = (recorder, analysis);
        let counts = trainer.run(&mut observer)?;
        let (recorder, analysis) = observer;
        let privacy = privacy::record(plan, trainer.ledger(), self.experiment.published.as_ref())?;
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
        Ok(Outcome { method, run, privacy })
    }

    fn into_results(self, mut outcomes: Vec<Outcome>) -> anyhow::Result<ExperimentResults> {
        outcomes.sort_by_key(|outcome| (outcome.method, outcome.run.index));
        let facts = self.records[0].train.facts();
        let mut methods = Vec::new();
        for ((method, setting), plan) in self.experiment.methods.iter().enumerate().zip(&self.plans) {
            let of_method = outcomes.iter().filter(|outcome| outcome.method == method);
            methods.push(MethodResults {
                method: setting.id.clone(),
                base: setting.name.to_owned(),
                coordinates: setting.coordinates.clone(),
                config: serde_json::to_value(plan.config())?,
                privacy: of_method.clone().find_map(|outcome| outcome.privacy.clone()),
                runs: of_method.map(|outcome| outcome.run.clone()).collect(),
            });
        }
        let engine = Engine::new(
            &self.experiment.model,
            self.experiment.loss.clone(),
            &self.records[0].train,
            &dp_train::Device::Cpu,
        )?;
        let model = ModelRecord { name: self.experiment.model.label(), n_params: engine.model().parameters().len() };
        let split = &self.data.splits[0];
        let (train, test) = (&split.train, &split.test);
        let sizes = train.group_names.iter().zip(train.group_sizes()).zip(test.group_sizes());
        let provenance = self.data.provenance;
        let mut departures = self.experiment.departures;
        let mut differing: Vec<String> = Vec::new();
        for entry in self.experiment.methods.iter().filter_map(|setting| registry::find(setting.name).ok()) {
            let text = format!("{}: {}", entry.label, entry.differs);
            if !entry.differs.is_empty() && !differing.contains(&text) {
                differing.push(text);
            }
        }
        departures.extend(differing);
        Ok(ExperimentResults {
            id: self.experiment.id,
            title: self.experiment.title,
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
            methods,
        })
    }
}

/// Trains everything of all experiments on `threads` threads, one run on each at a time.
///
/// # Errors
/// If any run fails; the message names it.
pub(crate) fn run_all(
    experiments: Vec<Prepared>,
    randomness: &Randomness,
    execution: &Execution,
    threads: usize,
    bar: &ProgressBar,
) -> anyhow::Result<Vec<ExperimentResults>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("cannot start threads")?;
    // Streams must differ between all methods of all experiments: the variant numbers them through.
    let mut jobs = Vec::new();
    let mut variant = 0;
    for (index, prepared) in experiments.iter().enumerate() {
        jobs.extend(prepared.jobs().map(|job| (index, job, variant + job.0 as u16)));
        variant += prepared.plans.len() as u16;
    }
    let outcomes = pool.install(|| {
        jobs.into_par_iter()
            .with_max_len(1)
            .map(|(index, job, variant)| {
                let prepared = &experiments[index];
                let name = &prepared.experiment.methods[job.0].id;
                bar.set_message(format!("{name}, seed {}", job.1 + 1));
                prepared
                    .train(job, variant, randomness, execution, bar)
                    .with_context(|| format!("{}: {name}, seed {}", prepared.experiment.id, job.1 + 1))
                    .map(|outcome| (index, outcome))
            })
            .collect::<anyhow::Result<Vec<_>>>()
    })?;
    let mut by_experiment: Vec<Vec<Outcome>> = experiments.iter().map(|_| Vec::new()).collect();
    for (index, outcome) in outcomes {
        by_experiment[index].push(outcome);
    }
    experiments.into_iter().zip(by_experiment).map(|(prepared, outcomes)| prepared.into_results(outcomes)).collect()
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
        ..TrainConfig::new(experiment.model.clone(), experiment.loss.clone(), batches, setting.learning_rate)
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
    let Evaluation { losses, predictions, .. } = engine.evaluate(records, execution.micro_batch)?;
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
