//! The recommended training of a linear model on fixed features.

use dp_accounting::{Delta, DpEvent, Epsilon, Ledger, NoiseMultiplier};
use dp_clipping::{PresetParams, registry};
use dp_engine::{Engine, Loss, ModelConfig, OptimiserConfig, PublicFacts, Records};
use dp_train::{BatchPlan, LearningRate, Plan, PrivacyConfig, TrainConfig};
use rand_chacha::rand_core::CryptoRng;

use crate::budget::GaussianBudget;
use crate::class_counts::ClassCounts;
use crate::conditioning::ConditioningConfig;
use crate::error::{LinearError, Result};
use crate::recall::{RecallBiases, RecallBiasesConfig};

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

/// The purpose of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// Right answers, whichever class they are in.
    Accuracy,
    /// Right answers in every class: noisy class priors go into the loss.
    WorstClass,
    /// The same, and biases towards equal recall found by noisy counts of right answers.
    EqualRecall,
}

/// The releases beside a training. None of them changes the privacy of the training.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Releases {
    /// Mean and covariance of the inputs; `None` where inputs stay as they are.
    pub conditioning: Option<ConditioningConfig>,
    /// Class counts, whose shares go into the loss.
    pub class_counts: Option<NoiseMultiplier>,
    /// Biases towards equal recall, after the training.
    pub recall: Option<RecallBiasesConfig>,
}

impl RecallBiasesConfig {
    /// The recommended search for biases, within this share of a budget.
    ///
    /// # Errors
    /// [`LinearError::InvalidParameter`] for a share out of range.
    pub fn within(budget: GaussianBudget, share: f64) -> Result<Self> {
        Ok(Self {
            rounds: ROUNDS,
            noise_multiplier: budget.noise_multiplier(share, ROUNDS)?,
            step: BIAS_STEP,
            share: BIAS_SHARE,
        })
    }
}

impl Releases {
    /// What a goal releases beside the training of any classifier, on inputs as they are, with the
    /// shares of the budget that [`Recipe::new`] gives.
    ///
    /// # Errors
    /// [`LinearError::Accounting`] for an infinite ε.
    pub fn of_goal(goal: Goal, epsilon: Epsilon, delta: Delta) -> Result<Self> {
        let budget = GaussianBudget::new(epsilon, delta)?;
        let (counts, recall) = shares_of(goal);
        let class_counts = (counts > 0.0).then(|| budget.noise_multiplier(counts, 1)).transpose()?;
        let recall = (recall > 0.0).then(|| RecallBiasesConfig::within(budget, recall)).transpose()?;
        Ok(Self { conditioning: None, class_counts, recall })
    }

    /// The releases before the training, in their order.
    pub fn before(&self) -> Vec<DpEvent> {
        let conditioning = self.conditioning.iter().flat_map(ConditioningConfig::events);
        conditioning.chain(self.class_counts.map(DpEvent::gaussian)).collect()
    }

    /// Everything that is released beside the training, for
    /// [`Plan::with_prior_releases`](dp_train::Plan::with_prior_releases).
    pub fn all(&self) -> Vec<DpEvent> {
        self.before().into_iter().chain(self.recall.iter().flat_map(rounds)).collect()
    }

    /// An error unless a ledger holds what is announced before the training, and nothing else.
    ///
    /// # Errors
    /// [`LinearError::Mismatch`] if it does not.
    pub fn check_before(&self, ledger: &Ledger) -> Result<()> {
        as_announced(ledger, self.before())
    }

    /// Adds biases towards equal recall to a trained classifier, where they are wanted.
    ///
    /// `records_at_once` is how many of the training records are evaluated together.
    ///
    /// # Errors
    /// [`LinearError::Mismatch`] if the model has no bias for each class; the errors of
    /// [`RecallBiases::fit`]; [`LinearError::Train`] if the device fails.
    pub fn equalise(
        &self,
        engine: &mut Engine,
        train: &Records,
        records_at_once: usize,
        counts: Option<&ClassCounts>,
        rng: &mut dyn CryptoRng,
    ) -> Result<()> {
        let (Some(config), Some(counts)) = (&self.recall, counts) else { return Ok(()) };
        let logits = engine.evaluate(train, records_at_once)?.logits;
        let mut ledger = Ledger::new(Plan::RELATION);
        let found = RecallBiases::fit(config, &logits, train.labels(), counts, rng, &mut ledger)?;
        as_announced(&ledger, rounds(config))?;
        let parameters = engine.model().parameters();
        let mut values = parameters.to_vec()?;
        // A classifier's parameters end with the biases of its classes.
        let Some(first) = values.len().checked_sub(found.biases().len()) else {
            return Err(LinearError::mismatch("parameters of a model", "a bias for each class", values.len()));
        };
        for (value, bias) in values[first..].iter_mut().zip(found.biases()) {
            *value += bias;
        }
        Ok(parameters.set(&values)?)
    }
}

/// The recommended settings, none of which looks at a record, within one (ε, δ).
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The releases beside the training.
    pub releases: Releases,
    /// The training, on conditioned inputs. Its loss has no priors yet: see
    /// [`ClassCounts::priors`].
    pub train: TrainConfig,
}

impl Recipe {
    /// Full batches with momentum, on centred and whitened inputs: docs/conditioned-adjusted.md.
    ///
    /// # Errors
    /// [`LinearError::Accounting`] for an infinite ε; [`LinearError::Train`] if a setting is refused.
    pub fn new(goal: Goal, model: ModelConfig, epsilon: Epsilon, delta: Delta, facts: PublicFacts) -> Result<Self> {
        let budget = GaussianBudget::new(epsilon, delta)?;
        let conditioning = ConditioningConfig {
            mean: Some(budget.noise_multiplier(MEAN, 1)?),
            covariance: Some(budget.noise_multiplier(COVARIANCE, 1)?),
            ..ConditioningConfig::default()
        };
        let releases = Releases { conditioning: Some(conditioning), ..Releases::of_goal(goal, epsilon, delta)? };
        let (counts, recall) = shares_of(goal);
        let gradients = budget.noise_multiplier(1.0 - MEAN - COVARIANCE - counts - recall, STEPS)?;
        // A row with its constant: the gradient's bound for a residual of norm 1.
        let sq_row = conditioning.row_norm.powi(2) + 1.0;
        let params = PresetParams { clip_norm: sq_row.sqrt(), ..PresetParams::default() };
        let clipping =
            registry::find("dpsgd").and_then(|dpsgd| dpsgd.config(&params)).map_err(dp_train::TrainError::from)?;
        let n_records = facts.n_records;
        let first = (budget.mu() * n_records as f64).sqrt() / (1.8 * sq_row);
        let train = TrainConfig {
            optimiser: OptimiserConfig::Momentum { momentum: 0.9, nesterov: false },
            privacy: Some(PrivacyConfig::new(clipping, gradients, delta)),
            ..TrainConfig::new(
                model,
                Loss::SoftmaxCrossEntropy,
                BatchPlan::exact(facts, n_records, STEPS)?,
                LearningRate::Cosine { first, last: 0.0 },
            )
        };
        Ok(Self { releases, train })
    }
}

/// What class counts and rounds of right answers have of the budget, for a goal.
fn shares_of(goal: Goal) -> (f64, f64) {
    match goal {
        Goal::Accuracy => (0.0, 0.0),
        Goal::WorstClass => (COUNTS, 0.0),
        Goal::EqualRecall => (COUNTS, RECALL),
    }
}

/// The counts of right answers after a training.
fn rounds(config: &RecallBiasesConfig) -> impl Iterator<Item = DpEvent> + use<> {
    std::iter::repeat_n(DpEvent::gaussian(config.noise_multiplier), config.rounds as usize)
}

fn as_announced(ledger: &Ledger, events: impl IntoIterator<Item = DpEvent>) -> Result<()> {
    let mut announced = Ledger::new(Plan::RELATION);
    for event in events {
        announced.record(&event, 1)?;
    }
    if ledger.digest() == announced.digest() {
        return Ok(());
    }
    Err(LinearError::mismatch("releases beside a training", announced.digest(), ledger.digest()))
}
