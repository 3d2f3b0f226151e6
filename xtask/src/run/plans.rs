//! From an experiment's settings to a checked plan for each of its methods.

use anyhow::Context;
use dp_accounting::{
    Accountant, Calibration, DpEvent, Ledger, NoiseMultiplier, PldAccountant, RdpAccountant, SamplingRate,
};
use dp_clipping::{Coupling, registry};
use dp_train::{BatchPlan, GroupSampling, Plan, PrivacyConfig, PublicFacts, RatesByLoss, TrainConfig};

use super::conditioned::ConditionedPlan;
use super::experiment::{BatchCounting, BatchSize, Experiment, MethodSetting, NON_PRIVATE, Noise};
use super::random_search::SearchPlan;

/// The first epochs of a training.
pub(crate) struct Beginning {
    /// What they are by themselves.
    pub(crate) plan: Plan,
    /// The training.
    pub(crate) whole: Plan,
    /// The experiment that has it.
    pub(crate) experiment: String,
}

impl Beginning {
    /// Everything that decides the result of the training.
    ///
    /// # Errors
    /// If it cannot be serialised.
    pub(crate) fn config_of_whole(&self) -> anyhow::Result<serde_json::Value> {
        config(&self.whole)
    }
}

fn config(plan: &Plan) -> anyhow::Result<serde_json::Value> {
    serde_json::to_value(plan.config()).context("serialising a configuration")
}

/// What is done for one method, checked.
pub(crate) enum Procedure {
    /// One training run.
    Training(Box<Plan>),
    /// The first epochs of one.
    Beginning(Box<Beginning>),
    /// One training run on inputs that are conditioned first.
    Conditioned(Box<ConditionedPlan>),
    /// A search, which is several.
    Search(SearchPlan),
}

impl Procedure {
    /// Everything that decides the result.
    ///
    /// # Errors
    /// If it cannot be serialised.
    pub(crate) fn config(&self) -> anyhow::Result<serde_json::Value> {
        match self {
            Self::Training(plan) => config(plan),
            Self::Beginning(beginning) => config(&beginning.plan),
            Self::Conditioned(conditioned) => conditioned.config(),
            Self::Search(search) => search.config(),
        }
    }

    /// The plan of a run; of a search the first trial's.
    pub(crate) fn plan(&self) -> &Plan {
        match self {
            Self::Training(plan) => plan,
            Self::Beginning(beginning) => &beginning.plan,
            Self::Conditioned(conditioned) => conditioned.plan(),
            Self::Search(search) => search.first_plan(),
        }
    }

    /// Whether its ε is a guarantee.
    pub(crate) fn certified(&self) -> bool {
        match self {
            Self::Training(_) | Self::Beginning(_) | Self::Conditioned(_) => self.plan().certified(),
            Self::Search(search) => search.certified(),
        }
    }

    /// Records that a run will draw, about.
    pub(crate) fn expected_records(&self) -> u64 {
        match self {
            Self::Training(_) | Self::Beginning(_) | Self::Conditioned(_) => {
                (self.plan().expected_batch_size() * self.plan().config().batches.steps as f64) as u64
            }
            Self::Search(search) => search.expected_records() as u64,
        }
    }

    /// About how long a run takes beside others on the same records, in no unit: what it draws,
    /// weighted by what a record costs. FairLens multiplies several times as much as other methods.
    pub(crate) fn expected_work(&self) -> u64 {
        let privacy = self.plan().config().privacy.as_ref();
        let weight = match privacy.map(|privacy| privacy.clipping.coupling) {
            Some(Coupling::Fairlens { .. }) => 6,
            Some(_) => 2,
            None => 1,
        };
        weight * self.expected_records()
    }
}

/// A procedure per method, for records that were shaped by what is `given`.
///
/// # Errors
/// If a plan is refused; the message names experiment and method.
pub(crate) fn procedures(
    experiment: &Experiment,
    facts: PublicFacts,
    given: &[String],
) -> anyhow::Result<Vec<Procedure>> {
    let procedure = |setting: &MethodSetting| match (&setting.search, setting.conditioned) {
        (Some(search), _) => SearchPlan::new(experiment, setting, search, facts, given).map(Procedure::Search),
        (None, Some(goal)) => {
            let plan = ConditionedPlan::new(experiment, setting, goal, facts, given)?;
            Ok(Procedure::Conditioned(Box::new(plan)))
        }
        (None, None) if setting.least_squares => {
            let plan = ConditionedPlan::least_squares(experiment, setting, facts, given)?;
            Ok(Procedure::Conditioned(Box::new(plan)))
        }
        (None, None) => {
            if let Some(adjusted) = setting.adjusted {
                let plan = ConditionedPlan::adjusted(experiment, setting, adjusted, facts, given)?;
                return Ok(Procedure::Conditioned(Box::new(plan)));
            }
            let whole = plan_of(experiment, setting, facts, given, &[])?;
            let Some(begins) = &experiment.begins else { return Ok(Procedure::Training(Box::new(whole))) };
            let batches = batches(experiment, setting, facts, Some(begins.epochs))?;
            let plan = Plan::new(TrainConfig { batches, ..whole.config().clone() }, facts)?.with_conditions(given);
            Ok(Procedure::Beginning(Box::new(Beginning { plan, whole, experiment: begins.experiment.clone() })))
        }
    };
    let named = |setting| procedure(setting).with_context(|| format!("{}: {}", experiment.id, setting.id));
    experiment.methods.iter().map(named).collect()
}

/// The plan of a method that is trained once, beside other releases that are `paid` for within an ε
/// of its own.
///
/// # Errors
/// If it is refused.
pub(crate) fn plan_of(
    experiment: &Experiment,
    setting: &MethodSetting,
    facts: PublicFacts,
    given: &[String],
    paid: &[DpEvent],
) -> anyhow::Result<Plan> {
    let mut batches = batches(experiment, setting, facts, None)?;
    let plan = plan(experiment, setting, batches, facts, paid)?.with_conditions(given);
    if !experiment.matches_dpsgd_budget || plan.count_noise_multipliers().is_empty() {
        return Ok(plan);
    }
    batches.steps = steps_within_dpsgd_budget(experiment, &plan)?;
    Ok(self::plan(experiment, setting, batches, facts, paid)?.with_conditions(given))
}

/// The batches of a method, of all its epochs or of so many.
fn batches(
    experiment: &Experiment,
    setting: &MethodSetting,
    facts: PublicFacts,
    first: Option<u64>,
) -> anyhow::Result<BatchPlan> {
    let batch_plan = match experiment.counting {
        BatchCounting::Exact => BatchPlan::exact,
        BatchCounting::LoaderLength => BatchPlan::loader,
    };
    let (batch_size, epochs) = setting.batches.unwrap_or((experiment.batch_size, experiment.epochs));
    let batch_size = match batch_size {
        BatchSize::Records(records) => records,
        BatchSize::Full => facts.n_records,
    };
    Ok(batch_plan(facts, batch_size, first.unwrap_or(epochs))?)
}

fn plan(
    experiment: &Experiment,
    setting: &MethodSetting,
    batches: BatchPlan,
    facts: PublicFacts,
    paid: &[DpEvent],
) -> anyhow::Result<Plan> {
    let mut config = TrainConfig {
        optimiser: setting.optimiser,
        l2: experiment.l2,
        early_stopping: experiment.early_stopping,
        ..TrainConfig::new(experiment.model.clone(), experiment.loss.clone(), batches, setting.learning_rate)
    };
    if setting.name == NON_PRIVATE {
        return Ok(Plan::new(config, facts)?.with_prior_releases(paid.to_vec()));
    }
    // The methods of a study share settings that some of them do not read.
    let clipping = (registry::find(setting.name)?.preset)(&setting.params);
    config.group_sampling = setting
        .group_rates
        .map(|rates| {
            let rate = |share: &f64| SamplingRate::new(share * batches.sampling_rate.get());
            anyhow::Ok(GroupSampling::new(rates.iter().map(rate).collect::<Result<_, _>>()?))
        })
        .transpose()?;
    config.rates_by_loss = setting
        .limits_of_rates
        .map(|limits| {
            let [least, largest] = limits.map(|share| SamplingRate::new(share * batches.sampling_rate.get()));
            anyhow::Ok(RatesByLoss::new(least?, largest?))
        })
        .transpose()?;
    let with = |noise_multiplier| {
        config.privacy = Some(PrivacyConfig::new(clipping, noise_multiplier, experiment.delta));
        config
    };
    let one = NoiseMultiplier::new(1.0)?;
    let plan = match setting.noise.unwrap_or(experiment.noise) {
        Noise::Multiplier(multiplier) => Plan::new(with(multiplier), facts)?,
        Noise::Within(epsilon) => {
            Plan::calibrated(with(one), facts, epsilon, RdpAccountant::new(Plan::RELATION), None)?
        }
        Noise::WithinByPld(epsilon) => {
            let mut spent = Ledger::new(Plan::RELATION);
            paid.iter().try_for_each(|event| spent.record(event, 1))?;
            Plan::calibrated(with(one), facts, epsilon, PldAccountant::new(Plan::RELATION), Some(&spent))?
        }
    };
    Ok(plan.with_prior_releases(paid.to_vec()))
}

/// The largest number of steps of `plan` whose ε, counts included, is at most that of all steps
/// without counts.
fn steps_within_dpsgd_budget(experiment: &Experiment, plan: &Plan) -> anyhow::Result<u64> {
    let batches = plan.config().batches;
    let privacy = plan.config().privacy.as_ref().context("only a private method makes counts")?;
    let gradient = DpEvent::gaussian(privacy.noise_multiplier).poisson_sampled(batches.sampling_rate);
    let mut dpsgd = RdpAccountant::new(Plan::RELATION);
    dpsgd.compose(&gradient, batches.steps)?;
    let target = dpsgd.epsilon(experiment.delta)?.epsilon;
    let calibration = Calibration::new(Plan::RELATION, target, experiment.delta)?;
    Ok(calibration.steps(plan.step_event())?.min(batches.steps))
}
