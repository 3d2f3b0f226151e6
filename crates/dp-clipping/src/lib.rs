#![doc = include_str!("../README.md")]

pub mod batch;
pub mod bound;
pub mod config;
pub mod context;
pub mod controllers;
pub mod count;
pub mod coupling;
pub mod error;
mod gradients;
mod grid;
pub mod kernels;
pub mod method;
pub mod methods;
pub mod noise;
pub mod per_layer;
pub mod registry;
pub mod rules;
pub mod simd;
pub mod threshold;
pub mod weights;

/// The version whose generators the methods take: `dp_clipping::rand::CryptoRng`.
pub use rand;

pub use batch::{ClipBatch, Clipped};
pub use config::ClipConfig;
pub use context::PublicContext;
pub use controllers::{Controller, Counted};
pub use count::{CountNoise, CountQuery};
pub use coupling::{Coupling, FairlensForm};
pub use error::ClipError;
pub use gradients::clip_gradients;
pub use method::{AdvanceScale, ClipMethod, MethodState};
pub use registry::{MethodEntry, PresetParams};
pub use rules::ScaleRule;
pub use weights::Weights;

/// Pages of the book, whose examples are tests of this crate.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../docs/extend.md")]
    mod extend {}
}
