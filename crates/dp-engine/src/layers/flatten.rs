//! From images to vectors.

use candle_core::{Result, Tensor};

use super::Layer;
use super::blueprint::Blueprint;
use crate::buffer::RowBuffer;
use crate::ops;

/// Images with channels last as vectors in channel-first order, so that the weight of a linear
/// layer behind it has PyTorch's order.
pub(crate) struct Flatten {
    positions: usize,
    channels: usize,
    output: RowBuffer,
    input_gradient: RowBuffer,
}

impl Flatten {
    /// The blueprint for images of `positions` pixels and `channels` channels.
    pub(crate) fn blueprint(positions: usize, channels: usize) -> Blueprint {
        Blueprint::new(Vec::new(), move |_, context| {
            let width = positions * channels;
            Ok(Self { positions, channels, output: context.rows(width)?, input_gradient: context.rows(width)? })
        })
    }

    /// Whether both orders are the same.
    fn is_identity(&self) -> bool {
        self.positions == 1 || self.channels == 1
    }
}

impl Layer for Flatten {
    type Pass = ();
    type Factors = ();

    fn forward(&mut self, input: Tensor) -> Result<(Tensor, ())> {
        if self.is_identity() {
            return Ok((input, ()));
        }
        let output = self.output.rows(input.dim(0)?)?;
        ops::swap_axes(&output, &input, self.positions, self.channels)?;
        Ok((output, ()))
    }

    fn backward(
        &mut self,
        (): (),
        output_gradient: Tensor,
        wants_input_gradient: bool,
    ) -> Result<(Option<Tensor>, ())> {
        if !wants_input_gradient {
            return Ok((None, ()));
        }
        if self.is_identity() {
            return Ok((Some(output_gradient), ()));
        }
        let input_gradient = self.input_gradient.rows(output_gradient.dim(0)?)?;
        ops::swap_axes(&input_gradient, &output_gradient, self.channels, self.positions)?;
        Ok((Some(input_gradient), ()))
    }
}
