//! Pooling layer.

use std::cell::RefCell;

use candle_core::{DType, Device, Result, Tensor};
use serde::{Deserialize, Serialize};

use super::{Layer, ParameterSpec};
use crate::buffer::RowBuffer;
use crate::ops::{AveragePool, AveragePoolBackward, MaxPool, MaxPoolBackward, PoolShape};

/// What a pooling layer takes of each window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// The largest value; its gradient goes to the first of equals, as in PyTorch.
    Max,
    /// The mean, with pixels outside of the image as zeros.
    Average,
}

/// Pooling over the windows of an image, channel by channel; it has no parameters.
pub(crate) struct Pool2d {
    shape: PoolShape,
    pooling: Pooling,
    output: RowBuffer,
    input_gradient: RowBuffer,
    input: Option<Tensor>,
    /// Numbers of the largest pixels.
    winners: Vec<u32>,
}

impl Pool2d {
    pub(crate) fn new(shape: PoolShape, pooling: Pooling, dtype: DType, device: &Device) -> Result<Self> {
        let output = RowBuffer::new(shape.outputs(), dtype, device)?;
        let input_gradient = RowBuffer::new(shape.inputs(), dtype, device)?;
        Ok(Self { shape, pooling, output, input_gradient, input: None, winners: Vec::new() })
    }
}

impl Layer for Pool2d {
    fn parameters(&self) -> Vec<ParameterSpec> {
        Vec::new()
    }

    fn bind(&mut self, _: &[Tensor]) {}

    fn forward(&mut self, input: Tensor) -> Result<Tensor> {
        let output = self.output.rows(input.dim(0)?)?;
        match self.pooling {
            Pooling::Max => {
                self.winners.resize(output.elem_count(), 0);
                let winners = RefCell::new(self.winners.as_mut_slice());
                output.inplace_op2(&input, &MaxPool { shape: &self.shape, winners })?;
            }
            Pooling::Average => output.inplace_op2(&input, &AveragePool(&self.shape))?,
        }
        self.input = Some(input);
        Ok(output)
    }

    fn backward(&mut self, output_gradient: Tensor, wants_input_gradient: bool) -> Result<Option<Tensor>> {
        if !wants_input_gradient {
            return Ok(None);
        }
        let Some(input) = &self.input else {
            return Err(candle_core::Error::Msg("backward pass without a forward pass".into()));
        };
        let gradient = self.input_gradient.rows(output_gradient.dim(0)?)?;
        match self.pooling {
            Pooling::Max => {
                let backward = MaxPoolBackward { shape: &self.shape, winners: &self.winners };
                gradient.inplace_op3(&output_gradient, input, &backward)?;
            }
            Pooling::Average => gradient.inplace_op2(&output_gradient, &AveragePoolBackward(&self.shape))?,
        }
        Ok(Some(gradient))
    }

    fn add_sq_norms(&mut self, _: &Tensor) -> Result<()> {
        Ok(())
    }

    fn weighted_sum(&mut self, _: &[f64], _: &[Tensor], _: bool) -> Result<()> {
        Ok(())
    }
}
