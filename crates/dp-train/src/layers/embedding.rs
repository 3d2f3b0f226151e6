//! Embedding of ids.

use std::ops::Range;

use candle_core::{DType, Device, Error, Result, Tensor};

use super::{Initial, Layer, ParameterSpec};
use crate::buffer::RowBuffer;
use crate::ops;

/// A row of a table for each id of a record; ids are the record's input values.
///
/// The gradient of record `i` has a row for each id that occurs in it: the sum of the output's gradients at its places. Neither norms nor
/// sums form it over the whole table.
pub(crate) struct Embedding {
    vocabulary: usize,
    channels: usize,
    weight: Option<Tensor>,
    output: RowBuffer,
    tape: Option<Tape>,
}

struct Tape {
    ids: Tensor,
    output_gradient: Option<Tensor>,
}

impl Embedding {
    pub(crate) fn new(
        positions: usize,
        vocabulary: usize,
        channels: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<Self> {
        let output = RowBuffer::new(positions * channels, dtype, device)?;
        Ok(Self { vocabulary, channels, weight: None, output, tape: None })
    }

    fn factors(&self) -> Result<(&Tensor, &Tensor)> {
        match &self.tape {
            Some(Tape { ids, output_gradient: Some(gradient) }) => Ok((ids, gradient)),
            _ => Err(Error::Msg("per-sample gradients asked for before a backward pass".into())),
        }
    }
}

impl Layer for Embedding {
    fn parameters(&self) -> Vec<ParameterSpec> {
        let shape = vec![self.vocabulary, self.channels];
        vec![ParameterSpec { name: "weight".into(), shape, initial: Initial::Normal, decays: true, crop: None }]
    }

    fn bind(&mut self, parameters: &[Tensor]) {
        self.weight = parameters.first().cloned();
    }

    fn forward(&mut self, input: Tensor) -> Result<Tensor> {
        let Some(weight) = &self.weight else {
            return Err(Error::Msg("embedding used before its parameters were bound".into()));
        };
        let output = self.output.rows(input.dim(0)?)?;
        ops::embedding_forward(&output, &input, weight)?;
        self.tape = Some(Tape { ids: input, output_gradient: None });
        Ok(output)
    }

    fn backward(&mut self, output_gradient: Tensor, wants_input_gradient: bool) -> Result<Option<Tensor>> {
        if wants_input_gradient {
            return Err(Error::Msg("ids have no gradient: an embedding must be the first layer".into()));
        }
        match &mut self.tape {
            Some(tape) => tape.output_gradient = Some(output_gradient),
            None => return Err(Error::Msg("backward pass without a forward pass".into())),
        }
        Ok(None)
    }

    fn add_sq_norms(&mut self, sq_norms: &Tensor) -> Result<()> {
        let (ids, gradient) = self.factors()?;
        ops::embedding_sq_norms(sq_norms, ids, gradient, self.vocabulary)
    }

    fn weighted_sum(
        &mut self,
        rows: Range<usize>,
        weights: &[f64],
        gradients: &[Tensor],
        accumulate: bool,
    ) -> Result<()> {
        let (ids, gradient) = self.factors()?;
        let (ids, gradient) = (ids.narrow(0, rows.start, rows.len())?, gradient.narrow(0, rows.start, rows.len())?);
        let [weight_gradient] = gradients else {
            return Err(Error::Msg("an embedding has one parameter".into()));
        };
        ops::embedding_sum(weight_gradient, &ids, &gradient, weights, accumulate)
    }

    fn vocabulary(&self) -> Option<usize> {
        Some(self.vocabulary)
    }
}
