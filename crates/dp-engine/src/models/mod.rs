//! Models by name: one file per architecture, one variant of [`ModelConfig`] each.

mod cnn;
mod encoder_head;
mod esipova_cnn;
mod image;
mod image_chain;
mod logistic_regression;
mod mlp;
mod model;
mod network;
mod normalisation;
mod prediction;
mod resnet;
mod sequential;
mod soleymani;
mod squashed_regression;
mod xu_cnn;
mod zhao_cnn;

use serde::{Deserialize, Serialize};

pub use encoder_head::EncoderFamily;
pub use image::ImageShape;
pub use model::Model;
pub(crate) use network::{Layers, Network};
pub use normalisation::Normalisation;
pub(crate) use prediction::class;
pub use resnet::ResNetStem;
pub use sequential::{InputShape, LayerConfig};
pub use zhao_cnn::ZhaoCnnLayout;

use crate::error::Result;
use crate::layers::{NamedLayer, ParameterSpec, parameters};
use crate::ops::Activation;

/// A model's architecture. The number of outputs follows from the loss and the number of classes.
///
/// **Example**
/// ```
/// use dp_engine::{Activation, DType, Device, Model, ModelConfig};
/// let mlp = ModelConfig::Mlp { hidden: vec![256, 256], activation: Activation::Tanh };
/// assert_eq!(mlp.label(), "mlp-256x256-tanh");
/// // Esipova 2023, Adult.
/// assert_eq!(Model::new(&mlp, 98, 2, DType::F32, &Device::Cpu)?.parameters().len(), 91_650);
/// # Ok::<(), dp_engine::EngineError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ModelConfig {
    /// One linear layer, `linear`.
    LogisticRegression,
    /// One linear layer, `linear`, and a sigmoid on its outputs, which then count as logits: no
    /// loss gets near 0.
    ///
    /// **Source.** The published code of Esipova et al. 2023 for the Dutch census, to reproduce it;
    /// not to be recommended.
    SquashedRegression,
    /// Linear layers `fc1`, `fc2`, … with an activation after each but the last.
    Mlp {
        /// Width of each hidden layer, at least 1. Without any the model is a logistic regression
        /// whose layer is `fc1`.
        hidden: Vec<usize>,
        /// Activation after each hidden layer.
        activation: Activation,
    },
    /// Convolutions `conv1`, `conv2`, … and pools, then linear layers `fc1`, `fc2`, …
    Cnn {
        /// What a record is.
        image: ImageShape,
        /// The convolutional part, in order: convolutions, each followed by the activation, and
        /// pools.
        features: Vec<LayerConfig>,
        /// Width of each hidden linear layer, at least 1.
        hidden: Vec<usize>,
        /// Activation after each convolution and hidden layer.
        activation: Activation,
    },
    /// The convolutional network of Esipova 2023: convolutions of 32 and 16 filters, 3 × 3, stride
    /// 1, no padding, tanh, and one linear layer.
    ///
    /// As the authors' code builds it, it has 97,114 parameters for MNIST and 120,722 for CelebA (3
    /// × 64 × 64, two classes). The paper prints 80,522 for MNIST, which no layout of these layers
    /// that we tried gives.
    EsipovaCnn {
        /// What a record is.
        image: ImageShape,
    },
    /// The convolutional network of Xu 2020 and 2021: "2 convolutional layers and 2 linear layers
    /// with 431K parameters".
    ///
    /// The papers give no sizes. Convolutions of 20 and 50 filters, 5 × 5, each with ReLU and a max
    /// pool of 2 × 2, and a hidden layer of 500 have 431,080 parameters for MNIST: PyTorch's MNIST
    /// example of that time.
    XuCnn {
        /// What a record is.
        image: ImageShape,
    },
    /// The convolutional network of Zhao 2025: two convolutions of 64 filters, 3 × 3, each with
    /// ReLU and a max pool of 3 × 3 and stride 2, then two hidden layers.
    ZhaoCnn {
        /// What a record is.
        image: ImageShape,
        /// Width of the hidden layers.
        #[serde(default)]
        layout: ZhaoCnnLayout,
    },
    /// ResNet-18 (He 2016; Zhao 2025 with GroupNorm), parameters named as in torchvision.
    /// Convolutions start from PyTorch's default distribution, not from torchvision's own (Kaiming,
    /// fan out).
    #[serde(rename = "resnet-18")]
    Resnet18 {
        /// What a record is.
        image: ImageShape,
        /// What the network does first.
        stem: ResNetStem,
        /// Normalisation after every convolution; 32 groups are GroupNorm's default in its paper
        /// and in Opacus.
        normalisation: Normalisation,
    },
    /// Soleymani 2025, "simple model" for Adult: two hidden layers of 256 with ReLU, named as in
    /// [`Self::Mlp`]. The paper's sigmoid output is in the loss.
    SoleymaniSimple,
    /// Soleymani 2025, "complex model" for Adult and the model for eICU: linear layers `fc1` …
    /// `fc4` of 128, 64, 32 and as many outputs as there are, ReLU after each but the last,
    /// normalisation `gn1`, `gn2` before the first two, dropout 0.3 after the third. The paper's
    /// softmax output is in the loss. It does not say how many groups GroupNorm has, nor whether it
    /// stands before or after the ReLU; here it stands before.
    SoleymaniComplex {
        /// Normalisation of the first two layers.
        normalisation: Normalisation,
    },
    /// Layers put together in the configuration; parameters are named as in PyTorch's `Sequential`:
    /// `0.weight`, `0.bias`, ….
    Sequential {
        /// How a record's inputs are arranged.
        input: InputShape,
        /// The layers in order. The last has as many outputs as the loss takes.
        layers: Vec<LayerConfig>,
    },
    /// A head on the features of a frozen text encoder (Soleymani 2025, MIMIC-III). The inputs are
    /// the encoder's features, computed once; only the head is trained. The paper does not print
    /// the head; these are the `transformers` library's.
    FrozenEncoderHead {
        /// Whose head.
        encoder: EncoderFamily,
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
            Self::Resnet18 { .. } => "resnet-18".into(),
            Self::SoleymaniSimple => "soleymani-simple".into(),
            Self::SoleymaniComplex { .. } => "soleymani-complex".into(),
            Self::Sequential { layers, .. } => sequential::label(layers),
            Self::FrozenEncoderHead { encoder } => format!("{}-head", encoder.name()),
        }
    }

    /// Names of its layers that are from outside of this crate ([`OwnLayer`](crate::OwnLayer)), in order.
    pub fn own_layers(&self) -> Vec<String> {
        match self {
            Self::Sequential { layers, .. } => layers.iter().flat_map(LayerConfig::own_layers).collect(),
            _ => Vec::new(),
        }
    }

    /// Layers in order, each with the prefix of its parameters' names.
    fn layers(&self, sizes: &Sizes) -> Result<Vec<NamedLayer>> {
        match self {
            Self::LogisticRegression => Ok(logistic_regression::layers(sizes)),
            Self::SquashedRegression => Ok(squashed_regression::layers(sizes)),
            Self::Mlp { hidden, activation } => mlp::layers(hidden, *activation, sizes),
            Self::Cnn { image, features, hidden, activation } => {
                cnn::layers(*image, features, hidden, *activation, sizes)
            }
            Self::EsipovaCnn { .. } | Self::XuCnn { .. } | Self::ZhaoCnn { .. } => self.spelled_out().layers(sizes),
            Self::Resnet18 { image, stem, normalisation } => resnet::layers(*image, *stem, *normalisation, sizes),
            Self::SoleymaniSimple => soleymani::simple(sizes),
            Self::SoleymaniComplex { normalisation } => soleymani::complex(*normalisation, sizes),
            Self::Sequential { input, layers } => sequential::layers(*input, layers, sizes),
            Self::FrozenEncoderHead { encoder } => Ok(encoder_head::layers(*encoder, sizes)),
        }
    }
}

impl ModelConfig {
    /// A convolutional network of a paper as the [`Self::Cnn`] that it is, with the same layers and
    /// names of parameters; other models as they are.
    ///
    /// **Example**
    /// ```
    /// use dp_engine::{ImageShape, LayerConfig, ModelConfig};
    /// let image = ImageShape { height: 28, width: 28, channels: 1 };
    /// let ModelConfig::Cnn { features, hidden, .. } = (ModelConfig::EsipovaCnn { image }).spelled_out() else {
    ///     unreachable!("it is convolutional")
    /// };
    /// assert_eq!(features, [LayerConfig::conv(32, 3), LayerConfig::conv(16, 3)]);
    /// assert!(hidden.is_empty());
    /// ```
    #[must_use]
    pub fn spelled_out(&self) -> Self {
        match self {
            Self::EsipovaCnn { image } => esipova_cnn::config(*image),
            Self::XuCnn { image } => xu_cnn::config(*image),
            Self::ZhaoCnn { image, layout } => zhao_cnn::config(*image, *layout),
            other => other.clone(),
        }
    }

    /// The parameters of a model, without building them.
    pub(crate) fn parameters(&self, sizes: &Sizes) -> Result<Vec<ParameterSpec>> {
        Ok(parameters(&self.layers(sizes)?))
    }
}

/// What an architecture is built for.
pub(crate) struct Sizes {
    /// Inputs of a record, at least 1.
    pub(crate) n_inputs: usize,
    /// Outputs (logits) of a record, at least 1.
    pub(crate) n_outputs: usize,
}
