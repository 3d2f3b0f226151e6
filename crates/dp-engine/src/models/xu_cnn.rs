//! The convolutional network of Xu 2020, 2021 (MNIST).

use super::{ImageShape, LayerConfig, NamedLayer, Sizes, cnn};
use crate::error::Result;
use crate::ops::Activation;

pub(super) fn layers(image: ImageShape, sizes: &Sizes) -> Result<Vec<NamedLayer>> {
    let features =
        [LayerConfig::conv(20, 5), LayerConfig::max_pool(2, 2), LayerConfig::conv(50, 5), LayerConfig::max_pool(2, 2)];
    cnn::layers(image, &features, &[500], Activation::Relu, sizes)
}
