//! The convolutional network of Esipova 2023 (MNIST, CelebA).

use super::{CnnLayer, ImageShape, NamedLayer, Sizes, cnn};
use crate::error::Result;
use crate::ops::Activation;

pub(super) fn layers(image: ImageShape, sizes: &Sizes<'_>) -> Result<Vec<NamedLayer>> {
    cnn::layers(image, &[CnnLayer::conv(32, 3), CnnLayer::conv(16, 3)], &[], Activation::Tanh, sizes)
}
