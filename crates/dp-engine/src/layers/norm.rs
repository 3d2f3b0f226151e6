//! GroupNorm and LayerNorm.

use std::ops::Range;

use candle_core::{Result, Tensor};

use super::blueprint::{Blueprint, exactly};
use super::{Initial, Layer, ParameterSpec};
use crate::buffer::RowBuffer;
use crate::ops::{self, NormGeometry};

/// PyTorch's default.
const EPSILON: f64 = 1e-5;

/// `y = (x − mean) / √(variance + 1e-5) · w + b`, with mean and (biased) variance over values of
/// the same record alone and one `w` and `b` per channel.
///
/// Unlike BatchNorm's, these statistics never mix records, so a record's gradient is its own and
/// can be clipped. The per-sample gradients of `w` and `b` are sums over positions, `[batch,
/// channels]`: small enough to be formed.
///
/// **Source.** Wu and He 2018 (GroupNorm), Ba 2016 (LayerNorm).
pub(crate) struct Norm {
    geometry: NormGeometry,
    weight: Tensor,
    bias: Tensor,
    output: RowBuffer,
    statistics: RowBuffer,
    gradients: RowBuffer,
}

pub(crate) struct Pass {
    input: Tensor,
    statistics: Tensor,
}

impl Norm {
    /// GroupNorm: each of `groups` runs of channels over all positions. `groups` divides
    /// `channels`.
    pub(crate) fn group(positions: usize, channels: usize, groups: usize) -> Blueprint {
        Self::blueprint(NormGeometry { cells: 1, positions, channels, groups })
    }

    /// LayerNorm: all channels of each position.
    pub(crate) fn layer(positions: usize, channels: usize) -> Blueprint {
        Self::blueprint(NormGeometry { cells: positions, positions: 1, channels, groups: 1 })
    }

    fn blueprint(geometry: NormGeometry) -> Blueprint {
        let shape = vec![geometry.channels];
        let spec = |name: &str, initial| ParameterSpec {
            name: name.into(),
            shape: shape.clone(),
            initial,
            decays: false,
            crop: None,
        };
        let specs = vec![spec("weight", Initial::Ones), spec("bias", Initial::Zeros)];
        Blueprint::new(specs, move |parameters, context| {
            let [weight, bias] = exactly(parameters)?.clone();
            Ok(Self {
                geometry,
                weight,
                bias,
                output: context.rows(geometry.width())?,
                statistics: context.rows(geometry.statistics())?,
                gradients: context.rows(2 * geometry.channels)?,
            })
        })
    }
}

impl Layer for Norm {
    type Pass = Pass;
    /// Per-sample gradients: of `w`, then of `b`.
    type Factors = Tensor;

    fn forward(&mut self, input: Tensor) -> Result<(Tensor, Pass)> {
        let batch = input.dim(0)?;
        let (output, statistics) = (self.output.rows(batch)?, self.statistics.rows(batch)?);
        ops::norm_statistics(&statistics, &input, self.geometry, EPSILON)?;
        ops::norm_forward(&output, &input, &statistics, self.geometry, &self.weight, &self.bias)?;
        Ok((output, Pass { input, statistics }))
    }

    fn backward(
        &mut self,
        Pass { input, statistics }: Pass,
        output_gradient: Tensor,
        wants_input_gradient: bool,
    ) -> Result<(Option<Tensor>, Tensor)> {
        let gradients = self.gradients.rows(output_gradient.dim(0)?)?;
        ops::norm_parameter_gradients(&gradients, &output_gradient, &input, self.geometry, &statistics)?;
        if !wants_input_gradient {
            return Ok((None, gradients));
        }
        ops::norm_backward(&output_gradient, &input, &statistics, self.geometry, &self.weight)?;
        Ok((Some(output_gradient), gradients))
    }

    fn add_sq_norms(&mut self, gradients: &mut Tensor, sq_norms: &Tensor) -> Result<()> {
        ops::row_sq_norms(sq_norms, gradients)
    }

    fn weighted_sum(
        &mut self,
        of_records: &Tensor,
        rows: Range<usize>,
        weights: &[f64],
        gradients: &[Tensor],
        accumulate: bool,
    ) -> Result<()> {
        let rows = of_records.narrow(0, rows.start, rows.len())?;
        for (i, gradient) in gradients.iter().enumerate() {
            let first_column = i * self.geometry.channels;
            ops::weighted_column_sum(gradient, &rows, weights, first_column, accumulate)?;
        }
        Ok(())
    }
}
