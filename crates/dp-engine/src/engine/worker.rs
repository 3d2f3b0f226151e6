//! A model and the buffers of a part of a batch, on one thread.

use std::ops::Range;

use candle_core::{DType, Device, Tensor};

use super::evaluation::Evaluation;
use crate::buffer::RowBuffer;
use crate::dropout::DropoutKey;
use crate::error::{EngineError, Result};
use crate::layers::Mode;
use crate::loss::Loss;
use crate::models::{Layers, Model, Network, class};
use crate::ops;
use crate::parameters::ParameterVector;
use crate::records::Records;

/// The model and buffers of one thread, which works on a part of each batch.
pub(super) struct Worker {
    model: Model,
    network: Network,
    loss: Loss,
    expected: Option<usize>,
    dtype: DType,
    device: Device,
    input: RowBuffer,
    losses: RowBuffer,
    sq_norms: RowBuffer,
    batch: Option<Batch>,
}

/// The batch whose factors are in the layers.
struct Batch {
    losses: Tensor,
    len: usize,
}

impl Worker {
    /// A worker for batches of `expected` records on average, if that is known.
    pub(super) fn new(model: &Model, loss: Loss, expected: Option<usize>) -> Result<Self> {
        let flat = model.parameters().flat();
        let (dtype, device) = (flat.dtype(), flat.device());
        Ok(Self {
            network: Network::new(model, expected)?,
            input: RowBuffer::new(model.n_inputs(), dtype, device)?,
            losses: RowBuffer::new(1, DType::F64, device)?,
            sq_norms: RowBuffer::new(1, DType::F64, device)?,
            device: device.clone(),
            batch: None,
            model: model.clone(),
            loss,
            dtype,
            expected,
        })
    }

    /// A worker with the same parameters and new buffers.
    pub(super) fn replica(&self) -> Result<Self> {
        Self::new(&self.model, self.loss.clone(), self.expected)
    }

    /// The same worker for batches of `expected` records on average.
    pub(super) fn for_batches_of(self, expected: usize) -> Result<Self> {
        Self::new(&self.model, self.loss, Some(expected))
    }

    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    pub(super) fn loss(&self) -> &Loss {
        &self.loss
    }

    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    pub(super) fn zero_gradient(&self) -> Result<ParameterVector> {
        ParameterVector::zeros(self.model.parameters().specs(), self.dtype, &self.device)
    }

    pub(super) fn differentiate(
        &mut self,
        records: &Records,
        rows: &[usize],
        dropout: Option<DropoutKey>,
    ) -> Result<()> {
        self.batch = None;
        let losses = self.losses.rows(rows.len())?;
        if !rows.is_empty() {
            self.network.begin(dropout.map_or(Mode::Whole, |key| Mode::Dropping { key, records: rows }));
            let logits = self.logits(records, rows)?;
            let labels = self.labels(records, rows)?;
            self.loss.losses(&logits, &labels, &losses)?;
            self.loss.gradient_in_place(&logits, &labels)?;
            self.network.backward(logits)?;
        }
        self.batch = Some(Batch { losses, len: rows.len() });
        Ok(())
    }

    pub(super) fn losses(&self) -> Result<Vec<f64>> {
        Ok(self.batch()?.losses.flatten_all()?.to_vec1()?)
    }

    pub(super) fn gradient_norms(&mut self) -> Result<Vec<f64>> {
        let len = self.batch()?.len;
        if len == 0 {
            return Ok(Vec::new());
        }
        let sq_norms = self.sq_norms.rows(len)?;
        ops::fill(&sq_norms, 0.0)?;
        self.network.add_sq_norms(&sq_norms)?;
        // The sign of what is not a number depends on the order of a product's operands, and with
        // it on other records.
        let norm = |sq_norm: f64| if sq_norm.is_nan() { f64::NAN } else { sq_norm.sqrt() };
        Ok(sq_norms.flatten_all()?.to_vec1::<f64>()?.into_iter().map(norm).collect())
    }

    pub(super) fn weighted_sum(
        &mut self,
        layers: Layers,
        rows: Range<usize>,
        weights: &[f64],
        gradient: &ParameterVector,
        accumulate: bool,
    ) -> Result<()> {
        self.network.weighted_sum(layers, rows, weights, gradient, accumulate)
    }

    pub(super) fn evaluate(&mut self, records: &Records, rows: &[usize]) -> Result<Evaluation> {
        if rows.is_empty() {
            return Ok(Evaluation::default());
        }
        let logits = self.forward(records, rows)?;
        let losses = self.losses.rows(rows.len())?.flatten_all()?.to_vec1()?;
        let logits: Vec<f64> = logits.flatten_all()?.to_dtype(DType::F64)?.to_vec1()?;
        let predictions = logits.chunks_exact(self.model.n_outputs()).map(class).collect();
        Ok(Evaluation { losses, predictions, logits })
    }

    pub(super) fn losses_of(&mut self, records: &Records, rows: &[usize]) -> Result<Vec<f64>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        self.forward(records, rows)?;
        Ok(self.losses.rows(rows.len())?.flatten_all()?.to_vec1()?)
    }

    /// A forward pass alone, without dropout: logits, and losses in their buffer.
    fn forward(&mut self, records: &Records, rows: &[usize]) -> Result<Tensor> {
        self.batch = None;
        self.network.begin(Mode::Whole);
        let logits = self.logits(records, rows)?;
        let losses = self.losses.rows(rows.len())?;
        self.loss.losses(&logits, &self.labels(records, rows)?, &losses)?;
        Ok(logits)
    }

    fn batch(&self) -> Result<&Batch> {
        self.batch.as_ref().ok_or_else(|| EngineError::mismatch("batches differentiated", 1, 0))
    }

    fn logits(&mut self, records: &Records, rows: &[usize]) -> Result<Tensor> {
        if records.facts().n_inputs != self.model.n_inputs() {
            return Err(EngineError::mismatch("inputs of a record", self.model.n_inputs(), records.facts().n_inputs));
        }
        records.check_device(&self.device)?;
        if records.dtype() != self.dtype {
            let (expected, got) = (self.dtype.as_str(), records.dtype().as_str());
            return Err(EngineError::mismatch("number type of the records", expected, got));
        }
        let input = self.input.rows(rows.len())?;
        records.gather(rows, &input)?;
        self.network.forward(input)
    }

    fn labels(&self, records: &Records, rows: &[usize]) -> Result<Tensor> {
        let (labels, _) = records.labels_and_groups(rows);
        Ok(ops::labels(labels, &self.device)?)
    }
}
