//! Layers with an explicit forward and backward pass, and the norms and weighted sums of their
//! per-sample gradients.

mod blueprint;
mod chain;
mod conv;
mod dropout;
mod embedding;
mod flatten;
mod linear;
mod max_windows;
mod norm;
mod own;
mod pieces;
mod pointwise;
mod pool;
mod residual;
mod stage;

use std::ops::Range;

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::dropout::DropoutKey;
pub(crate) use conv::Conv2d;
pub(crate) use flatten::Flatten;

pub(crate) use blueprint::{Blueprint, BuildContext};
pub(crate) use chain::{Chain, NamedLayer, parameters};
pub(crate) use dropout::Dropout;
pub(crate) use embedding::Embedding;
pub(crate) use linear::Linear;
pub(crate) use norm::Norm;
pub(crate) use own::Own;
pub(crate) use pointwise::Pointwise;
pub(crate) use pool::Pool2d;
pub use pool::Pooling;
pub(crate) use residual::Residual;

/// Name, shape and treatment of one parameter tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ParameterSpec {
    /// Dotted name, stable across versions, for example `fc1.weight`.
    pub name: String,
    /// Shape: `[outputs, inputs]` for a weight, `[outputs]` for a bias, `[filters, kernel height,
    /// kernel width, channels / groups]` for a convolution's weight: channels last, as the
    /// activations. PyTorch's order is `[filters, channels / groups, height, width]`. Of a kernel
    /// that does not fit onto the image, the part in `crop`.
    pub shape: Vec<usize>,
    /// How its values start.
    pub initial: Initial,
    /// Whether L2 regularisation applies: weights of products, not biases, nor scales and shifts of
    /// a normalisation.
    pub decays: bool,
    /// For a convolution's weight that is not all of its kernel: where in the kernel it is.
    pub crop: Option<KernelCrop>,
}

/// The part of a convolution's kernel that meets pixels.
///
/// On small images a padded kernel has rows and columns that lie over the padding at every
/// position: all but the middle ones of 3 × 3 on 1 × 1, as in ResNet-18's last blocks on MNIST. No
/// output depends on these weights and no record has a gradient there, whatever it is: they are not
/// parameters of the model, are neither stored nor trained, and take no noise. Files hold 0 in
/// their place ([`Model::save_weights`](crate::Model::save_weights)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCrop {
    /// Rows, and columns, of the whole kernel.
    pub kernel: usize,
    /// Rows, and columns, of it that come before the part.
    pub first: usize,
}

/// Distribution of a parameter tensor's initial values: PyTorch's default for each kind of layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Initial {
    /// Uniform in ±1/√fan_in: linear layers and convolutions, weights and biases.
    Uniform {
        /// Inputs of a unit, at least 1.
        fan_in: usize,
    },
    /// Standard normal: embeddings.
    Normal,
    /// 1: scales of a normalisation.
    Ones,
    /// 0: shifts of a normalisation.
    Zeros,
}

impl ParameterSpec {
    /// A tensor of this shape.
    pub fn new(name: impl Into<String>, shape: Vec<usize>, initial: Initial, decays: bool) -> Self {
        Self { name: name.into(), shape, initial, decays, crop: None }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shape in the architecture's own terms: of the whole kernel, if the tensor is a part of
    /// one.
    pub fn whole_shape(&self) -> Vec<usize> {
        match (self.crop, self.shape.as_slice()) {
            (Some(KernelCrop { kernel, .. }), &[filters, _, _, channels]) => vec![filters, kernel, kernel, channels],
            _ => self.shape.clone(),
        }
    }
}

/// The purpose of a pass through a model.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode<'a> {
    /// Every unit is used: evaluation and analysis.
    Whole,
    /// Dropout layers drop units.
    Dropping {
        /// The step's key.
        key: DropoutKey,
        /// Number of each row's record in its data set: what a record's mask depends on, rather
        /// than its place in the batch, so that neither the size of the pieces nor the other
        /// records of the batch matter.
        records: &'a [usize],
    },
}

/// One layer of a model, built from its parameters.
///
/// A step calls `forward`, then `backward` with what it handed on, then `add_sq_norms` and
/// `weighted_sum` as often as needed with the factors of the per-sample gradients that came of
/// both. Rows are records and never mix, so what a record contributes does not depend on the rest
/// of its batch.
pub(crate) trait Layer: Send {
    /// Values that the forward pass keeps for the backward pass.
    type Pass: Send;
    /// The factors of the per-sample gradients.
    type Factors: Send;

    /// Says what the following passes are for. Only layers that behave differently in training, and
    /// those that contain layers, listen.
    ///
    /// Apart from `forward`, since most layers have no use for it, and since the mode must last for
    /// the backward pass too.
    fn begin(&mut self, _mode: Mode<'_>) {}

    /// Output `[batch, outputs]` for input `[batch, inputs]`. May overwrite the input.
    fn forward(&mut self, input: Tensor) -> Result<(Tensor, Self::Pass)>;

    /// Gradient with respect to the input, `None` unless asked for. May overwrite
    /// `output_gradient`.
    fn backward(
        &mut self,
        pass: Self::Pass,
        output_gradient: Tensor,
        wants_input_gradient: bool,
    ) -> Result<(Option<Tensor>, Self::Factors)>;

    /// Adds to `sq_norms`, `[batch]` in `f64`, the square of an upper bound on the norm of what
    /// [`Self::weighted_sum`] adds for each record at weight 1, rounding included; not finite where
    /// that is not. A layer without parameters is not asked.
    fn add_sq_norms(&mut self, _factors: &mut Self::Factors, _sq_norms: &Tensor) -> Result<()> {
        Ok(())
    }

    /// `Σ_i weights[i] g_i` over some rows of the batch into (or added to) `gradients`, views in
    /// the order of the layer's parameters. There is a weight for each of the rows. A layer without
    /// parameters is not asked.
    fn weighted_sum(
        &mut self,
        _factors: &Self::Factors,
        _rows: Range<usize>,
        _weights: &[f64],
        _gradients: &[Tensor],
        _accumulate: bool,
    ) -> Result<()> {
        Ok(())
    }

    /// For each tensor to whose sum a record contributes several terms one by one, rather than its
    /// whole gradient at once: how many.
    fn chained_terms(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Rows of the table that the inputs are ids of; `None` where they are numbers.
    fn vocabulary(&self) -> Option<usize> {
        None
    }

    /// Values of each record's gradient that are kept from the norms to the sum.
    fn kept_values(&self) -> usize {
        0
    }
}
