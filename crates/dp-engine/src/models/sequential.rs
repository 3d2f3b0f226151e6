//! Models put together from layers in a configuration.

use serde::{Deserialize, Serialize};

use super::image_chain::{Convolution, ImageChain, Windows};
use super::normalisation::{batch_norm_refused, check_groups};
use super::{ImageShape, NamedLayer, Sizes};
use crate::error::{EngineError, Result};
use crate::layers::{
    Blueprint, Dropout, Embedding, Flatten, Linear, Norm, Own, ParameterSpec, Pointwise, Pooling, Residual, parameters,
};
use crate::ops::Activation;
use crate::own::find_layer;

/// How the inputs of a record are arranged: positions side by side, each with its channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum InputShape {
    /// One position whose channels are all inputs.
    Features,
    /// `positions` times `channels` inputs.
    Sequence {
        /// Positions.
        positions: usize,
        /// Values of a position; 1 for the ids of an embedding.
        channels: usize,
    },
    /// Positions are pixels.
    Image(ImageShape),
}

/// One layer of [`ModelConfig::Sequential`](super::ModelConfig::Sequential), or of the
/// convolutional part of [`ModelConfig::Cnn`](super::ModelConfig::Cnn).
///
/// **Example**
/// ```
/// use dp_engine::{Activation, DType, Device, InputShape, LayerConfig, Model, ModelConfig};
/// let linear = |outputs| LayerConfig::Linear { outputs };
/// let layers = vec![linear(8), LayerConfig::Activation { function: Activation::Relu }, linear(2)];
/// let config = ModelConfig::Sequential { input: InputShape::Features, layers };
/// let model = Model::new(&config, 5, 2, DType::F32, &Device::Cpu)?;
/// assert_eq!(model.n_parameters(), 5 * 8 + 8 + 8 * 2 + 2);
/// # Ok::<(), dp_engine::EngineError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum LayerConfig {
    /// `x Wᵀ + b` at every position: `weight` `[outputs, channels]`, `bias` `[outputs]`.
    Linear {
        /// Channels it gives.
        outputs: usize,
    },
    /// A convolution over an image: `weight` `[outputs, channels / groups, kernel, kernel]` as
    /// PyTorch has it, `bias` `[outputs]`.
    Conv {
        /// Channels it gives.
        outputs: usize,
        /// Height and width of a filter.
        kernel: usize,
        /// Pixels from one position to the next.
        #[serde(default = "one")]
        stride: usize,
        /// Pixels of zeros on every side, less than the kernel.
        #[serde(default)]
        padding: usize,
        /// Parts that channels are split into.
        #[serde(default = "one")]
        groups: usize,
        /// Whether there is a bias.
        #[serde(default = "yes")]
        bias: bool,
    },
    /// Pooling over windows, which may overlap.
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
    /// The mean of each channel over all positions.
    GlobalAveragePool,
    /// All positions as one, channel by channel, as PyTorch's `Flatten` of an image with channels
    /// first.
    Flatten,
    /// A row of `weight` `[vocabulary, channels]` for each position's id; only as the first layer,
    /// on a sequence of one channel. The ids are the input values: whole numbers from 0 to below
    /// `vocabulary`.
    Embedding {
        /// Number of ids, at most 2²⁴: beyond it an input value no longer holds every whole number.
        vocabulary: usize,
        /// Channels it gives.
        channels: usize,
    },
    /// Normalisation over groups of channels and all positions: `weight` and `bias` `[channels]`.
    GroupNorm {
        /// Number of groups; divides the channels.
        groups: usize,
    },
    /// Normalisation over the channels of each position: `weight` and `bias` `[channels]`.
    LayerNorm,
    /// Refused: see [`Normalisation::BatchNorm`](super::Normalisation::BatchNorm).
    BatchNorm,
    /// A function of each value.
    Activation {
        /// Which.
        function: Activation,
    },
    /// In training, sets each value to 0 with this probability and divides the others by its
    /// complement.
    Dropout {
        /// At least 0, less than 1.
        probability: f64,
    },
    /// `branch(x) + x`, or `branch(x) + shortcut(x)`. Parameters are named `branch.0.weight`, …,
    /// `shortcut.0.weight`, ….
    Residual {
        /// At least one layer with parameters.
        branch: Vec<LayerConfig>,
        /// Empty for `x` itself, which must then have the branch's shape.
        #[serde(default)]
        shortcut: Vec<LayerConfig>,
    },
    /// A layer from outside of this crate ([`OwnLayer`](crate::OwnLayer)).
    Own {
        /// Its name, as [`register_layer`](crate::register_layer) was given it.
        layer: String,
        /// Numbers that it takes, in its order.
        #[serde(default)]
        settings: Vec<f64>,
    },
}

impl LayerConfig {
    /// A convolution of stride 1 with bias, without padding or groups.
    pub fn conv(outputs: usize, kernel: usize) -> Self {
        Self::Conv { outputs, kernel, stride: 1, padding: 0, groups: 1, bias: true }
    }

    /// Max pooling without padding.
    pub fn max_pool(kernel: usize, stride: usize) -> Self {
        Self::Pool { pooling: Pooling::Max, kernel, stride, padding: 0 }
    }

    /// Names of the layers of one's own that it is, or that it holds.
    pub(super) fn own_layers(&self) -> Vec<String> {
        match self {
            Self::Own { layer, .. } => vec![layer.clone()],
            Self::Residual { branch, shortcut } => branch.iter().chain(shortcut).flat_map(Self::own_layers).collect(),
            _ => Vec::new(),
        }
    }

    /// As in a configuration file.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Linear { .. } => "linear",
            Self::Conv { .. } => "conv",
            Self::Pool { .. } => "pool",
            Self::GlobalAveragePool => "global-average-pool",
            Self::Flatten => "flatten",
            Self::Embedding { .. } => "embedding",
            Self::GroupNorm { .. } => "group-norm",
            Self::LayerNorm => "layer-norm",
            Self::BatchNorm => "batch-norm",
            Self::Activation { .. } => "activation",
            Self::Dropout { .. } => "dropout",
            Self::Residual { .. } => "residual",
            Self::Own { .. } => "own",
        }
    }
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

/// Whole numbers up to here have an `f32` of their own.
const LARGEST_VOCABULARY: usize = 1 << 24;

/// Height, width and channels of what flows between two layers; a sequence is one pixel wide.
type Extent = ImageShape;

/// `sequential-` and the number of layers.
pub(super) fn label(layers: &[LayerConfig]) -> String {
    format!("sequential-{}", layers.len())
}

pub(super) fn layers(input: InputShape, configs: &[LayerConfig], sizes: &Sizes) -> Result<Vec<NamedLayer>> {
    let extent = match input {
        InputShape::Features => Extent { height: 1, width: 1, channels: sizes.n_inputs },
        InputShape::Sequence { positions, channels } => Extent { height: positions, width: 1, channels },
        InputShape::Image(image) => image,
    };
    extent.check(sizes.n_inputs)?;
    let mut builder = Builder { n_dropouts: 0 };
    let (layers, extent) = builder.chain("", configs, extent)?;
    if extent.len() != sizes.n_outputs {
        let expected = format!("a last layer with {} outputs, as the loss takes", sizes.n_outputs);
        return Err(EngineError::invalid("model.layers", shown(extent), expected));
    }
    Ok(layers)
}

fn shown(Extent { height, width, channels }: Extent) -> String {
    format!("{height} × {width} × {channels}")
}

struct Builder {
    /// Dropout layers so far: each has its own masks.
    n_dropouts: u32,
}

impl Builder {
    /// Layers named `prefix` and their number, as PyTorch's `Sequential` names them, and what comes
    /// out of them.
    fn chain(&mut self, prefix: &str, configs: &[LayerConfig], input: Extent) -> Result<(Vec<NamedLayer>, Extent)> {
        let mut chain = ImageChain::new(input, input.len())?;
        // Whether the layer before has no further use for what it put out.
        let mut may_overwrite = false;
        for (i, config) in configs.iter().enumerate() {
            let name = format!("{prefix}{i}");
            if let LayerConfig::Activation { function } = config {
                // What a chain puts out is overwritten by the loss or a residual sum, and a
                // flattening may put out what it was given.
                let kept = matches!(configs.get(i + 1), None | Some(LayerConfig::Flatten));
                let apart = kept || !may_overwrite;
                let layer = if apart { Pointwise::apart(*function) } else { Pointwise::blueprint(*function) };
                chain.push(NamedLayer::new(name, layer));
            } else {
                self.layer(&mut chain, name, config)?;
            }
            may_overwrite = !matches!(config, LayerConfig::Activation { .. } | LayerConfig::Flatten);
        }
        let output = chain.image();
        Ok((chain.into_layers(), output))
    }

    fn layer(&mut self, chain: &mut ImageChain, name: String, config: &LayerConfig) -> Result<()> {
        let extent = chain.image();
        let (positions, channels) = (extent.height * extent.width, extent.channels);
        match config {
            &LayerConfig::Linear { outputs } => {
                if outputs == 0 {
                    return Err(EngineError::invalid("linear.outputs", outputs, "at least 1"));
                }
                let layer = Linear::on_positions(positions, channels, outputs);
                chain.push_into(NamedLayer::new(name, layer), Extent { channels: outputs, ..extent });
            }
            &LayerConfig::Conv { outputs: filters, kernel, stride, padding, groups, bias } => {
                chain.conv(name, Convolution { filters, kernel, stride, padding, groups, bias }, None)?;
            }
            &LayerConfig::Pool { pooling, kernel, stride, padding } => {
                chain.pool(name, pooling, Windows { kernel, stride, padding })?;
            }
            LayerConfig::GlobalAveragePool => chain.global_average_pool(name),
            LayerConfig::Flatten => {
                let layer = Flatten::blueprint(positions, channels);
                let vector = Extent { height: 1, width: 1, channels: extent.len() };
                chain.push_into(NamedLayer::new(name, layer), vector);
            }
            &LayerConfig::Embedding { vocabulary, channels: outputs } => {
                if name != "0" || channels != 1 {
                    let expected = "the first layer, on a sequence of one channel";
                    return Err(EngineError::invalid(
                        "embedding",
                        format!("layer {name} on {channels} channels"),
                        expected,
                    ));
                }
                if !(1..=LARGEST_VOCABULARY).contains(&vocabulary) {
                    let expected = format!("1 to {LARGEST_VOCABULARY}");
                    return Err(EngineError::invalid("embedding.vocabulary", vocabulary, expected));
                }
                if outputs == 0 {
                    return Err(EngineError::invalid("embedding.channels", outputs, "at least 1"));
                }
                let layer = Embedding::blueprint(positions, vocabulary, outputs);
                chain.push_into(NamedLayer::new(name, layer), Extent { channels: outputs, ..extent });
            }
            &LayerConfig::GroupNorm { groups } => {
                let layer = Norm::group(positions, channels, check_groups(groups, channels)?);
                chain.push(NamedLayer::new(name, layer));
            }
            LayerConfig::LayerNorm => {
                chain.push(NamedLayer::new(name, Norm::layer(positions, channels)));
            }
            LayerConfig::BatchNorm => return Err(batch_norm_refused("model.layers")),
            &LayerConfig::Dropout { probability } => {
                if !(0.0..1.0).contains(&probability) {
                    return Err(EngineError::invalid("dropout.probability", probability, "at least 0, less than 1"));
                }
                self.n_dropouts += 1;
                let layer = Dropout::blueprint(probability, self.n_dropouts - 1, extent.len());
                chain.push(NamedLayer::new(name, layer));
            }
            LayerConfig::Residual { branch, shortcut } => {
                let (layer, output) = self.residual(branch, shortcut, extent)?;
                chain.push_into(NamedLayer::new(name, layer), output);
            }
            LayerConfig::Own { layer, settings } => {
                let (layer, inputs) = (find_layer(layer)?, extent.len());
                let unfit = |expected: String| EngineError::invalid("own.layer", layer.name(), expected);
                let shape = layer.shape(inputs, settings).map_err(unfit)?;
                let is_usable = |spec: &ParameterSpec| !spec.is_empty() && (1..=2).contains(&spec.shape.len());
                if shape.outputs == 0 || !shape.parameters.iter().all(is_usable) {
                    return Err(unfit("an output or more, and parameters of one or two dimensions".into()));
                }
                let output = if shape.outputs == inputs {
                    extent
                } else {
                    Extent { height: 1, width: 1, channels: shape.outputs }
                };
                let layer = Own::blueprint(layer, settings.clone(), inputs, shape);
                chain.push_into(NamedLayer::new(name, layer), output);
            }
            // Where its values go is known to the chain only.
            LayerConfig::Activation { .. } => {}
        }
        Ok(())
    }

    fn residual(
        &mut self,
        branch: &[LayerConfig],
        shortcut: &[LayerConfig],
        extent: Extent,
    ) -> Result<(Blueprint, Extent)> {
        let (branch, output) = self.chain("branch.", branch, extent)?;
        let (shortcut, skipped) = self.chain("shortcut.", shortcut, extent)?;
        if output != skipped {
            let expected = format!("the {} of its shortcut", shown(skipped));
            return Err(EngineError::invalid("residual.branch", shown(output), expected));
        }
        if parameters(&branch).is_empty() {
            // Such a branch could hand on its very input, and would add it to itself in place.
            return Err(EngineError::invalid("residual.branch", "without parameters", "a layer with parameters"));
        }
        let shortcut = (!shortcut.is_empty()).then_some(shortcut);
        Ok((Residual::blueprint(branch, shortcut, output.len()), output))
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::models::{Model, ModelConfig};
    use crate::{DType, Device};

    fn build(input: InputShape, layers: Vec<LayerConfig>, n_inputs: usize, n_outputs: usize) -> Result<Model> {
        Model::new(&ModelConfig::Sequential { input, layers }, n_inputs, n_outputs, DType::F32, &Device::Cpu)
    }

    fn refused(layers: Vec<LayerConfig>) -> EngineError {
        build(InputShape::Sequence { positions: 3, channels: 4 }, layers, 12, 3).err().unwrap()
    }

    #[test]
    fn names_are_pytorch_s() {
        let linear = |outputs| LayerConfig::Linear { outputs };
        let residual =
            LayerConfig::Residual { branch: vec![LayerConfig::LayerNorm, linear(2)], shortcut: vec![linear(2)] };
        let layers = vec![LayerConfig::GroupNorm { groups: 2 }, residual, linear(1)];
        let model = build(InputShape::Sequence { positions: 3, channels: 4 }, layers, 12, 3).unwrap();
        let names: Vec<&str> = model.parameters().specs().iter().map(|spec| spec.name.as_str()).collect();
        assert_snapshot!(names.join(" "), @"0.weight 0.bias 1.branch.0.weight 1.branch.0.bias 1.branch.1.weight 1.branch.1.bias 1.shortcut.0.weight 1.shortcut.0.bias 2.weight 2.bias");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let linear = |outputs| LayerConfig::Linear { outputs };
        let residual = |branch| LayerConfig::Residual { branch, shortcut: Vec::new() };
        assert_snapshot!(refused(vec![linear(1), LayerConfig::BatchNorm]), @"model.layers = batch-norm: expected group-norm (GroupNorm): statistics over the batch mix records, and clipping would bound nothing");
        assert_snapshot!(refused(vec![linear(2)]), @"model.layers = 3 × 1 × 2: expected a last layer with 3 outputs, as the loss takes");
        assert_snapshot!(refused(vec![linear(0)]), @"linear.outputs = 0: expected at least 1");
        assert_snapshot!(refused(vec![LayerConfig::GroupNorm { groups: 3 }, linear(1)]), @"group-norm groups = 3: expected a divisor of the 4 channels");
        assert_snapshot!(refused(vec![LayerConfig::Dropout { probability: 1.0 }, linear(1)]), @"dropout.probability = 1: expected at least 0, less than 1");
        assert_snapshot!(refused(vec![LayerConfig::Dropout { probability: f64::NAN }, linear(1)]), @"dropout.probability = NaN: expected at least 0, less than 1");
        assert_snapshot!(refused(vec![residual(vec![linear(5)]), linear(1)]), @"residual.branch = 3 × 1 × 5: expected the 3 × 1 × 4 of its shortcut");
        assert_snapshot!(refused(vec![residual(Vec::new()), linear(1)]), @"residual.branch = without parameters: expected a layer with parameters");
        assert_snapshot!(refused(vec![LayerConfig::Embedding { vocabulary: 9, channels: 2 }, linear(1)]), @"embedding = layer 0 on 4 channels: expected the first layer, on a sequence of one channel");
        let ids = |layers| build(InputShape::Sequence { positions: 3, channels: 1 }, layers, 3, 3).err().unwrap();
        assert_snapshot!(ids(vec![LayerConfig::Embedding { vocabulary: 0, channels: 2 }, linear(1)]), @"embedding.vocabulary = 0: expected 1 to 16777216");
        assert_snapshot!(ids(vec![LayerConfig::Embedding { vocabulary: 1 << 25, channels: 2 }, linear(1)]), @"embedding.vocabulary = 33554432: expected 1 to 16777216");
        assert_snapshot!(ids(vec![linear(1), LayerConfig::Embedding { vocabulary: 9, channels: 1 }]), @"embedding = layer 1 on 1 channels: expected the first layer, on a sequence of one channel");
        let shape = InputShape::Sequence { positions: 3, channels: 4 };
        assert_snapshot!(build(shape, vec![linear(1)], 13, 3).err().unwrap(), @"model.image = 3 × 1 × 4: expected height × width × channels to be the 13 inputs of a record");
    }

    /// Esipova's network, put together: the same parameters as by its name.
    #[test]
    fn an_image_becomes_a_vector() {
        let image = ImageShape { height: 28, width: 28, channels: 1 };
        let conv = |outputs| LayerConfig::Conv { outputs, kernel: 3, stride: 1, padding: 0, groups: 1, bias: true };
        let tanh = || LayerConfig::Activation { function: Activation::Tanh };
        let layers =
            vec![conv(32), tanh(), conv(16), tanh(), LayerConfig::Flatten, LayerConfig::Linear { outputs: 10 }];
        let model = build(InputShape::Image(image), layers, 784, 10).unwrap();
        assert_eq!(model.parameters().len(), 97_114);
    }

    #[test]
    fn a_configuration_file_names_the_layers() {
        let text = r#"{"name": "sequential", "input": {"name": "features"}, "layers": [
            {"name": "linear", "outputs": 8},
            {"name": "group-norm", "groups": 2},
            {"name": "activation", "function": "gelu-tanh"},
            {"name": "residual", "branch": [{"name": "linear", "outputs": 8}]},
            {"name": "dropout", "probability": 0.3},
            {"name": "linear", "outputs": 2}]}"#;
        let config: ModelConfig = serde_json::from_str(text).unwrap();
        assert_eq!(Model::new(&config, 5, 2, DType::F32, &Device::Cpu).unwrap().parameters().len(), 48 + 16 + 72 + 18);
        let unknown = serde_json::from_str::<LayerConfig>(r#"{"name": "linear", "outputs": 8, "bias": false}"#);
        assert_snapshot!(unknown.unwrap_err(), @"unknown field `bias`, expected `outputs`");
    }
}
