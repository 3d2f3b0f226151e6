//! Everything that decides a run.

use dp_accounting::{Delta, NoiseMultiplier};
use dp_clipping::ClipConfig;
use dp_engine::{Loss, ModelConfig, OptimiserConfig};
use serde::{Deserialize, Serialize};

use crate::batch_plan::BatchPlan;
use crate::early_stopping::EarlyStopping;
use crate::group_sampling::GroupSampling;
use crate::rates_by_loss::RatesByLoss;
use crate::schedule::LearningRate;

/// The private part of a run's configuration.
///
/// **Guarantee.** With a certified method the parameters of every step, and the thresholds, are (ε,
/// δ)-differentially private when one record is blanked ([`RELATION`](crate::Plan::RELATION)), with the
/// ε that an accountant finds for the plan's [`event`](crate::Plan::event) at `delta`. Initial
/// parameters, [`PublicFacts`](dp_engine::PublicFacts) and everything in the configuration count as
/// public; hyper-parameters chosen on the same data are not accounted for. How the records became
/// numbers is for [`with_conditions`](crate::Plan::with_conditions) to say.
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
