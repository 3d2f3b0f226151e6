//! Poisson batches.

use dp_accounting::SamplingRate;
use rand::{CryptoRng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::error::{Result, TrainError};

/// Draws batches that each record enters independently with the same probability.
///
/// **Guarantee.** This is the sampler that
/// [`DpEvent::PoissonSampled`](dp_accounting::DpEvent::PoissonSampled) of the same rate describes,
/// to the 53 bits of a double.
///
/// Records are drawn block by block: each batch has a key, and the key and a block's number decide
/// which of the block's records enter. A block can be drawn without the others.
///
/// **Edge cases.** A batch may be empty; no records give empty batches; a rate of 1 takes every
/// record every time.
///
/// **Example**
/// ```
/// use dp_accounting::SamplingRate;
/// use dp_train::{PoissonSampler, Purpose, Randomness};
/// let sampler = PoissonSampler::new(1_000, SamplingRate::new(0.1)?)?;
/// let mut rng = Randomness::from_seed(1).stream(Purpose::Sampling, 0, 0)?;
/// let mut batch = Vec::new();
/// sampler.next_batch(&mut rng, &mut batch);
/// assert!((60..140).contains(&batch.len())); // 100 on average, standard deviation 9.5
/// assert!(batch.is_sorted());
/// # Ok::<(), dp_train::TrainError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PoissonSampler {
    n_records: usize,
    block: usize,
    /// `ln(1 − q)`, −∞ for a rate of 1.
    log_skip: f64,
}

impl PoissonSampler {
    /// A sampler over `n_records` records in one block.
    ///
    /// # Errors
    /// If the rate is 0: no batch would ever hold a record.
    pub fn new(n_records: usize, rate: SamplingRate) -> Result<Self> {
        if rate.get() <= 0.0 {
            return Err(TrainError::invalid("sampling_rate", rate.get(), "more than 0, at most 1"));
        }
        Ok(Self { n_records, block: n_records.max(1), log_skip: (-rate.get()).ln_1p() })
    }

    /// The same sampler in blocks of `block` records, at least 1.
    #[must_use]
    pub(crate) fn in_blocks(self, block: usize) -> Self {
        Self { block: block.max(1), ..self }
    }

    /// Replaces `batch` by the next one, in ascending order. Costs time in proportion to the batch
    /// and the number of blocks, not to the data.
    pub fn next_batch(&self, rng: &mut dyn CryptoRng, batch: &mut Vec<usize>) {
        batch.clear();
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let base = ChaCha20Rng::from_seed(key);
        for (number, first) in (0..self.n_records).step_by(self.block).enumerate() {
            let mut of_block = base.clone();
            of_block.set_stream(number as u64);
            let end = first.saturating_add(self.block).min(self.n_records) as u64;
            let mut next = (first as u64).saturating_add(self.gap(&mut of_block));
            while next < end {
                batch.push(next as usize);
                next = next.saturating_add(1).saturating_add(self.gap(&mut of_block));
            }
        }
    }

    /// Records passed over before the next one that enters: `k` with probability `q (1 − q)ᵏ`.
    ///
    /// By inversion: with `V` uniform in (0, 1), `⌊ln(1 − V) / ln(1 − q)⌋ ≥ k` just where `1 − V ≤
    /// (1 − q)ᵏ`. `V` is finest near 0, where it decides whether the very next record enters, so
    /// that a small rate is met as well as a large one. `V = 1`, once in 2⁵⁴ draws, skips
    /// everything, and so does a gap beyond the range of integers: the cast saturates.
    fn gap(&self, rng: &mut dyn CryptoRng) -> u64 {
        let v = (rng.next_u64() as f64 + 0.5) / 18_446_744_073_709_551_616.0;
        ((-v).ln_1p() / self.log_skip) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(n: usize, rate: f64) -> PoissonSampler {
        PoissonSampler::new(n, SamplingRate::new(rate).unwrap()).unwrap()
    }

    /// 20,000 batches of 50 records in blocks of 20 at rate 0.1. Each record's count is binomial
    /// with standard deviation 42.4, each neighbouring pair's with 14.1; 99 of them beyond 5
    /// standard deviations by chance: 6e-5.
    #[test]
    fn records_enter_at_the_rate_and_independently() {
        let sampler = sampler(50, 0.1).in_blocks(20);
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

    /// 40,000 gaps at each rate against `(1 − q)ᵏ`: Kolmogorov and Smirnov's statistic exceeds
    /// 2.23/√n with probability below 1e-4, for a discrete law less often; four rates: 4e-4. The
    /// seed is fixed.
    #[test]
    fn gaps_are_geometric() {
        for rate in [1e-9, 0.003, 0.3, 0.9] {
            let sampler = sampler(1, rate);
            let mut rng = ChaCha20Rng::seed_from_u64(4);
            let mut gaps: Vec<u64> = (0..40_000).map(|_| sampler.gap(&mut rng)).collect();
            gaps.sort_unstable();
            let n = gaps.len() as f64;
            let distance = |k: u64| {
                let below = gaps.partition_point(|&gap| gap <= k) as f64 / n;
                (below - (1.0 - ((k as f64 + 1.0) * (-rate).ln_1p()).exp())).abs()
            };
            let worst = gaps.iter().map(|&k| distance(k)).fold(0.0, f64::max);
            assert!(worst * n.sqrt() < 2.23, "rate {rate}: {}", worst * n.sqrt());
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
    fn a_block_is_drawn_from_whatever_else_there_is() {
        let draw = |n: usize| {
            let (mut batch, mut rng) = (Vec::new(), ChaCha20Rng::seed_from_u64(6));
            sampler(n, 0.2).in_blocks(100).next_batch(&mut rng, &mut batch);
            batch.retain(|&row| row < 200);
            batch
        };
        assert_eq!(draw(200), draw(1_000));
        assert!(draw(200).len() > 15);
    }

    #[test]
    fn the_smallest_rate_takes_nothing() {
        let mut batch = Vec::new();
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        for rate in [f64::MIN_POSITIVE, 5e-324] {
            sampler(usize::MAX, rate).next_batch(&mut rng, &mut batch);
            assert!(batch.is_empty());
        }
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
