//! Bootstrap intervals of everything in a frame.

use rand::Rng;
use serde::{Deserialize, Serialize};

use super::attribute::Attribute;
use super::metric_frame::{Distance, MetricFrame, Stratum};
use super::parity::{BinaryRate, binary_frame};
use crate::bootstrap::{BootstrapInterval, bootstrap_parts};
use crate::{Interval, Labels, Measured, MetricError, Predictions};

/// Intervals of one stratum; `None` where the statistic was undefined in every resample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StratumIntervals {
    /// Of the overall value.
    pub overall: Option<BootstrapInterval>,
    /// Of each group's value, in the frame's order.
    pub by_group: Vec<Option<BootstrapInterval>>,
    /// Of the greatest difference between two groups. It cannot be negative, so its interval does
    /// not reach below zero even if the groups are alike: compare it with what is acceptable, not
    /// with zero.
    pub difference: Option<BootstrapInterval>,
    /// Of the least ratio between two groups.
    pub ratio: Option<BootstrapInterval>,
}

/// Bootstrap intervals of the frame that [`MetricFrame::new`] makes of the same arguments, one per
/// stratum.
///
/// Each is expanded for the number of records that it is about: a small group's for that group's, a
/// difference's and a ratio's for the smallest group's. A group whose records all have one value
/// gets an interval without width, however few they are. For shares of records [`binary_intervals`]
/// and [`Measured::rate_interval`] are exact there too.
///
/// # Errors
/// As [`MetricFrame::new`] and [`bootstrap`](crate::bootstrap).
///
/// # Example
/// ```
/// use fair_metrics::{Attribute, Measured, frame_intervals};
/// use rand::SeedableRng;
///
/// let right = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0];
/// let sex = Attribute::from_labels("sex", &["f", "f", "f", "f", "m", "m", "m", "m"]);
/// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
/// let intervals = frame_intervals(&[sex], &[], 500, 0.9, &mut rng, |rows| {
///     Ok(Measured::mean(rows.iter().map(|row| right[*row]).sum(), rows.len()))
/// })?;
/// let f = intervals[0].by_group[0].unwrap();
/// assert!(f.low <= 0.75 && 0.75 <= f.high);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn frame_intervals(
    attributes: &[Attribute],
    controls: &[Attribute],
    n_resamples: usize,
    level: f64,
    rng: &mut impl Rng,
    metric: impl Fn(&[usize]) -> Result<Measured, MetricError>,
) -> Result<Vec<StratumIntervals>, MetricError> {
    let frame = MetricFrame::new(attributes, controls, &metric)?;
    let n_records = attributes.first().map_or(0, |attribute| attribute.values().len());
    let sizes: Vec<usize> = frame.strata().iter().flat_map(sizes).collect();
    let intervals = bootstrap_parts((n_records, &sizes), n_resamples, level, rng, |rows| {
        let frame = MetricFrame::on_rows(rows, attributes, controls, &metric)?;
        Ok(frame.strata().iter().flat_map(statistics).collect())
    })?;
    let within = |interval: Option<BootstrapInterval>, greatest: f64| {
        interval.map(|interval| BootstrapInterval {
            low: interval.low.max(0.0),
            high: interval.high.min(greatest),
            ..interval
        })
    };
    let mut intervals = intervals.into_iter();
    let mut next = || intervals.next().flatten();
    Ok(frame
        .strata()
        .iter()
        .map(|stratum| StratumIntervals {
            overall: next(),
            by_group: stratum.by_group.iter().map(|_| next()).collect(),
            difference: within(next(), f64::INFINITY),
            ratio: if stratum.by_group.iter().all(|group| group.measured.value.is_none_or(|value| value >= 0.0)) {
                within(next(), 1.0)
            } else {
                next()
            },
        })
        .collect())
}

/// Exact intervals of a rate in one stratum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateIntervals {
    /// Of the overall rate.
    pub overall: Interval,
    /// Of each group's rate, in the frame's order.
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
/// As [`binary_frame`]; [`MetricError::OutOfRange`] unless `0 < level < 1`, and for what is no
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
        return Err(MetricError::OutOfRange { name: "rate", value: f64::NAN, accepted });
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

/// A stratum's statistics in the order in which [`frame_intervals`] takes them back.
fn statistics(stratum: &Stratum) -> Vec<Option<f64>> {
    std::iter::once(stratum.overall.value)
        .chain(stratum.by_group.iter().map(|group| group.measured.value))
        .chain([stratum.difference(Distance::BetweenGroups), stratum.ratio(Distance::BetweenGroups)])
        .collect()
}

/// Of how many records each of them is.
fn sizes(stratum: &Stratum) -> Vec<usize> {
    let groups = stratum.by_group.iter().map(|group| group.measured.n);
    let smallest = groups.clone().filter(|n| *n > 0).min().unwrap_or(0);
    std::iter::once(stratum.overall.n).chain(groups).chain([smallest; 2]).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn every_statistic_gets_its_own_interval() {
        // Constant groups: whatever is drawn, group a is 1, group b is 3, and an empty level stays
        // undefined.
        let group = Attribute::new("group", &[[0; 20], [1; 20]].concat(), ["a", "b", "c"]).unwrap();
        let values = [[1.0; 20], [3.0; 20]].concat();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let intervals = frame_intervals(&[group], &[], 200, 0.9, &mut rng, |rows| {
            Ok(Measured::mean(rows.iter().map(|row| values[*row]).sum(), rows.len()))
        })
        .unwrap();
        let [stratum] = &intervals[..] else { panic!("{intervals:?}") };
        let ends = |interval: Option<BootstrapInterval>| interval.map(|interval| (interval.low, interval.high));
        assert_eq!(ends(stratum.by_group[0]), Some((1.0, 1.0)));
        assert_eq!(ends(stratum.by_group[1]), Some((3.0, 3.0)));
        assert_eq!(stratum.by_group[2], None);
        assert_eq!(ends(stratum.difference), Some((2.0, 2.0)));
        assert_eq!(ends(stratum.ratio), Some((1.0 / 3.0, 1.0 / 3.0)));
        let overall = stratum.overall.unwrap();
        assert!(overall.low < 2.0 && 2.0 < overall.high);
    }
}
