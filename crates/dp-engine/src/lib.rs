#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod blocks;
mod buffer;
pub mod collective;
mod cuda_device;
mod dropout;
mod engine;
mod error;
mod grid;
#[doc(hidden)]
pub mod hook;
mod layers;
mod loss;
mod models;
pub mod noise;
mod numerics;
pub mod ops;
mod optimiser;
mod own;
mod parameters;
mod records;
mod saved_model;
mod tanh_f64;
#[cfg(feature = "bert")]
mod text_encoder;
mod threads;
pub mod vector_math;
mod weights;

/// The version whose tensors and devices stand in signatures.
pub use candle_core;
/// The version whose generators are taken: `dp_engine::rand::CryptoRng`.
pub use rand;

pub use blocks::Blocks;
pub use candle_core::{DType, Device};
pub use cuda_device::{beside, cuda_device, cuda_device_in_tf32, device_model, free_bytes, kept_bytes};
pub use dropout::DropoutKey;
pub use engine::{
    ClippedSum, Differentiated, Engine, Evaluation, Reduction, WeightedSum, rounding_of_piece, sensitivity,
};
pub use error::{EngineError, Result, TensorError};
pub use grid::Grid;
pub use layers::{Initial, KernelCrop, ParameterSpec, Pooling};
pub use loss::Loss;
pub use models::{
    EncoderFamily, ImageShape, InputShape, LayerConfig, Model, ModelConfig, Normalisation, ResNetStem, ZhaoCnnLayout,
};
pub use noise::NoiseSource;
pub use numerics::{NUMERICS, platform};
pub use ops::Activation;
pub use optimiser::{Optimiser, OptimiserConfig, OptimiserStep};
pub use own::{OwnLayer, OwnLoss, OwnShape, register_layer, register_loss};
pub use parameters::ParameterVector;
pub use records::{PublicFacts, Records};
pub use saved_model::SavedModel;
#[cfg(feature = "bert")]
pub use text_encoder::TextEncoder;
pub use threads::Threads;
