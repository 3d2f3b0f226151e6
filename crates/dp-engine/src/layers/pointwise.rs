//! Layer of one pointwise activation.

use candle_core::{Result, Tensor};

use super::Layer;
use super::blueprint::Blueprint;
use crate::buffer::RowBuffer;
use crate::ops::{self, Activation};

/// An activation applied in place; it has no parameters.
///
/// Some derivatives are functions of the output, which is then all that is kept. So it must neither
/// follow a layer that needs what it put out nor be followed by anything that overwrites that:
/// [`Self::apart`] is for those places.
pub(crate) struct Pointwise {
    activation: Activation,
    apart: bool,
    /// Made at the first pass, when the width is known.
    output_buffer: Option<RowBuffer>,
    slope_buffer: Option<RowBuffer>,
}

/// The values that the derivative is computed from.
pub(crate) enum Pass {
    Output(Tensor),
    Slope(Tensor),
}

impl Pointwise {
    pub(crate) fn blueprint(activation: Activation) -> Blueprint {
        Self::with(activation, false)
    }

    /// An activation that leaves its input alone and does not need its output: for the first and
    /// the last place of a model or a residual branch, and after another activation.
    pub(crate) fn apart(activation: Activation) -> Blueprint {
        Self::with(activation, true)
    }

    fn with(activation: Activation, apart: bool) -> Blueprint {
        Blueprint::new(Vec::new(), move |_, _| Ok(Self { activation, apart, output_buffer: None, slope_buffer: None }))
    }
}

/// Rows of the length and number of `tensor`'s, from a buffer that is made at the first call.
fn rows_like(buffer: &mut Option<RowBuffer>, tensor: &Tensor) -> Result<Tensor> {
    let (batch, width) = tensor.dims2()?;
    match buffer {
        Some(buffer) => buffer.rows(batch),
        None => buffer.insert(RowBuffer::new(width, tensor.dtype(), tensor.device())?).rows(batch),
    }
}

impl Layer for Pointwise {
    type Pass = Pass;
    type Factors = ();

    fn forward(&mut self, input: Tensor) -> Result<(Tensor, Pass)> {
        let output = if self.apart {
            let output = rows_like(&mut self.output_buffer, &input)?;
            ops::copy(&output, &input)?;
            output
        } else {
            input
        };
        let of_output = self.activation.is_function_of_output();
        if of_output && !self.apart {
            ops::activate(&output, self.activation)?;
            return Ok((output.clone(), Pass::Output(output)));
        }
        let slope = rows_like(&mut self.slope_buffer, &output)?;
        if of_output {
            ops::activate(&output, self.activation)?;
            ops::fill(&slope, 1.0)?;
            ops::activation_backward(&slope, &output, self.activation)?;
        } else {
            // The derivative is taken while the input is there.
            ops::activation_slope(&slope, &output, self.activation)?;
            ops::activate(&output, self.activation)?;
        }
        Ok((output, Pass::Slope(slope)))
    }

    fn backward(
        &mut self,
        pass: Pass,
        output_gradient: Tensor,
        wants_input_gradient: bool,
    ) -> Result<(Option<Tensor>, ())> {
        if !wants_input_gradient {
            return Ok((None, ()));
        }
        match &pass {
            Pass::Output(output) => ops::activation_backward(&output_gradient, output, self.activation)?,
            Pass::Slope(slope) => ops::multiply(&output_gradient, slope)?,
        }
        Ok((Some(output_gradient), ()))
    }
}
