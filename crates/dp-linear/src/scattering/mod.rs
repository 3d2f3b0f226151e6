//! Image features that need no data: the wavelet scattering transform and what is done to it before
//! a linear model sees it.
//!
//! A private model learns little from few noisy gradients, so every feature it need not learn is a
//! gain. The filters here are fixed: nothing in them depends on any record, so they cost no
//! privacy, and one image's features do not depend on another image.
//!
//! [`Scattering`] is the transform alone. [`ImageFeatures`] adds normalisation, a cosine transform
//! that keeps low frequencies, and rows of norm 1, which is what
//! [`conditioning`](crate::conditioning) takes.
//!
//! Do not standardise the output by statistics of the training records: those are private. Use
//! [`conditioning`](crate::conditioning), which releases them with noise.

mod features;
mod filters;
mod low_pass;
mod spectrum;
mod transform;

pub use features::{Compression, ImageFeatures, ImageFeaturesConfig};
pub use transform::{Scattering, ScatteringConfig};
