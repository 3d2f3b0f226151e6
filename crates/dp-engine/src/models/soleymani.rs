//! The two networks of Soleymani 2025 for tables.

use super::{NamedLayer, Normalisation, Sizes, mlp};
use crate::error::Result;
use crate::layers::{Dropout, Linear, Norm, Pointwise};
use crate::ops::Activation;

/// Widths of the complex network's hidden layers.
const WIDTHS: [usize; 3] = [128, 64, 32];
/// How many of them are normalised.
const NORMALISED: usize = 2;
const DROPOUT: f64 = 0.3;

pub(super) fn simple(sizes: &Sizes) -> Result<Vec<NamedLayer>> {
    mlp::layers(&[256, 256], Activation::Relu, sizes)
}

pub(super) fn complex(normalisation: Normalisation, sizes: &Sizes) -> Result<Vec<NamedLayer>> {
    let &Sizes { n_inputs, n_outputs } = sizes;
    let mut layers = Vec::new();
    let mut inputs = n_inputs;
    for (i, width) in WIDTHS.into_iter().enumerate() {
        let n = i + 1;
        layers.push(NamedLayer::new(format!("fc{n}"), Linear::blueprint(inputs, width)));
        if i < NORMALISED {
            let groups = normalisation.groups(width)?;
            layers.push(NamedLayer::new(format!("gn{n}"), Norm::group(1, width, groups)));
        }
        layers.push(NamedLayer::new(format!("act{n}"), Pointwise::blueprint(Activation::Relu)));
        inputs = width;
    }
    layers.push(NamedLayer::new("dropout", Dropout::blueprint(DROPOUT, 0, inputs)));
    layers.push(NamedLayer::new("fc4", Linear::blueprint(inputs, n_outputs)));
    Ok(layers)
}
