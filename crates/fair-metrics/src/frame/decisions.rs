//! Binary decisions with labels of any type, weights, and a choice where a class is empty.

use serde::{Deserialize, Serialize};

use super::attribute::Attribute;
use super::metric_frame::MetricFrame;
use super::parity::BinaryRate;
use crate::error::check_len;
use crate::noisy::Share;
use crate::{Labels, Measured, MetricError, Predictions};

/// The value of a rate whose denominator is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmptyClass {
    /// Undefined, and so is every comparison with it.
    #[default]
    Undefined,
    /// 0, which is compared like any other value: Fairlearn's convention. Balanced accuracy is the
    /// recall of the class that has records: scikit-learn's.
    Zero,
}

/// Labels and predictions of any type, one of whose values is the positive class.
///
/// # Edge cases
/// A record of weight 0 does not count. The `n` of a [`Measured`] is the number of records behind
/// the denominator, not their weight.
///
/// # Example
/// ```
/// use fair_metrics::{Attribute, BinaryRate, Decisions, Distance, EmptyClass, Labels, Predictions};
///
/// let (labels, predictions) = (["yes", "no", "yes", "no"], ["yes", "no", "no", "yes"]);
/// let decisions = Decisions::new(Labels(&labels), Predictions(&predictions), &"yes")?
///     .with_weights(&[1.0, 1.0, 2.0, 1.0])?
///     .with_empty_class(EmptyClass::Zero);
/// assert_eq!(decisions.rate(BinaryRate::TruePositiveRate).value, Some(1.0 / 3.0));
/// let group = Attribute::from_labels("group", &["a", "a", "b", "b"]);
/// let frame = decisions.frame(&[group], &[], BinaryRate::Accuracy)?;
/// assert_eq!(frame.strata()[0].difference(Distance::BetweenGroups), Some(1.0));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Decisions<'a, L> {
    labels: &'a [L],
    predictions: &'a [L],
    positive: &'a L,
    weights: Option<&'a [f64]>,
    empty_class: EmptyClass,
}

/// Weights and numbers of the records of the four kinds.
#[derive(Debug, Clone, Copy, Default)]
struct Cells {
    /// True positives, false positives, true negatives, false negatives.
    kinds: [Cell; 4],
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    weight: f64,
    /// Sum of the squares of the weights.
    squares: f64,
    records: usize,
}

const TP: usize = 0;
const FP: usize = 1;
const TN: usize = 2;
const FN: usize = 3;

impl<'a, L: PartialEq> Decisions<'a, L> {
    /// Every label that is not `positive` is negative.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`].
    pub fn new(labels: Labels<'a, L>, predictions: Predictions<'a, L>, positive: &'a L) -> Result<Self, MetricError> {
        check_len("predictions", predictions.0.len(), "labels", labels.0.len())?;
        Ok(Self {
            labels: labels.0,
            predictions: predictions.0,
            positive,
            weights: None,
            empty_class: EmptyClass::default(),
        })
    }

    /// Weighs every record.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`]; [`MetricError::InvalidParameter`] for a weight that is negative
    /// or not finite.
    pub fn with_weights(mut self, weights: &'a [f64]) -> Result<Self, MetricError> {
        check_len("weights", weights.len(), "labels", self.labels.len())?;
        if let Some(&value) = weights.iter().find(|weight| !(**weight >= 0.0 && weight.is_finite())) {
            return Err(MetricError::invalid("weights", value, "finite numbers of at least 0"));
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// Chooses what a rate is without a denominator.
    #[must_use]
    pub const fn with_empty_class(mut self, empty_class: EmptyClass) -> Self {
        self.empty_class = empty_class;
        self
    }

    /// A rate over all records.
    pub fn rate(&self, rate: BinaryRate) -> Measured {
        self.on_rows(0..self.labels.len(), rate)
    }

    /// A rate over all records, by group, and by group within strata.
    ///
    /// # Errors
    /// As [`MetricFrame::new`].
    pub fn frame(
        &self,
        attributes: &[Attribute],
        controls: &[Attribute],
        rate: BinaryRate,
    ) -> Result<MetricFrame, MetricError> {
        if let Some(first) = attributes.first() {
            check_len("attributes", first.values().len(), "labels", self.labels.len())?;
        }
        MetricFrame::new(attributes, controls, |rows| Ok(self.on_rows(rows.iter().copied(), rate)))
    }

    /// A rate over some of the records, which a bootstrap may repeat; rows beyond the last record
    /// do not count.
    pub fn on_rows(&self, rows: impl IntoIterator<Item = usize>, rate: BinaryRate) -> Measured {
        self.cells(rows).rate(rate, self.empty_class)
    }

    /// The shares whose mean the rate is, on some of the records: one, or two of balanced accuracy.
    /// For F1 it is the share `TP/(TP + FP + FN)`, of which F1 is a function.
    ///
    /// Weighted records count as the smaller number of equal records that vary as much.
    ///
    /// # Source
    /// Effective numbers of records: Kish 1965; of a share in (0, 1) no more than its variance
    /// leaves, Korn and Graubard 1998.
    pub(super) fn shares(&self, rows: &[usize], rate: BinaryRate) -> Vec<Share> {
        self.cells(rows.iter().copied()).shares(rate)
    }

    /// Whether a record of these counts.
    pub(super) fn have_weight(&self, rows: &[usize]) -> bool {
        rows.iter().any(|row| self.weights.is_none_or(|weights| weights.get(*row).is_some_and(|weight| *weight > 0.0)))
    }

    /// Records.
    pub(super) const fn len(&self) -> usize {
        self.labels.len()
    }

    fn cells(&self, rows: impl IntoIterator<Item = usize>) -> Cells {
        let mut cells = Cells::default();
        for row in rows {
            let (Some(label), Some(prediction)) = (self.labels.get(row), self.predictions.get(row)) else {
                continue;
            };
            let weight = self.weights.map_or(1.0, |weights| weights[row]);
            let kind = match (label == self.positive, prediction == self.positive) {
                (true, true) => TP,
                (false, true) => FP,
                (false, false) => TN,
                (true, false) => FN,
            };
            let cell = &mut cells.kinds[kind];
            cell.weight += weight;
            cell.squares += weight * weight;
            cell.records += usize::from(weight > 0.0);
        }
        cells
    }
}

impl Cells {
    fn shares(&self, rate: BinaryRate) -> Vec<Share> {
        match rate {
            BinaryRate::SelectionRate => vec![self.share(&[TP, FP], &[TN, FN])],
            BinaryRate::TruePositiveRate => vec![self.share(&[TP], &[FN])],
            BinaryRate::FalsePositiveRate => vec![self.share(&[FP], &[TN])],
            BinaryRate::TrueNegativeRate => vec![self.share(&[TN], &[FP])],
            BinaryRate::FalseNegativeRate => vec![self.share(&[FN], &[TP])],
            BinaryRate::Accuracy => vec![self.share(&[TP, TN], &[FP, FN])],
            BinaryRate::Precision => vec![self.share(&[TP], &[FP])],
            BinaryRate::BalancedAccuracy => vec![self.share(&[TP], &[FN]), self.share(&[TN], &[FP])],
            BinaryRate::F1 => vec![self.share(&[TP], &[FP, FN])],
        }
    }

    fn share(&self, hits: &[usize], others: &[usize]) -> Share {
        let sum = |kinds: &[usize], of: fn(&Cell) -> f64| kinds.iter().map(|kind| of(&self.kinds[*kind])).sum::<f64>();
        let (a, b) = (sum(hits, |cell| cell.weight), sum(others, |cell| cell.weight));
        let (a2, b2) = (sum(hits, |cell| cell.squares), sum(others, |cell| cell.squares));
        if a + b <= 0.0 {
            return Share::exact(0.0, 0.0);
        }
        let rate = a / (a + b);
        let kish = (a + b) * (a + b) / (a2 + b2);
        let variance = ((1.0 - rate).powi(2) * a2 + rate.powi(2) * b2) / (a + b).powi(2);
        let n = if a > 0.0 && b > 0.0 { kish.min(rate * (1.0 - rate) / variance) } else { kish };
        Share::exact(rate * n, (1.0 - rate) * n)
    }

    fn rate(&self, rate: BinaryRate, empty: EmptyClass) -> Measured {
        let ratio = |part: &[usize], whole: &[usize]| {
            let weight = |kinds: &[usize]| kinds.iter().map(|kind| self.kinds[*kind].weight).sum::<f64>();
            let n = whole.iter().map(|kind| self.kinds[*kind].records).sum();
            let value = match (weight(whole) > 0.0, empty) {
                (true, _) => Some(weight(part) / weight(whole)),
                (false, EmptyClass::Zero) => Some(0.0),
                (false, EmptyClass::Undefined) => None,
            };
            Measured { n, value }
        };
        match rate {
            BinaryRate::SelectionRate => ratio(&[TP, FP], &[TP, FP, TN, FN]),
            BinaryRate::TruePositiveRate => ratio(&[TP], &[TP, FN]),
            BinaryRate::FalsePositiveRate => ratio(&[FP], &[FP, TN]),
            BinaryRate::TrueNegativeRate => ratio(&[TN], &[FP, TN]),
            BinaryRate::FalseNegativeRate => ratio(&[FN], &[TP, FN]),
            BinaryRate::Accuracy => ratio(&[TP, TN], &[TP, FP, TN, FN]),
            BinaryRate::Precision => ratio(&[TP], &[TP, FP]),
            BinaryRate::BalancedAccuracy => {
                let (positive, negative) = (ratio(&[TP], &[TP, FN]), ratio(&[TN], &[FP, TN]));
                let value = match (positive.n, negative.n, empty) {
                    (1.., 0, EmptyClass::Zero) => positive.value,
                    (0, 1.., EmptyClass::Zero) => negative.value,
                    _ => positive.value.zip(negative.value).map(|(a, b)| f64::midpoint(a, b)),
                };
                Measured { n: positive.n + negative.n, value }
            }
            // 2·TP / (2·TP + FP + FN): true positives stand twice on either side.
            BinaryRate::F1 => Measured { n: ratio(&[], &[TP, FP, TN, FN]).n, ..ratio(&[TP, TP], &[TP, TP, FP, FN]) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Confusion;

    #[test]
    fn without_weights_they_are_the_rates_of_counts() {
        let labels = [1_u32, 1, 0, 0, 1, 0, 1];
        let predictions = [1_u32, 0, 1, 0, 1, 0, 0];
        let counts = Confusion::count(Labels(&labels), Predictions(&predictions), 1).unwrap();
        let decisions = Decisions::new(Labels(&labels), Predictions(&predictions), &1).unwrap();
        for rate in BinaryRate::ALL {
            assert_eq!(decisions.rate(rate), rate.of(&counts), "{rate:?}");
        }
    }

    #[test]
    fn shares_are_counts_and_weights_make_them_fewer() {
        let (labels, predictions) = ([true, true, true, false, false], [true, true, false, false, true]);
        let rows = [0, 1, 2, 3, 4];
        let plain = Decisions::new(Labels(&labels), Predictions(&predictions), &true).unwrap();
        let close = |found: &[Share], expected: &[(f64, f64)]| {
            let pairs = found.iter().zip(expected);
            found.len() == expected.len()
                && pairs.clone().all(|(a, b)| (a.hits - b.0).abs() < 1e-12 && (a.others - b.1).abs() < 1e-12)
        };
        assert!(close(&plain.shares(&rows, BinaryRate::BalancedAccuracy), &[(2.0, 1.0), (1.0, 1.0)]));
        assert!(close(&plain.shares(&rows, BinaryRate::F1), &[(2.0, 2.0)]));
        let scaled = plain.with_weights(&[7.0; 5]).unwrap();
        assert!(close(&scaled.shares(&rows, BinaryRate::Accuracy), &[(3.0, 2.0)]));
        // Hits weigh 3 and 1: the rate is 4/5, its variance (0.04·10 + 0.64·1)/25 = 0.0416.
        let weighted = plain.with_weights(&[3.0, 1.0, 1.0, 1.0, 1.0]).unwrap();
        let n = (25.0_f64 / 11.0).min(0.16 / 0.0416);
        assert!(close(&weighted.shares(&rows, BinaryRate::TruePositiveRate), &[(0.8 * n, 0.2 * n)]));
    }

    #[test]
    fn whole_weights_are_repetitions() {
        let (labels, predictions) = (["+", "+", "-", "-"], ["+", "-", "+", "-"]);
        let rows = [0, 0, 0, 1, 2, 2, 3, 3, 3, 3];
        let plain = Decisions::new(Labels(&labels), Predictions(&predictions), &"+").unwrap();
        let weighted = plain.with_weights(&[3.0, 1.0, 2.0, 4.0]).unwrap();
        for rate in BinaryRate::ALL {
            assert_eq!(weighted.rate(rate).value, plain.on_rows(rows, rate).value, "{rate:?}");
        }
    }

    #[test]
    fn empty_classes_are_as_chosen() {
        let (labels, predictions) = ([false, false], [false, false]);
        let decisions = Decisions::new(Labels(&labels), Predictions(&predictions), &true).unwrap();
        assert_eq!(decisions.rate(BinaryRate::TruePositiveRate), Measured { n: 0, value: None });
        let zero = decisions.with_empty_class(EmptyClass::Zero);
        assert_eq!(zero.rate(BinaryRate::TruePositiveRate).value, Some(0.0));
        assert_eq!(zero.rate(BinaryRate::F1).value, Some(0.0));
        let half = Decisions::new(Labels(&labels), Predictions(&[false, true]), &true).unwrap();
        assert_eq!(half.rate(BinaryRate::BalancedAccuracy).value, None);
        let zero = half.with_empty_class(EmptyClass::Zero);
        assert_eq!(zero.rate(BinaryRate::BalancedAccuracy).value, Some(0.5));
        assert_eq!(zero.with_weights(&[0.0, 0.0]).unwrap().rate(BinaryRate::BalancedAccuracy).value, Some(0.0));
        assert!(decisions.with_weights(&[1.0, -1.0]).is_err());
        assert!(decisions.with_weights(&[1.0]).is_err());
    }
}
