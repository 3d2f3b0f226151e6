//! One validated configuration from which the sampler, the clipping method, the noise and the
//! privacy event are all built, so that they cannot disagree.

use std::ops::Range;

use dp_accounting::{
    Accountant, Calibration, DpEvent, Epsilon, Ledger, Mark, NeighbouringRelation, PldAccountant, Scope,
};
use dp_clipping::{Coupling, PublicContext};
use dp_engine::{Blocks, PublicFacts};

use crate::batch_plan::BatchPlan;
use crate::error::{Result, TrainError};
use crate::group_sampling::times;
use crate::own_parts::conditions_of_own_parts;
use crate::ranks::held_by;
use crate::rates_by_loss::RateLevel;
use crate::schedule::warm_up;
use crate::step_event::{check_group_sampling, context, repeated, step_event, with_levels, with_shares};
use crate::train_config::{PrivacyConfig, TrainConfig};

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
