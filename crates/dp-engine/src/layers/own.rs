//! A layer from outside of this crate, one record at a time.

use std::ops::Range;

use candle_core::{DType, Error, Result, Tensor};

use super::Layer;
use super::blueprint::Blueprint;
use crate::ops;
use crate::own::{OwnLayer, OwnShape};

/// An [`OwnLayer`] in a model. The gradient of every record is formed and kept, so that the norm is of
/// what is added.
pub(crate) struct Own {
    layer: &'static dyn OwnLayer,
    settings: Vec<f64>,
    parameters: Vec<Tensor>,
    inputs: usize,
    outputs: usize,
}

impl Own {
    /// The blueprint of a layer whose shape for `inputs` values this is.
    pub(crate) fn blueprint(
        layer: &'static dyn OwnLayer,
        settings: Vec<f64>,
        inputs: usize,
        shape: OwnShape,
    ) -> Blueprint {
        let outputs = shape.outputs;
        Blueprint::new(shape.parameters, move |parameters, context| {
            if !context.device.is_cpu() {
                return Err(Error::Msg(format!("layer `{}`: expected a model on the CPU", layer.name())));
            }
            Ok(Self { layer, settings, parameters: parameters.to_vec(), inputs, outputs })
        })
    }

    fn values(&self) -> Result<Vec<Vec<f64>>> {
        self.parameters.iter().map(values).collect()
    }
}

fn slices(parameters: &[Vec<f64>]) -> Vec<&[f64]> {
    parameters.iter().map(Vec::as_slice).collect()
}

/// A row as the values of each tensor.
fn split<'a>(mut row: &'a mut [f64], parameters: &[&[f64]]) -> Vec<&'a mut [f64]> {
    let mut parts = Vec::with_capacity(parameters.len());
    for values in parameters {
        let (part, rest) = row.split_at_mut(values.len());
        parts.push(part);
        row = rest;
    }
    parts
}

fn values(tensor: &Tensor) -> Result<Vec<f64>> {
    tensor.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
}

/// Rows of `width` values, in the number type of `like`.
fn rows(values: Vec<f64>, width: usize, like: &Tensor) -> Result<Tensor> {
    Tensor::from_vec(values, (like.dim(0)?, width), like.device())?.to_dtype(like.dtype())
}

impl Layer for Own {
    type Pass = Tensor;
    /// Per-sample gradients of all parameters, side by side.
    type Factors = Tensor;

    fn forward(&mut self, input: Tensor) -> Result<(Tensor, Tensor)> {
        let (parameters, records) = (self.values()?, values(&input)?);
        let mut output = vec![0.0; input.dim(0)? * self.outputs];
        for (x, y) in records.chunks_exact(self.inputs).zip(output.chunks_exact_mut(self.outputs)) {
            self.layer.forward(&self.settings, &slices(&parameters), x, y);
        }
        Ok((rows(output, self.outputs, &input)?, input))
    }

    fn backward(
        &mut self,
        input: Tensor,
        output_gradient: Tensor,
        wants_input_gradient: bool,
    ) -> Result<(Option<Tensor>, Tensor)> {
        let (parameters, records, by_output) = (self.values()?, values(&input)?, values(&output_gradient)?);
        let parameters = slices(&parameters);
        let width: usize = parameters.iter().map(|values| values.len()).sum();
        let (mut by_input, mut gradients) = (vec![0.0; records.len()], vec![0.0; width * input.dim(0)?]);
        let of_records = records.chunks_exact(self.inputs).zip(by_output.chunks_exact(self.outputs));
        for (i, (x, d)) in of_records.enumerate() {
            let mut by_parameters = split(&mut gradients[i * width..(i + 1) * width], &parameters);
            let by_input = &mut by_input[i * self.inputs..(i + 1) * self.inputs];
            self.layer.backward(&self.settings, &parameters, x, d, by_input, &mut by_parameters);
        }
        let by_input = if wants_input_gradient { Some(rows(by_input, self.inputs, &input)?) } else { None };
        Ok((by_input, rows(gradients, width, &input)?))
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
        let mut first_column = 0;
        for gradient in gradients {
            ops::weighted_column_sum(gradient, &rows, weights, first_column, accumulate)?;
            first_column += gradient.elem_count();
        }
        Ok(())
    }

    fn kept_values(&self) -> usize {
        self.parameters.iter().map(Tensor::elem_count).sum()
    }
}
