//! The convolutional network of Zhao 2025 (MNIST, Fashion-MNIST).

use serde::{Deserialize, Serialize};

use super::{ImageShape, LayerConfig, ModelConfig};
use crate::ops::Activation;

/// Which of two descriptions of the network of Zhao 2025 is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZhaoCnnLayout {
    /// Appendix A.5: hidden layers of 500 and 500 units; 805,578 parameters on MNIST.
    #[default]
    Text,
    /// The authors' code: hidden layers of 512 and 512 units; 830,154 parameters on MNIST.
    Code,
}

impl ZhaoCnnLayout {
    fn hidden(self) -> [usize; 2] {
        match self {
            Self::Text => [500, 500],
            Self::Code => [512, 512],
        }
    }
}

pub(super) fn label(layout: ZhaoCnnLayout) -> String {
    let [first, second] = layout.hidden();
    format!("zhao-cnn-{first}-{second}")
}

pub(super) fn config(image: ImageShape, layout: ZhaoCnnLayout) -> ModelConfig {
    let features = vec![
        LayerConfig::conv(64, 3),
        LayerConfig::max_pool(3, 2),
        LayerConfig::conv(64, 3),
        LayerConfig::max_pool(3, 2),
    ];
    ModelConfig::Cnn { image, features, hidden: layout.hidden().into(), activation: Activation::Relu }
}
