//! Intervals of everything in a frame of rates.

use serde::{Deserialize, Serialize};

use super::attribute::Attribute;
use super::decisions::Decisions;
use super::metric_frame::{Stratum, check_columns, split};
use super::parity::{BinaryRate, binary_frame};
use crate::error::check_len;
use crate::interval::check_level;
use crate::noisy::{Gap, NoisyRate, Share, largest_difference, least_ratio, mean_of_shares, unknown_groups};
use crate::{Interval, Labels, MetricError, Predictions};

/// Intervals of one stratum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StratumIntervals {
    /// Interval of the overall value.
    pub overall: NoisyRate,
    /// Interval of each group's value, in the frame's order.
    pub by_group: Vec<NoisyRate>,
    /// Interval of the greatest difference between two groups, see
    /// [`largest_difference`](crate::noisy::largest_difference).
    pub difference: Gap,
    /// Interval of the least ratio between two groups, see
    /// [`least_ratio`](crate::noisy::least_ratio).
    pub ratio: Gap,
}

impl<L: PartialEq> Decisions<'_, L> {
    /// Intervals of the frame that [`frame`](Self::frame) makes of the same arguments, one entry per
    /// stratum.
    ///
    /// Shares of records without weight have the exact interval of Clopper and Pearson. Balanced
    /// accuracy and differences are tested as sums of rates ([`noisy`](crate::noisy)), weighted
    /// records by their effective number.
    ///
    /// # Edge cases
    /// A figure of fewer than two records is unknown: its group's interval is [0, 1], and so the
    /// difference may be up to 1 and the ratio down to 0. Whatever an empty class counts as: a group
    /// without one says nothing of its rate. A group without a record, or without weight, is not
    /// compared.
    ///
    /// # Errors
    /// As [`frame`](Self::frame); [`MetricError::InvalidParameter`] unless `0 < level < 1`.
    ///
    /// # Example
    /// ```
    /// use fair_metrics::{Attribute, BinaryRate, Decisions, Labels, Predictions};
    ///
    /// let (labels, predictions) = ([true; 40], [[true; 20], [false; 20]].concat());
    /// let decisions = Decisions::new(Labels(&labels), Predictions(&predictions), &true)?;
    /// let sex = Attribute::from_labels("sex", &[["f"; 20], ["m"; 20]].concat());
    /// let intervals = decisions.intervals(&[sex], &[], BinaryRate::Accuracy, 0.95)?;
    /// let f = intervals[0].by_group[0];
    /// assert!((f.low - 0.8316).abs() < 1e-4 && f.high == 1.0); // 0.025^(1/20)
    /// let difference = intervals[0].difference.all;
    /// assert!(difference.low > 0.8 && difference.high == 1.0);
    /// # Ok::<(), fair_metrics::MetricError>(())
    /// ```
    pub fn intervals(
        &self,
        attributes: &[Attribute],
        controls: &[Attribute],
        rate: BinaryRate,
        level: f64,
    ) -> Result<Vec<StratumIntervals>, MetricError> {
        check_level(level)?;
        let n_records = check_columns(attributes, controls)?;
        check_len("attributes", n_records, "labels", self.len())?;
        let rows: Vec<usize> = (0..n_records).collect();
        let of = |(_, rows): (_, Vec<usize>)| {
            let groups = split(&rows, attributes).into_iter();
            let groups = groups.map(|(_, rows)| self.have_weight(&rows).then(|| self.shares(&rows, rate))).collect();
            stratum(&self.shares(&rows, rate), groups, rate, level)
        };
        Ok(split(&rows, controls).into_iter().map(of).collect())
    }
}

/// Intervals from the shares of all records and of the groups, none of a group without a record.
fn stratum(overall: &[Share], groups: Vec<Option<Vec<Share>>>, rate: BinaryRate, level: f64) -> StratumIntervals {
    let of: fn(&[Share], f64) -> NoisyRate = if rate == BinaryRate::F1 { f1 } else { mean_of_shares };
    let by_group = groups.iter().map(|shares| of(shares.as_deref().unwrap_or_default(), level)).collect();
    let (places, compared): (Vec<usize>, Vec<Vec<Share>>) =
        groups.into_iter().enumerate().filter_map(|(place, shares)| Some((place, shares?))).unzip();
    let (difference, ratio) = if rate == BinaryRate::F1 {
        f1_gaps(compared, level)
    } else {
        let ratio = least_ratio(&compared, level);
        (largest_difference(&[compared], level), ratio)
    };
    let placed = |gap: Gap| Gap { unknown: gap.unknown.into_iter().map(|group| places[group]).collect(), ..gap };
    StratumIntervals { overall: of(overall, level), by_group, difference: placed(difference), ratio: placed(ratio) }
}

/// F1 is the function `2 s/(1 + s)` of the share `s = TP/(TP + FP + FN)`, and its interval that
/// function's of the share's.
fn f1(shares: &[Share], level: f64) -> NoisyRate {
    let of = |share: f64| 2.0 * share / (1.0 + share);
    let share = mean_of_shares(shares, level);
    NoisyRate { value: share.value.map(of), low: of(share.low), high: of(share.high) }
}

/// F1 is no sum of rates: groups are compared by intervals that hold together.
fn f1_gaps(groups: Vec<Vec<Share>>, level: f64) -> (Gap, Gap) {
    let together = 1.0 - (1.0 - level) / groups.len().max(1) as f64;
    let known: Vec<NoisyRate> =
        groups.iter().map(|shares| f1(shares, together)).filter(|rate| rate.value.is_some()).collect();
    let most = |end: fn(&NoisyRate) -> f64| known.iter().map(end).fold(0.0, f64::max);
    let least = |end: fn(&NoisyRate) -> f64| known.iter().map(end).fold(1.0, f64::min);
    let value = |rate: &NoisyRate| rate.value.unwrap_or(0.0);
    let (top, bottom) = (most(value), least(value));
    let difference = NoisyRate {
        value: Some(top - bottom),
        low: (most(|rate| rate.low) - least(|rate| rate.high)).max(0.0),
        high: most(|rate| rate.high) - least(|rate| rate.low),
    };
    // Divided in this order, 0 by 0 is no number, and 1 is less.
    let ratio = NoisyRate {
        value: (top > 0.0).then(|| bottom / top),
        low: least(|rate| rate.low) / most(|rate| rate.high),
        high: (least(|rate| rate.high) / most(|rate| rate.low)).min(1.0),
    };
    let unknown = unknown_groups(&[groups]);
    (Gap::of_differences(known.len(), difference, unknown.clone()), Gap::of_ratios(known.len(), ratio, unknown))
}

/// Exact intervals of a rate in one stratum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RateIntervals {
    /// Interval of the overall rate.
    pub overall: Interval,
    /// Interval of each group's rate, in the frame's order.
    pub by_group: Vec<Interval>,
}

/// Clopper–Pearson intervals of the frame that [`binary_frame`] makes of the same arguments, one
/// per stratum.
///
/// They are right for the smallest groups too: three right answers of three leave an accuracy of
/// 0.3 possible, where a bootstrap has `[1, 1]`.
///
/// # Edge cases
/// Without a record every rate is possible: `[0, 1]`.
///
/// # Errors
/// As [`binary_frame`]; [`MetricError::InvalidParameter`] unless `0 < level < 1`, and for what is no
/// share of records: balanced accuracy, F1.
///
/// # Example
/// ```
/// use fair_metrics::{Attribute, BinaryRate, Labels, Predictions, binary_intervals};
///
/// let sex = Attribute::from_labels("sex", &["f", "f", "f", "m", "m"]);
/// let (labels, predictions) = (Labels(&[1, 0, 1, 1, 0]), Predictions(&[1, 0, 1, 0, 0]));
/// let intervals = binary_intervals(labels, predictions, &[sex], &[], BinaryRate::Accuracy, 0.95)?;
/// let f = intervals[0].by_group[0];
/// assert!((f.low - 0.292).abs() < 1e-3 && f.high == 1.0); // 0.025^(1/3)
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn binary_intervals(
    labels: Labels<'_>,
    predictions: Predictions<'_>,
    attributes: &[Attribute],
    controls: &[Attribute],
    rate: BinaryRate,
    level: f64,
) -> Result<Vec<RateIntervals>, MetricError> {
    if matches!(rate, BinaryRate::BalancedAccuracy | BinaryRate::F1) {
        let accepted = "a share of the records: not balanced accuracy, not F1";
        return Err(MetricError::invalid("rate", f64::NAN, accepted));
    }
    let frame = binary_frame(labels, predictions, attributes, controls, rate)?;
    let of = |stratum: &Stratum| {
        let by_group = stratum.by_group.iter().map(|group| group.measured.rate_interval(level));
        Ok(RateIntervals {
            overall: stratum.overall.rate_interval(level)?,
            by_group: by_group.collect::<Result<_, _>>()?,
        })
    };
    frame.strata().iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each group's labels and predictions from its true positives, false positives, true negatives
    /// and false negatives.
    fn intervals(groups: &[[usize; 4]], rate: BinaryRate) -> StratumIntervals {
        let (mut labels, mut predictions, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for (group, cells) in groups.iter().enumerate() {
            for (n, (label, prediction)) in
                cells.iter().zip([(true, true), (false, true), (false, false), (true, false)])
            {
                labels.extend(vec![label; *n]);
                predictions.extend(vec![prediction; *n]);
                names.extend(vec![group; *n]);
            }
        }
        let levels = (0..groups.len()).map(|group| group.to_string());
        let attribute = Attribute::new("group", &names, levels).unwrap();
        let decisions = Decisions::new(Labels(&labels), Predictions(&predictions), &true).unwrap();
        decisions.intervals(&[attribute], &[], rate, 0.95).unwrap().remove(0)
    }

    #[test]
    fn groups_that_are_alike_may_have_no_difference() {
        for rate in BinaryRate::ALL {
            let found = intervals(&[[400, 100, 400, 100], [400, 100, 400, 100]], rate);
            let (difference, ratio) = (found.difference.all, found.ratio.all);
            assert_eq!((difference.value, difference.low), (Some(0.0), 0.0), "{rate:?}");
            assert_eq!((ratio.value, ratio.high), (Some(1.0), 1.0), "{rate:?}");
            assert!(difference.high > 0.0 && difference.high < 0.2 && ratio.low > 0.3, "{rate:?}: {found:?}");
        }
    }

    #[test]
    fn ends_stay_in_the_range_and_surround_the_value() {
        for rate in BinaryRate::ALL {
            for groups in [[[3, 0, 3, 0], [0, 3, 0, 3]], [[1, 1, 1, 1], [30, 0, 30, 0]], [[2, 0, 0, 0], [2, 2, 2, 2]]] {
                let found = intervals(&groups, rate);
                let all = [found.overall, found.difference.all, found.ratio.all];
                for interval in all.iter().chain(&found.by_group) {
                    assert!(0.0 <= interval.low && interval.low <= interval.high && interval.high <= 1.0, "{rate:?}");
                    assert!(interval.value.is_none_or(|value| interval.contains(value)), "{rate:?}: {interval:?}");
                }
            }
        }
    }

    #[test]
    fn one_record_leaves_the_others_known() {
        let found = intervals(&[[20, 10, 20, 10], [15, 15, 15, 15], [1, 0, 0, 0]], BinaryRate::SelectionRate);
        assert_eq!(found.by_group[2], NoisyRate::UNKNOWN);
        assert_eq!(found.difference.unknown, [2]);
        assert_eq!((found.difference.all.value, found.difference.all.high), (None, 1.0));
        assert!(found.difference.known.unwrap().high < 0.4 && found.by_group[0].high < 1.0);
    }

    /// Among the four intersections, one has no record and one has none with weight.
    #[test]
    fn groups_without_records_are_not_compared() {
        let sex = Attribute::from_labels("sex", &["f", "f", "f", "m", "m"]);
        let place = Attribute::from_labels("place", &["n", "n", "s", "n", "n"]);
        let labels = [true, false, true, true, true];
        let decisions = Decisions::new(Labels(&labels), Predictions(&labels), &true).unwrap();
        let weighted = decisions.with_weights(&[1.0, 1.0, 0.0, 1.0, 1.0]).unwrap();
        let intervals = |decisions: Decisions<'_, bool>| {
            decisions.intervals(&[sex.clone(), place.clone()], &[], BinaryRate::Accuracy, 0.95).unwrap().remove(0)
        };
        assert_eq!(intervals(decisions).difference.unknown, [1]);
        let found = intervals(weighted);
        assert_eq!((found.difference.unknown.len(), found.difference.known.is_some()), (0, true));
        assert_eq!((found.by_group[1], found.by_group[3]), (NoisyRate::UNKNOWN, NoisyRate::UNKNOWN));
        let short = Attribute::from_labels("sex", &["f"]);
        assert!(decisions.intervals(&[short], &[], BinaryRate::Accuracy, 0.95).is_err());
    }

    #[test]
    fn one_group_alone_is_compared_with_none() {
        let found = intervals(&[[0, 0, 30, 0], [10, 5, 10, 5]], BinaryRate::TruePositiveRate);
        assert_eq!((found.difference.known, found.ratio.known), (None, None));
        assert_eq!(found.difference.all, NoisyRate::UNKNOWN);
    }

    /// 20 true positives and 10 wrong answers: F1 is 40/50, and 2/3 of 30 is 0.472 to 0.827 by
    /// Clopper and Pearson.
    #[test]
    fn f1_is_a_function_of_a_share() {
        let found = intervals(&[[20, 5, 9, 5], [20, 5, 70, 5]], BinaryRate::F1).by_group;
        assert!((found[0].value.unwrap() - 0.8).abs() < 1e-12);
        assert!((found[0].low - 2.0 * 0.4719 / 1.4719).abs() < 1e-3, "{found:?}");
        assert!((found[0].high - 2.0 * 0.8271 / 1.8271).abs() < 1e-3, "{found:?}");
        assert_eq!(found[0], found[1]);
    }
}
