//! Logistic regression whose logits pass through a sigmoid before the loss.

use super::{NamedLayer, Sizes, logistic_regression};
use crate::layers::Pointwise;
use crate::ops::Activation;

pub(super) fn layers(sizes: &Sizes) -> Vec<NamedLayer> {
    let mut layers = logistic_regression::layers(sizes);
    layers.push(NamedLayer::new("squash", Pointwise::apart(Activation::Sigmoid)));
    layers
}
