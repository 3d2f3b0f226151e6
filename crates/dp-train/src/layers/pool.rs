//! Pooling layer.

use std::ops::Range;

use candle_core::{DType, Device, Result, Tensor};
use serde::{Deserialize, Serialize};

use super::max_windows::MaxWindows;
use super::pieces::Piece;
use super::{Layer, ParameterSpec};
use crate::buffer::RowBuffer;
use crate::ops::{self, PoolShape};

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
    kind: Kind,
    input: Option<Tensor>,
}

enum Kind {
    Max(MaxWindows),
    Average { shape: PoolShape, output: RowBuffer, input_gradient: RowBuffer },
}

impl Pool2d {
    pub(crate) fn new(shape: PoolShape, pooling: Pooling, dtype: DType, device: &Device) -> Result<Self> {
        let kind = match pooling {
            Pooling::Max => Kind::Max(MaxWindows::new(shape, dtype, device)?),
            Pooling::Average => {
                let output = RowBuffer::new(shape.outputs(), dtype, device)?;
                let input_gradient = RowBuffer::new(shape.inputs(), dtype, device)?;
                Kind::Average { shape, output, input_gradient }
            }
        };
        Ok(Self { kind, input: None })
    }
}

impl Layer for Pool2d {
    fn parameters(&self) -> Vec<ParameterSpec> {
        Vec::new()
    }

    fn bind(&mut self, _: &[Tensor]) {}

    fn forward(&mut self, input: Tensor) -> Result<Tensor> {
        let n_records = input.dim(0)?;
        let output = match &mut self.kind {
            Kind::Max(windows) => {
                let output = windows.output(n_records)?;
                windows.forward(Piece::whole(n_records), &input, &output)?;
                output
            }
            Kind::Average { shape, output, .. } => {
                let output = output.rows(n_records)?;
                ops::average_pool(&output, &input, shape)?;
                output
            }
        };
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
        let n_records = output_gradient.dim(0)?;
        match &mut self.kind {
            Kind::Max(windows) => windows.backward(Piece::whole(n_records), input, &output_gradient).map(Some),
            Kind::Average { shape, input_gradient, .. } => {
                let gradient = input_gradient.rows(n_records)?;
                ops::average_pool_backward(&gradient, &output_gradient, shape)?;
                Ok(Some(gradient))
            }
        }
    }

    fn add_sq_norms(&mut self, _: &Tensor) -> Result<()> {
        Ok(())
    }

    fn weighted_sum(&mut self, _: Range<usize>, _: &[f64], _: &[Tensor], _: bool) -> Result<()> {
        Ok(())
    }
}
