//! Training on privately conditioned inputs, with adjusted logits or without:
//! docs/conditioned-adjusted.md.

use std::num::NonZeroUsize;

use anyhow::{Context, bail, ensure};
use dp_accounting::{DpEvent, Ledger, NoiseMultiplier};
use dp_clipping::{PresetParams, registry};
use dp_data::Dataset;
use dp_train::conditioning::{
    ClassCounts, Conditioning, ConditioningConfig, GaussianBudget, RecallBiases, RecallBiasesConfig,
};
use dp_train::{
    BatchPlan, Device, Engine, Execution, LearningRate, Loss, OptimiserConfig, Plan, PrivacyConfig, PublicFacts,
    TrainConfig,
};
use ndarray::Array2;
use rand_chacha::ChaCha20Rng;

use super::experiment::{Experiment, MethodSetting, Noise};
use super::plans::plan_of;
use super::records::{SeedRecords, to_records};

/// What a model is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Right answers, whichever class they are in.
    Accuracy,
    /// Right answers in every class: noisy class priors go into the loss.
    WorstClass,
    /// The same, and biases towards equal recall found by noisy counts of right answers.
    EqualRecall,
}

impl Goal {
    /// Name of the method.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Accuracy => "conditioned",
            Self::WorstClass => "conditioned-adjusted",
            Self::EqualRecall => "conditioned-fair",
        }
    }
}

/// Shares of `μ²`; the gradients take the rest.
const MEAN: f64 = 0.015;
const COVARIANCE: f64 = 0.09;
const COUNTS: f64 = 0.004;
const RECALL: f64 = 0.045;
/// Rounds of counts of right answers.
const ROUNDS: u64 = 12;
/// Nats by which the first of them moves a class whose recall is 1 below the mean.
const BIAS_STEP: f64 = 3.0;
/// Half of the biases found: a model is surer of its training records than of others.
const BIAS_SHARE: f64 = 0.5;
/// Full batches.
const STEPS: u64 = 60;

/// Name of DPSGD with noisy class priors in the loss.
pub(crate) const ADJUSTED: &str = "adjusted";

/// What is released before a training, and how it trains then.
pub(crate) struct ConditionedPlan {
    /// `None` where inputs stay as they are.
    conditioning: Option<ConditioningConfig>,
    class_counts: Option<NoiseMultiplier>,
    recall: Option<RecallBiasesConfig>,
    plan: Plan,
}

/// What the releases before a training made.
pub(crate) struct Prepared {
    /// The plan with its priors.
    pub(crate) plan: Plan,
    /// Records with conditioned inputs.
    pub(crate) records: SeedRecords,
    class_counts: Option<ClassCounts>,
}

impl ConditionedPlan {
    /// The recommended settings, none of which looks at a record, within the method's ε.
    ///
    /// # Errors
    /// If the method states no ε, or a setting is refused.
    pub(crate) fn new(
        experiment: &Experiment,
        setting: &MethodSetting,
        goal: Goal,
        facts: PublicFacts,
        given: &[String],
    ) -> anyhow::Result<Self> {
        let Noise::WithinByPld(epsilon) = setting.noise.unwrap_or(experiment.noise) else {
            bail!("{}: its noise follows from ε", setting.id);
        };
        let budget = GaussianBudget::new(epsilon, experiment.delta)?;
        let conditioning = ConditioningConfig {
            mean: Some(budget.noise_multiplier(MEAN, 1)?),
            covariance: Some(budget.noise_multiplier(COVARIANCE, 1)?),
            ..ConditioningConfig::default()
        };
        let (counts, recall) = match goal {
            Goal::Accuracy => (0.0, 0.0),
            Goal::WorstClass => (COUNTS, 0.0),
            Goal::EqualRecall => (COUNTS, RECALL),
        };
        let class_counts = (counts > 0.0).then(|| budget.noise_multiplier(counts, 1)).transpose()?;
        let gradients = budget.noise_multiplier(1.0 - MEAN - COVARIANCE - counts - recall, STEPS)?;
        let recall = match recall {
            0.0 => None,
            share => Some(RecallBiasesConfig {
                rounds: ROUNDS,
                noise_multiplier: budget.noise_multiplier(share, ROUNDS)?,
                step: BIAS_STEP,
                share: BIAS_SHARE,
            }),
        };
        // A row with its constant: the gradient's bound for a residual of norm 1.
        let sq_row = conditioning.row_norm.powi(2) + 1.0;
        let clipping =
            registry::find("dpsgd")?.config(&PresetParams { clip_norm: sq_row.sqrt(), ..PresetParams::default() });
        let n_records = facts.n_records;
        let first = (budget.mu() * n_records as f64).sqrt() / (1.8 * sq_row);
        let config = TrainConfig {
            optimiser: OptimiserConfig::Momentum { momentum: 0.9, nesterov: false },
            privacy: Some(PrivacyConfig::new(clipping, gradients, experiment.delta)),
            ..TrainConfig::new(
                experiment.model.clone(),
                Loss::SoftmaxCrossEntropy,
                BatchPlan::exact(n_records, n_records, STEPS)?,
                LearningRate::Cosine { first, last: 0.0 },
            )
        };
        let conditioning = Some(conditioning);
        let paid = paid(conditioning.as_ref(), class_counts, recall.as_ref());
        let plan = Plan::new(config, facts)?.given(given).paid(paid);
        Ok(Self { conditioning, class_counts, recall, plan })
    }

    /// DPSGD as the setting has it, on inputs as they are, with noisy class priors in the loss.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub(crate) fn adjusted(
        experiment: &Experiment,
        setting: &MethodSetting,
        facts: PublicFacts,
        given: &[String],
    ) -> anyhow::Result<Self> {
        let Noise::WithinByPld(epsilon) = setting.noise.unwrap_or(experiment.noise) else {
            bail!("{}: its noise follows from ε", setting.id);
        };
        let counts = GaussianBudget::new(epsilon, experiment.delta)?.noise_multiplier(COUNTS, 1)?;
        let paid = before(None, Some(counts));
        let dpsgd = MethodSetting { name: "dpsgd", ..setting.clone() };
        let plan = plan_of(experiment, &dpsgd, facts, given, &paid)?;
        Ok(Self { conditioning: None, class_counts: Some(counts), recall: None, plan })
    }

    /// The plan of the training, with what is paid beside it. The priors, which are not known yet,
    /// are not in its loss.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Everything that decides the result.
    ///
    /// # Errors
    /// If it cannot be serialised.
    pub(crate) fn config(&self) -> anyhow::Result<serde_json::Value> {
        let mut config = serde_json::to_value(self.plan.config()).context("serialising a configuration")?;
        if let Some(conditioning) = self.conditioning {
            config["conditioning"] = serde_json::to_value(conditioning).context("serialising a conditioning")?;
        }
        config["class_counts"] = serde_json::to_value(self.class_counts).context("serialising a noise multiplier")?;
        if let Some(recall) = &self.recall {
            config["recall_biases"] = serde_json::to_value(recall).context("serialising rounds of counts")?;
        }
        Ok(config)
    }

    /// Makes the releases before the training: the plan with their priors, and the records with
    /// their inputs conditioned.
    ///
    /// # Errors
    /// If the rows are not at hand, or the device fails.
    pub(crate) fn prepare(
        &self,
        records: &SeedRecords,
        device: &Device,
        rng: &mut ChaCha20Rng,
    ) -> anyhow::Result<Prepared> {
        let mut ledger = Ledger::new(Plan::RELATION);
        // Runs go side by side, each on one thread.
        let threads = NonZeroUsize::MIN;
        let conditioned = match &self.conditioning {
            None => records.clone(),
            Some(config) => {
                let split = records.split.as_ref().context("conditioning needs the rows of the records")?;
                let train = &split.train;
                let conditioning =
                    Conditioning::fit(config, rows(train)?, train.n_inputs(), threads, rng, &mut ledger)?;
                let transformed = |part: &Dataset| {
                    let features = conditioning.apply(rows(part)?, threads)?;
                    let features = Array2::from_shape_vec(part.features.dim(), features)?;
                    to_records(&Dataset { features, ..without_rows(part) }, device)
                };
                SeedRecords {
                    train: transformed(train)?,
                    test: transformed(&split.test)?,
                    validation: split.validation.as_ref().map(transformed).transpose()?,
                    split: None,
                }
            }
        };
        let n_classes = self.plan.facts().n_classes;
        let class_counts = self
            .class_counts
            .map(|sigma| ClassCounts::fit(conditioned.train.labels(), n_classes, sigma, rng, &mut ledger))
            .transpose()?;
        let plan = match &class_counts {
            None => self.plan.clone(),
            Some(counts) => {
                let loss = Loss::PriorAdjustedCrossEntropy { priors: counts.priors() };
                let config = TrainConfig { loss, ..self.plan.config().clone() };
                let paid = paid(self.conditioning.as_ref(), self.class_counts, self.recall.as_ref());
                Plan::new(config, self.plan.facts())?.given(self.plan.conditions().to_vec()).paid(paid)
            }
        };
        as_announced(&ledger, before(self.conditioning.as_ref(), self.class_counts))?;
        Ok(Prepared { plan, records: conditioned, class_counts })
    }

    /// Makes the releases after the training: biases towards equal recall, where they are wanted,
    /// become part of the model.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn finish(
        &self,
        prepared: &Prepared,
        engine: &mut Engine,
        execution: &Execution,
        rng: &mut ChaCha20Rng,
    ) -> anyhow::Result<()> {
        let (Some(config), Some(counts)) = (&self.recall, &prepared.class_counts) else { return Ok(()) };
        let train = &prepared.records.train;
        let logits = engine.evaluate(train, execution.records_at_once())?.logits;
        let mut ledger = Ledger::new(Plan::RELATION);
        let found = RecallBiases::fit(config, &logits, train.labels(), counts, rng, &mut ledger)?;
        as_announced(&ledger, rounds(config))?;
        let parameters = engine.model().parameters();
        let mut values = parameters.to_vec()?;
        // A linear model's parameters end with the biases of its classes.
        let first = values.len().checked_sub(found.biases().len()).context("a model has a bias for each class")?;
        for (value, bias) in values[first..].iter_mut().zip(found.biases()) {
            *value += bias;
        }
        Ok(parameters.set(&values)?)
    }
}

/// What is released before the training, in order.
fn before(conditioning: Option<&ConditioningConfig>, class_counts: Option<NoiseMultiplier>) -> Vec<DpEvent> {
    conditioning.into_iter().flat_map(ConditioningConfig::events).chain(class_counts.map(DpEvent::gaussian)).collect()
}

/// The counts of right answers after it.
fn rounds(config: &RecallBiasesConfig) -> impl Iterator<Item = DpEvent> {
    (0..config.rounds).map(|_| DpEvent::gaussian(config.noise_multiplier))
}

/// Everything that is released beside the training.
fn paid(
    conditioning: Option<&ConditioningConfig>,
    class_counts: Option<NoiseMultiplier>,
    recall: Option<&RecallBiasesConfig>,
) -> Vec<DpEvent> {
    before(conditioning, class_counts).into_iter().chain(recall.into_iter().flat_map(rounds)).collect()
}

fn as_announced(ledger: &Ledger, events: impl IntoIterator<Item = DpEvent>) -> anyhow::Result<()> {
    let mut announced = Ledger::new(Plan::RELATION);
    for event in events {
        announced.record(&event, 1)?;
    }
    ensure!(ledger.digest() == announced.digest(), "what was released differs from what the plan announced");
    Ok(())
}

fn rows(part: &Dataset) -> anyhow::Result<&[f32]> {
    part.features.as_slice().context("features are not contiguous")
}

/// Everything else of a part.
fn without_rows(part: &Dataset) -> Dataset {
    Dataset {
        features: Array2::zeros((0, 0)),
        labels: part.labels.clone(),
        groups: part.groups.clone(),
        feature_names: part.feature_names.clone(),
        class_names: part.class_names.clone(),
        group_names: part.group_names.clone(),
        group_attribute: part.group_attribute.clone(),
    }
}
