//! Models by name: one file per architecture, one variant of [`ModelConfig`] each.

mod cnn;
mod esipova_cnn;
mod image;
mod image_chain;
mod logistic_regression;
mod mlp;
mod sequence;
mod squashed_regression;
mod xu_cnn;
mod zhao_cnn;

use candle_core::{DType, Device};
use serde::{Deserialize, Serialize};

pub use cnn::CnnLayer;
pub use image::ImageShape;
pub use sequence::Model;
pub(crate) use sequence::NamedLayer;
pub use zhao_cnn::ZhaoCnnLayout;

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
    /// One linear layer, `linear`, and a sigmoid on its outputs, which then count as logits: no loss gets near 0.
    ///
    /// **Source.** The published code of Esipova et al. 2023 for the Dutch census, to reproduce it; not to be recommended.
    SquashedRegression,
    /// Linear layers `fc1`, `fc2`, … with an activation after each but the last.
    Mlp {
        /// Width of each hidden layer, at least 1. Without any the model is a logistic regression whose layer is `fc1`.
        hidden: Vec<usize>,
        /// Activation after each hidden layer.
        activation: Activation,
    },
    /// Convolutions `conv1`, `conv2`, … and pools, then linear layers `fc1`, `fc2`, …
    Cnn {
        /// What a record is.
        image: ImageShape,
        /// The convolutional part, in order.
        features: Vec<CnnLayer>,
        /// Width of each hidden linear layer, at least 1.
        hidden: Vec<usize>,
        /// Activation after each convolution and hidden layer.
        activation: Activation,
    },
    /// The convolutional network of Esipova 2023: convolutions of 32 and 16 filters, 3 × 3, stride 1, no padding, tanh, and one linear
    /// layer.
    ///
    /// As the authors' code builds it, it has 97,114 parameters for MNIST and 120,722 for CelebA (3 × 64 × 64, two classes). The paper
    /// prints 80,522 for MNIST, which no layout of these layers that we tried gives.
    EsipovaCnn {
        /// What a record is.
        image: ImageShape,
    },
    /// The convolutional network of Xu 2020 and 2021: "2 convolutional layers and 2 linear layers with 431K parameters".
    ///
    /// The papers give no sizes. Convolutions of 20 and 50 filters, 5 × 5, each with ReLU and a max pool of 2 × 2, and a hidden layer of 500
    /// have 431,080 parameters for MNIST: PyTorch's MNIST example of that time.
    XuCnn {
        /// What a record is.
        image: ImageShape,
    },
    /// The convolutional network of Zhao 2025: two convolutions of 64 filters, 3 × 3, each with ReLU and a max pool of 3 × 3 and stride 2,
    /// then two hidden layers.
    ZhaoCnn {
        /// What a record is.
        image: ImageShape,
        /// Width of the hidden layers.
        #[serde(default)]
        layout: ZhaoCnnLayout,
    },
}

impl ModelConfig {
    /// For people and reports, for example `mlp-256x256-tanh`.
    pub fn label(&self) -> String {
        match self {
            Self::LogisticRegression => "logistic-regression".into(),
            Self::SquashedRegression => "squashed-regression".into(),
            Self::Mlp { hidden, activation } => mlp::label(hidden, *activation),
            Self::Cnn { features, .. } => format!("cnn-{}-layers", features.len()),
            Self::EsipovaCnn { .. } => "esipova-cnn".into(),
            Self::XuCnn { .. } => "xu-cnn".into(),
            Self::ZhaoCnn { layout, .. } => zhao_cnn::label(*layout),
        }
    }

    /// Layers in order, each with the prefix of its parameters' names.
    fn layers(&self, sizes: &Sizes<'_>) -> Result<Vec<NamedLayer>> {
        match self {
            Self::LogisticRegression => logistic_regression::layers(sizes),
            Self::SquashedRegression => squashed_regression::layers(sizes),
            Self::Mlp { hidden, activation } => mlp::layers(hidden, *activation, sizes),
            Self::Cnn { image, features, hidden, activation } => {
                cnn::layers(*image, features, hidden, *activation, sizes)
            }
            Self::EsipovaCnn { image } => esipova_cnn::layers(*image, sizes),
            Self::XuCnn { image } => xu_cnn::layers(*image, sizes),
            Self::ZhaoCnn { image, layout } => zhao_cnn::layers(*image, *layout, sizes),
        }
    }
}

/// What an architecture is built for.
pub(crate) struct Sizes<'a> {
    /// Inputs of a record, at least 1.
    pub(crate) n_inputs: usize,
    /// Outputs (logits) of a record, at least 1.
    pub(crate) n_outputs: usize,
    /// What the layers compute in.
    pub(crate) dtype: DType,
    /// Where their buffers are.
    pub(crate) device: &'a Device,
}
