//! The form of the trainer that printed the paper's rows: every record keeps its own share of the
//! regularisers' gradient.
//!
//! `R2` is the mean over pairs of groups of the difference between their means of `o (1 − o)`, over
//! records and raw outputs `o` of the model. Clipping factors in `R1` are differentiated, and means
//! are over the batch that was drawn, of `n` records. A record's gradient at a linear layer is
//! `d'_i ⊗ (a_i, 1)` with `d'_i = d_i + n ∂(γ1 R1 + γ2 R2)/∂z_i`, `z_i` what the layer gives for
//! it: what hooks of a framework read off when the regularised mean loss is differentiated. These
//! gradients are clipped and summed.

use dp_engine::ops::Element;

use super::Exact;
use super::clipping_gap::ClippingGap;
use super::groups::Groups;
use super::network::Tape;
use crate::error::Result;
use crate::loops::add_scaled;

impl<T: Element> Exact<T> {
    /// The norms of the regularised gradients of a batch, whose deltas become theirs. The clipping
    /// factors of the first records come with their derivatives with respect to the norms; the
    /// others are not clipped.
    pub(super) fn share(
        &mut self,
        mut tape: Tape<T>,
        groups: &Groups,
        (scales, scale_slopes): (&[f64], &[f64]),
        [gamma_1, gamma_2]: [f64; 2],
    ) -> Result<Vec<f64>> {
        let network = &self.network;
        let n = tape.rows as f64;
        let lost: Vec<f64> = scales.iter().map(|s| (s - 1.0) / n).collect();
        let by_pair = |slopes: &[f64]| groups.pair_weights(slopes);
        let ClippingGap { mut adjoints, of_lost } = ClippingGap::new(network, &tape, gamma_1, &lost, by_pair)?;
        let along_norms: Vec<f64> = (of_lost.iter().zip(scale_slopes))
            .zip(network.norms(&tape))
            .map(|((slope, of_scale), norm)| if norm > 0.0 { gamma_1 * slope * of_scale / (n * norm) } else { 0.0 })
            .collect();
        network.add_to_norms(&tape, &mut adjoints, &along_norms);

        let n_outputs = network.n_outputs() as f64;
        let spread =
            |outputs: &[T]| outputs.iter().map(|o| o.to_double() * (1.0 - o.to_double())).sum::<f64>() / n_outputs;
        let spreads: Vec<f64> = tape.outputs().chunks_exact(network.n_outputs()).map(spread).collect();
        let of_spread = groups.pair_weights(&spreads);
        let of_output = |i: usize, output: f64| gamma_2 * of_spread[i] * (1.0 - 2.0 * output) / n_outputs;
        network.add_to_outputs(&tape, &mut adjoints, |_| 0.0, of_output);

        let shares = network.sweep(&tape, adjoints, None)?;
        for (deltas, shares) in tape.deltas.iter_mut().zip(&shares) {
            add_scaled(deltas, T::from_double(n), shares);
        }
        let norms = network.norms(&tape);
        self.batch = Some(tape);
        Ok(norms)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;
    use crate::batch_plan::BatchPlan;
    use crate::schedule::LearningRate;
    use crate::train_config::TrainConfig;
    use crate::{Loss, ModelConfig, PublicFacts, Records};
    use dp_engine::ops::Activation;

    const N: usize = 5;

    fn records() -> Records {
        let facts = PublicFacts { n_records: N, n_inputs: 2, n_classes: 2, n_groups: 3 };
        let features: Vec<f32> = (0..2 * N).map(|i| ((i * 7) % 11) as f32 * 0.3 - 1.5).collect();
        Records::new(&features, &[1, 0, 1, 1, 0], &[0, 1, 0, 1, 2], facts, DType::F64, &Device::Cpu).unwrap()
    }

    /// Losses, and what everything else is made from, written down anew for one record: `z` by
    /// layer, moved by `offset` at `(layer, unit)`.
    struct Record {
        loss: f64,
        outputs: Vec<f64>,
        /// `d_i ⊗ (a_i, 1)`, layer by layer.
        gradient: Vec<f64>,
    }

    fn record(
        widths: &[usize],
        squashed: bool,
        at: &[f64],
        x: &[f64],
        y: usize,
        offset: Option<(usize, usize, f64)>,
    ) -> Record {
        let n_layers = widths.len() - 1;
        let mut rest = at;
        let mut layers = Vec::new();
        for pair in widths.windows(2) {
            let (weight, after) = rest.split_at(pair[0] * pair[1]);
            let (bias, after) = after.split_at(pair[1]);
            layers.push((weight, bias));
            rest = after;
        }
        let mut activations = vec![x.to_vec()];
        for (l, (weight, bias)) in layers.iter().enumerate() {
            let a = &activations[l];
            let z = |j: usize| {
                let moved = offset.map_or(0.0, |(layer, unit, h)| if (layer, unit) == (l, j) { h } else { 0.0 });
                bias[j] + moved + (0..widths[l]).map(|k| weight[j * widths[l] + k] * a[k]).sum::<f64>()
            };
            let act = |z: f64| match (l + 1 == n_layers, squashed) {
                (true, true) => 1.0 / (1.0 + (-z).exp()),
                (true, false) => z,
                (false, _) => z.tanh(),
            };
            activations.push((0..widths[l + 1]).map(|j| act(z(j))).collect());
        }
        let outputs = activations[n_layers].clone();
        let total: f64 = outputs.iter().map(|o| o.exp()).sum();
        let mut d: Vec<f64> = outputs.iter().map(|o| o.exp() / total).collect();
        d[y] -= 1.0;
        if squashed {
            d.iter_mut().zip(&outputs).for_each(|(d, o)| *d *= o * (1.0 - o));
        }
        let mut parts = vec![Vec::new(); n_layers];
        for l in (0..n_layers).rev() {
            parts[l] = d.iter().flat_map(|d| activations[l].iter().chain(&[1.0]).map(move |a| d * a)).collect();
            let back = |k: usize| (0..d.len()).map(|j| d[j] * layers[l].0[j * widths[l] + k]).sum::<f64>();
            let a = &activations[l];
            let before: Vec<f64> = (0..widths[l]).map(|k| back(k) * (1.0 - a[k] * a[k])).collect();
            d = before;
        }
        Record { loss: total.ln() - outputs[y], outputs, gradient: parts.concat() }
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// The regularised mean loss of the batch.
    fn total(records: &[Record], groups: &[usize], clip_norm: f64, gamma: [f64; 2]) -> f64 {
        let n = records.len() as f64;
        let mean = |value: &dyn Fn(&Record) -> f64, group: usize| {
            let members: Vec<f64> =
                records.iter().zip(groups).filter(|(_, g)| **g == group).map(|(record, _)| value(record)).collect();
            members.iter().sum::<f64>() / members.len() as f64
        };
        let w: Vec<f64> = (0..records[0].gradient.len())
            .map(|j| {
                let lost = |record: &Record| {
                    let norm = dot(&record.gradient, &record.gradient).sqrt();
                    ((clip_norm / norm).min(1.0) - 1.0) * record.gradient[j] / n
                };
                records.iter().map(lost).sum()
            })
            .collect();
        let along = |record: &Record| dot(&record.gradient, &w);
        let spread = |record: &Record| record.outputs.iter().map(|o| o * (1.0 - o) / 2.0).sum::<f64>();
        let pairs = |value: &dyn Fn(&Record) -> f64| {
            [(0, 1), (0, 2), (1, 2)].map(|(a, b)| (mean(value, a) - mean(value, b)).abs()).iter().sum::<f64>() / 3.0
        };
        records.iter().map(|record| record.loss).sum::<f64>() / n + gamma[0] * pairs(&along) + gamma[1] * pairs(&spread)
    }

    /// Every share is the derivative of the whole with respect to what one layer gives for one
    /// record, from differences.
    #[test]
    fn shares_are_derivatives_of_the_whole() {
        let records = records();
        let rows: Vec<usize> = (0..N).collect();
        let mlp = ModelConfig::Mlp { hidden: vec![3, 2], activation: Activation::Tanh };
        for (model, widths, clip_norm) in
            [(mlp, vec![2, 3, 2, 2], 0.4), (ModelConfig::SquashedRegression, vec![2, 2], 0.2)]
        {
            let squashed = model == ModelConfig::SquashedRegression;
            let batches = BatchPlan::exact(records.facts(), N, 1).unwrap();
            let config = TrainConfig::new(model, Loss::SoftmaxCrossEntropy, batches, LearningRate::Constant(0.1));
            let n_parameters: usize = widths.windows(2).map(|pair| (pair[0] + 1) * pair[1]).sum();
            let at: Vec<f64> = (0..n_parameters).map(|i| ((i * 5) % 7) as f64 * 0.25 - 0.7).collect();
            let (labels, groups) = records.labels_and_groups(&rows);
            let inputs: Vec<f64> = records.inputs(&rows).unwrap();
            let batch = |moved: Option<(usize, usize, usize, f64)>| -> Vec<Record> {
                let one = |i: usize| {
                    let offset = moved.filter(|(row, ..)| *row == i).map(|(_, layer, unit, h)| (layer, unit, h));
                    record(&widths, squashed, &at, &inputs[2 * i..2 * i + 2], labels[i] as usize, offset)
                };
                (0..N).map(one).collect()
            };
            let norms: Vec<f64> = batch(None).iter().map(|r| dot(&r.gradient, &r.gradient).sqrt()).collect();
            assert!(
                norms.iter().any(|norm| *norm > clip_norm) && norms.iter().any(|norm| *norm < clip_norm),
                "{norms:?}"
            );
            let scales: Vec<f64> = norms.iter().map(|norm| (clip_norm / norm).min(1.0)).collect();
            let of_scale = |norm: &f64| if *norm > clip_norm { -clip_norm / norm.powi(2) } else { 0.0 };
            let slopes: Vec<f64> = norms.iter().map(of_scale).collect();
            for gamma in [[1.0, 0.0], [0.0, 1.0], [0.7, 1.3]] {
                let mut exact = Exact::<f64>::of(&config, 2).unwrap();
                let tape = exact.tape(&records, &rows, &at).unwrap();
                let by_group = Groups::new(groups.clone(), 3);
                exact.share(tape, &by_group, (&scales, &slopes), gamma).unwrap();
                let regularised = exact.batch.unwrap();
                for (row, layer) in (0..N).flat_map(|row| (0..widths.len() - 1).map(move |layer| (row, layer))) {
                    for unit in 0..widths[layer + 1] {
                        let value = |h: f64| total(&batch(Some((row, layer, unit, h))), &groups, clip_norm, gamma);
                        let slope = N as f64 * (value(1e-6) - value(-1e-6)) / 2e-6;
                        let share = regularised.deltas[layer][row * widths[layer + 1] + unit];
                        assert!((share - slope).abs() < 1e-7, "{gamma:?} {row} {layer} {unit}: {share} {slope}");
                    }
                }
            }
        }
    }
}
