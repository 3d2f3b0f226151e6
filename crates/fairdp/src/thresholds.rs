//! Thresholds by group, from one noisy histogram of scores on the training records.

use dp_accounting::NoiseMultiplier;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use crate::config::Fairness;
use crate::solver::exact::Grid;

/// Bins of the log-odds, between −[`RANGE`] and [`RANGE`].
const BINS: usize = 40;
const RANGE: f64 = 6.0;
/// Records of a class that a group must have, in standard deviations of their noise, for a
/// threshold of its own.
const ENOUGH: f64 = 5.0;
/// What a threshold of its own must gain, in standard deviations of a difference of rates.
const GAIN: f64 = 2.0;

/// What thresholds by group were chosen, and what they cost, by released counts of training
/// records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// Why.
    pub mode: Fairness,
    /// The log-odds above which the positive class is answered, by group.
    pub by_group: Vec<f64>,
    /// Groups with too few records for a threshold of their own: they keep the common one, as do
    /// groups for which another one would be better by no more than noise and chance explain.
    pub too_small: Vec<String>,
    /// Accuracy with the common threshold.
    pub accuracy_before: f64,
    /// Accuracy with these.
    pub accuracy_after: f64,
    /// Standard deviation of the noise in either accuracy, at most.
    #[serde(default)]
    pub accuracy_noise: f64,
}

/// Records by group, class and bin of the score, with noise: of either sign, so that sums of many
/// bins have no bias.
pub(crate) struct Scores {
    values: Vec<f64>,
    std: f64,
}

/// The bin of a score.
fn bin(log_odds: f64) -> usize {
    (((log_odds + RANGE) / (2.0 * RANGE) * BINS as f64).max(0.0) as usize).min(BINS - 1)
}

/// The lower edge of a bin.
fn edge(bin: usize) -> f64 {
    -RANGE + 2.0 * RANGE * bin as f64 / BINS as f64
}

/// Training records below which not even two groups can have thresholds of their own: public, so it
/// is known beforehand.
pub(crate) fn least_records(noise_multiplier: NoiseMultiplier, records_per_unit: u64) -> usize {
    let of_one_class = ENOUGH * noise_multiplier.get() * records_per_unit as f64 * (BINS as f64).sqrt();
    (2.0 * 2.0 * of_one_class).ceil() as usize
}

/// Exact counts by group, class and bin of the log-odds. **Not private.**
pub(crate) fn count(records: impl Iterator<Item = (usize, usize, f64)>, n_groups: usize) -> Vec<f64> {
    let mut counts = vec![0.0; n_groups * 2 * BINS];
    for (group, class, log_odds) in records {
        counts[(group * 2 + class) * BINS + bin(log_odds)] += 1.0;
    }
    counts
}

impl Scores {
    /// **Guarantee.** A record is in one cell: a unit of `k` records changes the counts by at most
    /// `k`.
    pub(crate) fn release(
        counts: Vec<f64>,
        noise_multiplier: NoiseMultiplier,
        records_per_unit: u64,
        rng: &mut ChaCha20Rng,
    ) -> Self {
        let std = noise_multiplier.get() * records_per_unit as f64;
        Self { values: Grid::unit().release(counts, std, rng), std }
    }

    fn of(&self, group: usize, class: usize) -> &[f64] {
        &self.values[(group * 2 + class) * BINS..][..BINS]
    }

    /// Shares of the negative and the positive records of some groups with a score of at least each
    /// edge.
    fn rates(&self, groups: &[usize], at: usize) -> [f64; 2] {
        [0, 1].map(|class| {
            let sum = |from: usize| groups.iter().map(|&group| self.of(group, class)[from..].iter().sum::<f64>()).sum();
            let (above, all): (f64, f64) = (sum(at), sum(0));
            if all > 0.0 { (above / all).clamp(0.0, 1.0) } else { 0.0 }
        })
    }

    /// Standard deviation of a difference between two rates of a group, of noise and of the draw of
    /// its records, at most.
    fn deviation(&self, group: usize) -> f64 {
        let variance = |class: usize| {
            let n = self.of(group, class).iter().sum::<f64>().max(1.0);
            BINS as f64 * (self.std / n).powi(2) + 0.25 / n
        };
        (variance(0) + variance(1)).sqrt()
    }

    /// Chooses thresholds; `common` is the one that all groups have otherwise.
    pub(crate) fn choose(&self, mode: Fairness, common: f64, groups: &[String]) -> Thresholds {
        let all: Vec<usize> = (0..groups.len()).collect();
        let common_edge = bin(common);
        let [target_false, target_true] = self.rates(&all, common_edge);
        let noise = ENOUGH * self.std * (BINS as f64).sqrt();
        let mut too_small = Vec::new();
        let edges: Vec<Option<usize>> = groups
            .iter()
            .enumerate()
            .map(|(group, name)| {
                if [0, 1].iter().any(|&class| self.of(group, class).iter().sum::<f64>() < noise) {
                    too_small.push(name.clone());
                    return None;
                }
                let cost = |at: usize| {
                    let [false_positive, true_positive] = self.rates(&[group], at);
                    match mode {
                        Fairness::EqualizedOdds => {
                            (false_positive - target_false).abs().max((true_positive - target_true).abs())
                        }
                        Fairness::None | Fairness::WorstGroup => false_positive - true_positive,
                    }
                };
                let best = (0..BINS).min_by(|&a, &b| cost(a).total_cmp(&cost(b)))?;
                (cost(common_edge) - cost(best) > GAIN * self.deviation(group)).then_some(best)
            })
            .collect();
        let n_records = self.values.iter().sum::<f64>().max(1.0);
        let accuracy = |edge_of: &dyn Fn(usize) -> usize| {
            let right = |(group, at): (usize, usize)| {
                self.of(group, 0)[..at].iter().sum::<f64>() + self.of(group, 1)[at..].iter().sum::<f64>()
            };
            let sum: f64 = all.iter().map(|&group| right((group, edge_of(group)))).sum();
            (sum / n_records).clamp(0.0, 1.0)
        };
        Thresholds {
            mode,
            by_group: edges.iter().map(|at| at.map_or(common, edge)).collect(),
            too_small,
            accuracy_before: accuracy(&|_| common_edge),
            accuracy_after: accuracy(&|group| edges[group].unwrap_or(common_edge)),
            accuracy_noise: self.std * (self.values.len() as f64).sqrt() / n_records,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng as _;

    use super::*;

    /// Group b has the same people as group a with scores lower by 2: its threshold is lower by 2.
    #[test]
    fn a_group_whose_scores_are_lower_has_a_lower_threshold() {
        let records = (0..20_000_i32).map(|i| {
            let (group, class) = (i % 2, (i / 2) % 2);
            let spread = f64::from((i / 4) % 1_000) / 1_000.0 - 0.5;
            (group, class, 4.0 * f64::from(class) - 2.0 + 3.0 * spread - 2.0 * f64::from(group))
        });
        let sigma = NoiseMultiplier::new(1.0).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let records = records.map(|(group, class, score)| (group as usize, class as usize, score));
        let scores = Scores::release(count(records, 2), sigma, 1, &mut rng);
        let names = ["a".to_owned(), "b".to_owned()];
        for mode in [Fairness::WorstGroup, Fairness::EqualizedOdds] {
            let found = scores.choose(mode, 0.0, &names);
            assert!(found.too_small.is_empty());
            assert!((found.by_group[0] - found.by_group[1] - 2.0).abs() < 1.0, "{mode:?} {:?}", found.by_group);
            assert!(found.accuracy_after > found.accuracy_before, "{found:?}");
        }
    }

    /// Two groups of the same people, whose scores fill few bins: the noise of the empty ones does
    /// not count as records, and no threshold is moved for the sake of noise.
    #[test]
    fn groups_that_are_alike_keep_the_common_threshold() {
        let exact: Vec<(usize, usize, f64)> = (0..4_000)
            .map(|i| (i % 2, (i / 2) % 2, if (i / 4) % 5 == 0 { 0.5 } else { 2.0 * ((i / 2) % 2) as f64 - 1.0 }))
            .collect();
        let right = exact.iter().filter(|(_, class, score)| (*score >= 0.0) == (*class == 1)).count();
        let sigma = NoiseMultiplier::new(4.0).unwrap();
        let names = ["a".to_owned(), "b".to_owned()];
        for seed in 0..20 {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let scores = Scores::release(count(exact.iter().copied(), 2), sigma, 1, &mut rng);
            for mode in [Fairness::WorstGroup, Fairness::EqualizedOdds] {
                let found = scores.choose(mode, 0.0, &names);
                let off = (found.accuracy_before - right as f64 / exact.len() as f64).abs();
                assert!(off < 4.0 * found.accuracy_noise, "{seed} {found:?}");
                assert!((found.accuracy_after - found.accuracy_before).abs() < 0.1, "{seed} {found:?}");
            }
        }
    }
}
