//! Fully connected layer, at one position or at each of several.

use std::ops::Range;

use candle_core::{Device, Result, Tensor};

use super::blueprint::{Blueprint, BuildContext, exactly};
use super::{Initial, Layer, ParameterSpec};
use crate::buffer::RowBuffer;
use crate::ops::{self, Operand};

/// `y = x Wᵀ + b` with `W` `[outputs, inputs]` (as PyTorch and candle store it) and `b`
/// `[outputs]`, at every position of a record.
///
/// The gradient of record `i` is `Σ_t d_t x_tᵀ` and `Σ_t d_t` over its positions, with `d` the
/// gradient of the output. A weighted sum over records is one matrix product over records and
/// positions; for the norms see [`Form`].
pub(crate) struct Linear {
    positions: usize,
    inputs: usize,
    outputs: usize,
    form: Form,
    weight: Tensor,
    bias: Tensor,
    output: RowBuffer,
    input_gradient: RowBuffer,
    scaled: RowBuffer,
    weight_gradients: RowBuffer,
    bias_gradients: RowBuffer,
}

/// How the norm of a record's gradient is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One position: `‖d‖ √(‖x‖² + 1)`.
    Outer,
    /// `Σ_{t,u} (⟨x_t, x_u⟩ + 1) ⟨d_t, d_u⟩` over pairs of positions ("ghost norm"), and not less
    /// than [`guarded_sq_norm`](crate::ops) says.
    Gram,
    /// Per-sample gradients are formed, and summed from there.
    Formed,
}

impl Form {
    /// By what would have to be kept: two matrices over pairs of positions against a gradient (Bu
    /// 2022). On a CUDA device gradients are formed: Gram matrices must be in `f64`, in which most
    /// are tens of times slower.
    ///
    /// Gradients that are formed are less than the activations they come from: `pd < 2T²` and so
    /// `pd < √2 T √(pd) ≤ T (p + d)`.
    fn cheapest(positions: usize, inputs: usize, outputs: usize, device: &Device) -> Self {
        match positions {
            1 => Self::Outer,
            _ if device.is_cuda() => Self::Formed,
            _ if 2 * positions * positions <= inputs * outputs => Self::Gram,
            _ => Self::Formed,
        }
    }
}

/// The factors of the per-sample gradients, `[batch · positions, inputs]` and `[batch · positions,
/// outputs]`.
pub(crate) struct Factors {
    input: Tensor,
    output_gradient: Tensor,
    /// Per-sample gradients of weight and bias, once they are formed.
    formed: Option<(Tensor, Tensor)>,
}

impl Linear {
    /// At one position.
    pub(crate) fn blueprint(inputs: usize, outputs: usize) -> Blueprint {
        Self::on_positions(1, inputs, outputs)
    }

    /// At each of `positions` with `inputs` channels, with the same weight.
    pub(crate) fn on_positions(positions: usize, inputs: usize, outputs: usize) -> Blueprint {
        let initial = Initial::Uniform { fan_in: inputs };
        let spec = |name: &str, shape, decays| ParameterSpec { name: name.into(), shape, initial, decays, crop: None };
        let specs = vec![spec("weight", vec![outputs, inputs], true), spec("bias", vec![outputs], false)];
        Blueprint::new(specs, move |parameters, context| Self::new(positions, [inputs, outputs], parameters, context))
    }

    fn new(
        positions: usize,
        [inputs, outputs]: [usize; 2],
        parameters: &[Tensor],
        context: BuildContext<'_>,
    ) -> Result<Self> {
        let [weight, bias] = exactly(parameters)?.clone();
        Ok(Self {
            positions,
            inputs,
            outputs,
            form: Form::cheapest(positions, inputs, outputs, context.device),
            weight,
            bias,
            output: context.rows(positions * outputs)?,
            input_gradient: context.rows(positions * inputs)?,
            scaled: context.rows(outputs)?,
            weight_gradients: context.gradients(outputs * inputs)?,
            bias_gradients: context.gradients(outputs)?,
        })
    }

    /// Forms the per-sample gradients of `batch` records.
    fn form_gradients(&mut self, factors: &Factors, batch: usize) -> Result<(Tensor, Tensor)> {
        let (weights, biases) = (self.weight_gradients.rows(batch)?, self.bias_gradients.rows(batch)?);
        ops::record_products(&weights, &factors.output_gradient, &factors.input, self.positions)?;
        ops::sum_positions(&biases, &factors.output_gradient, self.positions)?;
        Ok((weights, biases))
    }
}

impl Layer for Linear {
    /// The input, `[batch · positions, inputs]`.
    type Pass = Tensor;
    type Factors = Factors;

    fn forward(&mut self, input: Tensor) -> Result<(Tensor, Tensor)> {
        let batch = input.dim(0)?;
        let output = self.output.rows(batch)?;
        let input = input.reshape((batch * self.positions, self.inputs))?;
        let rows = output.reshape((batch * self.positions, self.outputs))?;
        ops::repeat_row(&rows, &self.bias)?;
        ops::matmul(&rows, (&input, Operand::Plain), (&self.weight, Operand::Transposed), true)?;
        Ok((output, input))
    }

    fn backward(
        &mut self,
        input: Tensor,
        output_gradient: Tensor,
        wants_input_gradient: bool,
    ) -> Result<(Option<Tensor>, Factors)> {
        let batch = output_gradient.dim(0)?;
        let rows = output_gradient.reshape((batch * self.positions, self.outputs))?;
        let input_gradient = if wants_input_gradient {
            let gradient = self.input_gradient.rows(batch)?;
            let to = gradient.reshape((batch * self.positions, self.inputs))?;
            ops::matmul(&to, (&rows, Operand::Plain), (&self.weight, Operand::Plain), false)?;
            Some(gradient)
        } else {
            None
        };
        Ok((input_gradient, Factors { input, output_gradient: rows, formed: None }))
    }

    fn add_sq_norms(&mut self, factors: &mut Factors, sq_norms: &Tensor) -> Result<()> {
        let Factors { input, output_gradient, .. } = &*factors;
        match self.form {
            Form::Outer => ops::linear_sq_norms(sq_norms, input, output_gradient),
            Form::Gram => ops::sequence_sq_norms(sq_norms, input, output_gradient, self.positions),
            Form::Formed => {
                let formed = self.form_gradients(factors, sq_norms.dim(0)?)?;
                ops::row_sq_norms(sq_norms, &formed.0)?;
                ops::row_sq_norms(sq_norms, &formed.1)?;
                factors.formed = Some(formed);
                Ok(())
            }
        }
    }

    fn weighted_sum(
        &mut self,
        factors: &Factors,
        rows: Range<usize>,
        weights: &[f64],
        gradients: &[Tensor],
        accumulate: bool,
    ) -> Result<()> {
        let [weight_gradient, bias_gradient] = exactly(gradients)?;
        if let Some((of_weight, of_bias)) = &factors.formed {
            let sum = |to: &Tensor, of: &Tensor| {
                ops::weighted_column_sum(to, &of.narrow(0, rows.start, rows.len())?, weights, 0, accumulate)
            };
            sum(weight_gradient, of_weight)?;
            return sum(bias_gradient, of_bias);
        }
        let weights: Vec<f64> =
            weights.iter().flat_map(|&weight| std::iter::repeat_n(weight, self.positions)).collect();
        let scaled = self.scaled.rows(weights.len())?;
        let rows = |of: &Tensor| of.narrow(0, rows.start * self.positions, rows.len() * self.positions);
        ops::scale_rows(&scaled, &rows(&factors.output_gradient)?, &weights)?;
        let (lhs, rhs) = ((&scaled, Operand::Transposed), (&rows(&factors.input)?, Operand::Plain));
        ops::matmul(weight_gradient, lhs, rhs, accumulate)?;
        ops::column_sum(bias_gradient, &scaled, accumulate)
    }

    fn chained_terms(&self) -> Vec<usize> {
        // Weight and bias are one tensor here, with a constant input.
        if self.form == Form::Gram { vec![self.positions] } else { Vec::new() }
    }

    fn kept_values(&self) -> usize {
        if self.form == Form::Formed { self.outputs * (self.inputs + 1) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::*;

    fn random(rows: usize, columns: usize, dtype: DType, seed: u64) -> Tensor {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let values: Vec<f64> = (0..rows * columns).map(|_| rng.random_range(-1.0..1.0)).collect();
        Tensor::from_vec(values, (rows, columns), &Device::Cpu).unwrap().to_dtype(dtype).unwrap()
    }

    /// Squared norms, and the weighted sum of weight and bias, in one form.
    fn ask(form: Form, positions: usize, batch: usize, norms_first: bool, dtype: DType) -> (Vec<f64>, Vec<f64>) {
        const WEIGHTS: [f64; 5] = [0.5, -1.0, 0.0, 2.0, 0.25];
        let (inputs, outputs) = (7, 4);
        let parameters = [random(outputs, inputs, dtype, 1), random(1, outputs, dtype, 2).get(0).unwrap()];
        let context = BuildContext { dtype, device: &Device::Cpu, expected: None, row_values: None };
        let mut layer = Linear::new(positions, [inputs, outputs], &parameters, context).unwrap();
        layer.form = form;
        let (_, pass) = layer.forward(random(batch, positions * inputs, dtype, 3)).unwrap();
        let output_gradient = random(batch, positions * outputs, dtype, 4);
        let (_, mut factors) = layer.backward(pass, output_gradient, false).unwrap();
        let sq_norms = Tensor::zeros((batch, 1), DType::F64, &Device::Cpu).unwrap();
        if norms_first {
            layer.add_sq_norms(&mut factors, &sq_norms).unwrap();
        }
        let sums = [random(outputs, inputs, dtype, 5), random(1, outputs, dtype, 5).get(0).unwrap()];
        layer.weighted_sum(&factors, 0..batch, &WEIGHTS[..batch], &sums, false).unwrap();
        let flat = |tensor: &Tensor| tensor.flatten_all().unwrap().to_dtype(DType::F64).unwrap().to_vec1().unwrap();
        (flat(&sq_norms), [flat(&sums[0]), flat(&sums[1])].concat())
    }

    #[test]
    fn all_forms_are_the_same() {
        for (dtype, tolerance) in [(DType::F64, 1e-13), (DType::F32, 1e-5)] {
            for positions in [1, 2, 5, 9] {
                let (norms, sum) = ask(Form::Formed, positions, 5, true, dtype);
                let close = |a: &[f64], b: &[f64]| {
                    let scale = b.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance * scale)
                };
                let (gram_norms, gram_sum) = ask(Form::Gram, positions, 5, true, dtype);
                // Not below: where positions cancel it is more.
                let covers = gram_norms.iter().zip(&norms).all(|(gram, norm)| *gram >= norm * (1.0 - tolerance));
                assert!(covers && close(&gram_sum, &sum), "{positions} positions");
                // Without norms, as in a run that is not private, nothing is formed.
                assert!(close(&ask(Form::Formed, positions, 5, false, dtype).1, &sum), "{positions} positions");
            }
            let (outer, formed) = (ask(Form::Outer, 1, 5, true, dtype), ask(Form::Formed, 1, 5, true, dtype));
            assert!(outer.0.iter().zip(&formed.0).all(|(a, b)| (a - b).abs() <= tolerance * b));
        }
    }

    #[test]
    fn the_form_follows_the_shape() {
        assert_eq!(Form::cheapest(1, 1, 1, &Device::Cpu), Form::Outer);
        assert_eq!(Form::cheapest(8, 16, 8, &Device::Cpu), Form::Gram);
        assert_eq!(Form::cheapest(9, 16, 8, &Device::Cpu), Form::Formed);
    }
}
