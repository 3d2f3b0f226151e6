//! Logistic regression: one linear layer.

use super::{NamedLayer, Sizes};
use crate::layers::Linear;

pub(super) fn layers(sizes: &Sizes) -> Vec<NamedLayer> {
    let &Sizes { n_inputs, n_outputs } = sizes;
    vec![NamedLayer::new("linear", Linear::blueprint(n_inputs, n_outputs))]
}
