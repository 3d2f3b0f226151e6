//! Logistic regression: one linear layer.

use super::{NamedLayer, Sizes};
use crate::error::Result;
use crate::layers::Linear;

pub(super) fn layers(sizes: &Sizes<'_>) -> Result<Vec<NamedLayer>> {
    let &Sizes { n_inputs, n_outputs, dtype, device } = sizes;
    Ok(vec![NamedLayer::new("linear", Linear::new(n_inputs, n_outputs, dtype, device)?)])
}
