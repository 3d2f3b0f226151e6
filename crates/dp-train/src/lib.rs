#![doc = include_str!("../README.md")]

pub mod analysis;
#[cfg(feature = "audit")]
pub mod audit;

mod blocks;
mod buffer;
mod checkpoint;
pub mod conditioning;
mod config;
mod cuda_device;
mod device_name;
mod dropout;
mod early_stopping;
mod engine;
mod error;
mod layers;
mod loss;
mod models;
mod noise;
mod numerics;
mod observer;
mod ops;
mod optimiser;
mod parameters;
mod plan;
#[cfg(feature = "audit")]
pub mod privacy_audit;
mod random_streams;
mod randomness;
pub mod ranks;
mod records;
mod sampler;
mod saved_model;
pub mod scattering;
mod schedule;
mod stream_state;
mod tanh_f64;
#[cfg(feature = "bert")]
mod text_encoder;
mod threads;
mod trainer;
mod vector_math;
mod weights;

pub use candle_core::{DType, Device};
pub use checkpoint::{CheckpointInterval, Checkpoints};
pub use cuda_device::{beside, cuda_device, cuda_device_in_tf32};
pub use device_name::DeviceName;
pub use dropout::DropoutKey;
pub use early_stopping::{EarlyStopping, StoppingCriterion};
pub use engine::{Engine, Evaluation};
pub use error::{Result, TrainError};
pub use layers::{Initial, KernelCrop, ParameterSpec, Pooling};
pub use loss::Loss;
pub use models::{
    EncoderFamily, ImageShape, InputShape, LayerConfig, Model, ModelConfig, Normalisation, ResNetStem, ZhaoCnnLayout,
};
pub use noise::NoiseSource;
pub use numerics::{NUMERICS, platform};
pub use observer::{Observer, StepState, StepView, Unobserved};
pub use ops::Activation;
pub use optimiser::OptimiserConfig;
pub use parameters::ParameterVector;
pub use plan::{BatchPlan, Plan, PrivacyConfig, TrainConfig, step_query};
pub use random_streams::{Generators, RandomStreams};
pub use randomness::{Purpose, Randomness};
pub use records::{PublicFacts, Records};
pub use sampler::PoissonSampler;
pub use saved_model::SavedModel;
pub use schedule::LearningRate;
#[cfg(feature = "bert")]
pub use text_encoder::TextEncoder;
pub use trainer::{Execution, RunCounts, Trainer};

/// Pages of the book, whose examples are tests of this crate.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../docs/train.md")]
    mod train {}

    #[doc = include_str!("../../../docs/which-method.md")]
    mod which_method {}
}
