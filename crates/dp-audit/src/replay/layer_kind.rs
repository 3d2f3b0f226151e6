//! The kinds of layer that the replay attacks, each with models that have it.

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha20Rng;
use strum::{IntoStaticStr, VariantArray};

use dp_engine::ops::Activation;
use dp_engine::{ImageShape, InputShape, LayerConfig, Loss, ModelConfig, Pooling};
use dp_train::{Result, TrainError};

/// A kind of layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum LayerKind {
    /// Linear layers on one position: logistic regression, multi-layer perceptrons.
    Linear,
    /// Linear layers on several positions, which share their weight.
    Sequence,
    /// Convolutions.
    Convolution,
    /// Pooling over windows, largest or mean value.
    Pooling,
    /// Normalisation over groups of channels and all positions.
    GroupNorm,
    /// Normalisation over the channels of a position.
    LayerNorm,
    /// Rows of a table, picked by ids.
    Embedding,
    /// Dropout.
    Dropout,
    /// Residual blocks.
    Residual,
}

/// What a search attacks: models with a layer of a kind, or with a layer of one's own.
#[derive(Debug, Clone, Copy)]
pub(super) enum Attacked<'a> {
    Kind(LayerKind),
    Own { layer: &'a LayerConfig, n_inputs: usize },
}

impl Attacked<'_> {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kind(kind) => kind.name(),
            Self::Own { .. } => "own",
        }
    }

    /// Draws a small model that has such a layer.
    pub(super) fn architecture(self, rng: &mut ChaCha20Rng) -> Architecture {
        match self {
            Self::Kind(kind) => kind.architecture(rng),
            Self::Own { layer, n_inputs } => with_own(layer, n_inputs, Task::draw(rng), rng),
        }
    }
}

/// A model, and how its inputs are arranged.
pub(super) struct Architecture {
    pub(super) config: ModelConfig,
    pub(super) task: Task,
    pub(super) n_inputs: usize,
    /// Inputs of one position: positions lie one after the other.
    pub(super) channels: usize,
    /// Inputs are ids below this.
    pub(super) vocabulary: Option<usize>,
    /// Inputs and outputs of the first layer, where that is a linear one: its parameters come
    /// first, weight before bias.
    pub(super) first_linear: Option<(usize, usize)>,
}

/// A loss, and what it asks of a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Task {
    pub(super) loss: Loss,
    pub(super) n_classes: usize,
    pub(super) n_outputs: usize,
}

impl Task {
    fn draw(rng: &mut ChaCha20Rng) -> Self {
        match rng.random_range(0..8) {
            0..=2 => Self::binary(),
            3 => {
                let loss = Loss::WeightedBceWithLogits { positive_weight: rng.random_range(0.1..10.0) };
                Self { loss, ..Self::binary() }
            }
            4 => {
                let class_weights = vec![rng.random_range(0.1..10.0), 1.0];
                Self { loss: Loss::WeightedSoftmaxCrossEntropy { class_weights }, n_classes: 2, n_outputs: 2 }
            }
            n => Self { loss: Loss::SoftmaxCrossEntropy, n_classes: n - 3, n_outputs: n - 3 },
        }
    }

    /// Two classes, one logit.
    pub(super) fn binary() -> Self {
        Self { loss: Loss::BceWithLogits, n_classes: 2, n_outputs: 1 }
    }
}

impl LayerKind {
    /// Every kind.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Name on the command line and in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Draws a small model that has such a layer.
    pub(super) fn architecture(self, rng: &mut ChaCha20Rng) -> Architecture {
        let task = Task::draw(rng);
        match self {
            Self::Linear => linear(task, rng),
            Self::Convolution => on_image(task, rng),
            Self::Pooling if rng.random() => pooled_convolution(task, rng),
            Self::Pooling => pooling(task, rng),
            Self::Sequence | Self::GroupNorm | Self::LayerNorm | Self::Embedding | Self::Dropout | Self::Residual => {
                on_sequence(self, task, rng)
            }
        }
    }
}

const ACTIVATIONS: [Activation; 5] =
    [Activation::Relu, Activation::Tanh, Activation::Sigmoid, Activation::Gelu, Activation::GeluTanh];

/// ReLU half of the time: it has a kink.
fn activation(rng: &mut ChaCha20Rng) -> Activation {
    if rng.random() { Activation::Relu } else { *ACTIVATIONS.choose(rng).unwrap_or(&Activation::Relu) }
}

fn one_of(values: &[usize], rng: &mut ChaCha20Rng) -> usize {
    values.choose(rng).copied().unwrap_or(1)
}

fn linear(task: Task, rng: &mut ChaCha20Rng) -> Architecture {
    // Products take other paths for many inputs; such cases are dear and few.
    let n_inputs = if rng.random_bool(0.03) { 600 } else { one_of(&[1, 2, 3, 5, 16, 20, 33, 100], rng) };
    let (config, width) = if rng.random_bool(0.3) {
        (ModelConfig::LogisticRegression, task.n_outputs)
    } else {
        let hidden: Vec<usize> = (0..rng.random_range(1..=2)).map(|_| one_of(&[1, 2, 3, 5, 10, 17], rng)).collect();
        let width = hidden.first().copied().unwrap_or(task.n_outputs);
        (ModelConfig::Mlp { hidden, activation: activation(rng) }, width)
    };
    let first_linear = Some((n_inputs, width));
    Architecture { config, task, n_inputs, channels: n_inputs, vocabulary: None, first_linear }
}

/// The layer on the inputs, or behind another one.
fn with_own(layer: &LayerConfig, n_inputs: usize, task: Task, rng: &mut ChaCha20Rng) -> Architecture {
    let mut layers = Vec::new();
    let is_first: bool = rng.random();
    if !is_first {
        layers.push(LayerConfig::Linear { outputs: n_inputs });
        layers.push(LayerConfig::Activation { function: activation(rng) });
    }
    layers.push(layer.clone());
    if rng.random() {
        layers.push(LayerConfig::Activation { function: activation(rng) });
    }
    layers.push(LayerConfig::Linear { outputs: task.n_outputs });
    let first_linear = (!is_first).then_some((n_inputs, n_inputs));
    let config = ModelConfig::Sequential { input: InputShape::Features, layers };
    Architecture { config, task, n_inputs, channels: n_inputs, vocabulary: None, first_linear }
}

fn on_sequence(kind: LayerKind, task: Task, rng: &mut ChaCha20Rng) -> Architecture {
    let is_embedding = kind == LayerKind::Embedding;
    let positions = one_of(&[2, 2, 3, 4, 9], rng);
    let channels = if is_embedding { 1 } else { one_of(&[1, 2, 3, 8, 17, 17], rng) };
    // Widths that group normalisation can divide.
    let width = one_of(&[2, 4, 8, 16], rng);
    let vocabulary = is_embedding.then(|| one_of(&[1, 2, 5, 40], rng));
    let act = |rng: &mut ChaCha20Rng| LayerConfig::Activation { function: activation(rng) };
    let mut layers = match vocabulary {
        Some(vocabulary) => vec![LayerConfig::Embedding { vocabulary, channels: width }],
        None => vec![LayerConfig::Linear { outputs: width }],
    };
    match kind {
        LayerKind::GroupNorm => {
            layers.push(LayerConfig::GroupNorm { groups: if rng.random() { 2 } else { width } });
            layers.push(act(rng));
        }
        LayerKind::LayerNorm => layers.extend([LayerConfig::LayerNorm, act(rng)]),
        LayerKind::Dropout => {
            layers.push(act(rng));
            layers.push(LayerConfig::Dropout { probability: rng.random_range(0.0..0.95) });
        }
        LayerKind::Residual => {
            let inner = one_of(&[1, 4, width], rng);
            let branch = vec![LayerConfig::Linear { outputs: inner }, act(rng), LayerConfig::Linear { outputs: width }];
            let shortcut = if rng.random() { vec![LayerConfig::Linear { outputs: width }] } else { Vec::new() };
            layers.push(LayerConfig::Residual { branch, shortcut });
            layers.push(act(rng));
        }
        _ if rng.random() => layers.push(act(rng)),
        _ => {}
    }
    layers.extend(head(&task, rng));
    Architecture {
        config: ModelConfig::Sequential { input: InputShape::Sequence { positions, channels }, layers },
        task,
        n_inputs: positions * channels,
        channels,
        vocabulary,
        first_linear: (!is_embedding).then_some((channels, width)),
    }
}

/// From positions to outputs: their mean, in which they can cancel, or all of them.
fn head(task: &Task, rng: &mut ChaCha20Rng) -> [LayerConfig; 2] {
    let gather = if rng.random() { LayerConfig::GlobalAveragePool } else { LayerConfig::Flatten };
    [gather, LayerConfig::Linear { outputs: task.n_outputs }]
}

fn image(rng: &mut ChaCha20Rng) -> ImageShape {
    ImageShape { height: rng.random_range(3..=7), width: rng.random_range(3..=7), channels: one_of(&[1, 2, 4], rng) }
}

fn convolution(image: ImageShape, rng: &mut ChaCha20Rng) -> LayerConfig {
    let kernel = rng.random_range(1..=3);
    LayerConfig::Conv {
        outputs: 2 * rng.random_range(1..=4),
        kernel,
        stride: rng.random_range(1..=2),
        padding: rng.random_range(0..kernel),
        groups: if image.channels > 1 && rng.random_bool(0.3) { 2 } else { 1 },
        bias: rng.random_bool(0.8),
    }
}

fn of_images(image: ImageShape, config: ModelConfig, task: Task) -> Architecture {
    let n_inputs = image.len();
    Architecture { config, task, n_inputs, channels: image.channels, vocabulary: None, first_linear: None }
}

fn on_image(task: Task, rng: &mut ChaCha20Rng) -> Architecture {
    let image = image(rng);
    let mut layers = vec![convolution(image, rng)];
    if rng.random_bool(0.7) {
        layers.push(LayerConfig::Activation { function: activation(rng) });
    }
    layers.extend(head(&task, rng));
    of_images(image, ModelConfig::Sequential { input: InputShape::Image(image), layers }, task)
}

fn pooling(task: Task, rng: &mut ChaCha20Rng) -> Architecture {
    let image = image(rng);
    let pooling = if rng.random() { Pooling::Max } else { Pooling::Average };
    let pool =
        LayerConfig::Pool { pooling, kernel: 2, stride: rng.random_range(1..=2), padding: rng.random_range(0..=1) };
    let act = LayerConfig::Activation { function: activation(rng) };
    let mut layers = vec![LayerConfig::Linear { outputs: 2 * rng.random_range(1..=4) }, act, pool];
    layers.extend(head(&task, rng));
    of_images(image, ModelConfig::Sequential { input: InputShape::Image(image), layers }, task)
}

/// A pooling right behind a convolution is part of its layer.
fn pooled_convolution(task: Task, rng: &mut ChaCha20Rng) -> Architecture {
    let image = image(rng);
    let kernel = rng.random_range(1..=3);
    let conv = LayerConfig::Conv {
        outputs: rng.random_range(1..=8),
        kernel,
        stride: 1,
        padding: kernel / 2,
        groups: 1,
        bias: true,
    };
    let features = vec![conv, LayerConfig::max_pool(2, rng.random_range(1..=2))];
    let config = ModelConfig::Cnn { image, features, hidden: Vec::new(), activation: Activation::Relu };
    of_images(image, config, task)
}

impl std::str::FromStr for LayerKind {
    type Err = TrainError;

    fn from_str(name: &str) -> Result<Self> {
        let kinds = Self::ALL.iter().copied();
        let names: Vec<&str> = kinds.clone().map(Self::name).collect();
        let known = kinds.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| TrainError::invalid("layer", name, format!("one of {}", names.join(", "))))
    }
}
