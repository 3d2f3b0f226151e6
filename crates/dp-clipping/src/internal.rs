//! What the training engine of `dp-train` shares with this crate. Not for other users: it may change
//! in any release.

pub use crate::noise::grid::at_most;
pub use crate::simd::{instruction_set, vectorise};
