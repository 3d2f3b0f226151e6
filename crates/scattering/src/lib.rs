#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod error;
mod features;
mod filters;
mod low_pass;
mod simd;
mod size;
mod spectrum;
mod transform;

pub use error::{Result, ScatteringError};
pub use features::{Compression, ImageFeatures, ImageFeaturesConfig};
pub use size::ImageSize;
pub use transform::{Scattering, ScatteringConfig};
