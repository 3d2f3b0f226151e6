//! Pooling layer.

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::Layer;
use super::blueprint::{Blueprint, BuildContext};
use super::max_windows::MaxWindows;
use super::pieces::Piece;
use crate::buffer::RowBuffer;
use crate::ops::{self, PoolShape};

/// The value that a pooling layer takes from each window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Pooling {
    /// The largest value; its gradient goes to the first of equals, as in PyTorch.
    Max,
    /// The mean, with pixels outside of the image as zeros.
    Average,
}

/// Pooling over the windows of an image, channel by channel; it has no parameters.
pub(crate) enum Pool2d {
    Max(MaxWindows),
    Average { shape: PoolShape, output: RowBuffer, input_gradient: RowBuffer },
}

impl Pool2d {
    pub(crate) fn blueprint(shape: PoolShape, pooling: Pooling) -> Blueprint {
        Blueprint::new(Vec::new(), move |_, context| Self::new(shape, pooling, context))
    }

    pub(super) fn new(shape: PoolShape, pooling: Pooling, context: BuildContext<'_>) -> Result<Self> {
        Ok(match pooling {
            Pooling::Max => Self::Max(MaxWindows::new(shape, context)?),
            Pooling::Average => {
                let (output, input_gradient) = (context.rows(shape.outputs())?, context.rows(shape.inputs())?);
                Self::Average { shape, output, input_gradient }
            }
        })
    }
}

impl Layer for Pool2d {
    type Pass = ();
    type Factors = ();

    fn forward(&mut self, input: Tensor) -> Result<(Tensor, ())> {
        let n_records = input.dim(0)?;
        let output = match self {
            Self::Max(windows) => {
                let output = windows.output(n_records)?;
                windows.forward(Piece::whole(n_records), &input, &output)?;
                output
            }
            Self::Average { shape, output, .. } => {
                let output = output.rows(n_records)?;
                ops::average_pool(&output, &input, shape)?;
                output
            }
        };
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
        let n_records = output_gradient.dim(0)?;
        let gradient = match self {
            Self::Max(windows) => windows.backward(Piece::whole(n_records), &output_gradient)?,
            Self::Average { shape, input_gradient, .. } => {
                let gradient = input_gradient.rows(n_records)?;
                ops::average_pool_backward(&gradient, &output_gradient, shape)?;
                gradient
            }
        };
        Ok((Some(gradient), ()))
    }
}
