//! Layer of one pointwise activation.

use candle_core::{Result, Tensor};

use super::{Layer, ParameterSpec};
use crate::ops::{Activation, ActivationBackward};

/// An activation applied in place; it has no parameters.
pub(crate) struct Pointwise {
    activation: Activation,
    output: Option<Tensor>,
    /// Whether the output is kept as a copy.
    copies: bool,
}

impl Pointwise {
    pub(crate) fn new(activation: Activation) -> Self {
        Self { activation, output: None, copies: false }
    }

    /// As a model's last layer: the loss writes its gradient over the outputs, of which the backward pass needs a copy.
    pub(crate) fn last(activation: Activation) -> Self {
        Self { copies: true, ..Self::new(activation) }
    }
}

impl Layer for Pointwise {
    fn parameters(&self) -> Vec<ParameterSpec> {
        Vec::new()
    }

    fn bind(&mut self, _: &[Tensor]) {}

    fn forward(&mut self, input: Tensor) -> Result<Tensor> {
        input.inplace_op1(&self.activation)?;
        self.output = Some(if self.copies { input.copy()? } else { input.clone() });
        Ok(input)
    }

    fn backward(&mut self, output_gradient: Tensor, wants_input_gradient: bool) -> Result<Option<Tensor>> {
        if !wants_input_gradient {
            return Ok(None);
        }
        match &self.output {
            Some(output) => output_gradient.inplace_op2(output, &ActivationBackward(self.activation))?,
            None => return Err(candle_core::Error::Msg("backward pass without a forward pass".into())),
        }
        Ok(Some(output_gradient))
    }

    fn add_sq_norms(&mut self, _: &Tensor) -> Result<()> {
        Ok(())
    }

    fn weighted_sum(&mut self, _: &[f64], _: &[Tensor], _: bool) -> Result<()> {
        Ok(())
    }
}
