//! Training on privately conditioned inputs, with adjusted logits or without:
//! docs/conditioned-adjusted.md.

use std::num::NonZeroUsize;

use anyhow::{Context, bail};
use dp_accounting::{DpEvent, Epsilon, Ledger};
use dp_clipping::{PresetParams, registry};
use dp_data::Dataset;
use dp_linear::conditioning::Conditioning;
use dp_linear::{ClassCounts, Goal, Recipe, Releases};
use dp_train::{
    BatchPlan, Device, Engine, Execution, LearningRate, Loss, Plan, PrivacyConfig, PublicFacts, RandomStream,
    TrainConfig,
};
use ndarray::Array2;

use super::experiment::{Adjusted, Experiment, MethodSetting, Noise};
use super::group_thresholds::GroupThresholds;
use super::least_squares::{self, SecondMoments};
use super::plans::plan_of;
use super::records::{SeedRecords, to_records};
use super::training::Stretch;

/// Name of the method that trains for a goal.
pub(crate) const fn method_of(goal: Goal) -> &'static str {
    match goal {
        Goal::Accuracy => "conditioned",
        Goal::WorstClass => "conditioned-adjusted",
        Goal::EqualRecall => "conditioned-fair",
    }
}

/// Name of DPSGD with noisy class priors in the loss.
pub(crate) const ADJUSTED: &str = "adjusted";

/// The same, with biases towards equal recall.
pub(crate) const ADJUSTED_FAIR: &str = "adjusted-fair";

/// How much of the biases found is used beside a clipping method: a network that saw its records
/// twice is hardly surer of them than of others.
const SHARE: f64 = 1.0;

/// What is released before a training, and how it trains then.
pub(crate) struct ConditionedPlan {
    releases: Releases,
    moments: Option<SecondMoments>,
    thresholds: Option<GroupThresholds>,
    plan: Plan,
}

/// What the releases before a training made.
pub(crate) struct Prepared {
    /// The plan with its priors.
    pub(crate) plan: Plan,
    /// Records with conditioned inputs.
    pub(crate) records: SeedRecords,
    class_counts: Option<ClassCounts>,
    /// A factor of the second moments, where they are released.
    moments: Option<Vec<f64>>,
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
        let (mut epsilon, delta) = (epsilon_of(experiment, setting)?, experiment.delta);
        let thresholds = setting.thresholds(epsilon, delta)?;
        if thresholds.is_some() {
            epsilon = GroupThresholds::epsilon_of_the_rest(epsilon, delta)?;
        }
        let Recipe { releases, train } = Recipe::new(goal, experiment.model.clone(), epsilon, delta, facts)?;
        let paid = all(&releases, thresholds);
        let plan = Plan::new(train, facts)?.with_conditions(given).with_prior_releases(paid);
        Ok(Self { releases, moments: None, thresholds, plan })
    }

    /// A clipping method as the setting has it, on inputs as they are, with what the goal releases:
    /// noisy class priors in the loss, and biases towards equal recall.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub(crate) fn adjusted(
        experiment: &Experiment,
        setting: &MethodSetting,
        Adjusted { clipping, goal }: Adjusted,
        facts: PublicFacts,
        given: &[String],
    ) -> anyhow::Result<Self> {
        let epsilon = epsilon_of(experiment, setting)?;
        let mut releases = Releases::of_goal(goal, epsilon, experiment.delta)?;
        if let Some(recall) = &mut releases.recall {
            recall.share = SHARE;
        }
        let thresholds = setting.thresholds(epsilon, experiment.delta)?;
        let clipping = MethodSetting { name: clipping, ..setting.clone() };
        let plan = plan_of(experiment, &clipping, facts, given, &all(&releases, thresholds))?;
        Ok(Self { releases, moments: None, thresholds, plan })
    }

    /// Least squares on inputs as they are: one gradient at 0, and second moments beside it.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub(crate) fn least_squares(
        experiment: &Experiment,
        setting: &MethodSetting,
        facts: PublicFacts,
        given: &[String],
    ) -> anyhow::Result<Self> {
        let (moments, products) = SecondMoments::within(epsilon_of(experiment, setting)?, experiment.delta)?;
        let params = PresetParams { clip_norm: least_squares::BOUND, ..PresetParams::default() };
        let clipping = registry::find("dpsgd")?.config(&params)?;
        let train = TrainConfig {
            privacy: Some(PrivacyConfig::new(clipping, products, experiment.delta)),
            ..TrainConfig::new(
                experiment.model.clone(),
                experiment.loss.clone(),
                BatchPlan::exact(facts, facts.n_records, 1)?,
                LearningRate::Constant(1.0),
            )
        };
        let plan = Plan::new(train, facts)?.with_conditions(given).with_prior_releases(moments.events());
        Ok(Self { releases: Releases::default(), moments: Some(moments), thresholds: None, plan })
    }

    /// The training on what was prepared. Least squares begins at 0.
    pub(crate) fn stretch<'a>(&self, prepared: &'a Prepared) -> Stretch<'a> {
        Stretch { at_zero: self.moments.is_some(), ..Stretch::from(&prepared.plan) }
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
        let Releases { conditioning, class_counts, recall } = &self.releases;
        let mut config = serde_json::to_value(self.plan.config()).context("serialising a configuration")?;
        if let Some(conditioning) = conditioning {
            config["conditioning"] = serde_json::to_value(conditioning).context("serialising a conditioning")?;
        }
        config["class_counts"] = serde_json::to_value(class_counts).context("serialising a noise multiplier")?;
        if let Some(recall) = recall {
            config["recall_biases"] = serde_json::to_value(recall).context("serialising rounds of counts")?;
        }
        if let Some(moments) = self.moments {
            config["second_moments"] = serde_json::to_value(moments.config()).context("serialising moments")?;
        }
        if let Some(thresholds) = self.thresholds {
            config["group_thresholds"] = serde_json::to_value(thresholds).context("serialising counts of scores")?;
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
        rng: &mut RandomStream,
    ) -> anyhow::Result<Prepared> {
        let mut ledger = Ledger::new(Plan::RELATION);
        // Runs go side by side, each on one thread.
        let threads = NonZeroUsize::MIN;
        let conditioned = match &self.releases.conditioning {
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
            .releases
            .class_counts
            .map(|sigma| ClassCounts::fit(conditioned.train.labels(), n_classes, sigma, rng, &mut ledger))
            .transpose()?;
        let plan = match &class_counts {
            None => self.plan.clone(),
            Some(counts) => {
                let loss = Loss::PriorAdjustedCrossEntropy { priors: counts.priors() };
                let config = TrainConfig { loss, ..self.plan.config().clone() };
                let plan = Plan::new(config, self.plan.facts())?;
                let paid = all(&self.releases, self.thresholds);
                plan.with_conditions(self.plan.conditions().to_vec()).with_prior_releases(paid)
            }
        };
        self.releases.check_before(&ledger)?;
        let moments = self.moments.map(|moments| {
            let split = records.split.as_ref().context("second moments need the rows of the records")?;
            moments.fit(&split.train, rng)
        });
        Ok(Prepared { plan, records: conditioned, class_counts, moments: moments.transpose()? })
    }

    /// Makes the releases after the training, and weights of second moments. Biases towards equal
    /// recall, where they are wanted, become part of the model; thresholds of the groups are returned.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn finish(
        &self,
        prepared: &Prepared,
        engine: &mut Engine,
        execution: &Execution,
        rng: &mut RandomStream,
    ) -> anyhow::Result<Option<Vec<f64>>> {
        let (train, counts) = (&prepared.records.train, prepared.class_counts.as_ref());
        if let Some(factor) = &prepared.moments {
            least_squares::solve(factor, engine)?;
        }
        self.releases.equalise(engine, train, execution.records_at_once(), counts, rng)?;
        self.thresholds.map(|thresholds| thresholds.fit(engine, train, execution, rng)).transpose()
    }
}

/// Everything that is paid beside a training.
fn all(releases: &Releases, thresholds: Option<GroupThresholds>) -> Vec<DpEvent> {
    releases.all().into_iter().chain(thresholds.map(|thresholds| thresholds.event())).collect()
}

fn epsilon_of(experiment: &Experiment, setting: &MethodSetting) -> anyhow::Result<Epsilon> {
    match setting.noise.unwrap_or(experiment.noise) {
        Noise::WithinByPld(epsilon) => Ok(epsilon),
        _ => bail!("{}: its noise follows from ε", setting.id),
    }
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
