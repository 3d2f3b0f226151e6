//! A network of linear layers over a batch: gradients, their products with a direction, and the
//! derivatives of a function of them.

use dp_engine::ops::{Activation, Element, Matrix, product};
use dp_engine::{Loss, ModelConfig};

use crate::error::Result;
use crate::loops::{add_products, add_scaled, add_to, dot, scale_rows, update};

/// The parameters of a linear layer, or a vector of their shape.
pub(super) struct Affine<T> {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// `[outputs, inputs]`
    weight: Vec<T>,
    /// `[outputs]`
    bias: Vec<T>,
}

impl<T: Element> Affine<T> {
    fn zeros(&self) -> Self {
        let &Self { inputs, outputs, .. } = self;
        Self { inputs, outputs, weight: vec![T::ZERO; inputs * outputs], bias: vec![T::ZERO; outputs] }
    }

    fn weight(&self) -> Result<Matrix<'_, T>> {
        Ok(Matrix::strided(&self.weight, self.outputs, self.inputs, self.inputs)?)
    }

    /// `x Wᵀ + b` for every row of `x`, `[rows, inputs]`.
    pub(super) fn forward(&self, x: &[T], rows: usize) -> Result<Vec<T>> {
        let mut out = self.bias.repeat(rows);
        let x = Matrix::strided(x, rows, self.inputs, self.inputs)?;
        product(&mut out, self.outputs, x, self.weight()?.transposed(), true)?;
        Ok(out)
    }

    /// `out += d W` for every row of `d`, `[rows, outputs]`.
    pub(super) fn backward(&self, d: &[T], rows: usize, out: &mut [T]) -> Result<()> {
        let d = Matrix::strided(d, rows, self.outputs, self.outputs)?;
        Ok(product(out, self.inputs, d, self.weight()?, true)?)
    }

    /// `out += t Wᵀ` for every row of `t`, `[rows, inputs]`.
    fn backward_transposed(&self, t: &[T], rows: usize, out: &mut [T]) -> Result<()> {
        let t = Matrix::strided(t, rows, self.inputs, self.inputs)?;
        Ok(product(out, self.outputs, t, self.weight()?.transposed(), true)?)
    }

    /// `W += dᵀ x` over the rows.
    fn add_outer(&mut self, d: &[T], x: &[T], rows: usize) -> Result<()> {
        let d = Matrix::strided(d, rows, self.outputs, self.outputs)?.transposed();
        let x = Matrix::strided(x, rows, self.inputs, self.inputs)?;
        Ok(product(&mut self.weight, self.inputs, d, x, true)?)
    }

    /// `Σ_i weights[i] d_i ⊗ (x_i, 1)` over the first rows, as many as there are weights.
    pub(super) fn weighted_sum(&self, d: &[T], x: &[T], weights: &[f64]) -> Result<Self> {
        let mut sum = self.zeros();
        let mut d = d[..weights.len() * self.outputs].to_vec();
        scale_rows(&mut d, self.outputs, weights);
        sum.add_outer(&d, x, weights.len())?;
        sum.add_rows(&d);
        Ok(sum)
    }

    /// `b += Σ d` over the rows.
    fn add_rows(&mut self, d: &[T]) {
        for row in d.chunks_exact(self.outputs) {
            add_to(&mut self.bias, row);
        }
    }
}

/// A vector of the shape of the parameters, layer by layer.
pub(super) type Direction<T> = Vec<Affine<T>>;

/// The vector as one list, in the order of the model's parameters.
pub(super) fn flat<T: Element>(direction: &Direction<T>) -> Vec<f64> {
    let parts: Vec<&[T]> = direction.iter().flat_map(|layer| [&layer.weight[..], &layer.bias]).collect();
    let mut flat = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
    for part in parts {
        flat.extend(part.iter().map(|value| value.to_double()));
    }
    flat
}

/// Linear layers with pointwise activations between them, and a loss of two classes: of the margin
/// `m`, the only output or the difference of both, `p = σ(m)` is the probability of class 1, `c_y
/// (p − y)` the derivative of the loss with respect to `m`.
pub(super) struct Network<T> {
    pub(super) layers: Direction<T>,
    /// After each layer; none leaves the values as they are.
    activations: Vec<Option<Activation>>,
    /// `c_y`
    class_weights: [f64; 2],
}

/// A batch on its way through the network and back. Rows of layer `l` have as many values as it has
/// outputs.
pub(super) struct Tape<T> {
    pub(super) rows: usize,
    labels: Vec<u32>,
    /// Inputs of every layer, and the outputs of the last.
    pub(super) inputs: Vec<Vec<T>>,
    /// Derivatives of each record's loss with respect to what the layers give, before the
    /// activations.
    pub(super) deltas: Vec<Vec<T>>,
    /// The same behind the activations.
    behind: Vec<Vec<T>>,
    /// Probability of class 1.
    pub(super) probabilities: Vec<f64>,
}

/// Derivatives of a function of a batch with respect to what a tape holds. Missing parts are 0.
pub(super) struct Adjoints<T> {
    /// Of the deltas.
    pub(super) deltas: Vec<Vec<T>>,
    /// Of the inputs of every layer but the first, and of the outputs of the last.
    pub(super) inputs: Vec<Vec<T>>,
}

impl<T: Element> Network<T> {
    /// The network of this model, its parameters still 0; `None` for a model of other layers, or a
    /// loss of other form.
    pub(super) fn of(model: &ModelConfig, loss: &Loss, n_inputs: usize) -> Option<Self> {
        let (n_outputs, class_weights) = match loss {
            Loss::SoftmaxCrossEntropy => (2, [1.0; 2]),
            Loss::WeightedSoftmaxCrossEntropy { class_weights } => (2, class_weights.as_slice().try_into().ok()?),
            Loss::BceWithLogits => (1, [1.0; 2]),
            Loss::WeightedBceWithLogits { positive_weight } => (1, [1.0, *positive_weight]),
            _ => return None,
        };
        let (hidden, between, last) = match model {
            ModelConfig::LogisticRegression => (&[][..], None, None),
            ModelConfig::SquashedRegression => (&[][..], None, Some(Activation::Sigmoid)),
            ModelConfig::Mlp { hidden, activation } if activation.is_function_of_output() => {
                (&hidden[..], Some(*activation), None)
            }
            _ => return None,
        };
        let widths = [&[n_inputs], hidden, &[n_outputs]].concat();
        let layer = |pair: &[usize]| {
            let &[inputs, outputs] = pair else { return None };
            Some(Affine { inputs, outputs, weight: vec![T::ZERO; inputs * outputs], bias: vec![T::ZERO; outputs] })
        };
        let layers: Direction<T> = widths.windows(2).filter_map(layer).collect();
        let mut activations = vec![between; hidden.len()];
        activations.push(last);
        Some(Self { layers, activations, class_weights })
    }

    /// Moves to these parameters.
    pub(super) fn set(&mut self, parameters: &[f64]) {
        let mut rest = parameters;
        for part in self.layers.iter_mut().flat_map(|layer| [&mut layer.weight, &mut layer.bias]) {
            let (values, others) = rest.split_at(part.len());
            part.iter_mut().zip(values).for_each(|(parameter, &value)| *parameter = T::from_double(value));
            rest = others;
        }
    }

    /// The direction 0.
    pub(super) fn zeros(&self) -> Direction<T> {
        self.layers.iter().map(Affine::zeros).collect()
    }

    /// The way of a batch, `features` `[rows, n_inputs]`, through the network and back.
    pub(super) fn tape(&self, features: Vec<T>, labels: &[u32]) -> Result<Tape<T>> {
        let rows = labels.len();
        let mut inputs = vec![features];
        for (index, (layer, activation)) in self.layers.iter().zip(&self.activations).enumerate() {
            let mut out = layer.forward(&inputs[index], rows)?;
            if let Some(activation) = activation {
                activation.forward(&mut out);
            }
            inputs.push(out);
        }
        let last = self.layers.len() - 1;
        let outputs = inputs[last + 1].chunks_exact(self.layers[last].outputs);
        let probabilities: Vec<f64> = outputs.map(|row| 1.0 / (1.0 + (-margin(row)).exp())).collect();
        let mut behind = vec![Vec::new(); last + 1];
        behind[last] = probabilities
            .iter()
            .zip(labels)
            .flat_map(|(&p, &y)| self.of_margin(self.class_weights[y as usize] * (p - f64::from(y))))
            .collect();
        let mut deltas = vec![Vec::new(); last + 1];
        for index in (0..=last).rev() {
            deltas[index] = self.times_slope(index, behind[index].clone(), &inputs);
            if index > 0 {
                let mut out = vec![T::ZERO; rows * self.layers[index].inputs];
                self.layers[index].backward(&deltas[index], rows, &mut out)?;
                behind[index - 1] = out;
            }
        }
        Ok(Tape { rows, labels: labels.to_vec(), inputs, deltas, behind, probabilities })
    }

    /// The outputs' derivatives, given that of the margin.
    fn of_margin(&self, derivative: f64) -> impl Iterator<Item = T> + use<T> {
        let n_outputs = self.layers.last().map_or(0, |layer| layer.outputs);
        let pair = [T::from_double(-derivative), T::from_double(derivative)];
        pair.into_iter().skip(2 - n_outputs)
    }

    /// `d φ'` of a layer's activation.
    fn times_slope(&self, layer: usize, mut d: Vec<T>, inputs: &[Vec<T>]) -> Vec<T> {
        let y = &inputs[layer + 1];
        match self.activations[layer] {
            Some(Activation::Tanh) => update(&mut d, y, |d, y| d * (T::ONE - y * y)),
            Some(Activation::Sigmoid) => update(&mut d, y, |d, y| d * y * (T::ONE - y)),
            Some(_) => update(&mut d, y, |d, y| if y > T::ZERO { d } else { T::ZERO }),
            None => {}
        }
        d
    }

    /// `d φ''` of a layer's activation.
    fn times_curvature(&self, layer: usize, mut d: Vec<T>, inputs: &[Vec<T>]) -> Vec<T> {
        let y = &inputs[layer + 1];
        match self.activations[layer] {
            Some(Activation::Tanh) => update(&mut d, y, |d, y| d * (T::ZERO - y - y) * (T::ONE - y * y)),
            Some(Activation::Sigmoid) => update(&mut d, y, |d, y| d * y * (T::ONE - y) * (T::ONE - y - y)),
            _ => d.fill(T::ZERO),
        }
        d
    }

    /// `Σ_i weights[i] d_i ⊗ (a_i, 1)` by layer.
    pub(super) fn weighted_sum(&self, tape: &Tape<T>, weights: &[f64]) -> Result<Direction<T>> {
        let layers = self.layers.iter().zip(tape.deltas.iter().zip(&tape.inputs));
        layers.map(|(layer, (d, x))| layer.weighted_sum(d, x, weights)).collect()
    }

    /// What the layers would give, were these their parameters: `V a_i + b` by layer.
    pub(super) fn along(tape: &Tape<T>, direction: &Direction<T>) -> Result<Vec<Vec<T>>> {
        direction.iter().zip(&tape.inputs).map(|(layer, x)| layer.forward(x, tape.rows)).collect()
    }

    /// `⟨g_i, v⟩` by record, from [`Self::along`] of `v`.
    pub(super) fn slopes(&self, tape: &Tape<T>, along: &[Vec<T>]) -> Vec<f64> {
        let mut slopes = vec![0.0; tape.rows];
        for ((layer, d), v) in self.layers.iter().zip(&tape.deltas).zip(along) {
            add_products(&mut slopes, d, v, layer.outputs);
        }
        slopes
    }

    /// `‖d_i‖²` and `‖a_i‖² + 1` by layer and record, the factors of the squared norm of `d_i ⊗
    /// (a_i, 1)`.
    fn sq_norms(&self, tape: &Tape<T>) -> Vec<Vec<[f64; 2]>> {
        let of_layer = |((layer, d), x): ((&Affine<T>, &Vec<T>), &Vec<T>)| {
            let rows = d.chunks_exact(layer.outputs).zip(x.chunks_exact(layer.inputs));
            rows.map(|(d, x)| [dot(d, d), dot(x, x) + 1.0]).collect()
        };
        self.layers.iter().zip(&tape.deltas).zip(&tape.inputs).map(of_layer).collect()
    }

    /// `‖d_i ⊗ (a_i, 1)‖` by record, over all layers.
    pub(super) fn norms(&self, tape: &Tape<T>) -> Vec<f64> {
        let sq_norms = self.sq_norms(tape);
        (0..tape.rows).map(|i| sq_norms.iter().map(|layer| layer[i][0] * layer[i][1]).sum::<f64>().sqrt()).collect()
    }

    /// Every record's loss: `c_y ln(1 + e^∓m)`, `m` the margin.
    pub(super) fn losses(&self, tape: &Tape<T>) -> Vec<f64> {
        let outputs = tape.outputs().chunks_exact(self.n_outputs());
        let loss = |(row, &label): (&[T], &u32)| {
            let against = if label == 1 { -margin(row) } else { margin(row) };
            self.class_weights[label as usize] * (against.max(0.0) + (-against.abs()).exp().ln_1p())
        };
        outputs.zip(&tape.labels).map(loss).collect()
    }

    /// Derivatives with respect to what every layer gives before its activation, of a function with
    /// these derivatives with respect to the tape; those with respect to the parameters are added
    /// to `gradient`, if it is asked for.
    pub(super) fn sweep(
        &self,
        tape: &Tape<T>,
        adjoints: Adjoints<T>,
        mut gradient: Option<&mut Direction<T>>,
    ) -> Result<Vec<Vec<T>>> {
        let Adjoints { mut deltas, mut inputs } = adjoints;
        let last = self.layers.len() - 1;
        let mut before = Vec::with_capacity(last + 1);
        // The way back, in reverse: from the first layer's deltas to the loss.
        for index in 0..=last {
            let d = std::mem::take(&mut deltas[index]);
            let mut curved = d.clone();
            update(&mut curved, &tape.behind[index], |d, b| d * b);
            before.push(self.times_curvature(index, curved, &tape.inputs));
            let t = self.times_slope(index, d, &tape.inputs);
            if index < last {
                self.layers[index + 1].backward_transposed(&t, tape.rows, &mut deltas[index + 1])?;
                if let Some(gradient) = &mut gradient {
                    gradient[index + 1].add_outer(&tape.deltas[index + 1], &t, tape.rows)?;
                }
            } else {
                self.add_second_derivative(tape, &t, &mut inputs[last + 1]);
            }
        }
        // The way there, in reverse.
        for index in (0..=last).rev() {
            let activated = std::mem::take(&mut inputs[index + 1]);
            let slopes = self.times_slope(index, activated, &tape.inputs);
            add_to(&mut before[index], &slopes);
            if let Some(gradient) = &mut gradient {
                gradient[index].add_outer(&before[index], &tape.inputs[index], tape.rows)?;
                gradient[index].add_rows(&before[index]);
            }
            if index > 0 {
                self.layers[index].backward(&before[index], tape.rows, &mut inputs[index])?;
            }
        }
        Ok(before)
    }

    /// Adds the Hessian of every record's loss with respect to the outputs, times `t`.
    fn add_second_derivative(&self, tape: &Tape<T>, t: &[T], outputs: &mut [T]) {
        let n_outputs = self.layers.last().map_or(1, |layer| layer.outputs);
        let rows = t.chunks_exact(n_outputs).zip(outputs.chunks_exact_mut(n_outputs));
        for ((t, out), (&p, &y)) in rows.zip(tape.probabilities.iter().zip(&tape.labels)) {
            let second = self.class_weights[y as usize] * p * (1.0 - p) * margin(t);
            out.iter_mut().zip(self.of_margin(second)).for_each(|(out, value)| *out += value);
        }
    }

    /// Adds derivatives with respect to the probabilities of class 1, and those with respect to
    /// each output given it, to the adjoints of the outputs.
    pub(super) fn add_to_outputs(
        &self,
        tape: &Tape<T>,
        adjoints: &mut Adjoints<T>,
        of_probability: impl Fn(usize) -> f64,
        of_output: impl Fn(usize, f64) -> f64,
    ) {
        let last = self.layers.len();
        let n_outputs = self.layers.last().map_or(1, |layer| layer.outputs);
        let rows = adjoints.inputs[last].chunks_exact_mut(n_outputs).zip(tape.inputs[last].chunks_exact(n_outputs));
        for (i, (out, outputs)) in rows.enumerate() {
            let p = tape.probabilities[i];
            let by_margin = self.of_margin(of_probability(i) * p * (1.0 - p));
            for ((out, by_margin), output) in out.iter_mut().zip(by_margin).zip(outputs) {
                *out += by_margin + T::from_double(of_output(i, output.to_double()));
            }
        }
    }

    /// Adds `factors[i] (d_i (‖a_i‖² + 1), a_i ‖d_i‖²)`, the derivatives of half the squared norms
    /// of the gradients, to the adjoints.
    pub(super) fn add_to_norms(&self, tape: &Tape<T>, adjoints: &mut Adjoints<T>, factors: &[f64]) {
        let sq_norms = self.sq_norms(tape);
        for (index, layer) in self.layers.iter().enumerate() {
            let add = |out: &mut [T], values: &[T], width: usize, other: usize| {
                let rows = out.chunks_exact_mut(width).zip(values.chunks_exact(width));
                for ((out, values), (factor, sq)) in rows.zip(factors.iter().zip(&sq_norms[index])) {
                    add_scaled(out, T::from_double(factor * sq[other]), values);
                }
            };
            add(&mut adjoints.deltas[index], &tape.deltas[index], layer.outputs, 1);
            if index > 0 {
                add(&mut adjoints.inputs[index], &tape.inputs[index], layer.inputs, 0);
            }
        }
    }

    /// Outputs of a record.
    pub(super) fn n_outputs(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.outputs)
    }
}

impl<T: Element> Tape<T> {
    /// The records at these positions, in this order.
    pub(super) fn select(&self, positions: &[usize]) -> Self {
        let rows = |values: &Vec<T>| {
            let width = values.len() / self.rows.max(1);
            let mut selected = Vec::with_capacity(positions.len() * width);
            for &i in positions {
                selected.extend_from_slice(&values[i * width..(i + 1) * width]);
            }
            selected
        };
        let all = |layers: &[Vec<T>]| layers.iter().map(rows).collect();
        Self {
            rows: positions.len(),
            labels: positions.iter().map(|&i| self.labels[i]).collect(),
            inputs: all(&self.inputs),
            deltas: all(&self.deltas),
            behind: all(&self.behind),
            probabilities: positions.iter().map(|&i| self.probabilities[i]).collect(),
        }
    }

    /// The outputs of every record, `[rows, n_outputs]`.
    pub(super) fn outputs(&self) -> &[T] {
        self.inputs.last().map_or(&[], Vec::as_slice)
    }
}

/// The only output, or the second less the first.
fn margin<T: Element>(outputs: &[T]) -> f64 {
    match outputs {
        [only] => only.to_double(),
        [zero, one, ..] => one.to_double() - zero.to_double(),
        [] => 0.0,
    }
}
