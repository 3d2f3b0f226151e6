//! Binary decisions with labels of any type, weights, and a choice where a class is empty.

use serde::{Deserialize, Serialize};

use super::attribute::Attribute;
use super::metric_frame::MetricFrame;
use super::parity::BinaryRate;
use crate::error::check_len;
use crate::{Labels, Measured, MetricError, Predictions};

/// What a rate is where its denominator is 0.
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
    /// True positives, false positives, true negatives, false negatives: weight and records.
    kinds: [(f64, usize); 4],
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
    /// [`MetricError::LengthMismatch`]; [`MetricError::OutOfRange`] for a weight that is negative
    /// or not finite.
    pub fn with_weights(mut self, weights: &'a [f64]) -> Result<Self, MetricError> {
        check_len("weights", weights.len(), "labels", self.labels.len())?;
        if let Some(&value) = weights.iter().find(|weight| !(**weight >= 0.0 && weight.is_finite())) {
            return Err(MetricError::OutOfRange { name: "weights", value, accepted: "finite numbers of at least 0" });
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
            cells.kinds[kind].0 += weight;
            cells.kinds[kind].1 += usize::from(weight > 0.0);
        }
        cells.rate(rate, self.empty_class)
    }
}

impl Cells {
    fn rate(&self, rate: BinaryRate, empty: EmptyClass) -> Measured {
        let ratio = |part: &[usize], whole: &[usize]| {
            let weight = |kinds: &[usize]| kinds.iter().map(|kind| self.kinds[*kind].0).sum::<f64>();
            let n = whole.iter().map(|kind| self.kinds[*kind].1).sum();
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

    const RATES: [BinaryRate; 9] = [
        BinaryRate::SelectionRate,
        BinaryRate::TruePositiveRate,
        BinaryRate::FalsePositiveRate,
        BinaryRate::TrueNegativeRate,
        BinaryRate::FalseNegativeRate,
        BinaryRate::Accuracy,
        BinaryRate::BalancedAccuracy,
        BinaryRate::Precision,
        BinaryRate::F1,
    ];

    #[test]
    fn without_weights_they_are_the_rates_of_counts() {
        let labels = [1_u32, 1, 0, 0, 1, 0, 1];
        let predictions = [1_u32, 0, 1, 0, 1, 0, 0];
        let counts = Confusion::count(Labels(&labels), Predictions(&predictions), 1).unwrap();
        let decisions = Decisions::new(Labels(&labels), Predictions(&predictions), &1).unwrap();
        for rate in RATES {
            assert_eq!(decisions.rate(rate), rate.of(&counts), "{rate:?}");
        }
    }

    #[test]
    fn whole_weights_are_repetitions() {
        let (labels, predictions) = (["+", "+", "-", "-"], ["+", "-", "+", "-"]);
        let rows = [0, 0, 0, 1, 2, 2, 3, 3, 3, 3];
        let plain = Decisions::new(Labels(&labels), Predictions(&predictions), &"+").unwrap();
        let weighted = plain.with_weights(&[3.0, 1.0, 2.0, 4.0]).unwrap();
        for rate in RATES {
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
