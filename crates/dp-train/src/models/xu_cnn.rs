//! The convolutional network of Xu 2020, 2021 (MNIST).

use super::{CnnLayer, ImageShape, NamedLayer, Sizes, cnn};
use crate::error::Result;
use crate::ops::Activation;

pub(super) fn layers(image: ImageShape, sizes: &Sizes<'_>) -> Result<Vec<NamedLayer>> {
    let features = [CnnLayer::conv(20, 5), CnnLayer::max_pool(2, 2), CnnLayer::conv(50, 5), CnnLayer::max_pool(2, 2)];
    cnn::layers(image, &features, &[500], Activation::Relu, sizes)
}
