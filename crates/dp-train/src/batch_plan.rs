//! How often and how many records are drawn.

use dp_accounting::SamplingRate;
use dp_engine::PublicFacts;
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};

/// How often and how many records are drawn.
///
/// **Example**
/// ```
/// use dp_train::{BatchPlan, PublicFacts};
/// // 28,000 records, batches of 256, 20 epochs: Xu's T = ⌊20 · 28,000/256⌋, Opacus's 20 · ⌈28,000/256⌉.
/// let facts = PublicFacts { n_records: 28_000, n_inputs: 40, n_classes: 2, n_groups: 2 };
/// assert_eq!(BatchPlan::exact(facts, 256, 20)?.steps, 2_187);
/// let loader = BatchPlan::loader(facts, 256, 20)?;
/// assert_eq!((loader.steps, loader.sampling_rate.get()), (2_200, 1.0 / 110.0));
/// # Ok::<(), dp_train::TrainError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BatchPlan {
    /// Probability with which each record enters each batch.
    pub sampling_rate: SamplingRate,
    /// Steps of the whole run.
    pub steps: u64,
    /// Epochs the steps are reported in, at most one per step; they change nothing else.
    pub epochs: u64,
    /// The number of records that rate and steps were worked out for, if they were.
    #[serde(skip)]
    pub(crate) n_records: Option<usize>,
}

impl BatchPlan {
    /// Batches at this rate, for data of any size.
    pub fn new(sampling_rate: SamplingRate, steps: u64, epochs: u64) -> Self {
        Self { sampling_rate, steps, epochs, n_records: None }
    }

    /// `q = b/n` and `T = ⌊epochs · n/b⌋`: an epoch is `n` records on average.
    ///
    /// **Source.** Xu 2021, whose ε follows from it. Xu trains on batches of exactly `b`; here `b`
    /// is the expected size.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] if the batch is larger than the data, anything is 0, or there
    /// are more steps than 64 bits count.
    pub fn exact(facts: PublicFacts, batch_size: usize, epochs: u64) -> Result<Self> {
        let n_records = facts.n_records;
        check_sizes(n_records, batch_size, epochs)?;
        let sampling_rate = SamplingRate::new(batch_size as f64 / n_records as f64)?;
        let steps = steps_of(epochs, n_records, batch_size)?;
        Ok(Self { n_records: Some(n_records), ..Self::new(sampling_rate, steps, epochs) })
    }

    /// `q = 1/⌈n/b⌉` and `T = epochs · ⌈n/b⌉`: an epoch is as many batches as a data loader has.
    ///
    /// **Source.** Opacus, and with it Esipova 2023. The expected batch is `q · n`, a little less
    /// than `b` where `b` does not divide `n`.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] if the batch is larger than the data, anything is 0, or there
    /// are more steps than 64 bits count.
    pub fn loader(facts: PublicFacts, batch_size: usize, epochs: u64) -> Result<Self> {
        let n_records = facts.n_records;
        check_sizes(n_records, batch_size, epochs)?;
        let length = n_records.div_ceil(batch_size);
        let steps = steps_of(epochs, length, 1)?;
        let sampling_rate = SamplingRate::new(1.0 / length as f64)?;
        Ok(Self { n_records: Some(n_records), ..Self::new(sampling_rate, steps, epochs) })
    }

    /// The epoch (1-based) that ends with this 0-based step, if one does.
    pub(crate) fn epoch_ending_at(&self, step: u64) -> Option<u64> {
        let epoch_after = |done: u64| (u128::from(done) * u128::from(self.epochs) / u128::from(self.steps)) as u64;
        (epoch_after(step + 1) > epoch_after(step)).then(|| epoch_after(step + 1))
    }
}

/// `⌊epochs · n/b⌋`, for at least one record and one record a batch.
fn steps_of(epochs: u64, n_records: usize, batch_size: usize) -> Result<u64> {
    let (n, b) = (n_records as u128, batch_size as u128);
    u64::try_from(u128::from(epochs) * n / b).map_err(|_| {
        // The most epochs whose steps are at most 2⁶⁴ − 1.
        let most = ((u128::from(u64::MAX) + 1) * b - 1) / n;
        TrainError::invalid("epochs", epochs, format!("at most {most}, whose steps 64 bits can count"))
    })
}

fn check_sizes(n_records: usize, batch_size: usize, epochs: u64) -> Result<()> {
    if n_records == 0 {
        return Err(TrainError::invalid("n_records", n_records, "at least 1"));
    }
    if batch_size == 0 || batch_size > n_records {
        return Err(TrainError::invalid("batch_size", batch_size, format!("1 to {n_records}, the number of records")));
    }
    if epochs == 0 {
        return Err(TrainError::invalid("epochs", epochs, "at least 1"));
    }
    Ok(())
}
