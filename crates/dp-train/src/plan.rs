//! One validated configuration from which the sampler, the clipping method, the noise and the
//! privacy event are all built, so that they cannot disagree.

use std::ops::Range;

use dp_accounting::{
    Accountant, Calibration, Delta, DpEvent, Epsilon, Ledger, Mark, NeighbouringRelation, NoiseMultiplier,
    PldAccountant, SamplingRate, Scope,
};
use dp_clipping::{ClipConfig, Coupling, PublicContext, Weights};
use dp_engine::{Blocks, Loss, ModelConfig, OptimiserConfig, PublicFacts};
use serde::{Deserialize, Serialize};

use crate::early_stopping::EarlyStopping;
use crate::error::{Result, TrainError};
use crate::group_sampling::{GroupSampling, times};
use crate::ranks::held_by;
use crate::rates_by_loss::{RateLevel, RatesByLoss};
use crate::schedule::{LearningRate, warm_up};
use crate::trainer::{adds_noise, check_coupling};

/// How often and how many records are drawn.
///
/// **Example**
/// ```
/// use dp_train::{BatchPlan, PublicFacts};
/// // 28,000 records, batches of 256, 20 epochs: Xu's T = ⌊20 · 28,000/256⌋, Opacus's 20 · ⌈28,000/256⌉.
/// let facts = PublicFacts { n_records: 28_000, n_inputs: 40, n_classes: 2, n_groups: 2 };
/// assert_eq!(BatchPlan::exact(facts, 256, 20)?.steps, 2_187);
/// let loader = BatchPlan::loader(facts, 256, 20)?;
/// assert_eq!((loader.steps, loader.sampling_rate.get()), (2_200, 1.0 / 110.0));
/// # Ok::<(), dp_train::TrainError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BatchPlan {
    /// Probability with which each record enters each batch.
    pub sampling_rate: SamplingRate,
    /// Steps of the whole run.
    pub steps: u64,
    /// Epochs the steps are reported in, at most one per step; they change nothing else.
    pub epochs: u64,
    /// The number of records that rate and steps were worked out for, if they were.
    #[serde(skip)]
    n_records: Option<usize>,
}

impl BatchPlan {
    /// Batches at this rate, for data of any size.
    pub fn new(sampling_rate: SamplingRate, steps: u64, epochs: u64) -> Self {
        Self { sampling_rate, steps, epochs, n_records: None }
    }

    /// `q = b/n` and `T = ⌊epochs · n/b⌋`: an epoch is `n` records on average.
    ///
    /// **Source.** Xu 2021, whose ε follows from it. Xu trains on batches of exactly `b`; here `b`
    /// is the expected size.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] if the batch is larger than the data, anything is 0, or there
    /// are more steps than 64 bits count.
    pub fn exact(facts: PublicFacts, batch_size: usize, epochs: u64) -> Result<Self> {
        let n_records = facts.n_records;
        check_sizes(n_records, batch_size, epochs)?;
        let sampling_rate = SamplingRate::new(batch_size as f64 / n_records as f64)?;
        let steps = steps_of(epochs, n_records, batch_size)?;
        Ok(Self { n_records: Some(n_records), ..Self::new(sampling_rate, steps, epochs) })
    }

    /// `q = 1/⌈n/b⌉` and `T = epochs · ⌈n/b⌉`: an epoch is as many batches as a data loader has.
    ///
    /// **Source.** Opacus, and with it Esipova 2023. The expected batch is `q · n`, a little less
    /// than `b` where `b` does not divide `n`.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] if the batch is larger than the data, anything is 0, or there
    /// are more steps than 64 bits count.
    pub fn loader(facts: PublicFacts, batch_size: usize, epochs: u64) -> Result<Self> {
        let n_records = facts.n_records;
        check_sizes(n_records, batch_size, epochs)?;
        let length = n_records.div_ceil(batch_size);
        let steps = steps_of(epochs, length, 1)?;
        let sampling_rate = SamplingRate::new(1.0 / length as f64)?;
        Ok(Self { n_records: Some(n_records), ..Self::new(sampling_rate, steps, epochs) })
    }

    /// The epoch (1-based) that ends with this 0-based step, if one does.
    pub(crate) fn epoch_ending_at(&self, step: u64) -> Option<u64> {
        let epoch_after = |done: u64| (u128::from(done) * u128::from(self.epochs) / u128::from(self.steps)) as u64;
        (epoch_after(step + 1) > epoch_after(step)).then(|| epoch_after(step + 1))
    }
}

/// `⌊epochs · n/b⌋`, for at least one record and one record a batch.
fn steps_of(epochs: u64, n_records: usize, batch_size: usize) -> Result<u64> {
    let (n, b) = (n_records as u128, batch_size as u128);
    u64::try_from(u128::from(epochs) * n / b).map_err(|_| {
        // The most epochs whose steps are at most 2⁶⁴ − 1.
        let most = ((u128::from(u64::MAX) + 1) * b - 1) / n;
        TrainError::invalid("epochs", epochs, format!("at most {most}, whose steps 64 bits can count"))
    })
}

fn check_sizes(n_records: usize, batch_size: usize, epochs: u64) -> Result<()> {
    if n_records == 0 {
        return Err(TrainError::invalid("n_records", n_records, "at least 1"));
    }
    if batch_size == 0 || batch_size > n_records {
        return Err(TrainError::invalid("batch_size", batch_size, format!("1 to {n_records}, the number of records")));
    }
    if epochs == 0 {
        return Err(TrainError::invalid("epochs", epochs, "at least 1"));
    }
    Ok(())
}

/// The private part of a run's configuration.
///
/// **Guarantee.** With a certified method the parameters of every step, and the thresholds, are (ε,
/// δ)-differentially private when one record is blanked ([`Plan::RELATION`]), with the ε that an
/// accountant finds for [`Plan::event`] at `delta`. Initial parameters, [`PublicFacts`] and
/// everything in the configuration count as public; hyper-parameters chosen on the same data are
/// not accounted for. How the records became numbers is for [`Plan::with_conditions`] to say.
///
/// **Example**
/// ```
/// use dp_train::PrivacyConfig;
/// use dp_train::dp_accounting::{Delta, NoiseMultiplier};
/// use dp_train::dp_clipping::registry;
/// let clipping = registry::find("dpsgd-f")?.default_config();
/// let privacy = PrivacyConfig {
///     require_guarantee: true,
///     ..PrivacyConfig::new(clipping, NoiseMultiplier::new(1.0)?, Delta::new(1e-5)?)
/// };
/// assert!(privacy.clipping.certified());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyConfig {
    /// How per-sample gradients are bounded.
    pub clipping: ClipConfig,
    /// Noise of the gradient sum: standard deviation over its sensitivity, the bound that the
    /// method states for the step. The analyses of one error of clipping (`magnitude-only`,
    /// `direction-only`) add none, and their event says so.
    pub noise_multiplier: NoiseMultiplier,
    /// The δ at which ε is stated; below 1/n, unless `allow_large_delta`.
    pub delta: Delta,
    /// Accepts a δ of 1/n and more, although a mechanism that publishes one record at random would
    /// pass it.
    #[serde(default)]
    pub allow_large_delta: bool,
    /// Refuses a method whose ε would be nominal.
    #[serde(default)]
    pub require_guarantee: bool,
}

impl PrivacyConfig {
    /// Without the two switches.
    pub fn new(clipping: ClipConfig, noise_multiplier: NoiseMultiplier, delta: Delta) -> Self {
        Self { clipping, noise_multiplier, delta, allow_large_delta: false, require_guarantee: false }
    }
}

/// Everything that decides a run's result and its privacy. What only changes its speed is in
/// [`Execution`](crate::Execution).
///
/// **Example**
/// ```
/// use dp_train::{BatchPlan, LearningRate, Loss, ModelConfig, OptimiserConfig, PublicFacts, TrainConfig};
/// let facts = PublicFacts { n_records: 1_000, n_inputs: 4, n_classes: 3, n_groups: 1 };
/// let (batches, rate) = (BatchPlan::exact(facts, 100, 2)?, LearningRate::Constant(0.1));
/// let config = TrainConfig {
///     optimiser: OptimiserConfig::Momentum { momentum: 0.9, nesterov: false },
///     ..TrainConfig::new(ModelConfig::LogisticRegression, Loss::SoftmaxCrossEntropy, batches, rate)
/// };
/// assert!(config.privacy.is_none() && config.batches.steps == 20);
/// # Ok::<(), dp_train::TrainError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Architecture.
    pub model: ModelConfig,
    /// Loss.
    pub loss: Loss,
    /// Batches.
    pub batches: BatchPlan,
    /// Records of a block, 1 to `n`. A block holds consecutive records, which are drawn and summed
    /// together. By default it is so large that about 128 of its records are drawn, or half of a
    /// smaller batch. The size decides, like a seed, which of equally private results comes out,
    /// and changes the noise by about a thousandth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_records: Option<usize>,
    /// Rates of the groups, the largest of which is that of `batches`; all the same unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_sampling: Option<GroupSampling>,
    /// Limits of rates that follow the losses of groups, in the place of `group_sampling`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates_by_loss: Option<RatesByLoss>,
    /// Step size.
    pub learning_rate: LearningRate,
    /// Steps over which the rate rises linearly to that of the schedule; 0 for none.
    #[serde(default)]
    pub warm_up_steps: u64,
    /// The optimiser, which receives the private gradient.
    #[serde(default)]
    pub optimiser: OptimiserConfig,
    /// L2 regularisation λ: adds `λ w` to the (already private) mean gradient of every weight;
    /// biases are left alone. It does not depend on the data, hence costs no privacy and is not
    /// clipped.
    #[serde(default)]
    pub l2: f64,
    /// Stops before the last step when validation no longer improves.
    #[serde(default)]
    pub early_stopping: Option<EarlyStopping>,
    /// `None` trains without clipping, noise or guarantee.
    #[serde(default)]
    pub privacy: Option<PrivacyConfig>,
}

impl TrainConfig {
    /// Plain stochastic gradient descent for all steps: no regularisation, no warm-up, no privacy.
    pub fn new(model: ModelConfig, loss: Loss, batches: BatchPlan, learning_rate: LearningRate) -> Self {
        Self {
            model,
            loss,
            batches,
            block_records: None,
            group_sampling: None,
            rates_by_loss: None,
            learning_rate,
            warm_up_steps: 0,
            optimiser: OptimiserConfig::default(),
            l2: 0.0,
            early_stopping: None,
            privacy: None,
        }
    }
}

/// A configuration that was checked against the data's public facts: sampler, clipping, noise and
/// event of a run in one.
///
/// **Example**
/// ```
/// use dp_accounting::{Delta, NoiseMultiplier};
/// use dp_clipping::{PresetParams, registry};
/// use dp_train::{BatchPlan, LearningRate, Loss, ModelConfig, Plan, PrivacyConfig, PublicFacts, TrainConfig};
///
/// let clipping = registry::find("dpsgd-global-adapt")?.default_config();
/// let facts = PublicFacts { n_records: 10_000, n_inputs: 40, n_classes: 2, n_groups: 2 };
/// let batches = BatchPlan::exact(facts, 250, 4)?;
/// let config = TrainConfig {
///     l2: 0.01,
///     privacy: Some(PrivacyConfig::new(clipping, NoiseMultiplier::new(1.0)?, Delta::new(1e-6)?)),
///     ..TrainConfig::new(ModelConfig::LogisticRegression, Loss::BceWithLogits, batches, LearningRate::InverseSqrtSteps)
/// };
/// let plan = Plan::new(config, facts)?;
/// assert_eq!(plan.expected_batch_size(), 250.0);
/// // Gradient and count of a step are one sampled query.
/// assert_eq!(plan.count_noise_multipliers(), [10.0]);
/// assert_eq!(
///     plan.step_event().to_string(),
///     "Poisson-sampled (rate 0.025) joint Gaussian (noise multipliers 1, 10)"
/// );
/// assert!(plan.certified());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Plan {
    config: TrainConfig,
    facts: PublicFacts,
    context: PublicContext,
    event: DpEvent,
    conditions: Vec<String>,
    prior_releases: Vec<DpEvent>,
}

impl Plan {
    /// The neighbours of the guarantee: data sets in which one record is blanked. A blanked record
    /// keeps its number and adds 0 to every sum and count, so the number of records is public;
    /// steps, rate and divisor are computed from it.
    pub const RELATION: NeighbouringRelation = NeighbouringRelation::ZeroOut;

    /// Checks the configuration and derives the event of a step from it.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the batches were planned for another number of records;
    /// [`TrainError::InvalidParameter`] if a setting is out of range, if δ is 1/n or more (such a δ
    /// allows a mechanism that publishes a random record) and not allowed, if a guarantee is
    /// required of a method that has none, or if FairLens is asked for with what it is not defined
    /// for; [`TrainError::Clipping`] and [`TrainError::Accounting`] if the method's parameters or
    /// the noise of its counts are out of range.
    pub fn new(mut config: TrainConfig, facts: PublicFacts) -> Result<Self> {
        let rate = config.batches.sampling_rate;
        if facts.n_records == 0 {
            return Err(TrainError::invalid("n_records", 0, "at least 1"));
        }
        if let Some(n_records) = config.batches.n_records.filter(|&n_records| n_records != facts.n_records) {
            return Err(TrainError::mismatch("records that the batches were planned for", facts.n_records, n_records));
        }
        if config.batches.steps == 0 {
            return Err(TrainError::invalid("batches.steps", 0, "at least 1"));
        }
        if config.batches.epochs == 0 || config.batches.epochs > config.batches.steps {
            let expected = format!("1 to {}, the number of steps", config.batches.steps);
            return Err(TrainError::invalid("batches.epochs", config.batches.epochs, expected));
        }
        if let Some(block) = config.block_records.filter(|block| !(1..=facts.n_records).contains(block)) {
            let expected = format!("1 to {}, the number of records", facts.n_records);
            return Err(TrainError::invalid("batches.block_records", block, expected));
        }
        config.learning_rate.validate()?;
        config.optimiser.validate()?;
        if !(config.l2.is_finite() && config.l2 >= 0.0) {
            return Err(TrainError::invalid("l2", config.l2, "a finite number of at least 0"));
        }
        if let Some(early_stopping) = &config.early_stopping {
            early_stopping.validate()?;
        }
        config.loss.check_weights()?;
        if config.loss.n_logits(facts.n_classes).is_none() {
            let expected = format!("a loss for {} classes", facts.n_classes);
            return Err(TrainError::invalid("loss", format!("{:?}", config.loss), expected));
        }
        check_group_sampling(&config, facts)?;
        config.group_sampling = with_shares(&config, facts, &PldAccountant::new(Self::RELATION))?;
        config.rates_by_loss = with_levels(&config, facts)?;
        let event = match &config.privacy {
            None => DpEvent::NonPrivate,
            Some(privacy) => step_event(privacy, &config, facts)?,
        };
        let context = context(config.privacy.as_ref(), rate, facts);
        let given = config.early_stopping.map(|_| "the validation records that decide when to stop".to_owned());
        let conditions = given.into_iter().chain(conditions_of_own_parts(&config)).collect();
        Ok(Self { config, facts, context, event, conditions, prior_releases: Vec::new() })
    }

    /// The plan of a configuration with the least noise that keeps the whole run, counts included,
    /// within a target ε at the δ of its `privacy`, after what a ledger has `spent` of it. The
    /// noise multiplier that `privacy` has is not looked at.
    ///
    /// **Edge cases.** A method without noise, or counts whose noise would be out of range, meet no
    /// target.
    ///
    /// **Example**
    /// ```
    /// use dp_accounting::{Accountant, Delta, Epsilon, NoiseMultiplier, PldAccountant};
    /// use dp_clipping::{PresetParams, registry};
    /// use dp_train::{BatchPlan, LearningRate, Loss, ModelConfig, Plan, PrivacyConfig, PublicFacts, TrainConfig};
    ///
    /// let clipping = registry::find("dpsgd")?.default_config();
    /// let privacy = PrivacyConfig::new(clipping, NoiseMultiplier::new(1.0)?, Delta::new(1e-5)?);
    /// let facts = PublicFacts { n_records: 10_000, n_inputs: 40, n_classes: 2, n_groups: 2 };
    /// let batches = BatchPlan::exact(facts, 250, 20)?;
    /// let config = TrainConfig {
    ///     privacy: Some(privacy),
    ///     ..TrainConfig::new(ModelConfig::LogisticRegression, Loss::BceWithLogits, batches, LearningRate::Constant(0.1))
    /// };
    /// let plan = Plan::calibrated(config, facts, Epsilon::new(2.0)?, PldAccountant::new(Plan::RELATION), None)?;
    /// let mut accountant = PldAccountant::new(Plan::RELATION);
    /// accountant.compose(&plan.event(), 1)?;
    /// let epsilon = accountant.epsilon(Delta::new(1e-5)?)?.epsilon.get();
    /// assert!((1.99..=2.0).contains(&epsilon), "{epsilon}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] without `privacy`; [`TrainError::Accounting`] if no noise
    /// meets the target; the errors of [`Self::new`].
    pub fn calibrated<A: Accountant + Clone>(
        mut config: TrainConfig,
        facts: PublicFacts,
        target: Epsilon,
        mut accountant: A,
        spent: Option<&Ledger>,
    ) -> Result<Self> {
        let Some(privacy) = config.privacy.take() else {
            return Err(TrainError::invalid("privacy", "none", "a method whose noise is to be found"));
        };
        let BatchPlan { sampling_rate, steps, .. } = config.batches;
        let with = |noise_multiplier| PrivacyConfig { noise_multiplier, ..privacy.clone() };
        check_group_sampling(&TrainConfig { privacy: Some(privacy.clone()), ..config.clone() }, facts)?;
        let planned = config.clone();
        let event = |noise_multiplier| -> Result<DpEvent> {
            let privacy = with(noise_multiplier);
            let context = context(Some(&privacy), sampling_rate, facts);
            match (&planned.group_sampling, &planned.rates_by_loss) {
                // Other groups get the shares that cost as much.
                (Some(sampling), _) if sampling.wants_shares(&privacy.clipping) => {
                    sampling.least_drawn(&privacy.clipping, &context, steps)
                }
                // So do other levels.
                (_, Some(limits)) if limits.levels.is_none() => {
                    let (order, divergence) = limits.budget(&privacy.clipping, &context, steps, privacy.delta)?;
                    Ok(DpEvent::RenyiAtOrder { order, divergence }.repeated(steps))
                }
                _ => Ok(repeated(&step_event(&privacy, &planned, facts)?, steps)),
            }
        };
        // Refuses what has no event, with its reason, before noise is searched for.
        step_event(&privacy, &TrainConfig { group_sampling: None, rates_by_loss: None, ..config.clone() }, facts)?;
        event(privacy.noise_multiplier)?;
        if let Some(ledger) = spent {
            ledger.compose_into(&mut accountant)?;
        }
        let calibration = Calibration::of_remaining_budget(accountant.clone(), target, privacy.delta)?;
        let noise_multiplier =
            calibration.noise_multiplier(|noise_multiplier| event(noise_multiplier).unwrap_or(DpEvent::NonPrivate))?;
        config.privacy = Some(with(noise_multiplier));
        config.group_sampling = with_shares(&config, facts, &accountant)?;
        Self::new(config, facts)
    }

    /// The same plan for records that were shaped by constants taken from the records themselves,
    /// one phrase each, for example `the scaling, which was fitted on the private records`. The
    /// guarantee is then conditional on these constants and on earlier ones.
    #[must_use]
    pub fn with_conditions(mut self, constants: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.conditions.extend(constants.into_iter().map(Into::into));
        self
    }

    /// The configuration.
    pub fn config(&self) -> &TrainConfig {
        &self.config
    }

    /// The data's public facts.
    pub fn facts(&self) -> PublicFacts {
        self.facts
    }

    /// The public facts that the clipping method may use.
    pub fn context(&self) -> &PublicContext {
        &self.context
    }

    /// Conditions of the guarantee; see [`Self::with_conditions`].
    pub fn conditions(&self) -> &[String] {
        &self.conditions
    }

    /// The same plan for records that were shaped by constants released with noise: their events
    /// are in the ledger of every run, before its first step and after the events of earlier calls.
    #[must_use]
    pub fn with_prior_releases(mut self, events: impl IntoIterator<Item = DpEvent>) -> Self {
        self.prior_releases.extend(events);
        self
    }

    /// The ledger of a run after this many steps.
    ///
    /// # Errors
    /// [`TrainError::Accounting`] if there are more steps than a ledger counts.
    pub fn ledger(&self, steps: u64) -> Result<Ledger> {
        let mut ledger = Ledger::new(Self::RELATION);
        self.prior_releases.iter().try_for_each(|event| ledger.record(event, 1))?;
        if steps > 0 {
            ledger.record(&repeated(&self.event, steps), 1)?;
        }
        Ok(ledger)
    }

    /// The releases of one step. They are fixed before training and do not depend on the data. Where
    /// groups have rates of their own, a record meets the alternative of its group, in every step the
    /// same.
    pub fn step_event(&self) -> &DpEvent {
        &self.event
    }

    /// The releases of the whole run, including the ones before training
    /// ([`Self::with_prior_releases`]).
    pub fn event(&self) -> DpEvent {
        let steps = repeated(&self.event, self.config.batches.steps);
        if self.prior_releases.is_empty() {
            steps
        } else {
            DpEvent::Composed([self.prior_releases.as_slice(), &[steps]].concat())
        }
    }

    /// What the whole run releases about a record of each group, earlier releases included, where
    /// groups have rates of their own.
    pub fn events_by_group(&self) -> Option<Vec<DpEvent>> {
        let DpEvent::OneOf(of_groups) = &self.event else { return None };
        let steps = |event: &DpEvent| times(event.clone(), self.config.batches.steps);
        let with_prior = |event| DpEvent::Composed([self.prior_releases.as_slice(), &[steps(event)]].concat());
        Some(of_groups.iter().map(with_prior).collect())
    }

    /// Rate and share of the bound of each group, `[n_groups]`, where groups have rates of their own.
    /// Rates that follow losses are those at these weights, which the method carries from step to step;
    /// at the first step, and without `weights`, all are 1.
    pub fn rates_at(&self, weights: Option<&[f64]>) -> Option<Vec<RateLevel>> {
        if let Some(sampling) = &self.config.group_sampling {
            let level = |(&rate, share)| RateLevel { rate, share };
            return Some(sampling.rates.iter().zip(sampling.all_shares()).map(level).collect());
        }
        let limits = self.config.rates_by_loss.as_ref()?;
        Some(weights.map_or_else(|| limits.at(&vec![1.0; self.facts.n_groups]), |weights| limits.at(weights)))
    }

    /// The learning rate of a 0-based step, warm-up included.
    pub fn learning_rate(&self, step: u64) -> f64 {
        self.config.learning_rate.at(step, self.config.batches.steps) * warm_up(step, self.config.warm_up_steps)
    }

    /// Expected number of records in a batch, `q · n`: the public constant that sums are divided
    /// by.
    pub fn expected_batch_size(&self) -> f64 {
        self.context.expected_batch_size
    }

    /// The blocks that batches are drawn and summed in.
    pub(crate) fn blocks(&self) -> Blocks {
        Blocks::new(self.facts.n_records, self.config.batches.sampling_rate.get(), self.config.block_records)
    }

    /// The records that one of `size` ranks holds ([`ranks`](crate::ranks)): whole blocks, as even
    /// as they go.
    pub fn held_by(&self, rank: usize, size: usize) -> Range<usize> {
        let TrainConfig { batches, block_records, .. } = &self.config;
        held_by(rank, size, self.facts.n_records, batches.sampling_rate, *block_records)
    }

    /// Noise multipliers of the count queries of a step, besides the gradient's; empty for methods
    /// without counts.
    pub fn count_noise_multipliers(&self) -> Vec<f64> {
        self.config.privacy.as_ref().map_or_else(Vec::new, |p| p.clipping.count_noise_multipliers(&self.context))
    }

    /// How the records of a batch act on each other: not at all without privacy.
    pub(crate) fn coupling(&self) -> Coupling {
        self.config.privacy.as_ref().map_or(Coupling::None, |privacy| privacy.clipping.coupling)
    }

    /// The scope of a [`Statement`](dp_accounting::Statement) about a run of this plan: covered and
    /// omitted outputs, the making of the noise, and conditions. The statement's author adds the
    /// facts that only they know. `None` without a guarantee. For a run, use
    /// [`Trainer::scope`](crate::Trainer::scope).
    ///
    /// `is_private`: whether the run's streams are
    /// ([`RandomStreams::is_private`](crate::RandomStreams::is_private)). The scope of a seeded run
    /// says that it is not private, and is conditional on the secrecy of its seed.
    pub fn scope(&self, unit_of_privacy: &str, is_private: bool) -> Option<Scope> {
        if !self.certified() {
            return None;
        }
        let mut covered = vec![
            "the parameters after every step (Gaussian noise rounded exactly to a public grid, which closes the attacks on \
             floating-point noise)"
                .to_owned(),
        ];
        if self.config.privacy.as_ref().is_some_and(|privacy| privacy.clipping.needs_losses()) {
            covered.push(
                "the noisy counts and sums of losses by group, rounded to a grid alike, and the weights that follow from them"
                    .to_owned(),
            );
        } else if !self.count_noise_multipliers().is_empty() {
            covered
                .push("the noisy counts, rounded to a grid alike, and the thresholds that follow from them".to_owned());
        }
        if self.config.group_sampling.is_some() {
            covered
                .push("which groups are drawn at which rates: a record meets the alternative of its group".to_owned());
        }
        if self.config.rates_by_loss.is_some() {
            let rates = "which groups are drawn at which rates: these follow from the noisy losses of earlier steps, and cost the same \
                         at every step";
            covered.push(rates.to_owned());
        }
        let not_covered = vec!["running time and memory".to_owned()];
        let seed = (!is_private).then(|| NOT_PRIVATE.to_owned());
        let conditions = seed.into_iter().chain(self.conditions.iter().cloned()).collect();
        let n_records = Some(self.facts.n_records as u64);
        Some(Scope { not_covered, conditions, n_records, ..Scope::of(unit_of_privacy, covered) })
    }

    /// Whether the clipping method has a proof: false without privacy. What the guarantee is worth
    /// is [`Self::mark`].
    pub fn certified(&self) -> bool {
        self.config.privacy.as_ref().is_some_and(|privacy| privacy.clipping.certified())
    }

    /// The mark of an ε of a run of this plan; `None` without privacy. `is_private` is as in
    /// [`Self::scope`]: a seeded run is never certified.
    pub fn mark(&self, is_private: bool) -> Option<Mark> {
        self.config.privacy.as_ref()?;
        Some(match (self.certified(), self.conditions.is_empty() && is_private) {
            (false, _) => Mark::Nominal,
            (true, false) => Mark::Conditional,
            (true, true) => Mark::Certified,
        })
    }
}

/// The condition of a seeded run's guarantee.
const NOT_PRIVATE: &str = "the secrecy of the seed that batches and noise follow from: this run is not private, because whoever \
                           knows the seed can take the noise off";

/// The condition that a part of a method from outside of `dp-clipping` puts on a guarantee: one phrase
/// each ([`ClipConfig::own_parts`]). The cap on every scale, and the form of counts, hold its bound.
///
/// ```
/// use dp_clipping::registry;
/// use dp_train::conditions_of_own_method;
/// assert!(conditions_of_own_method(&registry::find("dpsgd")?.default_config()).is_empty());
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
pub fn conditions_of_own_method(clipping: &ClipConfig) -> Vec<String> {
    let condition = |name| {
        format!(
            "the part `{name}` of the method, which is the user's own: it must be a function of what it is given, without a \
             memory (its bound is held by the cap on every scale, not by a proof of the part)"
        )
    };
    clipping.own_parts().into_iter().map(condition).collect()
}

/// The conditions that all parts of one's own put on the guarantee of a run.
fn conditions_of_own_parts(config: &TrainConfig) -> Vec<String> {
    let condition = |what: String| {
        format!(
            "the {what}, which is the user's own: it must be a function of one record and the parameters, without a memory (what \
             it adds is formed and measured record by record)"
        )
    };
    let method = config.privacy.iter().flat_map(|privacy| conditions_of_own_method(&privacy.clipping));
    let layers = config.model.own_layers().into_iter().map(|name| format!("layer `{name}`"));
    let loss = if let Loss::Own { loss } = &config.loss { Some(format!("loss `{loss}`")) } else { None };
    method.chain(layers.chain(loss).map(condition)).collect()
}

fn context(privacy: Option<&PrivacyConfig>, rate: SamplingRate, facts: PublicFacts) -> PublicContext {
    PublicContext {
        n_groups: facts.n_groups,
        expected_batch_size: rate.get() * facts.n_records as f64,
        noise_multiplier: privacy.map_or(0.0, |privacy| privacy.noise_multiplier.get()),
    }
}

/// An event of one step, as often: a record that meets one of several alternatives meets the same
/// every time.
fn repeated(step: &DpEvent, steps: u64) -> DpEvent {
    match step {
        DpEvent::OneOf(of_groups) => {
            DpEvent::OneOf(of_groups.iter().map(|event| times(event.clone(), steps)).collect())
        }
        step => step.clone().repeated(steps),
    }
}

/// Refuses rates by group that cannot be, or cannot be accounted for.
fn check_group_sampling(config: &TrainConfig, facts: PublicFacts) -> Result<()> {
    let follows_losses =
        config.privacy.as_ref().is_some_and(|privacy| matches!(privacy.clipping.weights, Weights::RatesByLoss { .. }));
    let largest = match (&config.group_sampling, &config.rates_by_loss) {
        (None, None) => return Ok(()),
        (Some(_), Some(_)) => {
            return Err(TrainError::invalid("batches.sampling", "by group and by loss", "one of the two"));
        }
        (Some(_), None) if follows_losses => {
            let expected = "by loss, which the weights `rates-by-loss` of the method are for";
            return Err(TrainError::invalid("batches.sampling", "by group", expected));
        }
        (Some(sampling), None) => {
            sampling.validate(facts.n_groups)?;
            sampling.largest_rate()
        }
        (None, Some(limits)) => {
            limits.validate()?;
            if config.privacy.is_some() && !follows_losses {
                let expected = "by group, or a method with the weights `rates-by-loss`, such as asc-by-loss";
                return Err(TrainError::invalid("batches.sampling", "by loss", expected));
            }
            limits.largest.get()
        }
    };
    let rate = config.batches.sampling_rate.get();
    if largest.to_bits() != rate.to_bits() {
        let expected = format!("{largest}, the largest rate of a group");
        return Err(TrainError::invalid("batches.sampling_rate", rate, expected));
    }
    match &config.privacy {
        Some(privacy) if privacy.clipping.certified() => Ok(()),
        Some(_) => Err(TrainError::invalid(
            "batches.sampling",
            "by group",
            "none: records influence each other's gradients, and no rate could be accounted for",
        )),
        None => Err(TrainError::invalid("batches.sampling", "by group", "none without privacy")),
    }
}

/// The rates of the groups with a share for each.
fn with_shares(
    config: &TrainConfig,
    facts: PublicFacts,
    spent: &(impl Accountant + Clone),
) -> Result<Option<GroupSampling>> {
    let (Some(sampling), Some(privacy)) = (config.group_sampling.clone(), &config.privacy) else {
        return Ok(config.group_sampling.clone());
    };
    if !sampling.wants_shares(&privacy.clipping) {
        let shares = Some(sampling.all_shares());
        return Ok(Some(GroupSampling { shares, ..sampling }));
    }
    let BatchPlan { sampling_rate, steps, .. } = config.batches;
    let context = context(Some(privacy), sampling_rate, facts);
    let found = sampling.with_equal_epsilon(&privacy.clipping, &context, steps, spent, privacy.delta)?;
    Ok(Some(found))
}

/// The limits of rates with levels between them.
fn with_levels(config: &TrainConfig, facts: PublicFacts) -> Result<Option<RatesByLoss>> {
    let limits = config.rates_by_loss.clone();
    let Some(privacy) = &config.privacy else { return Ok(limits) };
    let BatchPlan { sampling_rate, steps, .. } = config.batches;
    let context = context(Some(privacy), sampling_rate, facts);
    let found = |limits: RatesByLoss| match limits.levels {
        Some(_) => Ok(limits),
        None => limits.with_levels(&privacy.clipping, &context, steps, privacy.delta),
    };
    limits.map(found).transpose()
}

/// The event of one step; `config` says how batches are drawn.
fn step_event(privacy: &PrivacyConfig, config: &TrainConfig, facts: PublicFacts) -> Result<DpEvent> {
    let rate = config.batches.sampling_rate;
    let limit = 1.0 / facts.n_records as f64;
    if privacy.delta.get() >= limit && !privacy.allow_large_delta {
        let expected = format!("less than 1/n = {limit:.3e}");
        return Err(TrainError::invalid("privacy.delta", privacy.delta.get(), expected));
    }
    if privacy.require_guarantee && !privacy.clipping.certified() {
        let coupling = format!("{:?}", privacy.clipping.coupling);
        let expected =
            "None: a guarantee is required, and there is none where records influence each other's gradients";
        return Err(TrainError::invalid("privacy.clipping.coupling", coupling, expected));
    }
    let context = context(Some(privacy), rate, facts);
    check_coupling(&privacy.clipping, facts.n_classes)?;
    // Refuses parameters out of range before there is a run.
    privacy.clipping.build(&context)?;
    if !adds_noise(privacy.clipping.coupling) {
        return Ok(DpEvent::NonPrivate);
    }
    if let Some(sampling) = &config.group_sampling {
        return sampling.event(&privacy.clipping, &context, 1);
    }
    if let Some(limits) = &config.rates_by_loss {
        return limits.event(&privacy.clipping, &context);
    }
    Ok(step_query(&privacy.clipping, privacy.noise_multiplier, &context, 1)?.poisson_sampled(rate))
}

/// The releases of one step about a drawn unit of privacy: the clipped gradient and the method's
/// counts, which see the same batch and so are one Gaussian (Zhao 2025, Lemma 3.1 and Theorem 3.2).
///
/// `noise_multiplier` is the gradient's, over what a unit of `records_per_unit` records can change,
/// which is as many times what one can; the `context`'s noise multiplier is replaced by the one
/// that a run must have for it, `noise_multiplier · records_per_unit`.
///
/// # Errors
/// [`TrainError::Accounting`] if the noise of a count is out of range.
pub fn step_query(
    clipping: &ClipConfig,
    noise_multiplier: NoiseMultiplier,
    context: &PublicContext,
    records_per_unit: u64,
) -> Result<DpEvent> {
    let units = records_per_unit as f64;
    let context = PublicContext { noise_multiplier: noise_multiplier.get() * units, ..*context };
    let mut multipliers = vec![noise_multiplier];
    for multiplier in clipping.count_noise_multipliers(&context) {
        multipliers.push(NoiseMultiplier::new(multiplier / units)?);
    }
    Ok(match multipliers[..] {
        [gradient] => DpEvent::gaussian(gradient),
        _ => DpEvent::joint_gaussian(multipliers),
    })
}
