//! FairLens: what two regularisers of the whole batch add to the gradient of each of its records.

use candle_core::DType;
use dp_clipping::ClipMethod;

use crate::analysis::Curvature;
use crate::error::{Result, TrainError};
use crate::plan::TrainConfig;
use crate::records::Records;

/// The regularisers' common gradient, `v = γ1 ∇R1 + γ2 ∇R2`, which is added to every per-sample gradient of the batch.
///
/// With `g_Bk` the mean gradient and `f_k` the mean predicted probability of class 1 of group `k` over the batch's records of it, and
/// `w = ḡ_B − g_B` the clipped less the plain mean gradient, over the expected batch size:
///
/// - `R1`, the mean over pairs of groups of `|⟨g_Ba − g_Bb, w⟩|`, holds clipping's excessive risk down;
/// - `R2`, the mean over groups of `f_k (1 − f_k)`, stands in for the trace of the Hessian and holds the noise's down.
///
/// For two groups this is Algorithm 4. A pair, or group, without a record in the batch is left out of the means. Clipping factors
/// count as constants in ∇R1, whose two parts are then Hessian-vector products: `Σ_k c_k H_Bk w + (1/B) Σ_i (s_i − 1) H_i u` with
/// `u = Σ_k c_k g_Bk` and `c_k` the mean sign of the pairs of `k`. All derivatives are differences in `f64`, good to 1e-8.
///
/// **Guarantee.** None: one record moves the gradients of all others.
///
/// **Source.** Tran 2021; Esipova 2023, Algorithm 4.
pub(crate) struct FairLens {
    curvature: Curvature,
    gamma_1: f64,
    gamma_2: f64,
}

/// The common addition and its product with each record's own gradient.
struct Addition {
    /// `v`, `[params]`.
    vector: Vec<f64>,
    /// `⟨g_i, v⟩`, `[records]`.
    products: Vec<f64>,
}

/// The records of a batch that have a finite gradient.
pub(crate) struct Usable<'a> {
    /// Their numbers.
    pub(crate) rows: &'a [usize],
    /// The norms of their gradients.
    pub(crate) norms: &'a mut [f64],
}

impl FairLens {
    pub(crate) fn new(config: &TrainConfig, records: &Records, [gamma_1, gamma_2]: [f64; 2]) -> Result<Self> {
        let curvature = Curvature::new(&config.model, config.loss.clone(), &records.select(&[], DType::F64)?)?;
        Ok(Self { curvature, gamma_1, gamma_2 })
    }

    /// The vector to add to every per-sample gradient of the batch; the norms become those of the regularised gradients,
    /// `‖g_i + v‖² = ‖g_i‖² + 2⟨g_i, v⟩ + ‖v‖²`.
    pub(crate) fn regularise(
        &mut self,
        method: &dyn ClipMethod,
        records: &Records,
        usable: Usable<'_>,
        expected_batch_size: f64,
        parameters: &[f64],
    ) -> Result<Vec<f64>> {
        let Usable { rows, norms } = usable;
        let scale = |(&row, &norm): (&usize, &f64)| {
            method.scale_in_advance(records.groups()[row]).map(|scale| scale.scale(norm))
        };
        let scales =
            rows.iter().zip(&*norms).map(scale).collect::<Option<Vec<f64>>>().ok_or_else(|| {
                TrainError::mismatch("clipping factors that depend on the record alone", "some", "none")
            })?;
        let Addition { vector, products } = self.addition(records, rows, &scales, expected_batch_size, parameters)?;
        let sq_norm: f64 = vector.iter().map(|v| v * v).sum();
        for (norm, product) in norms.iter_mut().zip(products) {
            // Rounding can take a norm near 0 below it.
            *norm = (norm.powi(2) + 2.0 * product + sq_norm).max(0.0).sqrt();
        }
        Ok(vector)
    }

    /// The addition for a batch of these rows, clipped by these factors, at these parameters.
    fn addition(
        &mut self,
        records: &Records,
        rows: &[usize],
        scales: &[f64],
        expected_batch_size: f64,
        parameters: &[f64],
    ) -> Result<Addition> {
        self.curvature.set_parameters(parameters)?;
        let batch = records.select(rows, DType::F64)?;
        let rows: Vec<usize> = (0..batch.len()).collect();
        let members = members(batch.groups(), batch.facts().n_groups);

        let lost: Vec<f64> = scales.iter().map(|s| (s - 1.0) / expected_batch_size).collect();
        let w = self.curvature.weighted_gradient(&batch, &rows, &lost)?;
        let signs = mean_signs(&group_means(&self.curvature.slopes(&batch, &rows, &w)?, &members));
        let by_pair: Vec<f64> = batch.groups().iter().map(|&k| signs[k] / members[k].len() as f64).collect();
        let u = self.curvature.weighted_gradient(&batch, &rows, &by_pair)?;
        let along_w = self.curvature.weighted_product(&batch, &rows, &by_pair, &w)?;
        let along_u = self.curvature.weighted_product(&batch, &rows, &lost, &u)?;

        let uncertainty = self.uncertainty_weights(&batch, &rows, &members)?;
        let spread = self.curvature.weighted_gradient(&batch, &rows, &uncertainty)?;
        let vector: Vec<f64> = along_w
            .iter()
            .zip(&along_u)
            .zip(&spread)
            .map(|((along_w, along_u), spread)| self.gamma_1 * (along_w + along_u) + self.gamma_2 * spread)
            .collect();
        let products = self.curvature.slopes(&batch, &rows, &vector)?;
        Ok(Addition { vector, products })
    }

    /// Weights with which the records' gradients add up to `∇R2`. The loss is `−ln p_y`, so the gradient of `p_y` is `−p_y g_i`, and that
    /// of the probability of class 1 the same for label 1 and its opposite for label 0.
    fn uncertainty_weights(&mut self, batch: &Records, rows: &[usize], members: &[Vec<usize>]) -> Result<Vec<f64>> {
        let right: Vec<f64> = self.curvature.losses(batch, rows)?.iter().map(|loss| (-loss).exp()).collect();
        let of_label = |i: usize, one: f64, zero: f64| if batch.labels()[i] == 1 { one } else { zero };
        let class_1: Vec<f64> = right.iter().enumerate().map(|(i, &p)| of_label(i, p, 1.0 - p)).collect();
        let means = group_means(&class_1, members);
        let present = means.iter().flatten().count() as f64;
        Ok(batch
            .groups()
            .iter()
            .enumerate()
            .map(|(i, &k)| {
                let slope = means[k].map_or(0.0, |f| 1.0 - 2.0 * f) / (present * members[k].len() as f64);
                slope * of_label(i, -right[i], right[i])
            })
            .collect())
    }
}

/// Positions by group.
fn members(groups: &[usize], n_groups: usize) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); n_groups];
    for (i, &group) in groups.iter().enumerate() {
        members[group].push(i);
    }
    members
}

/// Mean over each group's positions; `None` for a group that is absent.
fn group_means(values: &[f64], members: &[Vec<usize>]) -> Vec<Option<f64>> {
    let mean = |positions: &Vec<usize>| positions.iter().map(|&i| values[i]).sum::<f64>() / positions.len() as f64;
    members.iter().map(|positions| (!positions.is_empty()).then(|| mean(positions))).collect()
}

/// `c_k` with `Σ_k c_k m_k` the mean of `|m_a − m_b|` over all pairs of groups that are present.
fn mean_signs(means: &[Option<f64>]) -> Vec<f64> {
    let present = means.iter().flatten().count() as f64;
    let pairs = (present * (present - 1.0) / 2.0).max(1.0);
    let sign = |difference: f64| if difference == 0.0 { 0.0 } else { difference.signum() };
    means
        .iter()
        .map(|mean| {
            mean.map_or(0.0, |mean| means.iter().flatten().map(|other| sign(mean - other)).sum::<f64>() / pairs)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;
    use crate::ops::Activation;
    use crate::plan::BatchPlan;
    use crate::schedule::LearningRate;
    use crate::{Engine, Loss, ModelConfig, PublicFacts};

    /// Means 3, 1, absent, 2: |3 − 1| + |3 − 2| + |1 − 2| = 4 over 3 pairs; c = (2, −2, 0, 0)/3.
    #[test]
    fn signs_by_hand() {
        let signs = mean_signs(&[Some(3.0), Some(1.0), None, Some(2.0)]);
        assert_eq!(signs, [2.0 / 3.0, -2.0 / 3.0, 0.0, 0.0]);
        assert_eq!(mean_signs(&[Some(3.0), None]), [0.0, 0.0]);
        assert_eq!(mean_signs(&[Some(3.0), Some(3.0)]), [0.0, 0.0]);
    }

    /// Three groups, a fourth without a record; the last group's mean gradient is that of one record.
    fn setting() -> (TrainConfig, Records, Vec<f64>) {
        let facts = PublicFacts { n_records: 9, n_inputs: 3, n_classes: 2, n_groups: 4 };
        let features: Vec<f32> = (0..27).map(|i| ((i * 7) % 11) as f32 * 0.3 - 1.5).collect();
        let groups = [0, 1, 0, 1, 1, 0, 0, 1, 2];
        let labels = [1, 0, 1, 1, 0, 0, 1, 1, 0];
        let records = Records::new(&features, &labels, &groups, facts, DType::F64, &Device::Cpu).unwrap();
        let model = ModelConfig::Mlp { hidden: vec![4], activation: Activation::Tanh };
        let batches = BatchPlan::exact(9, 9, 1).unwrap();
        let config = TrainConfig::new(model, Loss::SoftmaxCrossEntropy, batches, LearningRate::Constant(0.1));
        let mut engine = Engine::new(&config.model, config.loss.clone(), &records, &Device::Cpu).unwrap();
        engine.model_mut().initialise(&mut ChaCha20Rng::seed_from_u64(3)).unwrap();
        let parameters = engine.model().parameters().to_vec().unwrap();
        (config, records, parameters)
    }

    /// `γ1 R1 + γ2 R2` as defined, from per-sample gradients, with clipping factors given.
    fn regulariser(config: &TrainConfig, records: &Records, at: &[f64], scales: &[f64], gamma: [f64; 2]) -> f64 {
        let mut engine = Engine::new(&config.model, config.loss.clone(), records, &Device::Cpu).unwrap();
        engine.model_mut().parameters().set(at).unwrap();
        let n_groups = 3;
        let mut group_gradients = vec![vec![0.0; at.len()]; n_groups];
        let mut f = vec![0.0; n_groups];
        let mut w = vec![0.0; at.len()];
        let sum = engine.zero_gradient().unwrap();
        for (i, scale) in scales.iter().enumerate() {
            let group = records.groups()[i];
            let size = records.groups().iter().filter(|&&g| g == group).count() as f64;
            engine.differentiate(records, &[i], &[]).unwrap();
            engine.weighted_sum(&[1.0], &sum, false).unwrap();
            let p = (-engine.losses().unwrap()[0]).exp();
            let class_1 = if records.labels()[i] == 1 { p } else { 1.0 - p };
            f[group] += class_1 / size;
            for (j, g) in sum.to_vec().unwrap().into_iter().enumerate() {
                group_gradients[group][j] += g / size;
                w[j] += (scale - 1.0) * g / 8.0;
            }
        }
        let mut r1 = 0.0;
        for a in 0..n_groups {
            for b in 0..a {
                let product = |k: usize| -> f64 { group_gradients[k].iter().zip(&w).map(|(g, w)| g * w).sum() };
                r1 += (product(a) - product(b)).abs() / 3.0;
            }
        }
        let r2: f64 = f.iter().map(|f| f * (1.0 - f) / 3.0).sum();
        gamma[0] * r1 + gamma[1] * r2
    }

    #[test]
    fn the_addition_is_the_regularisers_gradient() {
        let (config, records, parameters) = setting();
        let scales: Vec<f64> = (0..9).map(|i| 0.2 + 0.1 * f64::from(i)).collect();
        let rows: Vec<usize> = (0..9).collect();
        for gamma in [[1.0, 0.0], [0.0, 1.0], [0.7, 1.3]] {
            let mut fairlens = FairLens::new(&config, &records, gamma).unwrap();
            let addition = fairlens.addition(&records, &rows, &scales, 8.0, &parameters).unwrap();
            for j in 0..parameters.len() {
                let value = |h: f64| {
                    let mut moved = parameters.clone();
                    moved[j] += h;
                    regulariser(&config, &records, &moved, &scales, gamma)
                };
                let slope = (value(1e-5) - value(-1e-5)) / 2e-5;
                assert!((addition.vector[j] - slope).abs() < 1e-8, "{gamma:?} {j}: {} {slope}", addition.vector[j]);
            }
        }
    }

    #[test]
    fn products_are_those_with_each_records_gradient() {
        let (config, records, parameters) = setting();
        let rows = [4, 0, 8];
        let mut fairlens = FairLens::new(&config, &records, [1.0, 1.0]).unwrap();
        let addition = fairlens.addition(&records, &rows, &[0.5, 1.0, 0.1], 2.0, &parameters).unwrap();
        let mut engine = Engine::new(&config.model, config.loss.clone(), &records, &Device::Cpu).unwrap();
        engine.model_mut().parameters().set(&parameters).unwrap();
        let sum = engine.zero_gradient().unwrap();
        for (row, product) in rows.into_iter().zip(addition.products) {
            engine.differentiate(&records, &[row], &[]).unwrap();
            engine.weighted_sum(&[1.0], &sum, false).unwrap();
            let exact: f64 = sum.to_vec().unwrap().iter().zip(&addition.vector).map(|(g, v)| g * v).sum();
            assert!((product - exact).abs() < 1e-9, "{product} {exact}");
        }
    }
}
