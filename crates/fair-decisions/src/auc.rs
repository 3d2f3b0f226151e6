//! The area under a group's ROC curve.

use fair_metrics::noisy::{NoisyRate, interval_of_estimate};

use crate::cumulative::CumulativeCounts;
use crate::grid::N_CELLS;
use crate::monotone::rising;
use crate::prefix_sums::PrefixSums;

/// Number of records of a class, in standard deviations of its noise, below which nothing is said.
const FEW_DEVIATIONS: f64 = 8.0;

impl CumulativeCounts {
    /// The probability that a positive record of a group has a higher cell than another one, and half of that
    /// of an equal cell, with its interval of sampling and of noise.
    ///
    /// # Edge cases
    /// [`NoisyRate::UNKNOWN`] for classes of few records.
    ///
    /// **Source.** Sampling: `DeLong`, `DeLong` and Clarke-Pearson 1988, on the monotone counts. Noise: the
    /// derivative by every prefix, with their exact covariance. Interval: on the scale of log-odds.
    pub fn auc(&self, sums: &PrefixSums, group: usize, level: f64) -> NoisyRate {
        let totals = [0, 1].map(|side| self.total(group, side));
        let least = [0, 1].map(|side| (FEW_DEVIATIONS * self.total_noise(sums, side)).max(2.0));
        if totals.iter().zip(least).any(|(&n, least)| n < least) {
            return NoisyRate::UNKNOWN;
        }
        let prefixes = [0, 1].map(|side| self.prefix(group, side));
        let [value, _] = area(&prefixes[0], &prefixes[1]);
        // Variances need counts that are counts.
        let smooth = [0, 1].map(|side| {
            let clamped: Vec<f64> = prefixes[side].iter().map(|value| value.clamp(0.0, totals[side])).collect();
            rising(&clamped)
        });
        let [of_smooth, sampling] = area(&smooth[0], &smooth[1]);
        let noise = noise(sums, &smooth, of_smooth, [0, 1].map(|side| self.variance(side)));
        interval_of_estimate(value, (sampling + noise).sqrt(), 0.5 / totals[0].min(totals[1]), level)
    }
}

/// Numbers of records by cell.
fn cells(prefix: &[f64]) -> Vec<f64> {
    (0..N_CELLS).map(|i| prefix[i] - if i == 0 { 0.0 } else { prefix[i - 1] }).collect()
}

/// Records below each cell, with half of those in it.
fn middles(prefix: &[f64]) -> Vec<f64> {
    (0..N_CELLS).map(|i| 0.5 * (prefix[i] + if i == 0 { 0.0 } else { prefix[i - 1] })).collect()
}

/// The area, and the variance of a sample's.
fn area(negatives: &[f64], positives: &[f64]) -> [f64; 2] {
    let [n0, n1] = [negatives, positives].map(|prefix| prefix[N_CELLS - 1]);
    let ([below0, below1], [in0, in1]) =
        ([middles(negatives), middles(positives)], [cells(negatives), cells(positives)]);
    let area: f64 = in1.iter().zip(&below0).map(|(x, below)| x * below).sum::<f64>() / (n0 * n1);
    let of_positives: f64 = in1.iter().zip(&below0).map(|(x, below)| x / n1 * (below / n0 - area).powi(2)).sum();
    let of_negatives: f64 = in0.iter().zip(&below1).map(|(x, below)| x / n0 * (1.0 - below / n1 - area).powi(2)).sum();
    [area, of_positives / n1 + of_negatives / n0]
}

/// Variance of the noise in the area, with these variances of the noise of each side's encoded counts.
fn noise(sums: &PrefixSums, [negatives, positives]: &[Vec<f64>; 2], area: f64, variances: [f64; 2]) -> f64 {
    let [n0, n1] = [negatives, positives].map(|prefix| prefix[N_CELLS - 1]);
    let (below, within) = (middles(negatives), cells(positives));
    let last = N_CELLS - 1;
    let by_positive = |i: usize| {
        if i == last { below[i] / (n0 * n1) - area / n1 } else { (below[i] - below[i + 1]) / (n0 * n1) }
    };
    let by_negative = |i: usize| {
        if i == last { 0.5 * within[i] / (n0 * n1) - area / n0 } else { 0.5 * (within[i] + within[i + 1]) / (n0 * n1) }
    };
    let of = |derivative: &dyn Fn(usize) -> f64| sums.variance_of(&(0..N_CELLS).map(derivative).collect::<Vec<f64>>());
    variances[1] * of(&by_positive) + variances[0] * of(&by_negative)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cumulative::ScoreCells;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng as _;

    /// Negatives in cells 10 and 20, positives in 20 and 30: pairs are right, tied or right, right.
    #[test]
    fn pairs_are_counted_by_hand() {
        let mut cells = ScoreCells::new(1);
        for _ in 0..100 {
            cells.add(0, 0, 10);
            cells.add(0, 0, 20);
            cells.add(0, 1, 20);
            cells.add(0, 1, 30);
        }
        let auc = CumulativeCounts::exact(&cells).auc(&PrefixSums::new(), 0, 0.95);
        assert_eq!(auc.value, Some(0.875));
        assert!(auc.low > 0.83 && auc.high < 0.91, "{auc:?}");
    }

    /// Known noise of the area from 400 releases of the same 1,000 records of each class at σ = 3.73.
    #[test]
    fn the_noise_of_the_area_is_what_it_says() {
        let (sums, mut cells) = (PrefixSums::new(), ScoreCells::new(1));
        for i in 0..2_000 {
            cells.add(0, i % 2, (i / 2 * 13) % 40 + 12 * (i % 2));
        }
        let exact = CumulativeCounts::exact(&cells).auc(&sums, 0, 0.95);
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let errors: Vec<f64> = (0..400)
            .map(|_| {
                let noisy = CumulativeCounts::release(&sums, &cells, 3.73, 1, &mut rng).unwrap();
                noisy.auc(&sums, 0, 0.95).value.unwrap() - exact.value.unwrap()
            })
            .collect();
        let found = (errors.iter().map(|e| e * e).sum::<f64>() / 400.0).sqrt();
        let counts = CumulativeCounts::exact(&cells);
        let known = [0, 1].map(|class| counts.prefix(0, class));
        let known = noise(&sums, &known, exact.value.unwrap(), [1.0; 2]).sqrt() * sums.noise_std(3.73, 1);
        assert!((found / known - 1.0).abs() < 0.15, "{found} {known}");
        // The goal for 1,000 records of each class at ε = 1.
        assert!(errors.iter().filter(|e| e.abs() <= 0.02).count() >= 380);
    }

    #[test]
    fn few_records_have_no_area() {
        let auc = CumulativeCounts::exact(&ScoreCells::new(1)).auc(&PrefixSums::new(), 0, 0.95);
        assert_eq!(auc, NoisyRate::UNKNOWN);
    }
}
