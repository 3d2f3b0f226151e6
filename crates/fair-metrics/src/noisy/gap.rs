//! The largest difference between groups, and the least ratio.

use serde::{Deserialize, Serialize};

use super::contrast::Contrast;
use super::rate::{NoisyRate, mean};
use super::share::Share;

/// The largest difference between two groups, or the least ratio.
///
/// A group whose figure is unknown may differ from the others by anything. Then the gap of all
/// groups is unknown, and its interval goes as far as a gap can.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Gap {
    /// Between all groups.
    pub all: NoisyRate,
    /// Between the groups whose figures are known; none if there are not two of them.
    pub known: Option<NoisyRate>,
    /// Groups with an unknown figure.
    pub unknown: Vec<usize>,
}

/// The largest difference between two groups in any of some figures. `figures` holds, for each
/// figure, the shares of each group whose mean the figure is.
///
/// **Guarantee.** The interval holds the largest true difference with probability `level` at least.
/// The lower end is the largest of all pairs' and figures' lower ends, which hold together
/// (Bonferroni, half of what is not covered). The upper end is the largest of their upper ends: it
/// is enough that the one of the widest pair holds.
pub fn largest_difference(figures: &[Vec<Vec<Share>>], level: f64) -> Gap {
    let (known, unknown) = known_of(figures);
    let tail = 0.5 * (1.0 - level);
    let n_pairs = (known.len() * known.len().saturating_sub(1) / 2 * figures.len()).max(1) as f64;
    let (mut value, mut low, mut high) = (0.0_f64, 0.0_f64, 0.0_f64);
    for groups in figures {
        let groups: Vec<Contrast> = known.iter().map(|&group| mean(&groups[group])).collect();
        for (a, b) in ordered_pairs(&groups) {
            let difference = a.minus(1.0, b);
            value = value.max(difference.estimate());
            // Ends that do not move the largest so far are not searched for.
            let z = difference.quantile(tail / n_pairs);
            if difference.estimate() > low && difference.deviate(low) > z {
                low = low.max(difference.lower_end(z));
            }
            let (opposite, z) = (difference.opposite(), difference.quantile(tail));
            if high < 1.0 && opposite.deviate(-high) <= z {
                high = high.max(-opposite.lower_end(z));
            }
        }
    }
    let value = value.min(1.0);
    let between = NoisyRate { value: Some(value), low: low.min(value), high: high.clamp(value, 1.0) };
    Gap::of_differences(known.len(), between, unknown)
}

/// The least ratio between two groups' figures.
///
/// **Guarantee.** As [`largest_difference`]. The hypothesis of a ratio is tested as a difference:
/// one figure minus the ratio times the other is 0.
///
/// # Edge cases
/// Without a positive figure the ratio is unknown.
pub fn least_ratio(groups: &[Vec<Share>], level: f64) -> Gap {
    let (known, unknown) = known_of(&[groups.to_vec()]);
    let groups: Vec<Contrast> = known.iter().map(|&group| mean(&groups[group])).collect();
    let tail = 0.5 * (1.0 - level);
    let n_pairs = (groups.len() * groups.len().saturating_sub(1) / 2).max(1) as f64;
    let estimates = groups.iter().map(|group| group.estimate().clamp(0.0, 1.0));
    let most = estimates.clone().fold(0.0, f64::max);
    let least = estimates.fold(1.0, f64::min);
    let value = (most > 0.0).then(|| least / most);
    let (mut low, mut high) = (1.0_f64, 1.0_f64);
    for (a, b) in ordered_pairs(&groups) {
        let against = |ratio: f64| a.minus(ratio, b);
        let is_below = |ratio: f64, z: f64| against(ratio).opposite().deviate(0.0) > z;
        let z = against(1.0).quantile(tail / n_pairs);
        if is_below(high, z) {
            high = bisected(0.0, high, |ratio| is_below(ratio, z));
        }
        let is_above = |ratio: f64, z: f64| against(ratio).deviate(0.0) > z;
        let z = against(1.0).quantile(tail);
        if low > 0.0 && !is_above(low, z) {
            low = bisected(0.0, low, |ratio| !is_above(ratio, z));
        }
    }
    let between = NoisyRate {
        value,
        low: value.map_or(low, |value| low.min(value)),
        high: value.map_or(high, |value| high.max(value)),
    };
    Gap::of_ratios(known.len(), between, unknown)
}

impl Gap {
    /// Between this many groups of which nothing is known.
    pub fn unknown(n_groups: usize) -> Self {
        Self { all: NoisyRate::UNKNOWN, known: None, unknown: (0..n_groups).collect() }
    }

    /// The difference between this many groups that are known, and some that are not.
    pub(crate) fn of_differences(n_known: usize, between: NoisyRate, unknown: Vec<usize>) -> Self {
        Self::of(n_known, between, unknown, |between| NoisyRate { value: None, high: 1.0, ..between })
    }

    /// The same of a ratio.
    pub(crate) fn of_ratios(n_known: usize, between: NoisyRate, unknown: Vec<usize>) -> Self {
        Self::of(n_known, between, unknown, |between| NoisyRate { value: None, low: 0.0, ..between })
    }

    fn of(n_known: usize, between: NoisyRate, unknown: Vec<usize>, widened: impl Fn(NoisyRate) -> NoisyRate) -> Self {
        let known = (n_known > 1).then_some(between);
        let all = match known {
            None => NoisyRate::UNKNOWN,
            Some(known) if unknown.is_empty() => known,
            Some(known) => widened(known),
        };
        Self { all, known, unknown }
    }
}

/// Groups with an unknown figure: of one or more figures, the shares of each group.
pub(crate) fn unknown_groups(figures: &[Vec<Vec<Share>>]) -> Vec<usize> {
    known_of(figures).1
}

fn known_of(figures: &[Vec<Vec<Share>>]) -> (Vec<usize>, Vec<usize>) {
    let n_groups = figures.first().map_or(0, Vec::len);
    (0..n_groups).partition(|&group| figures.iter().all(|groups| groups[group].iter().all(Share::is_known)))
}

fn ordered_pairs(groups: &[Contrast]) -> impl Iterator<Item = (&Contrast, &Contrast)> {
    groups.iter().enumerate().flat_map(move |(i, a)| {
        let others = groups.iter().enumerate().filter(move |(j, _)| *j != i);
        others.map(move |(_, b)| (a, b))
    })
}

/// The border between arguments, of which the greater ones hold, to nine decimals.
fn bisected(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(low) {
        return low;
    }
    while high - low > 1e-9 {
        let middle = f64::midpoint(low, high);
        if holds(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(groups: &[(f64, f64)]) -> Vec<Vec<Share>> {
        groups.iter().map(|(hits, others)| vec![Share::exact(*hits, *others)]).collect()
    }

    /// 80 of 100 and 60 of 100. Miettinen and Nurminen's interval, of which this is the
    /// continuous one, is 0.0741 to 0.3206 (their equation 8, solved by hand without correction).
    #[test]
    fn a_difference_of_two_groups() {
        let gap = largest_difference(&[exact(&[(80.0, 20.0), (60.0, 40.0)])], 0.95);
        assert_eq!(gap.known, Some(gap.all));
        assert!((gap.all.value.unwrap() - 0.2).abs() < 1e-12);
        assert!((gap.all.low - 0.069).abs() < 0.008 && (gap.all.high - 0.325).abs() < 0.008, "{gap:?}");
    }

    #[test]
    fn alike_groups_may_have_no_gap() {
        let groups = exact(&[(412.0, 88.0), (398.0, 102.0), (405.0, 95.0), (391.0, 109.0), (409.0, 91.0)]);
        let difference = largest_difference(std::slice::from_ref(&groups), 0.95).all;
        assert_eq!(difference.low, 0.0);
        assert!((difference.value.unwrap() - 0.042).abs() < 1e-12 && difference.high < 0.11);
        let ratio = least_ratio(&groups, 0.95).all;
        assert_eq!(ratio.high, 1.0);
        assert!((ratio.value.unwrap() - 391.0 / 412.0).abs() < 1e-12 && ratio.low > 0.85, "{ratio:?}");
    }

    #[test]
    fn a_ratio_is_tested_without_division() {
        let ratio = least_ratio(&exact(&[(800.0, 200.0), (400.0, 600.0)]), 0.95).all;
        // By the logarithm: 0.5·exp(±1.96·√(1/400 − 1/1000 + 1/800 − 1/1000)) = 0.461 to 0.543.
        assert!((ratio.low - 0.461).abs() < 4e-3 && (ratio.high - 0.543).abs() < 4e-3, "{ratio:?}");
        let none = least_ratio(&exact(&[(0.0, 50.0), (0.0, 70.0)]), 0.95).all;
        assert_eq!(none, NoisyRate::UNKNOWN);
        let zero = least_ratio(&exact(&[(0.0, 50.0), (35.0, 35.0)]), 0.95).all;
        assert_eq!((zero.value, zero.low), (Some(0.0), 0.0));
    }

    #[test]
    fn a_gap_with_an_unknown_part_is_unknown() {
        let groups = exact(&[(800.0, 200.0), (600.0, 400.0), (0.0, 0.0)]);
        let gap = largest_difference(std::slice::from_ref(&groups), 0.95);
        let known = gap.known.unwrap();
        assert_eq!((gap.all.value, gap.all.low, gap.all.high), (None, known.low, 1.0));
        assert!(known.high < 0.3 && known.low > 0.1);
        assert_eq!(gap.unknown, [2]);
        let ratio = least_ratio(&groups, 0.95);
        assert_eq!((ratio.all.value, ratio.all.low, ratio.all.high), (None, 0.0, ratio.known.unwrap().high));
        let alone = largest_difference(&[exact(&[(8.0, 2.0), (0.0, 0.0)])], 0.95);
        assert_eq!((alone.known, alone.all), (None, NoisyRate::UNKNOWN));
    }

    /// One figure differs, the other does not: the larger difference counts.
    #[test]
    fn the_larger_of_two_figures_counts() {
        let figures = [exact(&[(900.0, 100.0), (500.0, 500.0)]), exact(&[(100.0, 900.0), (100.0, 900.0)])];
        let gap = largest_difference(&figures, 0.95).all;
        assert!((gap.value.unwrap() - 0.4).abs() < 1e-12 && gap.low > 0.34 && gap.high < 0.44, "{gap:?}");
    }
}
