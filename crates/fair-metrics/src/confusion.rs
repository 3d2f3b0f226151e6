//! Counts of right and wrong answers for one class against the rest, and the rates made of them.

use serde::{Deserialize, Serialize};

use crate::columns::pairs;
use crate::{Labels, Measured, MetricError, Predictions};

/// How often a class was predicted and how often it was true.
///
/// Every rate is undefined where its denominator is zero. Fairlearn returns 0 there.
///
/// # Example
/// ```
/// use fair_metrics::{Confusion, Labels, Predictions};
///
/// let counts = Confusion::count(Labels(&[1, 1, 0, 0, 0]), Predictions(&[1, 0, 1, 0, 0]), 1)?;
/// assert_eq!(counts.true_positive_rate().value, Some(0.5));
/// assert_eq!(counts.false_positive_rate().value, Some(1.0 / 3.0));
/// assert_eq!(counts.selection_rate().value, Some(0.4));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Confusion {
    /// Records of the class, predicted as it.
    pub true_positives: usize,
    /// Other records, predicted as the class.
    pub false_positives: usize,
    /// Other records, not predicted as the class.
    pub true_negatives: usize,
    /// Records of the class, not predicted as it.
    pub false_negatives: usize,
}

impl Confusion {
    /// Counts all records; `positive` is the class, every other value is the rest.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`].
    pub fn count(labels: Labels<'_>, predictions: Predictions<'_>, positive: u32) -> Result<Self, MetricError> {
        let mut counts = Self::default();
        for (label, prediction) in pairs(labels, predictions)? {
            counts.add(*label == positive, *prediction == positive);
        }
        Ok(counts)
    }

    /// Adds one record.
    pub fn add(&mut self, is_positive: bool, predicted_positive: bool) {
        match (is_positive, predicted_positive) {
            (true, true) => self.true_positives += 1,
            (false, true) => self.false_positives += 1,
            (false, false) => self.true_negatives += 1,
            (true, false) => self.false_negatives += 1,
        }
    }

    /// Records of the class.
    pub fn positives(&self) -> usize {
        self.true_positives + self.false_negatives
    }

    /// Records of the rest.
    pub fn negatives(&self) -> usize {
        self.true_negatives + self.false_positives
    }

    /// All records.
    pub fn total(&self) -> usize {
        self.positives() + self.negatives()
    }

    /// Share of records predicted as the class.
    pub fn selection_rate(&self) -> Measured {
        rate(self.true_positives + self.false_positives, self.total())
    }

    /// Share of the class that is predicted as it; also called recall, and the subject of *equal
    /// opportunity*.
    pub fn true_positive_rate(&self) -> Measured {
        rate(self.true_positives, self.positives())
    }

    /// Share of the rest that is predicted as the class.
    pub fn false_positive_rate(&self) -> Measured {
        rate(self.false_positives, self.negatives())
    }

    /// Share of the rest that is not predicted as the class.
    pub fn true_negative_rate(&self) -> Measured {
        rate(self.true_negatives, self.negatives())
    }

    /// Share of the class that is not predicted as it.
    pub fn false_negative_rate(&self) -> Measured {
        rate(self.false_negatives, self.positives())
    }

    /// Share of right answers.
    pub fn accuracy(&self) -> Measured {
        rate(self.true_positives + self.true_negatives, self.total())
    }

    /// Mean of the true-positive and the true-negative rate; undefined unless both are defined.
    pub fn balanced_accuracy(&self) -> Measured {
        let value = self.true_positive_rate().value.zip(self.true_negative_rate().value);
        Measured { n: self.total(), value: value.map(|(a, b)| f64::midpoint(a, b)) }
    }

    /// Share of the records predicted as the class that belong to it.
    pub fn precision(&self) -> Measured {
        rate(self.true_positives, self.true_positives + self.false_positives)
    }

    /// Harmonic mean of precision and recall, `2·TP / (2·TP + FP + FN)`; undefined if the class is
    /// neither true nor predicted.
    pub fn f1(&self) -> Measured {
        let denominator = 2 * self.true_positives + self.false_positives + self.false_negatives;
        let value = (denominator > 0).then(|| 2.0 * self.true_positives as f64 / denominator as f64);
        Measured { n: self.total(), value }
    }
}

fn rate(part: usize, whole: usize) -> Measured {
    Measured::mean(part as f64, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_by_hand() {
        let counts = Confusion { true_positives: 6, false_positives: 2, true_negatives: 8, false_negatives: 4 };
        assert_eq!(counts.true_positive_rate(), Measured { n: 10, value: Some(0.6) });
        assert_eq!(counts.false_negative_rate().value, Some(0.4));
        assert_eq!(counts.true_negative_rate().value, Some(0.8));
        assert_eq!(counts.balanced_accuracy().value, Some(0.7));
        assert_eq!(counts.precision(), Measured { n: 8, value: Some(0.75) });
        assert_eq!(counts.f1().value, Some(12.0 / 18.0));
        assert_eq!(counts.accuracy(), Measured { n: 20, value: Some(0.7) });
    }

    #[test]
    fn a_zero_denominator_is_undefined() {
        let negatives_only = Confusion { true_negatives: 3, ..Confusion::default() };
        assert_eq!(negatives_only.true_positive_rate(), Measured { n: 0, value: None });
        assert_eq!(negatives_only.precision().value, None);
        assert_eq!(negatives_only.f1().value, None);
        assert_eq!(negatives_only.balanced_accuracy().value, None);
        assert_eq!(negatives_only.selection_rate().value, Some(0.0));
    }
}
