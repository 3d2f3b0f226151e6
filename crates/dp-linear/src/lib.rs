#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod budget;
mod class_counts;
mod conditioned;
pub mod conditioning;
mod descent;
mod error;
mod exact;
mod exact_sum;
mod linear;
mod recall;
mod recipe;
mod release;
mod rows;
mod scales;
mod search;
mod settings;
mod solver;
mod spread;
mod weight_noise;

/// The version whose ledgers, budgets and noise multipliers this crate takes.
pub use dp_accounting;
/// The version whose methods this crate takes.
pub use dp_clipping;
/// The version whose models and records this crate takes.
pub use dp_engine;
/// The version whose runs and ranks this crate takes.
pub use dp_train;
/// Generators of the version that this crate takes.
pub use rand_chacha;
/// Image features that need no data, of norm 1: what [`conditioning`] takes.
pub use scattering;

pub use budget::GaussianBudget;
pub use class_counts::ClassCounts;
pub use conditioned::{ConditionedSettings, ReleasedBlock, WhitenedBlocks};
pub use descent::{Pace, State, sigmoid, softmax};
pub use error::{LinearError, Result};
pub use exact::{of_ranks, sum_rows};
pub use exact_sum::ExactSum;
pub use linear::Linear;
pub use recall::{RecallBiases, RecallBiasesConfig};
pub use recipe::{Goal, Recipe, Releases};
pub use rows::{BLOCK, RowLabel, RowSource, SparseBlock, SparseRow, unit_rows};
pub use scales::{FeatureFacts, Scales};
pub use search::Trial;
pub use settings::{Objective, Settings, Streams};
pub use solver::{Prepared, Priors, class_priors, number_priors, prepare, steps_for, train};
pub use spread::Spread;
pub use weight_noise::WeightNoise;

/// A page of the book, whose examples are tests of this crate.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../docs/which-method.md")]
    mod which_method {}
}
