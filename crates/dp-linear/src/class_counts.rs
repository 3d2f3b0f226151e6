//! How many records each class has, with noise.

use dp_accounting::{Ledger, NoiseMultiplier};
use dp_engine::Grid;
use rand_chacha::rand_core::CryptoRng;

use crate::error::{LinearError, Result};
use crate::release::record;

/// Noisy class counts and the priors that follow from them.
///
/// **Guarantee.** One record adds 1 to one count: an L2 sensitivity of 1. Counts are integers and
/// their noise is rounded exactly, so nothing is left to floating-point arithmetic.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassCounts {
    counts: Vec<f64>,
    /// Standard deviation of the noise.
    std: f64,
}

impl ClassCounts {
    /// Releases the counts and notes the release in the ledger.
    ///
    /// # Errors
    /// [`LinearError::InvalidParameter`] for fewer than two classes; [`LinearError::Mismatch`] if a
    /// label is out of range (the message names the record); [`LinearError::Accounting`] if the
    /// ledger refuses.
    pub fn fit(
        labels: &[u32],
        n_classes: usize,
        noise_multiplier: NoiseMultiplier,
        rng: &mut dyn CryptoRng,
        ledger: &mut Ledger,
    ) -> Result<Self> {
        if n_classes < 2 {
            return Err(LinearError::invalid("n_classes", n_classes, "at least 2"));
        }
        if let Some(i) = labels.iter().position(|&label| label as usize >= n_classes) {
            return Err(LinearError::mismatch(format!("label of record {i}"), format!("0..{n_classes}"), labels[i]));
        }
        record(ledger, noise_multiplier)?;
        let counts = count_labels(labels.iter().copied(), n_classes);
        let std = noise_multiplier.get();
        Ok(Self { counts: Grid::for_counts().release(counts, std, rng), std })
    }

    /// Counts that were released with noise of this standard deviation.
    pub(crate) fn of(counts: Vec<f64>, std: f64) -> Self {
        Self { counts, std }
    }

    /// The counts as they were released: any of them may be negative.
    pub fn counts(&self) -> &[f64] {
        &self.counts
    }

    /// The counts, none below the noise's standard deviation: smaller ones say nothing.
    pub fn at_least_noise(&self) -> Vec<f64> {
        self.counts.iter().map(|count| count.max(self.std)).collect()
    }

    /// The share of each class, above 0; they add up to 1.
    pub fn priors(&self) -> Vec<f64> {
        let counts = self.at_least_noise();
        let total: f64 = counts.iter().sum();
        counts.iter().map(|count| count / total).collect()
    }
}

/// How many records of each class there are: integers. Labels out of range are not counted.
pub(crate) fn count_labels(labels: impl Iterator<Item = u32>, n_classes: usize) -> Vec<f64> {
    let mut counts = vec![0.0; n_classes];
    for label in labels {
        if let Some(count) = counts.get_mut(label as usize) {
            *count += 1.0;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use dp_accounting::NeighbouringRelation;

    use super::*;
    use dp_train::{Purpose, Randomness};

    #[test]
    fn counts_are_released_once_and_priors_are_positive() {
        let mut rng = Randomness::from_seed(4).stream(Purpose::Conditioning, 0, 0).unwrap();
        let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);
        let labels: Vec<u32> = (0..10_000).map(|i| u32::from(i % 10 == 0)).collect();
        let sigma = NoiseMultiplier::new(20.0).unwrap();
        let counts = ClassCounts::fit(&labels, 3, sigma, &mut rng, &mut ledger).unwrap();
        // Six standard deviations each: 6e-9 of all seeds would fail.
        for (count, expected) in counts.counts().iter().zip([9_000.0, 1_000.0, 0.0]) {
            assert!((count - expected).abs() < 120.0, "{count} for {expected}");
        }
        let priors = counts.priors();
        assert!(priors.iter().all(|&prior| prior > 0.0));
        assert!((priors.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let entries: Vec<String> = ledger.entries().iter().map(|e| format!("{} × {}", e.count(), e.event())).collect();
        assert_eq!(entries, ["1 × Gaussian (noise multiplier 20)"]);
        let error = ClassCounts::fit(&[0, 3], 3, sigma, &mut rng, &mut ledger).unwrap_err().to_string();
        assert_eq!(error, "label of record 1: expected 0..3, got 3");
        // A refused label releases nothing.
        assert_eq!(ledger.entries().len(), 1);
    }

    #[test]
    fn classes_are_counted() {
        assert_eq!(count_labels([2, 0, 2, 9].into_iter(), 3), [1.0, 0.0, 2.0]);
    }
}
