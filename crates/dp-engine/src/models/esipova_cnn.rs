//! The convolutional network of Esipova 2023 (MNIST, CelebA).

use super::{ImageShape, LayerConfig, NamedLayer, Sizes, cnn};
use crate::error::Result;
use crate::ops::Activation;

pub(super) fn layers(image: ImageShape, sizes: &Sizes) -> Result<Vec<NamedLayer>> {
    cnn::layers(image, &[LayerConfig::conv(32, 3), LayerConfig::conv(16, 3)], &[], Activation::Tanh, sizes)
}
