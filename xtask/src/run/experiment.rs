//! A setting of a paper as data: what to train on, what, and how.

use dp_accounting::{Delta, Epsilon, NoiseMultiplier};
use dp_clipping::PresetParams;
use dp_linear::Goal;
use dp_train::{EarlyStopping, LearningRate, Loss, ModelConfig, OptimiserConfig};
use run_records::Coordinate;

use super::data_setting::DataSetting;
use super::group_thresholds::GroupThresholds;
use super::random_search::RandomSearch;

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
    pub(crate) id: String,
    /// For people.
    pub(crate) title: String,
    /// Where this departs from the paper and why, one sentence each.
    pub(crate) departures: Vec<String>,
    /// Records, and the part of them that models are evaluated on.
    pub(crate) data: DataSetting,
    /// Runs per method unless the command line says otherwise.
    pub(crate) seeds: u32,
    /// Its methods are the points of a search: [`Self::seeds`] holds whatever the command line says.
    pub(crate) is_search: bool,
    /// Architecture.
    pub(crate) model: ModelConfig,
    /// Loss.
    pub(crate) loss: Loss,
    /// Batch size of the paper.
    pub(crate) batch_size: BatchSize,
    /// Epochs to run.
    pub(crate) epochs: u64,
    /// Its runs are the first epochs of those of another experiment, which has all of
    /// [`Self::epochs`].
    pub(crate) begins: Option<Begins>,
    /// How steps follow from these.
    pub(crate) counting: BatchCounting,
    /// When a run stops before its last epoch; needs validation records.
    pub(crate) early_stopping: Option<EarlyStopping>,
    /// L2 regularisation.
    pub(crate) l2: f64,
    /// Gradient noise of every private method that has none of its own.
    pub(crate) noise: Noise,
    /// δ at which ε is stated.
    pub(crate) delta: Delta,
    /// Methods that make counts stop a few steps early, so that their ε does not exceed DPSGD's (Xu
    /// 2021, 6.1.3).
    pub(crate) matches_dpsgd_budget: bool,
    /// The methods, the non-private reference first.
    pub(crate) methods: Vec<MethodSetting>,
    /// The published budget, if the paper states how it came by its ε.
    pub(crate) published: Option<PublishedBudget>,
}

/// The first epochs of another experiment's runs: their noise and their random streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Begins {
    /// The other experiment.
    pub(crate) experiment: String,
    /// How many epochs.
    pub(crate) epochs: u64,
}

/// Records in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchSize {
    /// So many, on average.
    Records(usize),
    /// All of them in every batch.
    Full,
}

/// How much noise a method adds to the gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Noise {
    /// This noise multiplier.
    Multiplier(NoiseMultiplier),
    /// The smallest noise multiplier that keeps the run, its counts included, within this ε (RDP,
    /// improved conversion), as in the papers.
    Within(Epsilon),
    /// The same by the PLD accountant, which wastes nothing of ε.
    WithinByPld(Epsilon),
}

/// A method with the settings the paper gave it.
#[derive(Debug, Clone)]
pub(crate) struct MethodSetting {
    /// Its name in tables: the registry name, with its coordinates where an experiment has a method
    /// more than once.
    pub(crate) id: String,
    /// Registry name, or [`NON_PRIVATE`].
    pub(crate) name: &'static str,
    /// Where it lies in what the experiment varies; empty where it varies nothing.
    pub(crate) coordinates: Vec<Coordinate>,
    /// Step size.
    pub(crate) learning_rate: LearningRate,
    /// Settings of the preset; unused by the reference.
    pub(crate) params: PresetParams,
    /// In place of the experiment's noise.
    pub(crate) noise: Option<Noise>,
    /// What the gradient is handed to.
    pub(crate) optimiser: OptimiserConfig,
    /// In place of the experiment's batch size and epochs.
    pub(crate) batches: Option<(BatchSize, u64)>,
    /// Rates of the groups over that of the batches, for groups that are drawn at rates of their own.
    pub(crate) group_rates: Option<&'static [f64]>,
    /// Limits, over the rate of the batches, of rates that follow the losses of groups.
    pub(crate) limits_of_rates: Option<[f64; 2]>,
    /// Inputs are conditioned by private releases first; everything above but the noise is then
    /// unused.
    pub(crate) conditioned: Option<Goal>,
    /// A clipping method with releases beside it, which are paid for within the method's ε.
    pub(crate) adjusted: Option<Adjusted>,
    /// Least squares on inputs as they are; everything above but the noise is then unused.
    pub(crate) least_squares: bool,
    /// Whether each group has a threshold of its own after a conditioned or adjusted training.
    pub(crate) has_thresholds: bool,
    /// Rate, bound and batch size are searched for, within the method's guarantee; those above are
    /// then unused.
    pub(crate) search: Option<RandomSearch>,
}

/// A clipping method, and the goal of the releases beside it: noisy class priors in the loss, with
/// biases towards equal recall or without.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Adjusted {
    /// Registry name.
    pub(crate) clipping: &'static str,
    pub(crate) goal: Goal,
}

impl MethodSetting {
    /// The method as its registry entry presets it, with this rate.
    pub(crate) fn new(name: &'static str, learning_rate: LearningRate, params: PresetParams) -> Self {
        Self {
            id: name.to_owned(),
            name,
            coordinates: Vec::new(),
            learning_rate,
            params,
            noise: None,
            optimiser: OptimiserConfig::default(),
            batches: None,
            group_rates: None,
            limits_of_rates: None,
            conditioned: None,
            adjusted: None,
            least_squares: false,
            has_thresholds: false,
            search: None,
        }
    }

    /// Another method at the same point, with the same settings.
    pub(crate) fn named(&self, name: &'static str) -> Self {
        Self { id: self.id.replacen(self.name, name, 1), name, ..self.clone() }
    }

    /// The same method at this point of what the experiment varies.
    pub(crate) fn at(mut self, name: &str, value: f64) -> Self {
        let separator = if self.coordinates.is_empty() { "" } else { "," };
        self.id = format!("{}{separator} {name}={value}", self.id);
        self.coordinates.push(Coordinate { name: name.to_owned(), value });
        self
    }

    /// What decides the thresholds of the groups, if they have any, within this ε.
    ///
    /// # Errors
    /// For an infinite ε.
    pub(crate) fn thresholds(&self, epsilon: Epsilon, delta: Delta) -> anyhow::Result<Option<GroupThresholds>> {
        self.has_thresholds.then(|| GroupThresholds::within(epsilon, delta)).transpose()
    }

    /// The same method within this ε.
    pub(crate) fn within(mut self, epsilon: f64) -> anyhow::Result<Self> {
        self.noise = Some(Noise::Within(Epsilon::new(epsilon)?));
        Ok(self.at("ε", epsilon))
    }

    /// The same method within this ε, by the PLD accountant.
    pub(crate) fn within_by_pld(mut self, epsilon: f64) -> anyhow::Result<Self> {
        self.noise = Some(Noise::WithinByPld(Epsilon::new(epsilon)?));
        Ok(self.at("ε", epsilon))
    }
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
