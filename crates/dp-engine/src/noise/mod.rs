//! The noise of a step is [`dp_clipping::noise`]'s; here is where it is made.

mod source;

#[cfg(feature = "cuda")]
pub(crate) use dp_clipping::internal::at_most;
#[cfg(feature = "cuda")]
pub(crate) use dp_clipping::noise::GRID;
pub use dp_clipping::noise::{BLOCK, StepNoise};
pub use source::NoiseSource;
