#![doc = include_str!("../README.md")]

mod buffer;
mod engine;
mod error;
mod keystream;
mod layers;
mod loss;
mod models;
mod noise;
mod observer;
mod ops;
mod parameters;
mod plan;
mod randomness;
mod records;
mod sampler;
mod trainer;
mod vector_math;

pub use candle_core::{DType, Device};
pub use engine::{Engine, Evaluation};
pub use error::{Result, TrainError};
pub use layers::{ParameterSpec, Pooling};
pub use loss::Loss;
pub use models::{CnnLayer, ImageShape, Model, ModelConfig, ZhaoCnnLayout};
pub use observer::{Observer, StepView, Unobserved};
pub use ops::Activation;
pub use parameters::ParameterVector;
pub use plan::{BatchPlan, LearningRate, Plan, PrivacyConfig, TrainConfig};
pub use randomness::{Purpose, RandomStreams, Randomness};
pub use records::{PublicFacts, Records};
pub use sampler::PoissonSampler;
pub use trainer::{Execution, RunCounts, Trainer};
