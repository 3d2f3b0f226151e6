//! Poisson batches.

use dp_accounting::SamplingRate;
use rand::RngCore;
use rand_distr::{Distribution, Geometric};

use crate::error::{Result, TrainError};

/// Draws batches that each record enters independently with the same probability.
///
/// **Guarantee.** This is the sampler that [`DpEvent::PoissonSampled`](dp_accounting::DpEvent::PoissonSampled) of the same rate
/// describes, to the 53 bits of a double.
///
/// **Edge cases.** A batch may be empty; no records give empty batches; a rate of 1 takes every record every time.
///
/// **Example**
/// ```
/// use dp_accounting::SamplingRate;
/// use dp_train::{PoissonSampler, Purpose, Randomness};
/// let sampler = PoissonSampler::new(1_000, SamplingRate::new(0.1)?)?;
/// let mut rng = Randomness::from_seed(1).stream(Purpose::Sampling, 0, 0);
/// let mut batch = Vec::new();
/// sampler.next_batch(&mut rng, &mut batch);
/// assert!((60..140).contains(&batch.len())); // 100 on average, standard deviation 9.5
/// assert!(batch.is_sorted());
/// # Ok::<(), dp_train::TrainError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PoissonSampler {
    n_records: usize,
    /// Records passed over before the next one that enters.
    gaps: Geometric,
}

impl PoissonSampler {
    /// A sampler over `n_records` records.
    ///
    /// # Errors
    /// If the rate is 0: no batch would ever hold a record.
    pub fn new(n_records: usize, rate: SamplingRate) -> Result<Self> {
        let gaps = Geometric::new(rate.get())
            .map_err(|_| TrainError::invalid("sampling_rate", rate.get(), "more than 0, at most 1"))?;
        if rate.get() <= 0.0 {
            return Err(TrainError::invalid("sampling_rate", rate.get(), "more than 0, at most 1"));
        }
        Ok(Self { n_records, gaps })
    }

    /// Replaces `batch` by the next one, in ascending order. Costs time in proportion to the batch, not to the data.
    pub fn next_batch(&self, rng: &mut dyn RngCore, batch: &mut Vec<usize>) {
        batch.clear();
        let mut next = self.gaps.sample(rng);
        while next < self.n_records as u64 {
            batch.push(next as usize);
            next = next.saturating_add(1).saturating_add(self.gaps.sample(rng));
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    fn sampler(n: usize, rate: f64) -> PoissonSampler {
        PoissonSampler::new(n, SamplingRate::new(rate).unwrap()).unwrap()
    }

    /// 20,000 batches of 50 records at rate 0.1. Each record's count is binomial with standard deviation 42.4, each neighbouring
    /// pair's with 14.1; 99 of them beyond 5 standard deviations by chance: 6e-5.
    #[test]
    fn records_enter_at_the_rate_and_independently() {
        let sampler = sampler(50, 0.1);
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (mut single, mut pair, mut batch) = ([0.0f64; 50], [0.0f64; 49], Vec::new());
        for _ in 0..20_000 {
            sampler.next_batch(&mut rng, &mut batch);
            for &i in &batch {
                single[i] += 1.0;
            }
            for window in batch.windows(2).filter(|w| w[1] == w[0] + 1) {
                pair[window[0]] += 1.0;
            }
        }
        for (i, count) in single.iter().enumerate() {
            assert!((count - 2_000.0).abs() < 5.0 * 42.5, "record {i}: {count}");
        }
        for (i, count) in pair.iter().enumerate() {
            assert!((count - 200.0).abs() < 5.0 * 14.1, "pair {i}: {count}");
        }
    }

    #[test]
    fn a_rate_of_one_takes_everything_and_no_records_give_empty_batches() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let mut batch = vec![9];
        sampler(4, 1.0).next_batch(&mut rng, &mut batch);
        assert_eq!(batch, [0, 1, 2, 3]);
        sampler(0, 0.5).next_batch(&mut rng, &mut batch);
        assert!(batch.is_empty());
    }

    #[test]
    fn empty_batches_happen() {
        let sampler = sampler(3, 0.01);
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let mut batch = Vec::new();
        let empty = (0..1_000).filter(|_| {
            sampler.next_batch(&mut rng, &mut batch);
            batch.is_empty()
        });
        // 0.99³ = 97 %.
        assert!(empty.count() > 900);
    }
}
