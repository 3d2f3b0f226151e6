//! GroupNorm and LayerNorm.

use std::ops::Range;

use candle_core::{DType, Device, Result, Tensor};

use super::{Initial, Layer, ParameterSpec};
use crate::buffer::RowBuffer;
use crate::ops::{self, NormGeometry};

/// PyTorch's default.
const EPSILON: f64 = 1e-5;

/// `y = (x − mean) / √(variance + 1e-5) · w + b`, with mean and (biased) variance over values of the same record alone and one `w` and `b`
/// per channel.
///
/// Unlike BatchNorm's, these statistics never mix records, so a record's gradient is its own and can be clipped. The per-sample
/// gradients of `w` and `b` are sums over positions, `[batch, channels]`: small enough to be formed.
///
/// **Source.** Wu and He 2018 (GroupNorm), Ba 2016 (LayerNorm).
pub(crate) struct Norm {
    geometry: NormGeometry,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    output: RowBuffer,
    statistics: RowBuffer,
    /// Per-sample gradients: of `w`, then of `b`.
    gradients: RowBuffer,
    tape: Option<Tape>,
}

struct Tape {
    input: Tensor,
    statistics: Tensor,
    gradients: Option<Tensor>,
}

impl Norm {
    /// GroupNorm: each of `groups` runs of channels over all positions. `groups` divides `channels`.
    pub(crate) fn group(
        positions: usize,
        channels: usize,
        groups: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<Self> {
        Self::new(NormGeometry { cells: 1, positions, channels, groups }, dtype, device)
    }

    /// LayerNorm: all channels of each position.
    pub(crate) fn layer(positions: usize, channels: usize, dtype: DType, device: &Device) -> Result<Self> {
        Self::new(NormGeometry { cells: positions, positions: 1, channels, groups: 1 }, dtype, device)
    }

    fn new(geometry: NormGeometry, dtype: DType, device: &Device) -> Result<Self> {
        Ok(Self {
            geometry,
            weight: None,
            bias: None,
            output: RowBuffer::new(geometry.width(), dtype, device)?,
            statistics: RowBuffer::new(geometry.statistics(), dtype, device)?,
            gradients: RowBuffer::new(2 * geometry.channels, dtype, device)?,
            tape: None,
        })
    }

    fn gradients(&self) -> Result<&Tensor> {
        match &self.tape {
            Some(Tape { gradients: Some(gradients), .. }) => Ok(gradients),
            _ => Err(candle_core::Error::Msg("per-sample gradients asked for before a backward pass".into())),
        }
    }
}

impl Layer for Norm {
    fn parameters(&self) -> Vec<ParameterSpec> {
        let spec = |name: &str, initial| ParameterSpec {
            name: name.into(),
            shape: vec![self.geometry.channels],
            initial,
            decays: false,
            crop: None,
        };
        vec![spec("weight", Initial::Ones), spec("bias", Initial::Zeros)]
    }

    fn bind(&mut self, parameters: &[Tensor]) {
        self.weight = parameters.first().cloned();
        self.bias = parameters.get(1).cloned();
    }

    fn forward(&mut self, input: Tensor) -> Result<Tensor> {
        let batch = input.dim(0)?;
        let (output, statistics) = (self.output.rows(batch)?, self.statistics.rows(batch)?);
        let (Some(scale), Some(shift)) = (&self.weight, &self.bias) else {
            return Err(candle_core::Error::Msg("normalisation used before its parameters were bound".into()));
        };
        let geometry = self.geometry;
        ops::norm_statistics(&statistics, &input, geometry, EPSILON)?;
        ops::norm_forward(&output, &input, &statistics, geometry, scale, shift)?;
        self.tape = Some(Tape { input, statistics, gradients: None });
        Ok(output)
    }

    fn backward(&mut self, output_gradient: Tensor, wants_input_gradient: bool) -> Result<Option<Tensor>> {
        let geometry = self.geometry;
        let (Some(tape), Some(scale)) = (&mut self.tape, &self.weight) else {
            return Err(candle_core::Error::Msg("backward pass without a forward pass".into()));
        };
        let gradients = self.gradients.rows(output_gradient.dim(0)?)?;
        let statistics = &tape.statistics;
        ops::norm_parameter_gradients(&gradients, &output_gradient, &tape.input, geometry, statistics)?;
        tape.gradients = Some(gradients);
        if !wants_input_gradient {
            return Ok(None);
        }
        ops::norm_backward(&output_gradient, &tape.input, statistics, geometry, scale)?;
        Ok(Some(output_gradient))
    }

    fn add_sq_norms(&mut self, sq_norms: &Tensor) -> Result<()> {
        ops::row_sq_norms(sq_norms, self.gradients()?)
    }

    fn weighted_sum(
        &mut self,
        rows: Range<usize>,
        weights: &[f64],
        gradients: &[Tensor],
        accumulate: bool,
    ) -> Result<()> {
        let rows = self.gradients()?.narrow(0, rows.start, rows.len())?;
        for (i, gradient) in gradients.iter().enumerate() {
            let first_column = i * self.geometry.channels;
            ops::weighted_column_sum(gradient, &rows, weights, first_column, accumulate)?;
        }
        Ok(())
    }
}
