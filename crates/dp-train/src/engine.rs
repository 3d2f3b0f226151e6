//! Forward, backward, per-sample norms and weighted sums: everything a private step asks of a model.

use candle_core::{DType, Device, Tensor};

use crate::buffer::RowBuffer;
use crate::error::{Result, TrainError};
use crate::loss::Loss;
use crate::models::{Model, ModelConfig};
use crate::ops::Fill;
use crate::parameters::ParameterVector;
use crate::records::Records;

/// A model, its loss and the buffers of one batch: per-sample gradients without a trainer.
///
/// [`Engine::differentiate`] runs a batch forward and backward and keeps, layer by layer, the factors of its per-sample gradients;
/// [`Engine::gradient_norms`] and [`Engine::weighted_sum`] then work from those. No per-sample gradient is formed where a
/// cheaper exact way exists, and no autograd tape is kept.
///
/// **Guarantee.** Rows never mix: beyond rounding, the loss, norm and gradient of a record do not depend on the rest of its batch.
/// Nothing here is private; clipping and noise are the caller's ([`Trainer`](crate::Trainer) does both).
///
/// **Example**
/// ```
/// use dp_train::{DType, Device, Engine, Loss, ModelConfig, PublicFacts, Records};
/// let facts = PublicFacts { n_records: 2, n_inputs: 1, n_classes: 2, n_groups: 1 };
/// let records = Records::new(&[3.0, 0.0], &[1, 0], &[0, 0], facts, DType::F64, &Device::Cpu)?;
/// let mut engine = Engine::new(&ModelConfig::LogisticRegression, Loss::BceWithLogits, &records, &Device::Cpu)?;
///
/// // All parameters are 0, so both probabilities are ½. Weight, then bias: g_0 = (½ − 1)·(3, 1) and g_1 = ½·(0, 1).
/// engine.differentiate(&records, &[0, 1], &[])?;
/// assert_eq!(engine.losses()?, [2_f64.ln(), 2_f64.ln()]);
/// assert_eq!(engine.gradient_norms()?, [2.5_f64.sqrt(), 0.5]);
/// let sum = engine.zero_gradient()?;
/// engine.weighted_sum(&[1.0, 2.0], &sum, false)?;
/// assert_eq!(sum.to_vec()?, [-1.5, 0.5]);
/// # Ok::<(), dp_train::TrainError>(())
/// ```
pub struct Engine {
    model: Model,
    loss: Loss,
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

/// What a model says about each record of a data set, in the order of the records.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Loss of each record in nats, `[n_records]`; not finite where a record is not.
    pub losses: Vec<f64>,
    /// Predicted class of each record, `[n_records]`: the largest logit, the first of equals.
    pub predictions: Vec<u32>,
}

impl Engine {
    /// Builds the model that fits the records, with all parameters zero, computing in the records' number type.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] if the loss does not fit the number of classes or a width is 0.
    pub fn new(config: &ModelConfig, loss: Loss, records: &Records, device: &Device) -> Result<Self> {
        let facts = records.facts();
        let n_outputs = loss.n_logits(facts.n_classes).ok_or_else(|| {
            TrainError::invalid("loss", format!("{loss:?}"), format!("a loss for {} classes", facts.n_classes))
        })?;
        let dtype = records.dtype();
        Ok(Self {
            model: Model::new(config, facts.n_inputs, n_outputs, dtype, device)?,
            loss,
            dtype,
            device: device.clone(),
            input: RowBuffer::new(facts.n_inputs, dtype, device)?,
            losses: RowBuffer::new(1, DType::F64, device)?,
            sq_norms: RowBuffer::new(1, DType::F64, device)?,
            batch: None,
        })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The model, to initialise or load its parameters.
    pub fn model_mut(&mut self) -> &mut Model {
        &mut self.model
    }

    /// A vector in the layout of the parameters, all zeros.
    ///
    /// # Errors
    /// [`TrainError::Tensor`] if the device fails.
    pub fn zero_gradient(&self) -> Result<ParameterVector> {
        Ok(ParameterVector::zeros(self.model.parameters().specs(), self.dtype, &self.device)?)
    }

    /// Runs the given records forward and backward and keeps the factors of their gradients; those of a batch before are lost.
    ///
    /// **Shapes.** `rows` `[batch]`, record numbers in any order, repeats allowed; `blanked` holds positions in `rows`.
    ///
    /// **Edge cases.** No rows are an empty batch: no losses, no norms, sums of 0. Rows listed in `blanked` have their inputs
    /// replaced by zeros: a way to keep a record whose values are not finite from reaching a product, where 0 · ∞ would spoil
    /// the sum. Their losses and gradients are then those of a zero input: give them weight 0.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the records have another number of inputs or number type than the model;
    /// [`TrainError::Tensor`] if a row, label or blanked position is out of range.
    pub fn differentiate(&mut self, records: &Records, rows: &[usize], blanked: &[usize]) -> Result<()> {
        self.batch = None;
        let losses = self.losses.rows(rows.len())?;
        if !rows.is_empty() {
            let logits = self.logits(records, rows, blanked)?;
            let labels = self.labels(records, rows)?;
            self.loss.losses(&logits, &labels, &losses)?;
            self.loss.gradient_in_place(&logits, &labels)?;
            self.model.backward(logits)?;
        }
        self.batch = Some(Batch { losses, len: rows.len() });
        Ok(())
    }

    /// Loss of each record of the batch, `[batch]`.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if no batch was differentiated.
    pub fn losses(&self) -> Result<Vec<f64>> {
        Ok(self.batch()?.losses.flatten_all()?.to_vec1()?)
    }

    /// L2 norm of each record's gradient over all parameters, `[batch]`.
    ///
    /// **Units.** Those of the loss of one record: no division by the batch, no regularisation.
    ///
    /// **Edge cases.** Accumulated in `f64`, so that a norm does not overflow where the gradient does not. Not finite where the
    /// gradient is not.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if no batch was differentiated.
    pub fn gradient_norms(&mut self) -> Result<Vec<f64>> {
        let len = self.batch()?.len;
        if len == 0 {
            return Ok(Vec::new());
        }
        let sq_norms = self.sq_norms.rows(len)?;
        sq_norms.inplace_op1(&Fill(0.0))?;
        self.model.add_sq_norms(&sq_norms)?;
        Ok(sq_norms.flatten_all()?.to_vec1::<f64>()?.into_iter().map(f64::sqrt).collect())
    }

    /// `Σ_i weights[i] g_i` over the batch, into `gradient` or added to it.
    ///
    /// **Shapes.** `weights` `[batch]`; `gradient` from [`Self::zero_gradient`].
    ///
    /// **Guarantee.** A record contributes no more than `weights[i] ‖g_i‖`, up to the rounding of its products.
    ///
    /// **Edge cases.** A weight of 0 makes a contribution of 0 only where the record's input and activations are finite: see
    /// `blanked` in [`Self::differentiate`].
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if no batch was differentiated, or there is not one weight per record.
    pub fn weighted_sum(&mut self, weights: &[f64], gradient: &ParameterVector, accumulate: bool) -> Result<()> {
        let expected = self.batch()?.len;
        if weights.len() != expected {
            return Err(TrainError::mismatch("weights of a batch", expected, weights.len()));
        }
        if weights.iter().all(|&w| w == 0.0) {
            // An empty batch, or one without a usable record: the sum is 0 whatever the factors hold.
            if !accumulate {
                gradient.flat().inplace_op1(&Fill(0.0))?;
            }
            return Ok(());
        }
        self.model.weighted_sum(weights, gradient, accumulate)
    }

    /// Losses and predictions of all records, `micro_batch` at a time. A batch that was differentiated before is lost.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the records have another number of inputs or number type than the model;
    /// [`TrainError::Tensor`] if a label has no logit.
    pub fn evaluate(&mut self, records: &Records, micro_batch: usize) -> Result<Evaluation> {
        self.batch = None;
        let mut evaluation = Evaluation { losses: Vec::new(), predictions: Vec::new() };
        let rows: Vec<usize> = (0..records.len()).collect();
        for rows in rows.chunks(micro_batch.max(1)) {
            let logits = self.logits(records, rows, &[])?;
            let labels = self.labels(records, rows)?;
            let losses = self.losses.rows(rows.len())?;
            self.loss.losses(&logits, &labels, &losses)?;
            evaluation.losses.extend(losses.flatten_all()?.to_vec1::<f64>()?);
            evaluation.predictions.extend(self.loss.predictions(&logits)?);
        }
        Ok(evaluation)
    }

    /// Loss of each of the given records, `[rows]`: a forward pass alone. A batch that was differentiated before is lost.
    ///
    /// # Errors
    /// As [`Self::differentiate`].
    pub fn losses_of(&mut self, records: &Records, rows: &[usize]) -> Result<Vec<f64>> {
        self.batch = None;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let logits = self.logits(records, rows, &[])?;
        let labels = self.labels(records, rows)?;
        let losses = self.losses.rows(rows.len())?;
        self.loss.losses(&logits, &labels, &losses)?;
        Ok(losses.flatten_all()?.to_vec1()?)
    }

    fn batch(&self) -> Result<&Batch> {
        self.batch.as_ref().ok_or_else(|| TrainError::mismatch("batches differentiated", 1, 0))
    }

    fn logits(&mut self, records: &Records, rows: &[usize], blanked: &[usize]) -> Result<Tensor> {
        if records.facts().n_inputs != self.model.n_inputs() {
            return Err(TrainError::mismatch("inputs of a record", self.model.n_inputs(), records.facts().n_inputs));
        }
        if records.dtype() != self.dtype {
            let (expected, got) = (self.dtype.as_str(), records.dtype().as_str());
            return Err(TrainError::mismatch("number type of the records", expected, got));
        }
        let input = self.input.rows(rows.len())?;
        records.gather(rows, &input)?;
        for &row in blanked {
            input.narrow(0, row, 1)?.inplace_op1(&Fill(0.0))?;
        }
        self.model.forward(input)
    }

    fn labels(&self, records: &Records, rows: &[usize]) -> Result<Tensor> {
        let labels: Vec<u32> = rows.iter().map(|&row| records.labels()[row]).collect();
        Ok(Tensor::from_vec(labels, rows.len(), &self.device)?)
    }
}
