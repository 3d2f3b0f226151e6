//! Biases towards equal recall.

use dp_accounting::{Ledger, NoiseMultiplier};
use dp_engine::Grid;
use rand_chacha::rand_core::CryptoRng;
use serde::{Deserialize, Serialize};

use crate::class_counts::{ClassCounts, count_labels};
use crate::error::{LinearError, Result};
use crate::exact::sum_rows;
use crate::exact_sum::ExactSum;
use crate::linear::Linear;
use crate::release::record;
use crate::rows::RowSource;
use crate::settings::Streams;

/// How biases are found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecallBiasesConfig {
    /// Rounds, each of which releases the right answers of every class once.
    pub rounds: u64,
    /// Noise multiplier of every round.
    pub noise_multiplier: NoiseMultiplier,
    /// Nats by which the first round moves a class whose recall is 1 below the mean, before the
    /// cap; later rounds move it by less, in a straight line to 0. A constant: it must not come
    /// from the records.
    pub step: f64,
    /// Share of the biases found that is used: 1 for equal recall on the training records, less
    /// since a model is surer of these than of others.
    pub share: f64,
}

/// Biases that, added to a classifier's logits, bring the recall of its classes closer together.
///
/// Each round classifies the training records with the biases so far, releases the number of right
/// answers of each class, and raises the biases of classes with too few of them. It moves accuracy
/// from common or easy classes to others: helpful where classes are confused with each other
/// (Fashion-MNIST), harmful where adjusted logits have already set the scales right (skewed MNIST).
///
/// **Guarantee.** A record is a right answer of one class at most: each round has an L2 sensitivity
/// of 1. Counts are integers and the noise is rounded exactly.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallBiases {
    biases: Vec<f64>,
}

/// A recall further from the mean than this moves its class no faster.
const CAP: f64 = 0.2;

impl RecallBiases {
    /// Finds the biases; every round enters the ledger before it is made.
    ///
    /// **Shapes.** `logits` row-major `[n_records, n_classes]`, of the trained model on its
    /// training records; `labels` `[n_records]`; `counts` of the same records and classes.
    ///
    /// # Errors
    /// [`LinearError::Mismatch`] if lengths do not fit or a label is out of range;
    /// [`LinearError::InvalidParameter`] unless there is a round, the step is a finite number of at
    /// least 0 and the share in [0, 1]; [`LinearError::Accounting`] if the ledger refuses.
    pub fn fit(
        config: &RecallBiasesConfig,
        logits: &[f64],
        labels: &[u32],
        counts: &ClassCounts,
        rng: &mut dyn CryptoRng,
        ledger: &mut Ledger,
    ) -> Result<Self> {
        let n_classes = counts.counts().len();
        if logits.len() != labels.len() * n_classes {
            return Err(LinearError::mismatch("logits of all records", labels.len() * n_classes, logits.len()));
        }
        if let Some(i) = labels.iter().position(|&label| label as usize >= n_classes) {
            return Err(LinearError::mismatch(format!("label of record {i}"), format!("0..{n_classes}"), labels[i]));
        }
        if config.rounds == 0 {
            return Err(LinearError::invalid("recall.rounds", 0, "at least 1"));
        }
        if !(config.step.is_finite() && config.step >= 0.0) {
            return Err(LinearError::invalid("recall.step", config.step, "a finite number of at least 0"));
        }
        if !(0.0..=1.0).contains(&config.share) {
            return Err(LinearError::invalid("recall.share", config.share, "a number in [0, 1]"));
        }
        Self::search(config, &counts.at_least_noise(), |biases, _| {
            record(ledger, config.noise_multiplier)?;
            let rows = logits.chunks_exact(n_classes).zip(labels);
            let right = rows.filter(|(row, label)| class_of(row, biases) == **label as usize);
            let right = count_labels(right.map(|(_, &label)| label), n_classes);
            Ok(Grid::for_counts().release(right, config.noise_multiplier.get(), rng))
        })
    }

    /// Finds the biases of a linear model on the rows that it was trained on, for a release that the
    /// caller's ledger has: [`RecallBiasesConfig::rounds`] times one of noise multiplier
    /// [`RecallBiasesConfig::noise_multiplier`]. The classes' shares do not count in its answers.
    /// `total` is the weight of all records, as it was released, and a unit of privacy has at most
    /// `records_per_unit` of them.
    ///
    /// A class of the mean size or more uses [`RecallBiasesConfig::share`] of its bias, and a smaller
    /// one more, up to all of it. The bias of a rare class mends its scale, at little cost to others.
    /// Between common classes it takes from one what it gives to another.
    ///
    /// # Errors
    /// [`LinearError::Train`] if a rank is gone.
    pub fn of_model(
        config: &RecallBiasesConfig,
        model: &Linear,
        rows: &impl RowSource,
        total: f64,
        records_per_unit: u64,
        streams: &impl Streams,
    ) -> Result<Self> {
        let n_classes = model.priors.len();
        let sizes: Vec<f64> = model.priors.iter().map(|prior| prior * total).collect();
        let grid = if rows.is_weighted() { Grid::for_values(1.0, rows.len()) } else { Grid::for_counts() };
        let std = config.noise_multiplier.get() * records_per_unit as f64;
        let whole = RecallBiasesConfig { share: 1.0, ..*config };
        let mut found = Self::search(&whole, &sizes, |biases, round| {
            let scratch = || vec![0.0; n_classes];
            let right = sum_rows(rows, n_classes, scratch, |logits, _, row, sum| {
                model.adjusted_logits(row, logits);
                if class_of(logits, biases) == row.label
                    && let Some(sum) = sum.get_mut(row.label)
                {
                    *sum += grid.place(f64::from(row.weight));
                }
            })?;
            Ok(streams.release("right answers", round, ExactSum::new(grid, right, std)))
        })?;
        for (bias, prior) in found.biases.iter_mut().zip(&model.priors) {
            *bias *= share_of_class(config.share, prior * n_classes as f64);
        }
        Ok(found)
    }

    /// `right` releases the right answers of every class with these biases, in this round.
    fn search(
        config: &RecallBiasesConfig,
        sizes: &[f64],
        mut right: impl FnMut(&[f64], u64) -> Result<Vec<f64>>,
    ) -> Result<Self> {
        let n_classes = sizes.len();
        let mut biases = vec![0.0; n_classes];
        for round in 0..config.rounds {
            let right = right(&biases, round)?;
            let recalls: Vec<f64> = right.iter().zip(sizes).map(|(right, n)| (right / n).clamp(0.0, 1.0)).collect();
            let mean = recalls.iter().sum::<f64>() / n_classes as f64;
            let step = config.step * (1.0 - round as f64 / config.rounds as f64);
            for (bias, recall) in biases.iter_mut().zip(&recalls) {
                *bias += step * (mean - recall).clamp(-CAP, CAP);
            }
        }
        for bias in &mut biases {
            *bias *= config.share;
        }
        Ok(Self { biases })
    }

    /// The biases, one per class.
    pub fn biases(&self) -> &[f64] {
        &self.biases
    }

    /// The class of each row of logits, `[n_records, n_classes]`, with the biases.
    pub fn predictions(&self, logits: &[f64]) -> Vec<u32> {
        logits.chunks_exact(self.biases.len()).map(|row| class_of(row, &self.biases) as u32).collect()
    }
}

/// The share of a class's bias that is used, for its size over the mean one.
fn share_of_class(share: f64, size: f64) -> f64 {
    1.0 - (1.0 - share) * size.min(1.0)
}

/// The largest sum, the first of equals.
fn class_of(row: &[f64], biases: &[f64]) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (class, (logit, bias)) in row.iter().zip(biases).enumerate() {
        if logit + bias > best.1 {
            best = (class, logit + bias);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use dp_accounting::NeighbouringRelation;

    use super::*;
    use dp_train::{Purpose, Randomness};

    #[test]
    fn a_rare_class_uses_more_of_its_bias() {
        let shares = [0.0, 0.1, 1.0, 3.0].map(|size| share_of_class(0.5, size));
        assert_eq!(shares, [1.0, 0.95, 0.5, 0.5]);
    }

    /// Class 1 is missed by half a nat where `i` is odd; nothing else is wrong. Its bias rises
    /// until it is found, and the ledger has every round.
    #[test]
    fn a_class_that_is_missed_gains() {
        let mut rng = Randomness::from_seed(7).stream(Purpose::Conditioning, 0, 0).unwrap();
        let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);
        let labels: Vec<u32> = (0..20_000).map(|i| i % 2).collect();
        let logits: Vec<f64> = (0..20_000_u32)
            .flat_map(|i| match (i % 2, i % 4) {
                (0, _) => [2.0, 0.0],
                (_, 1) => [0.0, 1.0],
                _ => [0.5, 0.0],
            })
            .collect();
        let sigma = NoiseMultiplier::new(10.0).unwrap();
        let counts = ClassCounts::fit(&labels, 2, sigma, &mut rng, &mut ledger).unwrap();
        let config = RecallBiasesConfig { rounds: 6, noise_multiplier: sigma, step: 1.0, share: 1.0 };
        let found = RecallBiases::fit(&config, &logits, &labels, &counts, &mut rng, &mut ledger).unwrap();
        let right = found.predictions(&logits).iter().zip(&labels).filter(|(a, b)| a == b).count();
        assert_eq!(right, labels.len(), "{:?}", found.biases());
        assert_eq!(ledger.entries().iter().map(dp_accounting::LedgerEntry::count).sum::<u64>(), 7);
        let half = RecallBiasesConfig { share: 1.5, ..config };
        let error = RecallBiases::fit(&half, &logits, &labels, &counts, &mut rng, &mut ledger).unwrap_err();
        assert_eq!(error.to_string(), "recall.share = 1.5: expected a number in [0, 1]");
        let error = RecallBiases::fit(&config, &logits[1..], &labels, &counts, &mut rng, &mut ledger).unwrap_err();
        assert_eq!(error.to_string(), "logits of all records: expected 40000, got 39999");
    }
}
