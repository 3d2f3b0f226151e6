//! Functions for the training engine, `dp-engine`. Not for other users: they may change in any
//! release.

pub use crate::noise::grid::at_most;
pub use crate::simd::{instruction_set, vectorise};
