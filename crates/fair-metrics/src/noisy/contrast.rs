//! Weighted sums of rates: one rate, a mean of recalls, a difference between groups.

use super::saddlepoint::{Term, deviate, root};
use super::share::Share;
use crate::special::normal_quantile;

/// Rounds in which the rates of a hypothesis and their variances are made to agree.
const ROUNDS: usize = 3;
/// Share of every tail that is used: the rest is for what the saddlepoint, the rates of a
/// hypothesis and the size of a noisy denominator are wrong by.
pub(super) const USED: f64 = 0.9;

/// A weighted sum of independent rates.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contrast {
    parts: Vec<(f64, Share)>,
}

impl Contrast {
    /// The sum of the shares' rates times their weights.
    pub(super) fn new(parts: impl IntoIterator<Item = (f64, Share)>) -> Self {
        Self { parts: parts.into_iter().filter(|(weight, _)| *weight != 0.0).collect() }
    }

    /// This minus `factor` times another.
    pub(super) fn minus(&self, factor: f64, other: &Self) -> Self {
        let of_other = other.parts.iter().map(|(weight, share)| (-factor * weight, *share));
        Self::new(self.parts.iter().copied().chain(of_other))
    }

    /// The same with all signs turned.
    pub(super) fn opposite(&self) -> Self {
        Self { parts: self.parts.iter().map(|(weight, share)| (-weight, *share)).collect() }
    }

    /// The estimate, which noise may carry out of the range.
    pub(super) fn estimate(&self) -> f64 {
        self.parts.iter().map(|(weight, share)| weight * share.estimate()).sum()
    }

    /// Whether every rate in it is known.
    pub(super) fn is_known(&self) -> bool {
        self.parts.iter().all(|(_, share)| share.is_known())
    }

    /// The standard normal quantile of a tail of this size, of the figures that are printed.
    pub(super) fn quantile(&self, tail: f64) -> f64 {
        let chance = self.parts.iter().map(|(_, share)| share.chance_to_be_known()).fold(1.0, f64::min);
        normal_quantile((USED * tail * chance).clamp(f64::MIN_POSITIVE, 0.5))
    }

    /// The least and the greatest value that it can have.
    fn range(&self) -> (f64, f64) {
        self.parts.iter().fold((0.0, 0.0), |(low, high), (weight, _)| (low + weight.min(0.0), high + weight.max(0.0)))
    }

    /// The least value that a test at the deviate `z` does not refuse.
    pub(super) fn lower_end(&self, z: f64) -> f64 {
        let (least, most) = self.range();
        let start = self.estimate().clamp(least, most);
        if start <= least || self.deviate(least) <= z {
            return least;
        }
        root(|value| self.deviate(value) - z, least, start)
    }

    /// The greatest value that a test at the deviate `z` does not refuse.
    pub(super) fn upper_end(&self, z: f64) -> f64 {
        -self.opposite().lower_end(z)
    }

    /// How far above `value` the estimate is, as a standard normal deviate: an estimate at least as
    /// high has the probability of its upper tail if the sum is `value`.
    ///
    /// An estimate beyond the range counts as its end: otherwise noise could refuse every value.
    pub(super) fn deviate(&self, value: f64) -> f64 {
        let distance = self.estimate().min(self.range().1) - value;
        let term = |((weight, share), rate): (&(f64, Share), f64)| Term {
            scale: weight / share.n(),
            n: share.n_high(),
            rate,
            noise: share.noise_at(rate),
        };
        let terms: Vec<Term> = self.parts.iter().zip(self.rates(value)).map(term).collect();
        // Counts are whole numbers, with and without noise: an exact test counts the observed one
        // in full.
        let step = terms.iter().map(|term| term.scale.abs()).fold(0.0, f64::max);
        deviate(&terms, distance - 0.5 * step)
    }

    /// The rates under the hypothesis that the sum is `value`: those nearest to the estimates, in
    /// units of their variances at the rates that are found.
    ///
    /// With the variances of the estimates instead, a difference between few records would be
    /// tested as if the rate of both groups were near the smaller one.
    fn rates(&self, value: f64) -> Vec<f64> {
        let estimates: Vec<f64> = self.parts.iter().map(|(_, share)| share.estimate().clamp(0.0, 1.0)).collect();
        let mut rates = estimates.clone();
        let n_rounds = if rates.len() > 1 { ROUNDS } else { 1 };
        for _ in 0..n_rounds {
            let variance = |((_, share), rate): (&(f64, Share), &f64)| share.variance_at(*rate);
            let variances: Vec<f64> = self.parts.iter().zip(&rates).map(variance).collect();
            rates = self.moved(&estimates, &variances, value);
        }
        rates
    }

    /// Moves rates by `λ · weight · variance` within [0, 1], with the `λ` that makes the sum
    /// `value`.
    fn moved(&self, rates: &[f64], variances: &[f64], value: f64) -> Vec<f64> {
        let mut rates = rates.to_vec();
        let mut is_free = vec![true; rates.len()];
        // Each round but the last stops a rate at 0 or 1.
        for _ in 0..rates.len() {
            let sum: f64 = self.parts.iter().zip(&rates).map(|((weight, _), rate)| weight * rate).sum();
            let gain = |j: usize| self.parts[j].0 * variances[j];
            let free = (0..rates.len()).filter(|&j| is_free[j]);
            let per_lambda: f64 = free.map(|j| self.parts[j].0 * gain(j)).sum();
            if (value - sum).abs() <= 1e-15 || per_lambda <= 0.0 {
                break;
            }
            let lambda = (value - sum) / per_lambda;
            for j in (0..rates.len()).filter(|&j| is_free[j]).collect::<Vec<_>>() {
                let moved = rates[j] + lambda * gain(j);
                rates[j] = moved.clamp(0.0, 1.0);
                is_free[j] = (0.0..=1.0).contains(&moved);
            }
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal groups with 22 and 4 of 1,000: if the rates are equal they are 13 of 1,000, not 7.
    #[test]
    fn the_rates_of_a_hypothesis_are_pooled() {
        let groups = [Share::exact(22.0, 978.0), Share::exact(4.0, 996.0)];
        let difference = Contrast::new([(1.0, groups[0]), (-1.0, groups[1])]);
        let rates = difference.rates(0.0);
        assert!((rates[0] - 0.013).abs() < 5e-4 && (rates[0] - rates[1]).abs() < 1e-12, "{rates:?}");
    }

    #[test]
    fn rates_of_a_hypothesis_stay_in_range_and_add_up() {
        let shares = [Share::exact(99.0, 1.0), Share::exact(50.0, 50.0)];
        let mean = Contrast::new(shares.map(|share| (0.5, share)));
        for value in [0.0, 0.3, 0.7, 0.98, 1.0] {
            let rates = mean.rates(value);
            assert!(rates.iter().all(|rate| (0.0..=1.0).contains(rate)));
            assert!((0.5 * (rates[0] + rates[1]) - value).abs() < 1e-9, "{value}: {rates:?}");
        }
    }

    #[test]
    fn what_weighs_nothing_is_not_asked_for() {
        let unknown = Share::exact(0.0, 0.0);
        let known = Contrast::new([(1.0, Share::exact(3.0, 4.0)), (0.0, unknown)]);
        assert!(known.is_known());
        assert_eq!(known.range(), (0.0, 1.0));
    }
}
