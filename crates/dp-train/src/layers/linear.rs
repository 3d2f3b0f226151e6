//! Fully connected layer.

use candle_core::{DType, Device, Result, Tensor};

use super::{Layer, ParameterSpec};
use crate::buffer::RowBuffer;
use crate::ops::{ColumnSum, LinearSqNorms, MatMul, Operand, RepeatRow, ScaleRows};

/// `y = x Wᵀ + b` with `W` `[outputs, inputs]` (as PyTorch and candle store it) and `b` `[outputs]`.
///
/// The gradient of record `i` is `d_i x_iᵀ` and `d_i`, with `d` the gradient of the output: its norm is `‖d_i‖ √(‖x_i‖² + 1)` and
/// a weighted sum over records is one matrix product. No per-sample gradient is ever formed.
pub(crate) struct Linear {
    inputs: usize,
    outputs: usize,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    output: RowBuffer,
    input_gradient: RowBuffer,
    scaled: RowBuffer,
    tape: Option<Tape>,
}

/// The factors of the per-sample gradients.
struct Tape {
    input: Tensor,
    output_gradient: Option<Tensor>,
}

impl Linear {
    pub(crate) fn new(inputs: usize, outputs: usize, dtype: DType, device: &Device) -> Result<Self> {
        Ok(Self {
            inputs,
            outputs,
            weight: None,
            bias: None,
            output: RowBuffer::new(outputs, dtype, device)?,
            input_gradient: RowBuffer::new(inputs, dtype, device)?,
            scaled: RowBuffer::new(outputs, dtype, device)?,
            tape: None,
        })
    }

    fn weights(&self) -> Result<(&Tensor, &Tensor)> {
        match (&self.weight, &self.bias) {
            (Some(weight), Some(bias)) => Ok((weight, bias)),
            _ => Err(candle_core::Error::Msg("linear layer used before its parameters were bound".into())),
        }
    }

    fn factors(&self) -> Result<(&Tensor, &Tensor)> {
        match &self.tape {
            Some(Tape { input, output_gradient: Some(gradient) }) => Ok((input, gradient)),
            _ => Err(candle_core::Error::Msg("per-sample gradients asked for before a backward pass".into())),
        }
    }
}

impl Layer for Linear {
    fn parameters(&self) -> Vec<ParameterSpec> {
        let spec = |name: &str, shape, decays| ParameterSpec { name: name.into(), shape, fan_in: self.inputs, decays };
        vec![spec("weight", vec![self.outputs, self.inputs], true), spec("bias", vec![self.outputs], false)]
    }

    fn bind(&mut self, parameters: &[Tensor]) {
        self.weight = parameters.first().cloned();
        self.bias = parameters.get(1).cloned();
    }

    fn forward(&mut self, input: Tensor) -> Result<Tensor> {
        let output = self.output.rows(input.dim(0)?)?;
        let (weight, bias) = self.weights()?;
        output.inplace_op2(bias, &RepeatRow)?;
        let product = MatMul { lhs: Operand::Plain, rhs: Operand::Transposed, accumulate: true };
        output.inplace_op3(&input, weight, &product)?;
        self.tape = Some(Tape { input, output_gradient: None });
        Ok(output)
    }

    fn backward(&mut self, output_gradient: Tensor, wants_input_gradient: bool) -> Result<Option<Tensor>> {
        let input_gradient = if wants_input_gradient {
            let gradient = self.input_gradient.rows(output_gradient.dim(0)?)?;
            let product = MatMul { lhs: Operand::Plain, rhs: Operand::Plain, accumulate: false };
            gradient.inplace_op3(&output_gradient, self.weights()?.0, &product)?;
            Some(gradient)
        } else {
            None
        };
        match &mut self.tape {
            Some(tape) => tape.output_gradient = Some(output_gradient),
            None => return Err(candle_core::Error::Msg("backward pass without a forward pass".into())),
        }
        Ok(input_gradient)
    }

    fn add_sq_norms(&mut self, sq_norms: &Tensor) -> Result<()> {
        let (input, gradient) = self.factors()?;
        sq_norms.inplace_op3(input, gradient, &LinearSqNorms)
    }

    fn weighted_sum(&mut self, weights: &[f64], gradients: &[Tensor], accumulate: bool) -> Result<()> {
        let scaled = self.scaled.rows(weights.len())?;
        let (input, gradient) = self.factors()?;
        let [weight_gradient, bias_gradient] = gradients else {
            return Err(candle_core::Error::Msg("a linear layer has two parameters".into()));
        };
        scaled.inplace_op2(gradient, &ScaleRows { weights })?;
        let product = MatMul { lhs: Operand::Transposed, rhs: Operand::Plain, accumulate };
        weight_gradient.inplace_op3(&scaled, input, &product)?;
        bias_gradient.inplace_op2(&scaled, &ColumnSum { accumulate })
    }
}
