//! Multi-layer perceptron.

use super::{NamedLayer, Sizes};
use crate::error::{EngineError, Result};
use crate::layers::{Linear, Pointwise};
use crate::ops::Activation;

pub(super) fn label(hidden: &[usize], activation: Activation) -> String {
    let widths: Vec<String> = hidden.iter().map(ToString::to_string).collect();
    format!("mlp-{}-{}", widths.join("x"), format!("{activation:?}").to_lowercase())
}

pub(super) fn layers(hidden: &[usize], activation: Activation, sizes: &Sizes) -> Result<Vec<NamedLayer>> {
    let &Sizes { n_inputs, n_outputs } = sizes;
    let mut layers = Vec::new();
    let mut inputs = n_inputs;
    for (i, &width) in hidden.iter().enumerate() {
        if width == 0 {
            return Err(EngineError::invalid("model.hidden", format!("{hidden:?}"), "widths of at least 1"));
        }
        layers.push(NamedLayer::new(format!("fc{}", i + 1), Linear::blueprint(inputs, width)));
        layers.push(NamedLayer::new(format!("act{}", i + 1), Pointwise::blueprint(activation)));
        inputs = width;
    }
    layers.push(NamedLayer::new(format!("fc{}", hidden.len() + 1), Linear::blueprint(inputs, n_outputs)));
    Ok(layers)
}
