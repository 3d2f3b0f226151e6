//! The convolutional network of Xu 2020, 2021 (MNIST).

use super::{ImageShape, LayerConfig, ModelConfig};
use crate::ops::Activation;

pub(super) fn config(image: ImageShape) -> ModelConfig {
    let features = vec![
        LayerConfig::conv(20, 5),
        LayerConfig::max_pool(2, 2),
        LayerConfig::conv(50, 5),
        LayerConfig::max_pool(2, 2),
    ];
    ModelConfig::Cnn { image, features, hidden: vec![500], activation: Activation::Relu }
}
