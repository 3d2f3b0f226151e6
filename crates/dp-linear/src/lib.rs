#![doc = include_str!("../README.md")]

mod budget;
mod class_counts;
pub mod conditioning;
mod descent;
mod error;
mod exact;
mod linear;
mod recall;
mod recipe;
mod release;
mod rows;
mod scales;
pub mod scattering;
mod search;
mod settings;
mod solver;

pub use budget::GaussianBudget;
pub use class_counts::ClassCounts;
pub use descent::{Pace, State, sigmoid, softmax};
pub use error::{LinearError, Result};
pub use exact::{of_ranks, sum_rows};
pub use linear::Linear;
pub use recall::{RecallBiases, RecallBiasesConfig};
pub use recipe::{Goal, Recipe, Releases};
pub use rows::{BLOCK, RowSource, SparseBlock, SparseRow, unit_rows};
pub use scales::{FeatureFacts, Scales};
pub use search::Trial;
pub use settings::{Objective, Settings, Streams};
pub use solver::{Prepared, prepare, steps_for, train};

/// A page of the book, whose examples are tests of this crate.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../docs/which-method.md")]
    mod which_method {}
}
