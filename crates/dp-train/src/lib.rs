#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

pub mod analysis;
mod batch_plan;
mod checkpoint;
mod config;
mod device_name;
mod early_stopping;
mod error;
mod group_sampling;
mod loops;
mod observer;
mod own_parts;
mod plan;
mod purpose;
mod random_stream;
mod random_streams;
mod randomness;
pub mod ranks;
mod rates_by_loss;
mod sampler;
mod schedule;
mod step_event;
mod stream_state;
mod train_config;
mod trainer;

/// The quantities and ledgers that plans and trainers take and give.
pub use dp_accounting;
/// The clipping methods of a [`PrivacyConfig`].
pub use dp_clipping;
pub use dp_engine::candle_core;
/// The version whose generators are taken and given: `dp_train::rand::RngCore`.
pub use rand;
/// The version whose generators become a [`RandomStream`].
pub use rand_chacha;
/// The version whose `Value` holds the memory of an [`Observer`].
pub use serde_json;

pub use batch_plan::BatchPlan;
pub use checkpoint::{CheckpointInterval, Checkpoints};
pub use device_name::DeviceName;
#[cfg(feature = "bert")]
pub use dp_engine::TextEncoder;
pub use dp_engine::{
    Activation, DType, Device, DropoutKey, EncoderFamily, Engine, EngineError, Evaluation, ImageShape, Initial,
    InputShape, KernelCrop, LayerConfig, Loss, Model, ModelConfig, NUMERICS, NoiseSource, Normalisation,
    OptimiserConfig, ParameterSpec, ParameterVector, Pooling, PublicFacts, Records, ResNetStem, SavedModel,
    ZhaoCnnLayout, beside, cuda_device, cuda_device_in_tf32, platform,
};
pub use early_stopping::{EarlyStopping, StoppingCriterion};
pub use error::{Result, TrainError};
pub use group_sampling::GroupSampling;
pub use observer::{Observer, StepState, StepView, Unobserved};
pub use own_parts::conditions_of_own_method;
pub use plan::Plan;
pub use purpose::Purpose;
pub use random_stream::RandomStream;
pub use random_streams::{Generators, RandomStreams};
pub use randomness::Randomness;
pub use rates_by_loss::{RateLevel, RateLevels, RatesByLoss};
pub use sampler::PoissonSampler;
pub use schedule::LearningRate;
pub use step_event::step_query;
pub use train_config::{PrivacyConfig, TrainConfig};
#[cfg(feature = "audit")]
pub use trainer::{BeforeNoise, FixedStep};
pub use trainer::{Execution, RunCounts, Trainer};

/// Pages of the book, whose examples are tests of this crate.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../docs/train.md")]
    mod train {}
}
