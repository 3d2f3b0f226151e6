//! Algorithm 4 for models of any layers: derivatives are differences of gradients.

use candle_core::DType;
use dp_engine::Records;

use super::Addition;
use super::groups::{Groups, group_means};
use crate::analysis::Curvature;
use crate::error::Result;
use crate::train_config::TrainConfig;

/// As [`super::paper`]. ∇R1 is two Hessian-vector products, `Σ_k c_k H_Bk w + (1/B) Σ_i (s_i − 1)
/// H_i u`.
pub(super) struct Differences {
    curvature: Curvature,
}

impl Differences {
    pub(super) fn new(config: &TrainConfig, records: &Records) -> Result<Self> {
        let curvature = Curvature::new(&config.model, config.loss.clone(), &records.select(&[], DType::F64)?)?;
        Ok(Self { curvature })
    }

    /// Moves to these parameters.
    pub(super) fn set_parameters(&mut self, parameters: &[f64]) -> Result<()> {
        self.curvature.set_parameters(parameters)
    }

    /// The addition for a batch of these rows, the first of them clipped by these factors.
    pub(super) fn addition(
        &mut self,
        records: &Records,
        rows: &[usize],
        scales: &[f64],
        ([gamma_1, gamma_2], expected_batch_size): ([f64; 2], f64),
    ) -> Result<Addition> {
        let batch = records.select(rows, DType::F64)?;
        let rows: Vec<usize> = (0..batch.len()).collect();
        let groups = Groups::new(batch.groups().to_vec(), batch.facts().n_groups);

        let mut lost: Vec<f64> = scales.iter().map(|s| (s - 1.0) / expected_batch_size).collect();
        lost.resize(rows.len(), 0.0);
        let w = self.curvature.weighted_gradient(&batch, &rows, &lost)?;
        let by_pair = groups.pair_weights(&self.curvature.slopes(&batch, &rows, &w)?);
        let u = self.curvature.weighted_gradient(&batch, &rows, &by_pair)?;
        let along_w = self.curvature.weighted_product(&batch, &rows, &by_pair, &w)?;
        let along_u = self.curvature.weighted_product(&batch, &rows, &lost, &u)?;

        let uncertainty = self.uncertainty_weights(&batch, &rows, &groups.members)?;
        let spread = self.curvature.weighted_gradient(&batch, &rows, &uncertainty)?;
        let vector: Vec<f64> = along_w
            .iter()
            .zip(&along_u)
            .zip(&spread)
            .map(|((along_w, along_u), spread)| gamma_1 * (along_w + along_u) + gamma_2 * spread)
            .collect();
        let products = self.curvature.slopes(&batch, &rows, &vector)?;
        Ok(Addition { vector, products })
    }

    /// Weights with which the records' gradients add up to `∇R2`. The loss is `−ln p_y`, so the
    /// gradient of `p_y` is `−p_y g_i`, and that of the probability of class 1 the same for label 1
    /// and its opposite for label 0.
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
