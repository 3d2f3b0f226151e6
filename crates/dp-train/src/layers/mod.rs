//! Layers with an explicit forward and backward pass, and the norms and weighted sums of their per-sample gradients.

mod conv;
mod flatten;
mod linear;
mod pointwise;
mod pool;

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

pub(crate) use conv::Conv2d;
pub(crate) use flatten::Flatten;
pub(crate) use linear::Linear;
pub(crate) use pointwise::Pointwise;
pub(crate) use pool::Pool2d;
pub use pool::Pooling;

/// Name, shape and treatment of one parameter tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterSpec {
    /// Dotted name, stable across versions, for example `fc1.weight`.
    pub name: String,
    /// Shape: `[outputs, inputs]` for a weight, `[outputs]` for a bias, `[filters, kernel height, kernel width, channels / groups]` for
    /// a convolution's weight: channels last, as the activations. PyTorch's order is `[filters, channels / groups, height, width]`.
    pub shape: Vec<usize>,
    /// Number of inputs of a unit, which sets the scale of the initial values.
    pub fan_in: usize,
    /// Whether L2 regularisation applies: weights, not biases.
    pub decays: bool,
}

impl ParameterSpec {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One layer of a model.
///
/// A step calls `forward`, then `backward`, then `add_sq_norms`, then `weighted_sum` as often as needed: the layer keeps the
/// factors of its per-sample gradients (its input and the gradient of its output) from the first two for the last two. Rows
/// are records and never mix, so what a record contributes does not depend on the rest of its batch.
pub(crate) trait Layer: Send {
    /// Parameters in order; names are local to the layer (`weight`).
    fn parameters(&self) -> Vec<ParameterSpec>;

    /// Hands over views `[shape]` into the model's parameters, in the order of [`Self::parameters`].
    fn bind(&mut self, parameters: &[Tensor]);

    /// Output `[batch, outputs]` for input `[batch, inputs]`. May overwrite the input.
    fn forward(&mut self, input: Tensor) -> Result<Tensor>;

    /// Gradient with respect to the input, `None` unless asked for. May overwrite `output_gradient`.
    fn backward(&mut self, output_gradient: Tensor, wants_input_gradient: bool) -> Result<Option<Tensor>>;

    /// Adds the squared norm of each record's gradient to `sq_norms`, `[batch]` in `f64`.
    fn add_sq_norms(&mut self, sq_norms: &Tensor) -> Result<()>;

    /// `Σ_i weights[i] g_i` into (or added to) `gradients`, views in the order of [`Self::parameters`].
    fn weighted_sum(&mut self, weights: &[f64], gradients: &[Tensor], accumulate: bool) -> Result<()>;
}
