//! Convolutional networks: convolutions and pools, then linear layers.

use serde::{Deserialize, Serialize};

use super::image_chain::{Convolution, ImageChain, Windows};
use super::{ImageShape, NamedLayer, Sizes, mlp};
use crate::error::Result;
use crate::layers::{Pointwise, Pooling};
use crate::ops::Activation;

/// A step of the convolutional part of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "layer", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CnnLayer {
    /// A convolution with bias, followed by the network's activation.
    Conv {
        /// Channels of the output, at least 1.
        filters: usize,
        /// Height and width of a filter.
        kernel: usize,
        /// Pixels from one position to the next.
        #[serde(default = "one")]
        stride: usize,
        /// Pixels of zeros on every side, less than the kernel.
        #[serde(default)]
        padding: usize,
        /// Parts that channels and filters are split into; a filter sees the channels of its part.
        #[serde(default = "one")]
        groups: usize,
    },
    /// Pooling; windows may overlap.
    Pool {
        /// What is taken of a window.
        pooling: Pooling,
        /// Height and width of a window.
        kernel: usize,
        /// Pixels from one window to the next.
        stride: usize,
        /// Pixels outside of the image on every side, at most half of the window.
        #[serde(default)]
        padding: usize,
    },
    /// The mean of each channel over all pixels.
    GlobalAveragePool,
}

fn one() -> usize {
    1
}

impl CnnLayer {
    /// A convolution of stride 1 without padding or groups.
    pub fn conv(filters: usize, kernel: usize) -> Self {
        Self::Conv { filters, kernel, stride: 1, padding: 0, groups: 1 }
    }

    /// Max pooling without padding.
    pub fn max_pool(kernel: usize, stride: usize) -> Self {
        Self::Pool { pooling: Pooling::Max, kernel, stride, padding: 0 }
    }

    fn is_max_pool(self) -> bool {
        matches!(self, Self::Pool { pooling: Pooling::Max, .. })
    }
}

/// Layers `conv1`, `pool1`, `conv2`, …, then `fc1`, `fc2`, …
pub(super) fn layers(
    image: ImageShape,
    features: &[CnnLayer],
    hidden: &[usize],
    activation: Activation,
    sizes: &Sizes<'_>,
) -> Result<Vec<NamedLayer>> {
    let mut chain = ImageChain::new(image, sizes)?;
    let (mut n_convs, mut n_pools) = (0, 0);
    let mut features = features.iter().copied().peekable();
    while let Some(feature) = features.next() {
        match feature {
            CnnLayer::Conv { filters, kernel, stride, padding, groups } => {
                n_convs += 1;
                let conv = Convolution { filters, kernel, stride, padding, groups, bias: true };
                let name = format!("conv{n_convs}");
                // The largest of ReLUs is the ReLU of the largest, gradients included, and there are fewer of the latter.
                let pool = features.next_if(|next| activation == Activation::Relu && next.is_max_pool());
                match pool {
                    Some(CnnLayer::Pool { kernel, stride, padding, .. }) => {
                        n_pools += 1;
                        chain.conv_and_max_pool(name, conv, Windows { kernel, stride, padding })?;
                    }
                    _ => chain.conv(name, conv)?,
                }
                chain.push(NamedLayer::new(format!("conv_act{n_convs}"), Pointwise::new(activation)));
            }
            CnnLayer::Pool { pooling, kernel, stride, padding } => {
                n_pools += 1;
                chain.pool(format!("pool{n_pools}"), pooling, Windows { kernel, stride, padding })?;
            }
            CnnLayer::GlobalAveragePool => {
                n_pools += 1;
                chain.global_average_pool(format!("pool{n_pools}"))?;
            }
        }
    }
    let (n_inputs, mut layers) = chain.flatten("flatten")?;
    layers.extend(mlp::layers(hidden, activation, &Sizes { n_inputs, ..*sizes })?);
    Ok(layers)
}
