#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod auc;
mod choice;
mod cumulative;
mod error;
mod errors;
mod grid;
pub mod hook;
mod mixture;
mod mode;
mod monotone;
mod prefix_sums;
mod rates;

/// The version whose generators a release takes.
pub use rand;

pub use choice::{Choice, Gain, KeptReason, Quality, choose};
pub use cumulative::{CumulativeCounts, ScoreCells};
pub use error::DecisionError;
pub use errors::ErrorCells;
pub use grid::{N_CELLS, N_EDGES, ScoreGrid};
pub use mixture::Mixture;
pub use mode::{Aim, Mode};
pub use prefix_sums::PrefixSums;
