//! ResNet-18 with normalisation that does not mix records.

use serde::{Deserialize, Serialize};

use super::image_chain::{Convolution, ImageChain, Windows};
use super::{ImageShape, NamedLayer, Normalisation, Sizes};
use crate::error::Result;
use crate::layers::{Blueprint, Linear, Norm, Pointwise, Pooling, Residual};
use crate::ops::Activation;

/// What a residual network does first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ResNetStem {
    /// A convolution of 7 × 7 and stride 2, then a max pool of 3 × 3 and stride 2: torchvision's
    /// and timm's, made for 224 × 224 pixels.
    Imagenet,
    /// A convolution of 3 × 3 and stride 1 without pool: the usual one for images as small as
    /// MNIST's.
    Small,
}

/// Channels of the four stages; each begins at half the resolution of the one before.
const STAGES: [usize; 4] = [64, 128, 256, 512];
const BLOCKS: usize = 2;

/// Layers with torchvision's names, where the normalisation is called `bn1`, `downsample.1`, …
/// whatever it is.
pub(super) fn layers(
    image: ImageShape,
    stem: ResNetStem,
    normalisation: Normalisation,
    sizes: &Sizes,
) -> Result<Vec<NamedLayer>> {
    let mut chain = ImageChain::new(image, sizes.n_inputs)?;
    let (kernel, stride, padding) = match stem {
        ResNetStem::Imagenet => (7, 2, 3),
        ResNetStem::Small => (3, 1, 1),
    };
    chain.conv("conv1", unbiased(STAGES[0], kernel, stride, padding), None)?;
    normalise(&mut chain, "bn1", normalisation)?;
    if stem == ResNetStem::Imagenet {
        chain.pool("maxpool", Pooling::Max, Windows { kernel: 3, stride: 2, padding: 1 })?;
    }
    // After the pool, where there are fewer values, instead of before: the same outputs and
    // gradients.
    chain.push(NamedLayer::new("relu", Pointwise::blueprint(Activation::Relu)));
    for (stage, filters) in STAGES.into_iter().enumerate() {
        for block in 0..BLOCKS {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let name = format!("layer{}.{block}", stage + 1);
            let (layer, output) = basic_block(chain.image(), filters, stride, normalisation)?;
            chain.push_into(NamedLayer::new(name.clone(), layer), output);
            chain.push(NamedLayer::new(format!("{name}.relu"), Pointwise::blueprint(Activation::Relu)));
        }
    }
    chain.global_average_pool("avgpool");
    let (n_inputs, mut layers) = chain.flatten("flatten");
    layers.push(NamedLayer::new("fc", Linear::blueprint(n_inputs, sizes.n_outputs)));
    Ok(layers)
}

fn unbiased(filters: usize, kernel: usize, stride: usize, padding: usize) -> Convolution {
    Convolution { filters, kernel, stride, padding, groups: 1, bias: false }
}

fn normalise(chain: &mut ImageChain, name: &str, normalisation: Normalisation) -> Result<()> {
    let ImageShape { height, width, channels } = chain.image();
    let groups = normalisation.groups(channels)?;
    chain.push(NamedLayer::new(name, Norm::group(height * width, channels, groups)));
    Ok(())
}

/// Two convolutions of 3 × 3 beside the identity, or beside a convolution of 1 × 1 where the shape
/// changes (He 2016). The ReLU behind the sum is not part of it.
fn basic_block(
    image: ImageShape,
    filters: usize,
    stride: usize,
    normalisation: Normalisation,
) -> Result<(Blueprint, ImageShape)> {
    let mut branch = ImageChain::new(image, image.len())?;
    branch.conv("conv1", unbiased(filters, 3, stride, 1), None)?;
    normalise(&mut branch, "bn1", normalisation)?;
    branch.push(NamedLayer::new("relu", Pointwise::blueprint(Activation::Relu)));
    branch.conv("conv2", unbiased(filters, 3, 1, 1), None)?;
    normalise(&mut branch, "bn2", normalisation)?;
    let output = branch.image();
    let shortcut = if output == image {
        None
    } else {
        let mut shortcut = ImageChain::new(image, image.len())?;
        shortcut.conv("downsample.0", unbiased(filters, 1, stride, 0), None)?;
        normalise(&mut shortcut, "downsample.1", normalisation)?;
        Some(shortcut.into_layers())
    };
    Ok((Residual::blueprint(branch.into_layers(), shortcut, output.len()), output))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Model, ModelConfig};
    use crate::{DType, Device};

    fn model(image: ImageShape, stem: ResNetStem, n_outputs: usize) -> Model {
        let normalisation = Normalisation::GroupNorm { groups: 32 };
        let config = ModelConfig::Resnet18 { image, stem, normalisation };
        Model::new(&config, image.len(), n_outputs, DType::F32, &Device::Cpu).unwrap()
    }

    /// torchvision prints 11,689,512 for ImageNet; the usual network for CIFAR-10 has 11,173,962.
    /// Normalisation over groups has as many parameters as over the batch.
    #[test]
    fn parameter_counts_are_the_known_ones() {
        let n = |height, channels, stem, n_outputs| {
            let image = ImageShape { height, width: height, channels };
            model(image, stem, n_outputs).n_parameters()
        };
        assert_eq!(n(64, 3, ResNetStem::Imagenet, 1_000), 11_689_512);
        assert_eq!(n(32, 3, ResNetStem::Small, 10), 11_173_962);
        assert_eq!(n(28, 1, ResNetStem::Imagenet, 10), 11_175_370);
        assert_eq!(n(28, 1, ResNetStem::Small, 10), 11_172_810);
    }

    /// The last stage sees 2 × 2 and then 1 × 1: 5 of 9 taps of its first kernel and 8 of 9 of the
    /// other three lie over padding.
    #[test]
    fn weights_that_meet_no_pixel_of_mnist_are_left_out() {
        let model = model(ImageShape { height: 28, width: 28, channels: 1 }, ResNetStem::Imagenet, 10);
        let left_out = 5 * 512 * 256 + 3 * 8 * 512 * 512;
        assert_eq!(model.parameters().len(), 11_175_370 - left_out);
    }

    #[test]
    fn names_are_torchvision_s() {
        let model = model(ImageShape { height: 28, width: 28, channels: 1 }, ResNetStem::Imagenet, 10);
        let names: Vec<&str> = model.parameters().specs().iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names.len(), 62);
        assert_eq!(names[..4], ["conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight"]);
        let second: Vec<&str> = names.into_iter().filter(|name| name.starts_with("layer2.0.")).collect();
        assert_eq!(
            second,
            [
                "layer2.0.conv1.weight",
                "layer2.0.bn1.weight",
                "layer2.0.bn1.bias",
                "layer2.0.conv2.weight",
                "layer2.0.bn2.weight",
                "layer2.0.bn2.bias",
                "layer2.0.downsample.0.weight",
                "layer2.0.downsample.1.weight",
                "layer2.0.downsample.1.bias",
            ]
        );
    }

    #[test]
    fn batch_norm_is_refused() {
        let image = ImageShape { height: 28, width: 28, channels: 1 };
        let config = ModelConfig::Resnet18 { image, stem: ResNetStem::Small, normalisation: Normalisation::BatchNorm };
        let error = Model::new(&config, 784, 10, DType::F32, &Device::Cpu).err().unwrap().to_string();
        assert!(error.contains("GroupNorm"), "{error}");
    }
}
