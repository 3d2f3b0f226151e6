//! Forward, backward, per-sample norms and weighted sums: everything a private step asks of a
//! model.

mod clipped_sum;
mod division;
mod evaluation;
mod pieces;
mod rounding;
mod sum;
mod worker;

use std::num::NonZeroUsize;
use std::ops::Range;

use candle_core::Device;

use crate::blocks::share;
use crate::dropout::DropoutKey;
use crate::error::{EngineError, Result};
use crate::loss::Loss;
use crate::models::{Layers, Model, ModelConfig};
use crate::ops;
use crate::parameters::ParameterVector;
use crate::records::Records;
use crate::threads::Threads;
pub use clipped_sum::{ClippedSum, Reduction};
pub use evaluation::Evaluation;
pub use pieces::Differentiated;
pub use rounding::{of_piece as rounding_of_piece, sensitivity};
pub use sum::WeightedSum;
use worker::Worker;

/// A model, its loss and the buffers of one batch: per-sample gradients without a trainer.
///
/// [`Engine::differentiate`] runs a batch forward and backward and keeps, layer by layer, the
/// factors of its per-sample gradients; [`Engine::gradient_norms`] and [`Engine::weighted_sum`]
/// then work from those. No per-sample gradient is formed where a cheaper exact way exists, and no
/// autograd tape is kept.
///
/// **Guarantee.** Rows never mix: the loss and the norm of a record, and what it adds to a sum, do
/// not depend on the rest of its batch, bit for bit. Nothing here is private; clipping and noise
/// are the caller's (`dp_train::Trainer` does both).
///
/// **Example**
/// ```
/// use dp_engine::{DType, Device, Engine, Loss, ModelConfig, PublicFacts, Records};
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
/// # Ok::<(), dp_engine::EngineError>(())
/// ```
pub struct Engine {
    /// At least one; each has a part of the batch. All share the parameters of the first.
    workers: Vec<Worker>,
    /// One for each worker.
    threads: Threads,
    /// Rows of the batch that each worker has the factors of; `None` before a batch.
    parts: Option<Vec<Range<usize>>>,
    dropout: Option<DropoutKey>,
    /// For [`Self::weighted_sum`]; made when first needed.
    sum: Option<WeightedSum>,
}

/// Without what the batch left in buffers.
impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("model", self.model())
            .field("loss", self.first().loss())
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Builds the model that fits the records, with all parameters zero, computing in the records'
    /// number type.
    ///
    /// # Errors
    /// [`EngineError::InvalidParameter`] if the loss does not fit the number of classes or a width
    /// is 0; [`EngineError::Mismatch`] if the model embeds ids and an input is none (the message
    /// names the record).
    pub fn new(config: &ModelConfig, loss: Loss, records: &Records, device: &Device) -> Result<Self> {
        let facts = records.facts();
        loss.check_weights()?;
        let n_outputs = loss.n_logits(facts.n_classes).ok_or_else(|| {
            EngineError::invalid("loss", format!("{loss:?}"), format!("a loss for {} classes", facts.n_classes))
        })?;
        let model = Model::new(config, facts.n_inputs, n_outputs, records.dtype(), device)?;
        let first = Worker::new(&model, loss, None)?;
        if let Some(vocabulary) = first.network().vocabulary() {
            records.check_ids(vocabulary)?;
        }
        let threads = Threads::new(NonZeroUsize::MIN)?;
        Ok(Self { workers: vec![first], threads, parts: None, dropout: None, sum: None })
    }

    /// The same engine, on one thread, for batches of `expected` records on average, a public
    /// number. A CUDA device chooses by it how many records it works on at once, and so the order
    /// of its additions.
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails.
    pub fn for_batches_of(mut self, expected: usize) -> Result<Self> {
        let first = self.workers.swap_remove(0).for_batches_of(expected)?;
        Ok(Self { workers: vec![first], threads: Threads::new(NonZeroUsize::MIN)?, parts: None, sum: None, ..self })
    }

    /// The same engine on `threads` threads, including the caller's: each works on a part of a
    /// batch. Losses and norms are the same bit for bit for any number; sums without noise up to
    /// rounding. A batch too small to be worth it stays on one thread.
    ///
    /// # Errors
    /// [`EngineError::InvalidParameter`] if the system has no more threads to give, and for more
    /// than 1 on a CUDA device, which has threads for that.
    pub fn with_threads(mut self, threads: NonZeroUsize) -> Result<Self> {
        if threads.get() > 1 && self.model().parameters().flat().device().is_cuda() {
            return Err(EngineError::invalid("threads", threads, "1 on a CUDA device"));
        }
        (self.parts, self.sum) = (None, None);
        self.workers.truncate(threads.get());
        while self.workers.len() < threads.get() {
            self.workers.push(self.first().replica()?);
        }
        self.threads = Threads::new(threads)?;
        Ok(self)
    }

    /// The model. A clone of it is another handle on the same parameters.
    pub fn model(&self) -> &Model {
        self.first().model()
    }

    /// For each tensor to whose sum a record contributes several terms one by one, rather than its
    /// whole gradient at once: how many.
    pub fn chained_terms(&self) -> Vec<usize> {
        self.first().network().chained_terms()
    }

    /// Values that a record takes in a batch, its inputs among them: what layers put out, gradients
    /// on the way back, and its own gradient where that is kept.
    pub fn row_values(&self) -> usize {
        self.first().network().row_values()
    }

    /// Values of each record's gradient that are kept from the norms to the sum.
    pub fn kept_values(&self) -> usize {
        self.first().network().kept_values()
    }

    /// Sets what decides the dropout masks in [`Self::differentiate`] from now on; with `None`, as
    /// at first, and in [`Self::evaluate`] always, no unit is dropped. Batches differentiated under
    /// the same key drop the same units of a record.
    pub fn set_dropout(&mut self, key: Option<DropoutKey>) {
        self.dropout = key;
    }

    /// A vector in the layout of the parameters, all zeros.
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails.
    pub fn zero_gradient(&self) -> Result<ParameterVector> {
        self.first().zero_gradient()
    }

    /// Runs the given records forward and backward and keeps the factors of their gradients; those
    /// of a batch before are lost.
    ///
    /// **Shapes.** `rows` `[batch]`, record numbers in any order, repeats allowed; `blanked` holds
    /// positions in `rows`.
    ///
    /// **Edge cases.** No rows are an empty batch: no losses, no norms, sums of 0. In the place of
    /// a row listed in `blanked` the first row that is not listed stands once more: a way to keep a
    /// record whose gradient is not finite from reaching a product, where 0 · ∞ would spoil the
    /// sum. Its loss and gradient are then the other's: give it weight 0.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if the records have another number of inputs or number type than
    /// the model, or are on another device, or if a blanked position is none of the batch;
    /// [`EngineError::Tensor`] if a row or label is out of range.
    pub fn differentiate(&mut self, records: &Records, rows: &[usize], blanked: &[usize]) -> Result<()> {
        let parts = self.split(rows.len());
        self.differentiate_then(records, rows, blanked, parts, |_| Ok(()))?;
        Ok(())
    }

    /// [`Self::differentiate`] and [`Self::gradient_norms`]: threads are woken once for both.
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails.
    pub fn differentiate_for_norms(&mut self, records: &Records, rows: &[usize]) -> Result<Vec<f64>> {
        let parts = self.split(rows.len());
        Ok(self.differentiate_then(records, rows, &[], parts, Worker::gradient_norms)?.concat())
    }

    /// The same for a batch that will be summed by [`Self::add_pieces`]: each thread has whole
    /// pieces. The pieces, ranges of positions in `rows`, are adjacent and hold all of them.
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails.
    pub fn differentiate_pieces(
        &mut self,
        records: &Records,
        rows: &[usize],
        blanked: &[usize],
        pieces: &[Range<usize>],
    ) -> Result<Vec<f64>> {
        let of_share = |share: &[Range<usize>]| Some(share.first()?.start..share.last()?.end);
        let parts = self.shares(rows.len(), pieces).into_iter().filter_map(of_share).collect();
        Ok(self.differentiate_then(records, rows, blanked, parts, Worker::gradient_norms)?.concat())
    }

    fn differentiate_then<R: Send>(
        &mut self,
        records: &Records,
        rows: &[usize],
        blanked: &[usize],
        parts: Vec<Range<usize>>,
        then: impl Fn(&mut Worker) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let dropout = self.dropout;
        let replaced = without(rows, blanked)?;
        let rows = replaced.as_deref().unwrap_or(rows);
        self.parts = None;
        let results = self.on_parts(&parts, |worker, part| {
            worker.differentiate(records, &rows[part], dropout)?;
            then(worker)
        })?;
        self.parts = Some(parts);
        Ok(results)
    }

    /// Loss of each record of the batch, `[batch]`.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if no batch was differentiated.
    pub fn losses(&self) -> Result<Vec<f64>> {
        let mut losses = Vec::new();
        for worker in &self.workers[..self.parts()?.len()] {
            losses.extend(worker.losses()?);
        }
        Ok(losses)
    }

    /// L2 norm of each record's gradient over all parameters, `[batch]`.
    ///
    /// **Units.** The gradient of the loss of one record, not divided by the batch and not
    /// regularised.
    ///
    /// **Edge cases.** Accumulated in `f64`, so that a norm does not overflow where the gradient
    /// does not. Not finite where the gradient is not.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if no batch was differentiated.
    pub fn gradient_norms(&mut self) -> Result<Vec<f64>> {
        let parts = self.parts()?.to_vec();
        Ok(self.on_parts(&parts, |worker, _| worker.gradient_norms())?.concat())
    }

    /// `Σ_i weights[i] g_i` over the batch, into `gradient` or added to it.
    ///
    /// **Shapes.** `weights` `[batch]`; `gradient` from [`Self::zero_gradient`].
    ///
    /// **Guarantee.** A record contributes no more than `weights[i] ‖g_i‖`, up to the rounding of
    /// its products.
    ///
    /// **Edge cases.** A weight of 0 makes a contribution of 0 only where the record's input and
    /// activations are finite: see `blanked` in [`Self::differentiate`].
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if no batch was differentiated, or there is not one weight per
    /// record.
    pub fn weighted_sum(&mut self, weights: &[f64], gradient: &ParameterVector, accumulate: bool) -> Result<()> {
        let mut sum = match self.sum.take() {
            Some(sum) => sum,
            None => self.empty_sum()?,
        };
        sum.clear();
        self.add_weighted(weights, &mut sum)?;
        if !accumulate {
            ops::fill(gradient.flat(), 0.0)?;
        }
        for part in sum.parts() {
            ops::scale_add(gradient.flat(), part.flat(), 1.0, 1.0, &self.threads)?;
        }
        self.sum = Some(sum);
        Ok(())
    }

    /// The empty sum.
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails.
    pub fn empty_sum(&self) -> Result<WeightedSum> {
        WeightedSum::new(self.workers.iter().map(Worker::zero_gradient))
    }

    /// Adds `Σ_i weights[i] g_i` over the batch to a sum that was made for as many threads.
    ///
    /// **Guarantee** and edge cases as for [`Self::weighted_sum`].
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if no batch was differentiated, or there is not one weight
    /// per record; [`EngineError::Tensor`] if the device fails.
    pub fn add_weighted(&mut self, weights: &[f64], sum: &mut WeightedSum) -> Result<()> {
        let parts = self.parts()?.to_vec();
        let expected = parts.last().map_or(0, |part| part.end);
        if weights.len() != expected {
            return Err(EngineError::mismatch("weights of a batch", expected, weights.len()));
        }
        if weights.iter().all(|&w| w == 0.0) {
            // An empty batch, or one without a usable record: the sum is 0 whatever the factors
            // hold.
            return Ok(());
        }
        let jobs = self.workers.iter_mut().zip(&parts).zip(sum.open(parts.len())?);
        let add = |((worker, part), (vector, counts)): ((&mut Worker, &Range<usize>), (&ParameterVector, bool))| {
            worker.weighted_sum(Layers::All, 0..part.len(), &weights[part.clone()], vector, counts)
        };
        self.threads.each(jobs, add).into_iter().collect()
    }

    /// An empty clipped sum.
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails.
    pub fn clipped_sum(&self) -> Result<ClippedSum> {
        ClippedSum::new(self.workers.iter().map(Worker::zero_gradient))
    }

    /// The threads that share a batch.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Losses and predictions of all records, at most `micro_batch` at a time. A batch that was
    /// differentiated before is lost.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if the records have another number of inputs or number type than
    /// the model, or are on another device; [`EngineError::Tensor`] if a label has no logit.
    pub fn evaluate(&mut self, records: &Records, micro_batch: usize) -> Result<Evaluation> {
        let mut evaluation = Evaluation::default();
        let rows: Vec<usize> = records.held().collect();
        let in_cache = self.stretch().saturating_mul(self.workers.len());
        for rows in rows.chunks(micro_batch.clamp(1, in_cache)) {
            let parts = self.split(rows.len());
            for part in self.on_parts(&parts, |worker, part| worker.evaluate(records, &rows[part]))? {
                evaluation.losses.extend(part.losses);
                evaluation.predictions.extend(part.predictions);
                evaluation.logits.extend(part.logits);
            }
        }
        Ok(evaluation)
    }

    /// Loss of each of the given records, `[rows]`: a forward pass alone. A batch that was
    /// differentiated before is lost.
    ///
    /// # Errors
    /// As [`Self::differentiate`].
    pub fn losses_of(&mut self, records: &Records, rows: &[usize]) -> Result<Vec<f64>> {
        let parts = self.split(rows.len());
        Ok(self.on_parts(&parts, |worker, part| worker.losses_of(records, &rows[part]))?.concat())
    }

    fn first(&self) -> &Worker {
        &self.workers[0]
    }

    fn parts(&self) -> Result<&[Range<usize>]> {
        self.parts.as_deref().ok_or_else(|| EngineError::mismatch("batches differentiated", 1, 0))
    }

    /// Which of `n_rows` rows each worker gets: parts of nearly equal size, one at least.
    #[expect(clippy::single_range_in_vec_init, reason = "one part")]
    fn split(&self, n_rows: usize) -> Vec<Range<usize>> {
        let n_parts = self.workers.len().min(n_rows);
        if n_parts < 2 || !self.is_worth_sharing(n_rows) {
            return vec![0..n_rows];
        }
        (0..n_parts).map(|i| i * n_rows / n_parts..(i + 1) * n_rows / n_parts).collect()
    }

    /// Which of the pieces of `n_rows` rows each worker gets: one at least.
    fn shares<'a>(&self, n_rows: usize, pieces: &'a [Range<usize>]) -> Vec<&'a [Range<usize>]> {
        let n_workers = if self.is_worth_sharing(n_rows) { self.workers.len() } else { 1 };
        share(pieces, n_workers).into_iter().map(|share| &pieces[share]).collect()
    }

    /// Whether `n_rows` records are worth waking a thread.
    fn is_worth_sharing(&self, n_rows: usize) -> bool {
        /// Rows times parameters.
        const SMALL: usize = 1 << 18;
        n_rows * self.model().parameters().len() >= SMALL
    }

    /// Has every part worked on by its worker, the first on this thread; results in order.
    fn on_parts<R: Send>(
        &mut self,
        parts: &[Range<usize>],
        work: impl Fn(&mut Worker, Range<usize>) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let jobs = self.workers.iter_mut().zip(parts);
        self.threads.each(jobs, |(worker, part)| work(worker, part.clone())).into_iter().collect()
    }
}

/// The rows with the first that is not blanked in the place of all that are; `None` where nothing
/// changes.
fn without(rows: &[usize], blanked: &[usize]) -> Result<Option<Vec<usize>>> {
    let mut is_usable = vec![true; rows.len()];
    for &position in blanked {
        let expected = format!("below {}", rows.len());
        *is_usable
            .get_mut(position)
            .ok_or_else(|| EngineError::mismatch("position of a blanked row", expected, position))? = false;
    }
    let Some(stand_in) = is_usable.iter().position(|&is_usable| is_usable) else { return Ok(None) };
    let replaced = |(&row, is_usable)| if is_usable { row } else { rows[stand_in] };
    Ok((!blanked.is_empty()).then(|| rows.iter().zip(is_usable).map(replaced).collect()))
}
