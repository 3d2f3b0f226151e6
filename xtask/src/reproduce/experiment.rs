//! A setting of a paper as data: what to train on, what, and how.

use dp_accounting::{Delta, NoiseMultiplier};
use dp_clipping::PresetParams;
use dp_train::{LearningRate, Loss, ModelConfig};

/// The name of the reference every method is compared with.
pub(crate) const NON_PRIVATE: &str = "non-private";

/// How a paper counts batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchCounting {
    /// `q = b/n`, `T = ⌊epochs · n/b⌋`.
    Exact,
    /// `q = 1/⌈n/b⌉`, `T = epochs · ⌈n/b⌉`.
    LoaderLength,
}

/// One setting of one paper.
#[derive(Debug, Clone)]
pub(crate) struct Experiment {
    /// Stable identifier.
    pub(crate) id: &'static str,
    /// For people.
    pub(crate) title: &'static str,
    /// Where this departs from the paper and why, one sentence each.
    pub(crate) departures: Vec<String>,
    /// Architecture.
    pub(crate) model: ModelConfig,
    /// Loss.
    pub(crate) loss: Loss,
    /// Batch size of the paper.
    pub(crate) batch_size: usize,
    /// Epochs to run.
    pub(crate) epochs: u64,
    /// How steps follow from these.
    pub(crate) counting: BatchCounting,
    /// L2 regularisation.
    pub(crate) l2: f64,
    /// Gradient noise of every private method.
    pub(crate) noise_multiplier: NoiseMultiplier,
    /// δ at which ε is stated.
    pub(crate) delta: Delta,
    /// Methods that make counts stop a few steps early, so that their ε does not exceed DPSGD's (Xu 2021, 6.1.3).
    pub(crate) matches_dpsgd_budget: bool,
    /// The methods, the non-private reference first.
    pub(crate) methods: Vec<MethodSetting>,
    /// The published budget.
    pub(crate) published: PublishedBudget,
}

/// A method with the settings the paper gave it.
#[derive(Debug, Clone)]
pub(crate) struct MethodSetting {
    /// Registry name, or [`NON_PRIVATE`].
    pub(crate) name: &'static str,
    /// Step size.
    pub(crate) learning_rate: LearningRate,
    /// Settings of the preset; unused by the reference.
    pub(crate) params: PresetParams,
}

/// How a paper computed the ε it prints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PublishedBudget {
    /// The printed figure.
    pub(crate) epsilon: f64,
    /// Whose accountant.
    pub(crate) accountant: PublishedAccountant,
    /// Sampling rate they used.
    pub(crate) sampling_rate: f64,
    /// Steps they used.
    pub(crate) steps: u64,
}

/// Accountants of the papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublishedAccountant {
    /// Integer orders 2 to 64, classic conversion (Xu).
    Moments,
    /// Opacus: its orders, improved conversion (Esipova).
    Opacus,
}
