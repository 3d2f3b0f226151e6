//! Embedding of ids.

use std::ops::Range;

use candle_core::{Error, Result, Tensor};

use super::blueprint::{Blueprint, exactly};
use super::{Initial, Layer, ParameterSpec};
use crate::buffer::RowBuffer;
use crate::ops;

/// A row of a table for each id of a record; ids are the record's input values.
///
/// The gradient of record `i` has a row for each id that occurs in it: the sum of the output's
/// gradients at its places. Neither norms nor sums form it over the whole table.
pub(crate) struct Embedding {
    vocabulary: usize,
    weight: Tensor,
    output: RowBuffer,
}

pub(crate) struct Factors {
    ids: Tensor,
    output_gradient: Tensor,
}

impl Embedding {
    pub(crate) fn blueprint(positions: usize, vocabulary: usize, channels: usize) -> Blueprint {
        let (name, shape) = ("weight".into(), vec![vocabulary, channels]);
        let spec = ParameterSpec { name, shape, initial: Initial::Normal, decays: true, crop: None };
        Blueprint::new(vec![spec], move |parameters, context| {
            let [weight] = exactly(parameters)?.clone();
            Ok(Self { vocabulary, weight, output: context.rows(positions * channels)? })
        })
    }
}

impl Layer for Embedding {
    /// The ids.
    type Pass = Tensor;
    type Factors = Factors;

    fn forward(&mut self, input: Tensor) -> Result<(Tensor, Tensor)> {
        let output = self.output.rows(input.dim(0)?)?;
        ops::embedding_forward(&output, &input, &self.weight)?;
        Ok((output, input))
    }

    fn backward(
        &mut self,
        ids: Tensor,
        output_gradient: Tensor,
        wants_input_gradient: bool,
    ) -> Result<(Option<Tensor>, Factors)> {
        if wants_input_gradient {
            return Err(Error::Msg("ids have no gradient: an embedding must be the first layer".into()));
        }
        Ok((None, Factors { ids, output_gradient }))
    }

    fn add_sq_norms(&mut self, factors: &mut Factors, sq_norms: &Tensor) -> Result<()> {
        ops::embedding_sq_norms(sq_norms, &factors.ids, &factors.output_gradient, self.vocabulary)
    }

    fn weighted_sum(
        &mut self,
        factors: &Factors,
        rows: Range<usize>,
        weights: &[f64],
        gradients: &[Tensor],
        accumulate: bool,
    ) -> Result<()> {
        let [weight_gradient] = exactly(gradients)?;
        let part = |of: &Tensor| of.narrow(0, rows.start, rows.len());
        let (ids, gradient) = (part(&factors.ids)?, part(&factors.output_gradient)?);
        ops::embedding_sum(weight_gradient, &ids, &gradient, weights, accumulate)
    }

    fn vocabulary(&self) -> Option<usize> {
        Some(self.vocabulary)
    }
}
