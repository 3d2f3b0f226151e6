#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod batch;
mod bound;
mod combined;
mod config;
mod context;
mod controllers;
mod count;
mod coupling;
mod error;
mod gradients;
#[doc(hidden)]
pub mod internal;
pub mod kernels;
mod likeness;
mod method;
mod method_entry;
mod methods;
pub mod noise;
mod own;
pub mod registry;
mod rules;
mod simd;
mod weights;

/// The version whose array views [`kernels::Gradients::from_view`] takes.
pub use ndarray;
/// The version whose generators the methods take: `dp_clipping::rand::CryptoRng`.
pub use rand;
/// Generators of that version: `dp_clipping::rand_chacha::ChaCha20Rng`.
pub use rand_chacha;
/// The version whose `Value` holds the state of a method.
pub use serde_json;

pub use batch::{ClipBatch, Clipped};
pub use config::ClipConfig;
pub use context::PublicContext;
pub use controllers::{Bits, Controller, Counted, OwnController, ShareOf};
pub use count::{CountNoise, CountQuery};
pub use coupling::{Coupling, FairlensForm};
pub use error::ClipError;
pub use gradients::clip_gradients;
pub use method::{AdvanceScale, ClipMethod, MethodState};
pub use method_entry::{MethodEntry, PresetParams};
pub use own::{Own, check};
pub use rules::{OwnBound, OwnRule, ScaleRule};
pub use weights::{OwnWeights, Weights};

/// Pages of the book, whose examples are tests of this crate.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../docs/extend.md")]
    mod extend {}
}
