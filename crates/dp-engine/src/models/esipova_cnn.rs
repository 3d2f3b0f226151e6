//! The convolutional network of Esipova 2023 (MNIST, CelebA).

use super::{ImageShape, LayerConfig, ModelConfig};
use crate::ops::Activation;

pub(super) fn config(image: ImageShape) -> ModelConfig {
    let features = vec![LayerConfig::conv(32, 3), LayerConfig::conv(16, 3)];
    ModelConfig::Cnn { image, features, hidden: Vec::new(), activation: Activation::Tanh }
}
