//! Training on privately conditioned inputs, with adjusted logits or without: docs/conditioned-adjusted.md.

use std::num::NonZeroUsize;

use anyhow::{Context, bail, ensure};
use dp_accounting::{DpEvent, Ledger, NoiseMultiplier};
use dp_clipping::{PresetParams, registry};
use dp_data::Dataset;
use dp_train::conditioning::{ClassCounts, Conditioning, ConditioningConfig, GaussianBudget};
use dp_train::{BatchPlan, Device, LearningRate, Loss, OptimiserConfig, Plan, PrivacyConfig, PublicFacts, TrainConfig};
use ndarray::Array2;
use rand_chacha::ChaCha20Rng;

use super::experiment::{Experiment, MethodSetting, Noise};
use super::records::{SeedRecords, to_records};

/// What a model is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Right answers, whichever class they are in.
    Accuracy,
    /// Right answers in every class: noisy class priors go into the loss.
    WorstClass,
}

impl Goal {
    /// Name of the method.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Accuracy => "conditioned",
            Self::WorstClass => "conditioned-adjusted",
        }
    }
}

/// Shares of `μ²`; the gradients take the rest.
const MEAN: f64 = 0.015;
const COVARIANCE: f64 = 0.09;
const COUNTS: f64 = 0.004;
/// Full batches.
const STEPS: u64 = 60;

/// What is released before a training, and how it trains then.
pub(crate) struct ConditionedPlan {
    conditioning: ConditioningConfig,
    class_counts: Option<NoiseMultiplier>,
    plan: Plan,
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
        let Noise::Within(epsilon) = setting.noise.unwrap_or(experiment.noise) else {
            bail!("{}: its noise follows from ε", setting.id);
        };
        let budget = GaussianBudget::new(epsilon, experiment.delta)?;
        let conditioning = ConditioningConfig {
            mean: Some(budget.noise_multiplier(MEAN, 1)?),
            covariance: Some(budget.noise_multiplier(COVARIANCE, 1)?),
            ..ConditioningConfig::default()
        };
        let counts = if goal == Goal::WorstClass { COUNTS } else { 0.0 };
        let class_counts = (counts > 0.0).then(|| budget.noise_multiplier(counts, 1)).transpose()?;
        let gradients = budget.noise_multiplier(1.0 - MEAN - COVARIANCE - counts, STEPS)?;
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
        let paid = events(&conditioning, class_counts);
        Ok(Self { conditioning, class_counts, plan: Plan::new(config, facts)?.given(given).paid(paid) })
    }

    /// The plan of the training, with what was paid before it. The priors, which are not known yet, are not in its loss.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Everything that decides the result.
    ///
    /// # Errors
    /// If it cannot be serialised.
    pub(crate) fn config(&self) -> anyhow::Result<serde_json::Value> {
        let mut config = serde_json::to_value(self.plan.config()).context("serialising a configuration")?;
        config["conditioning"] = serde_json::to_value(self.conditioning).context("serialising a conditioning")?;
        config["class_counts"] = serde_json::to_value(self.class_counts).context("serialising a noise multiplier")?;
        Ok(config)
    }

    /// Makes the releases: the plan with their priors, and the records with their inputs conditioned.
    ///
    /// # Errors
    /// If the rows are not at hand, or the device fails.
    pub(crate) fn prepare(
        &self,
        records: &SeedRecords,
        device: &Device,
        rng: &mut ChaCha20Rng,
    ) -> anyhow::Result<(Plan, SeedRecords)> {
        let split = records.split.as_ref().context("conditioning needs the rows of the records")?;
        let mut ledger = Ledger::new(Plan::RELATION);
        let train = &split.train;
        let rows = rows(train)?;
        // Runs go side by side, each on one thread.
        let threads = NonZeroUsize::MIN;
        let conditioning = Conditioning::fit(&self.conditioning, rows, train.n_inputs(), threads, rng, &mut ledger)?;
        let plan = match self.class_counts {
            None => self.plan.clone(),
            Some(sigma) => {
                let n_classes = train.class_names.len();
                let counts = ClassCounts::fit(&train.labels, n_classes, sigma, rng, &mut ledger)?;
                let loss = Loss::PriorAdjustedCrossEntropy { priors: counts.priors() };
                let config = TrainConfig { loss, ..self.plan.config().clone() };
                let paid = events(&self.conditioning, self.class_counts);
                Plan::new(config, self.plan.facts())?.given(self.plan.conditions().to_vec()).paid(paid)
            }
        };
        let mut announced = Ledger::new(Plan::RELATION);
        for event in events(&self.conditioning, self.class_counts) {
            announced.record(&event, 1)?;
        }
        ensure!(ledger.digest() == announced.digest(), "what was released differs from what the plan announced");
        let transformed = |part: &Dataset| {
            let features = conditioning.apply(self::rows(part)?, threads)?;
            let features = Array2::from_shape_vec(part.features.dim(), features)?;
            to_records(&Dataset { features, ..without_rows(part) }, device)
        };
        let records = SeedRecords {
            train: transformed(train)?,
            test: transformed(&split.test)?,
            validation: split.validation.as_ref().map(transformed).transpose()?,
            split: None,
        };
        Ok((plan, records))
    }
}

/// What is released before the training, in order.
fn events(conditioning: &ConditioningConfig, class_counts: Option<NoiseMultiplier>) -> Vec<DpEvent> {
    conditioning.events().into_iter().chain(class_counts.map(DpEvent::gaussian)).collect()
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
