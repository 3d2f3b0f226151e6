//! Tables of measured speed: clipping kernels beside the memory's own, training steps, and what
//! steps on many processes would take.
//!
//! Settings are plain data and results are too; each can say itself in words.

pub mod clipping;
mod counted;
pub mod scale;
pub mod step;
