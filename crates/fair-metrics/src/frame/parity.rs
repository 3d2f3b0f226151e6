//! The parity measures of binary decisions, under the names that Fairlearn's users know.

use serde::{Deserialize, Serialize};

use super::attribute::Attribute;
use super::metric_frame::{Distance, MetricFrame};
use crate::columns::pairs;
use crate::error::check_len;
use crate::{Confusion, Labels, Measured, MetricError, Predictions};

/// A rate of [`Confusion`], by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BinaryRate {
    /// [`Confusion::selection_rate`].
    SelectionRate,
    /// [`Confusion::true_positive_rate`], also called recall.
    TruePositiveRate,
    /// [`Confusion::false_positive_rate`].
    FalsePositiveRate,
    /// [`Confusion::true_negative_rate`].
    TrueNegativeRate,
    /// [`Confusion::false_negative_rate`].
    FalseNegativeRate,
    /// [`Confusion::accuracy`].
    Accuracy,
    /// [`Confusion::balanced_accuracy`].
    BalancedAccuracy,
    /// [`Confusion::precision`].
    Precision,
    /// [`Confusion::f1`].
    F1,
}

#[cfg(test)]
impl BinaryRate {
    pub(super) const ALL: [Self; 9] = [
        Self::SelectionRate,
        Self::TruePositiveRate,
        Self::FalsePositiveRate,
        Self::TrueNegativeRate,
        Self::FalseNegativeRate,
        Self::Accuracy,
        Self::BalancedAccuracy,
        Self::Precision,
        Self::F1,
    ];
}

impl BinaryRate {
    /// The rate from counts.
    pub fn of(self, counts: &Confusion) -> Measured {
        match self {
            Self::SelectionRate => counts.selection_rate(),
            Self::TruePositiveRate => counts.true_positive_rate(),
            Self::FalsePositiveRate => counts.false_positive_rate(),
            Self::TrueNegativeRate => counts.true_negative_rate(),
            Self::FalseNegativeRate => counts.false_negative_rate(),
            Self::Accuracy => counts.accuracy(),
            Self::BalancedAccuracy => counts.balanced_accuracy(),
            Self::Precision => counts.precision(),
            Self::F1 => counts.f1(),
        }
    }
}

/// How the two rates of equalized odds become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Aggregate {
    /// The worse of the two.
    WorstCase,
    /// Their mean.
    Mean,
}

/// A rate of binary decisions by group; 1 is the positive label, everything else is negative.
///
/// # Errors
/// [`MetricError::LengthMismatch`].
pub fn binary_frame(
    labels: Labels<'_>,
    predictions: Predictions<'_>,
    attributes: &[Attribute],
    controls: &[Attribute],
    rate: BinaryRate,
) -> Result<MetricFrame, MetricError> {
    let answers: Vec<(bool, bool)> = pairs(labels, predictions)?.map(|(l, p)| (*l == 1, *p == 1)).collect();
    if let Some(first) = attributes.first() {
        check_len("attributes", first.values().len(), "labels", answers.len())?;
    }
    MetricFrame::new(attributes, controls, |rows| {
        let mut counts = Confusion::default();
        for &row in rows {
            let (is_positive, predicted_positive) = answers[row];
            counts.add(is_positive, predicted_positive);
        }
        Ok(rate.of(&counts))
    })
}

fn compare(
    labels: Labels<'_>,
    predictions: Predictions<'_>,
    attributes: &[Attribute],
    rate: BinaryRate,
    compare: impl Fn(&super::Stratum) -> Option<f64>,
) -> Result<Option<f64>, MetricError> {
    let frame = binary_frame(labels, predictions, attributes, &[], rate)?;
    Ok(frame.strata().first().and_then(compare))
}

/// Demographic parity difference: greatest difference of the selection rates. Labels play no part.
///
/// # Errors
/// [`MetricError::LengthMismatch`].
///
/// # Example
/// ```
/// use fair_metrics::{Attribute, Distance, Predictions, demographic_parity_difference};
///
/// let sex = Attribute::from_labels("sex", &["f", "f", "m", "m"]);
/// let difference = demographic_parity_difference(Predictions(&[0, 1, 1, 1]), &[sex], Distance::BetweenGroups)?;
/// assert_eq!(difference, Some(0.5));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn demographic_parity_difference(
    predictions: Predictions<'_>,
    attributes: &[Attribute],
    distance: Distance,
) -> Result<Option<f64>, MetricError> {
    compare(Labels(predictions.0), predictions, attributes, BinaryRate::SelectionRate, |stratum| {
        stratum.difference(distance)
    })
}

/// Demographic parity ratio: least ratio of the selection rates.
///
/// # Errors
/// [`MetricError::LengthMismatch`].
pub fn demographic_parity_ratio(
    predictions: Predictions<'_>,
    attributes: &[Attribute],
    distance: Distance,
) -> Result<Option<f64>, MetricError> {
    compare(Labels(predictions.0), predictions, attributes, BinaryRate::SelectionRate, |stratum| {
        stratum.ratio(distance)
    })
}

/// Equalized odds difference: the true-positive and the false-positive rates' differences,
/// aggregated.
///
/// # Edge cases
/// Undefined if either difference is.
///
/// # Errors
/// [`MetricError::LengthMismatch`].
pub fn equalized_odds_difference(
    labels: Labels<'_>,
    predictions: Predictions<'_>,
    attributes: &[Attribute],
    distance: Distance,
    aggregate: Aggregate,
) -> Result<Option<f64>, MetricError> {
    let of = |rate| compare(labels, predictions, attributes, rate, |stratum| stratum.difference(distance));
    Ok(of(BinaryRate::TruePositiveRate)?.zip(of(BinaryRate::FalsePositiveRate)?).map(|(a, b)| match aggregate {
        Aggregate::WorstCase => a.max(b),
        Aggregate::Mean => f64::midpoint(a, b),
    }))
}

/// Equalized odds ratio: the true-positive and the false-positive rates' ratios, aggregated.
///
/// # Edge cases
/// Undefined if either ratio is, for example if no group has a false positive; but the worse of two
/// is 0 if one is, whatever the other one would be.
///
/// # Errors
/// [`MetricError::LengthMismatch`].
pub fn equalized_odds_ratio(
    labels: Labels<'_>,
    predictions: Predictions<'_>,
    attributes: &[Attribute],
    distance: Distance,
    aggregate: Aggregate,
) -> Result<Option<f64>, MetricError> {
    let of = |rate| compare(labels, predictions, attributes, rate, |stratum| stratum.ratio(distance));
    let ratios = [of(BinaryRate::TruePositiveRate)?, of(BinaryRate::FalsePositiveRate)?];
    if aggregate == Aggregate::WorstCase && ratios.contains(&Some(0.0)) {
        return Ok(Some(0.0));
    }
    Ok(ratios[0].zip(ratios[1]).map(|(a, b)| match aggregate {
        Aggregate::WorstCase => a.min(b),
        Aggregate::Mean => f64::midpoint(a, b),
    }))
}

/// Equal opportunity difference: greatest difference of the true-positive rates.
///
/// # Errors
/// [`MetricError::LengthMismatch`].
pub fn equal_opportunity_difference(
    labels: Labels<'_>,
    predictions: Predictions<'_>,
    attributes: &[Attribute],
    distance: Distance,
) -> Result<Option<f64>, MetricError> {
    compare(labels, predictions, attributes, BinaryRate::TruePositiveRate, |stratum| stratum.difference(distance))
}

/// Equal opportunity ratio: least ratio of the true-positive rates.
///
/// # Errors
/// [`MetricError::LengthMismatch`].
pub fn equal_opportunity_ratio(
    labels: Labels<'_>,
    predictions: Predictions<'_>,
    attributes: &[Attribute],
    distance: Distance,
) -> Result<Option<f64>, MetricError> {
    compare(labels, predictions, attributes, BinaryRate::TruePositiveRate, |stratum| stratum.ratio(distance))
}
