//! Who the model works for: rates by group from noisy counts, with intervals that include the
//! noise.

use dp_accounting::NoiseMultiplier;
use dp_data::table::Group;
use fair_metrics::normal_quantile;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use crate::solver::exact::Grid;
use crate::thresholds::Thresholds;

/// Confidence of every interval.
const CONFIDENCE: f64 = 0.95;
/// Its two-sided normal quantile.
const Z: f64 = 1.959_964;
/// A group with fewer records than this is too small for a statement.
const FEW_RECORDS: f64 = 100.0;
/// So is one whose number of records is this many standard deviations of its noise, or fewer.
const FEW_DEVIATIONS: f64 = 10.0;

/// Records by group, class and answer, with noise.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NoisyCounts {
    n_groups: usize,
    n_classes: usize,
    values: Vec<f64>,
    pub(crate) std: f64,
}

impl NoisyCounts {
    /// Releases exact counts, `[groups, classes, answers]`.
    ///
    /// **Guarantee.** A record is in one cell: a unit of `k` records changes the counts by at most
    /// `k`.
    pub(crate) fn release(
        exact: Vec<f64>,
        (n_groups, n_classes): (usize, usize),
        noise_multiplier: NoiseMultiplier,
        records_per_unit: u64,
        rng: &mut ChaCha20Rng,
    ) -> Self {
        let std = noise_multiplier.get() * records_per_unit as f64;
        Self { n_groups, n_classes, values: Grid::unit().release(exact, std, rng), std }
    }

    fn cell(&self, group: usize, class: usize, answer: usize) -> f64 {
        self.values[(group * self.n_classes + class) * self.n_classes + answer]
    }

    /// The share of the cells in `whole` that are in `part` too; `z` is the quantile of its
    /// interval.
    fn rate(
        &self,
        groups: &[usize],
        whole: impl Fn(usize, usize) -> bool,
        part: impl Fn(usize, usize) -> bool,
        z: f64,
    ) -> Rate {
        let (mut n, mut hits, mut cells_in, mut cells_out) = (0.0, 0.0, 0.0, 0.0);
        for &group in groups {
            for class in 0..self.n_classes {
                for answer in (0..self.n_classes).filter(|&answer| whole(class, answer)) {
                    let value = self.cell(group, class, answer);
                    n += value;
                    if part(class, answer) {
                        hits += value;
                        cells_in += 1.0;
                    } else {
                        cells_out += 1.0;
                    }
                }
            }
        }
        Rate::new(hits, n, (cells_in, cells_out), self.std, z)
    }
}

/// A rate with its 95 % interval, of sampling and of noise; undefined where its records cannot be
/// told from noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// The estimate.
    pub value: Option<f64>,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Rate {
    const UNKNOWN: Self = Self { value: None, low: 0.0, high: 1.0 };

    /// `hits/n` where `hits` is a sum of `inside` noisy cells and `n` of these and `outside`
    /// others.
    ///
    /// All rates `p` with `(hits/n − p)² ≤ z² V(p)`, `V(p) = p(1 − p)/n + std² (inside (1 − p)² +
    /// outside p²)/n²`: Wilson's interval with the variance of the noise beside that of sampling.
    fn new(hits: f64, n: f64, (inside, outside): (f64, f64), std: f64, z: f64) -> Self {
        let noise_of_n = std * (inside + outside).sqrt();
        if n.is_nan() || n <= Z * noise_of_n || n < 1.0 {
            return Self::UNKNOWN;
        }
        let value = (hits / n).clamp(0.0, 1.0);
        let noise = std * std / (n * n);
        let z = z * z;
        // a p² − 2 b p + c ≤ 0.
        let a = 1.0 + z / n - z * noise * (inside + outside);
        let b = value + 0.5 * z / n - z * noise * inside;
        let c = value * value - z * noise * inside;
        let root = (b * b - a * c).max(0.0).sqrt();
        if a <= 0.0 {
            return Self { value: Some(value), low: 0.0, high: 1.0 };
        }
        Self { value: Some(value), low: ((b - root) / a).clamp(0.0, value), high: ((b + root) / a).clamp(value, 1.0) }
    }

    /// The mean of independent rates.
    fn mean(rates: &[Self]) -> Self {
        let n = rates.len() as f64;
        let Some(values) = rates.iter().map(|rate| rate.value).collect::<Option<Vec<f64>>>() else {
            return Self::UNKNOWN;
        };
        let value = values.iter().sum::<f64>() / n;
        let half = |end: &dyn Fn(&Self) -> f64| {
            rates.iter().map(|rate| (end(rate) - rate.value.unwrap_or(0.5)).powi(2)).sum::<f64>().sqrt() / n
        };
        Self {
            value: Some(value),
            low: (value - half(&|rate| rate.low)).max(0.0),
            high: (value + half(&|rate| rate.high)).min(1.0),
        }
    }

    /// How far apart two independent rates are.
    fn distance(self, other: Self) -> Self {
        let (Some(a), Some(b)) = (self.value, other.value) else { return Self::UNKNOWN };
        let (upper, lower) = if a >= b { (self, other) } else { (other, self) };
        let value = (a - b).abs();
        let less = (upper.value.unwrap_or(a) - upper.low).hypot(lower.high - lower.value.unwrap_or(b));
        let more = (upper.high - upper.value.unwrap_or(a)).hypot(lower.value.unwrap_or(b) - lower.low);
        Self { value: Some(value), low: (value - less).max(0.0), high: (value + more).min(1.0) }
    }

    /// The larger of two differences, whose intervals hold together: of estimates and of ends.
    fn larger(self, other: Self) -> Self {
        Self {
            value: if other.value > self.value { other.value } else { self.value },
            low: self.low.max(other.low),
            high: self.high.max(other.high),
        }
    }
}

/// One rate of a group.
type RateOf<'a> = &'a dyn Fn(&GroupRates) -> Option<Rate>;

/// Rates of one group, or of all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRates {
    /// Which.
    pub group: Group,
    /// Its number of test records, with noise.
    pub records: f64,
    /// Too few records for a statement: its rates are given, and say little.
    pub too_small: bool,
    /// Share of right answers.
    pub accuracy: Rate,
    /// Mean of the classes' recalls.
    pub balanced_accuracy: Rate,
    /// Share that is answered the positive class; of two classes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection_rate: Option<Rate>,
    /// Share of the positive that is answered so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub true_positive_rate: Option<Rate>,
    /// Share of the negative that is answered the positive class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub false_positive_rate: Option<Rate>,
    /// Recall of each class.
    pub recall: Vec<Rate>,
}

/// `fairness.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FairnessReport {
    /// Whether anything was measured: not without a test part.
    pub measured: bool,
    /// Standard deviation of the noise of every count behind these rates.
    pub noise_std: f64,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Classes, in order.
    pub classes: Vec<String>,
    /// All test records.
    pub overall: Option<GroupRates>,
    /// Every group, however small.
    pub groups: Vec<GroupRates>,
    /// The group of the lowest balanced accuracy among those that are large enough, if the interval
    /// says that another one is served better. Which of several low ones is the lowest may be
    /// chance.
    pub worst_group: Option<Group>,
    /// Largest difference of accuracy between groups that are large enough. The interval of such a
    /// difference holds for all pairs of groups together (Bonferroni).
    pub accuracy_difference: Option<Rate>,
    /// Largest difference of selection rates.
    pub demographic_parity_difference: Option<Rate>,
    /// The larger of the differences of true-positive and false-positive rates.
    pub equalized_odds_difference: Option<Rate>,
    /// The model answers one class for nearly everyone.
    pub answers_one_class: Option<String>,
    /// Thresholds by group, where some were asked for.
    pub thresholds: Option<Thresholds>,
}

impl FairnessReport {
    /// Without a test part nothing is known.
    pub(crate) fn unmeasured(classes: &[String]) -> Self {
        Self {
            measured: false,
            noise_std: 0.0,
            confidence: CONFIDENCE,
            classes: classes.to_vec(),
            overall: None,
            groups: Vec::new(),
            worst_group: None,
            accuracy_difference: None,
            demographic_parity_difference: None,
            equalized_odds_difference: None,
            answers_one_class: None,
            thresholds: None,
        }
    }

    pub(crate) fn of(counts: &NoisyCounts, groups: &[Group], classes: &[String]) -> Self {
        let all: Vec<usize> = (0..counts.n_groups).collect();
        let overall = rates(counts, &Group::all(), &all, Z);
        let with = |z: f64| -> Vec<GroupRates> {
            groups.iter().enumerate().map(|(place, group)| rates(counts, group, &[place], z)).collect()
        };
        let by_group = with(Z);
        let n_large = by_group.iter().filter(|group| !group.too_small).count();
        // Rates whose intervals hold for so many differences of each pair of groups together.
        let together = |n_differences: usize| -> Vec<GroupRates> {
            let n_pairs = (n_large * n_large.saturating_sub(1) / 2).max(1);
            let tail = (1.0 - CONFIDENCE) / (2 * n_pairs * n_differences) as f64;
            with(normal_quantile(tail)).into_iter().filter(|group| !group.too_small).collect()
        };
        let (one, two) = (together(1), together(2));
        let lowest = one.iter().filter(|group| group.balanced_accuracy.value.is_some()).min_by(|a, b| {
            a.balanced_accuracy.value.partial_cmp(&b.balanced_accuracy.value).unwrap_or(std::cmp::Ordering::Equal)
        });
        let is_served_worse = |group: &&GroupRates| {
            one.iter().any(|other| other.balanced_accuracy.distance(group.balanced_accuracy).low > 0.0)
        };
        let worst = lowest.filter(is_served_worse);
        let one_class = (0..counts.n_classes)
            .find(|&class| {
                let rate = counts.rate(&all, |_, _| true, |_, answer| answer == class, Z);
                rate.value.is_some_and(|value| value > 0.995)
            })
            .map(|class| classes[class].clone());
        Self {
            measured: true,
            noise_std: counts.std,
            confidence: CONFIDENCE,
            classes: classes.to_vec(),
            worst_group: worst.map(|group| group.group.clone()),
            accuracy_difference: widest(&one, &[&|group| Some(group.accuracy)]),
            demographic_parity_difference: widest(&one, &[&|group| group.selection_rate]),
            equalized_odds_difference: widest(
                &two,
                &[&|group| group.true_positive_rate, &|group| group.false_positive_rate],
            ),
            overall: Some(overall),
            groups: by_group,
            answers_one_class: one_class,
            thresholds: None,
        }
    }
}

/// The largest difference between two groups in any of some rates.
fn widest(groups: &[GroupRates], rates: &[RateOf<'_>]) -> Option<Rate> {
    let mut widest: Option<Rate> = None;
    for rate in rates {
        let of_groups: Vec<Rate> = groups.iter().filter_map(rate).collect();
        for (place, a) in of_groups.iter().enumerate() {
            let distances = of_groups[place + 1..].iter().map(|b| a.distance(*b));
            for distance in distances.filter(|distance| distance.value.is_some()) {
                widest = Some(widest.map_or(distance, |known| known.larger(distance)));
            }
        }
    }
    widest
}

fn rates(counts: &NoisyCounts, group: &Group, groups: &[usize], z: f64) -> GroupRates {
    let n_classes = counts.n_classes;
    let recall: Vec<Rate> =
        (0..n_classes).map(|class| counts.rate(groups, |c, _| c == class, |_, answer| answer == class, z)).collect();
    let records: f64 = groups
        .iter()
        .flat_map(|&group| (0..n_classes * n_classes).map(move |cell| (group, cell)))
        .map(|(group, cell)| counts.values[group * n_classes * n_classes + cell])
        .sum();
    let noise = counts.std * ((groups.len() * n_classes * n_classes) as f64).sqrt();
    let binary = |rate: Rate| (n_classes == 2).then_some(rate);
    GroupRates {
        group: group.clone(),
        records,
        too_small: records < FEW_RECORDS || records < FEW_DEVIATIONS * noise,
        accuracy: counts.rate(groups, |_, _| true, |class, answer| class == answer, z),
        balanced_accuracy: Rate::mean(&recall),
        selection_rate: binary(counts.rate(groups, |_, _| true, |_, answer| answer == 1, z)),
        true_positive_rate: binary(recall[n_classes - 1]),
        false_positive_rate: binary(counts.rate(groups, |class, _| class == 0, |_, answer| answer == 1, z)),
        recall,
    }
}

#[cfg(test)]
mod tests {
    use dp_data::table::Level;

    use super::*;

    fn named<const N: usize>(names: [&str; N]) -> [Group; N] {
        names.map(|name| Group::new(vec![Level::Value(name.into())]))
    }

    /// Without noise Wilson's interval: 8 of 10 is 0.490 to 0.943.
    #[test]
    fn without_noise_the_interval_is_wilson_s() {
        let rate = Rate::new(8.0, 10.0, (1.0, 1.0), 0.0, Z);
        assert!((rate.low - 0.4902).abs() < 1e-4 && (rate.high - 0.9433).abs() < 1e-4, "{rate:?}");
    }

    #[test]
    fn noise_widens_and_drowns() {
        let exact = Rate::new(800.0, 1_000.0, (1.0, 1.0), 0.0, Z);
        let noisy = Rate::new(800.0, 1_000.0, (1.0, 1.0), 30.0, Z);
        assert!(noisy.low < exact.low && noisy.high > exact.high && noisy.low > 0.7, "{noisy:?}");
        assert_eq!(Rate::new(8.0, 10.0, (1.0, 1.0), 30.0, Z), Rate::UNKNOWN);
        assert_eq!(Rate::new(-3.0, -1.0, (1.0, 1.0), 1.0, Z), Rate::UNKNOWN);
        let all = Rate::new(1_010.0, 1_000.0, (1.0, 1.0), 5.0, Z);
        assert_eq!((all.value, all.high), (Some(1.0), 1.0));
    }

    #[test]
    fn small_groups_are_named() {
        let counts = NoisyCounts {
            n_groups: 2,
            n_classes: 2,
            values: vec![700.0, 100.0, 50.0, 150.0, 20.0, 2.0, 1.0, 4.0],
            std: 3.0,
        };
        let names = named(["a", "b"]);
        let report = FairnessReport::of(&counts, &names, &["no".to_owned(), "yes".to_owned()]);
        assert!(!report.groups[0].too_small && report.groups[1].too_small);
        assert_eq!(report.groups[0].accuracy.value, Some(0.85));
        assert_eq!(report.groups[0].true_positive_rate.unwrap().value, Some(0.75));
        assert_eq!(report.groups[0].false_positive_rate.unwrap().value, Some(0.125));
        assert_eq!(report.worst_group, None);
        assert_eq!(report.accuracy_difference, None);
    }
    /// Eight groups of the same people: no pair stands out because it is the widest.
    #[test]
    fn groups_that_are_alike_are_not_told_apart() {
        let names = named(["0", "1", "2", "3", "4", "5", "6", "7"]);
        let classes = ["no".to_owned(), "yes".to_owned()];
        let right = [412.0, 398.0, 405.0, 391.0, 409.0, 402.0, 396.0, 400.0];
        let values = right.iter().flat_map(|right| [*right, 500.0 - right, 500.0 - right, *right]).collect();
        let counts = NoisyCounts { n_groups: 8, n_classes: 2, values, std: 3.0 };
        let report = FairnessReport::of(&counts, &names, &classes);
        assert_eq!(report.worst_group, None);
        assert_eq!(report.accuracy_difference.unwrap().low, 0.0);
        assert_eq!(report.equalized_odds_difference.unwrap().low, 0.0);
        assert!((report.accuracy_difference.unwrap().value.unwrap() - 0.042).abs() < 1e-9);
    }

    /// b and c are told apart, and so nothing is said of the small group below both.
    #[test]
    fn a_small_group_is_not_served_worst_because_others_differ() {
        let names = named(["a", "b", "c"]);
        let classes = ["no".to_owned(), "yes".to_owned()];
        let of = |n: f64, right: f64| [n * right, n * (1.0 - right), n * (1.0 - right), n * right];
        let values = [of(60.0, 0.62), of(5_000.0, 0.64), of(5_000.0, 0.7)].concat();
        let counts = NoisyCounts { n_groups: 3, n_classes: 2, values, std: 0.1 };
        let report = FairnessReport::of(&counts, &names, &classes);
        assert!(!report.groups[0].too_small && report.accuracy_difference.unwrap().low > 0.0);
        assert_eq!(report.worst_group, None);
        let values = [of(600.0, 0.5), of(5_000.0, 0.64), of(5_000.0, 0.7)].concat();
        let report = FairnessReport::of(&NoisyCounts { values, ..counts }, &names, &classes);
        assert_eq!(report.worst_group, Some(names[0].clone()));
    }
}
