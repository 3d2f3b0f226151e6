//! Models by name: one file per architecture, one variant of [`ModelConfig`] each.

mod image;
mod logistic_regression;
mod mlp;
mod sequence;

use candle_core::{DType, Device};
use serde::{Deserialize, Serialize};

pub use image::ImageShape;
pub use sequence::Model;
pub(crate) use sequence::NamedLayer;

use crate::error::Result;
use crate::ops::Activation;

/// A model's architecture. The number of outputs follows from the loss and the number of classes.
///
/// **Example**
/// ```
/// use dp_train::{Activation, DType, Device, Model, ModelConfig};
/// let mlp = ModelConfig::Mlp { hidden: vec![256, 256], activation: Activation::Tanh };
/// assert_eq!(mlp.label(), "mlp-256x256-tanh");
/// // Esipova 2023, Adult.
/// assert_eq!(Model::new(&mlp, 98, 2, DType::F32, &Device::Cpu)?.parameters().len(), 91_650);
/// # Ok::<(), dp_train::TrainError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum ModelConfig {
    /// One linear layer, `linear`.
    LogisticRegression,
    /// Linear layers `fc1`, `fc2`, … with an activation after each but the last.
    Mlp {
        /// Width of each hidden layer, at least 1. Without any the model is a logistic regression whose layer is `fc1`.
        hidden: Vec<usize>,
        /// Activation after each hidden layer.
        activation: Activation,
    },
}

impl ModelConfig {
    /// For people and reports, for example `mlp-256x256-tanh`.
    pub fn label(&self) -> String {
        match self {
            Self::LogisticRegression => "logistic-regression".into(),
            Self::Mlp { hidden, activation } => mlp::label(hidden, *activation),
        }
    }

    /// Layers in order, each with the prefix of its parameters' names.
    fn layers(&self, sizes: &Sizes<'_>) -> Result<Vec<NamedLayer>> {
        match self {
            Self::LogisticRegression => logistic_regression::layers(sizes),
            Self::Mlp { hidden, activation } => mlp::layers(hidden, *activation, sizes),
        }
    }
}

/// What an architecture is built for.
struct Sizes<'a> {
    /// Inputs of a record, at least 1.
    n_inputs: usize,
    /// Outputs (logits) of a record, at least 1.
    n_outputs: usize,
    /// What the layers compute in.
    dtype: DType,
    /// Where their buffers are.
    device: &'a Device,
}
