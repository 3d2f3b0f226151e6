//! The engine and buffers of one thread of an analysis.

use candle_core::DType;
use dp_clipping::ClipMethod;
use dp_engine::{Engine, ParameterVector, Records};

use super::curvature::Curvature;
use crate::error::{Result, TrainError};
use crate::loops::add_scaled;
use crate::plan::Plan;
use crate::trainer::{FairLens, Regularised, Usable};

/// An engine for gradients in the number type of the records, and one for curvature in `f64`.
pub(super) struct Worker {
    engine: Engine,
    sum: ParameterVector,
    pub(super) curvature: Curvature,
    /// Where the run that is analysed has it.
    fairlens: Option<FairLens>,
}

impl Worker {
    pub(super) fn new(plan: &Plan, records: &Records) -> Result<Self> {
        let config = plan.config();
        let engine = Engine::new(&config.model, config.loss.clone(), records, records.device())?;
        Ok(Self {
            sum: engine.zero_gradient()?,
            engine,
            curvature: Curvature::new(&config.model, config.loss.clone(), &records.select(&[], DType::F64)?)?,
            fairlens: FairLens::of(config, records)?,
        })
    }

    pub(super) fn set_parameters(&mut self, parameters: &[f64]) -> Result<()> {
        self.engine.model().parameters().set(parameters)?;
        self.curvature.set_parameters(parameters)
    }

    pub(super) fn n_params(&self) -> usize {
        self.sum.len()
    }

    /// `Σ w_i g_i` over these records.
    pub(super) fn gradient_sum(
        &mut self,
        records: &Records,
        rows: &[usize],
        weights: &[f64],
        micro_batch: usize,
    ) -> Result<Vec<f64>> {
        let pieces = rows.chunks(micro_batch).zip(weights.chunks(micro_batch));
        for (piece, (rows, weights)) in pieces.enumerate() {
            self.engine.differentiate(records, rows, &[])?;
            self.engine.weighted_sum(weights, &self.sum, piece > 0)?;
        }
        Ok(self.sum.to_vec()?)
    }

    /// Loss of each record, and norm of its gradient.
    pub(super) fn losses_and_norms(
        &mut self,
        records: &Records,
        rows: &[usize],
        micro_batch: usize,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let (mut losses, mut norms) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for rows in rows.chunks(micro_batch) {
            self.engine.differentiate(records, rows, &[])?;
            losses.extend(self.engine.losses()?);
            norms.extend(self.engine.gradient_norms()?);
        }
        match norms.iter().position(|norm| !norm.is_finite()) {
            Some(i) => {
                Err(TrainError::mismatch(format!("gradient norm of record {}", rows[i]), "a finite number", norms[i]))
            }
            None => Ok((losses, norms)),
        }
    }

    /// With FairLens, the vector that it adds to every record's gradient, whose norms become those
    /// of the regularised gradients; with other methods nothing.
    pub(super) fn regularise(
        &mut self,
        method: &dyn ClipMethod,
        records: &Records,
        batch: Usable<'_>,
        expected_batch_size: f64,
    ) -> Result<Option<Vec<f64>>> {
        let Some(fairlens) = &mut self.fairlens else { return Ok(None) };
        fairlens.losses_and_norms(records, batch.rows, self.curvature.origin())?;
        match fairlens.regularise(method, records, batch, expected_batch_size)? {
            Regularised::Common(vector) => Ok(Some(vector)),
            Regularised::Own => Err(TrainError::mismatch("FairLens of an analysis", "the paper's form", "the code's")),
        }
    }

    /// `Σ w_i g_i` for each list of weights, after [`Self::losses_and_norms`] of the same rows.
    pub(super) fn weighted_sums<const N: usize>(
        &mut self,
        records: &Records,
        rows: &[usize],
        weights: [&[f64]; N],
        micro_batch: usize,
    ) -> Result<[Vec<f64>; N]> {
        let mut sums = weights.map(|_| vec![0.0; self.sum.len()]);
        let fits = rows.len() <= micro_batch;
        for (chunk, rows) in rows.chunks(micro_batch).enumerate() {
            if !fits {
                self.engine.differentiate(records, rows, &[])?;
            }
            let range = chunk * micro_batch..chunk * micro_batch + rows.len();
            for (sum, weights) in sums.iter_mut().zip(weights) {
                self.engine.weighted_sum(&weights[range.clone()], &self.sum, false)?;
                add_scaled(sum, 1.0, &self.sum.to_vec()?);
            }
        }
        Ok(sums)
    }
}
