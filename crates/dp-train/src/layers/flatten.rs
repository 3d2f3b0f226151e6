//! From images to vectors.

use std::ops::Range;

use candle_core::{DType, Device, Result, Tensor};

use super::{Layer, ParameterSpec};
use crate::buffer::RowBuffer;
use crate::ops;

/// Images with channels last as vectors in channel-first order, so that the weight of a linear layer behind it has PyTorch's order.
pub(crate) struct Flatten {
    positions: usize,
    channels: usize,
    output: RowBuffer,
    input_gradient: RowBuffer,
}

impl Flatten {
    /// Of images with this many pixels and channels.
    pub(crate) fn new(positions: usize, channels: usize, dtype: DType, device: &Device) -> Result<Self> {
        let buffer = || RowBuffer::new(positions * channels, dtype, device);
        Ok(Self { positions, channels, output: buffer()?, input_gradient: buffer()? })
    }

    /// Whether both orders are the same.
    fn is_identity(&self) -> bool {
        self.positions == 1 || self.channels == 1
    }
}

impl Layer for Flatten {
    fn parameters(&self) -> Vec<ParameterSpec> {
        Vec::new()
    }

    fn bind(&mut self, _: &[Tensor]) {}

    fn forward(&mut self, input: Tensor) -> Result<Tensor> {
        if self.is_identity() {
            return Ok(input);
        }
        let output = self.output.rows(input.dim(0)?)?;
        ops::swap_axes(&output, &input, self.positions, self.channels)?;
        Ok(output)
    }

    fn backward(&mut self, output_gradient: Tensor, wants_input_gradient: bool) -> Result<Option<Tensor>> {
        if !wants_input_gradient {
            return Ok(None);
        }
        if self.is_identity() {
            return Ok(Some(output_gradient));
        }
        let input_gradient = self.input_gradient.rows(output_gradient.dim(0)?)?;
        ops::swap_axes(&input_gradient, &output_gradient, self.channels, self.positions)?;
        Ok(Some(input_gradient))
    }

    fn add_sq_norms(&mut self, _: &Tensor) -> Result<()> {
        Ok(())
    }

    fn weighted_sum(&mut self, _: Range<usize>, _: &[f64], _: &[Tensor], _: bool) -> Result<()> {
        Ok(())
    }
}
