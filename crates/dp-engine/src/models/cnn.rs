//! Convolutional networks: convolutions and pools, then linear layers.

use super::image_chain::{Convolution, ImageChain, Windows};
use super::{ImageShape, LayerConfig, NamedLayer, Sizes, mlp};
use crate::error::{EngineError, Result};
use crate::layers::{Pointwise, Pooling};
use crate::ops::Activation;

/// Layers `conv1`, `pool1`, `conv2`, …, then `fc1`, `fc2`, …
pub(super) fn layers(
    image: ImageShape,
    features: &[LayerConfig],
    hidden: &[usize],
    activation: Activation,
    sizes: &Sizes,
) -> Result<Vec<NamedLayer>> {
    let mut chain = ImageChain::new(image, sizes.n_inputs)?;
    let (mut n_convs, mut n_pools) = (0, 0);
    let mut features = features.iter().peekable();
    while let Some(feature) = features.next() {
        match *feature {
            LayerConfig::Conv { outputs: filters, kernel, stride, padding, groups, bias } => {
                n_convs += 1;
                let conv = Convolution { filters, kernel, stride, padding, groups, bias };
                // The largest of ReLUs is the ReLU of the largest, gradients included, and there
                // are fewer of the latter.
                let pool = features.next_if(|next| activation == Activation::Relu && is_max_pool(next));
                let windows = pool.and_then(windows);
                n_pools += usize::from(windows.is_some());
                chain.conv(format!("conv{n_convs}"), conv, windows)?;
                chain.push(NamedLayer::new(format!("conv_act{n_convs}"), Pointwise::blueprint(activation)));
            }
            LayerConfig::Pool { pooling, kernel, stride, padding } => {
                n_pools += 1;
                chain.pool(format!("pool{n_pools}"), pooling, Windows { kernel, stride, padding })?;
            }
            LayerConfig::GlobalAveragePool => {
                n_pools += 1;
                chain.global_average_pool(format!("pool{n_pools}"));
            }
            ref other => {
                return Err(EngineError::invalid("model.features", other.name(), "conv, pool or global-average-pool"));
            }
        }
    }
    let (n_inputs, mut layers) = chain.flatten("flatten");
    layers.extend(mlp::layers(hidden, activation, &Sizes { n_inputs, ..*sizes })?);
    Ok(layers)
}

fn is_max_pool(layer: &LayerConfig) -> bool {
    matches!(layer, LayerConfig::Pool { pooling: Pooling::Max, .. })
}

fn windows(layer: &LayerConfig) -> Option<Windows> {
    match *layer {
        LayerConfig::Pool { kernel, stride, padding, .. } => Some(Windows { kernel, stride, padding }),
        _ => None,
    }
}
