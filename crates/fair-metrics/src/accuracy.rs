//! Shares of right answers: over all records, by group, by class.

use crate::columns::pairs;
use crate::error::check_len;
use crate::{Groups, Labels, Measured, MetricError, Predictions};

/// Share of records whose prediction equals the label.
///
/// # Shapes
/// Both `[records]`, class indices.
///
/// # Edge cases
/// Undefined without records.
///
/// # Errors
/// [`MetricError::LengthMismatch`].
///
/// # Example
/// ```
/// use fair_metrics::{Labels, Predictions, accuracy};
///
/// let accuracy = accuracy(Labels(&[0, 1, 0, 0]), Predictions(&[0, 1, 1, 0]))?;
/// assert_eq!(accuracy.value, Some(0.75));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn accuracy(labels: Labels<'_>, predictions: Predictions<'_>) -> Result<Measured, MetricError> {
    let pairs = pairs(labels, predictions)?;
    let n_right = pairs.filter(|(label, prediction)| label == prediction).count();
    Ok(Measured::mean(n_right as f64, labels.0.len()))
}

/// Accuracy of each group.
///
/// # Shapes
/// All are `[records]`; returns `[groups]`.
///
/// # Edge cases
/// Undefined for a group without records.
///
/// # Errors
/// [`MetricError::LengthMismatch`].
///
/// # Example
/// ```
/// use fair_metrics::{Groups, Labels, Predictions, accuracy_by_group};
///
/// let groups = Groups::new(&[0, 0, 1, 1], 3)?;
/// let by_group = accuracy_by_group(Labels(&[0, 1, 0, 0]), Predictions(&[0, 1, 1, 0]), &groups)?;
/// assert_eq!(by_group[0].value, Some(1.0));
/// assert_eq!(by_group[1].value, Some(0.5));
/// assert_eq!(by_group[2].to_string(), "undefined (n = 0)");
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn accuracy_by_group(
    labels: Labels<'_>,
    predictions: Predictions<'_>,
    groups: &Groups<'_>,
) -> Result<Vec<Measured>, MetricError> {
    let pairs = pairs(labels, predictions)?;
    check_len("groups", groups.len(), "labels", pairs.len())?;
    let mut n_right = vec![0_usize; groups.n_groups()];
    for ((label, prediction), &group) in pairs.zip(groups.assignment()) {
        n_right[group] += usize::from(label == prediction);
    }
    Ok(n_right.iter().zip(groups.counts()).map(|(&right, &n)| Measured::mean(right as f64, n)).collect())
}

/// Recall of each class: the share of its records that are predicted as that class.
///
/// # Shapes
/// Both `[records]`; returns `[n_classes]`.
///
/// # Edge cases
/// Undefined for a class without records. A prediction may be any number; one outside the classes
/// is simply wrong.
///
/// # Errors
/// [`MetricError::LengthMismatch`]; [`MetricError::ClassOutOfRange`] for a label of `n_classes` or
/// more.
///
/// # Example
/// ```
/// use fair_metrics::{Labels, Predictions, class_recall};
/// let recall = class_recall(Labels(&[0, 0, 1, 1]), Predictions(&[0, 1, 1, 1]), 2)?;
/// assert_eq!((recall[0].value, recall[1].value), (Some(0.5), Some(1.0)));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn class_recall(
    labels: Labels<'_>,
    predictions: Predictions<'_>,
    n_classes: usize,
) -> Result<Vec<Measured>, MetricError> {
    let pairs = pairs(labels, predictions)?;
    let mut n_right = vec![0_usize; n_classes];
    let mut n = vec![0_usize; n_classes];
    for (index, (&label, prediction)) in pairs.enumerate() {
        let class = label as usize;
        if class >= n_classes {
            return Err(MetricError::ClassOutOfRange { parameter: "labels", index, value: label, n_classes });
        }
        n[class] += 1;
        n_right[class] += usize::from(*prediction == label);
    }
    Ok(n_right.iter().zip(&n).map(|(&right, &n)| Measured::mean(right as f64, n)).collect())
}

/// Macro accuracy: the mean of the class recalls, every class counting the same.
///
/// # Edge cases
/// Undefined if any class is undefined or there is no class: a mean over the remaining classes
/// would be another quantity.
///
/// # Source
/// Zhao 2025, section 5.
///
/// # Example
/// ```
/// use fair_metrics::{macro_accuracy, worst_class_accuracy};
///
/// let recalls = [Some(1.0), Some(0.5)];
/// assert_eq!(macro_accuracy(&recalls), Some(0.75));
/// assert_eq!(worst_class_accuracy(&recalls), Some(0.5));
/// assert_eq!(macro_accuracy(&[Some(1.0), None]), None);
/// ```
pub fn macro_accuracy(class_recalls: &[Option<f64>]) -> Option<f64> {
    let sum = class_recalls.iter().copied().sum::<Option<f64>>()?;
    (!class_recalls.is_empty()).then(|| sum / class_recalls.len() as f64)
}

/// Worst-class accuracy: the smallest class recall.
///
/// # Edge cases
/// Undefined if any class is undefined or there is no class.
///
/// # Source
/// Zhao 2025, section 5.
pub fn worst_class_accuracy(class_recalls: &[Option<f64>]) -> Option<f64> {
    let all: Option<Vec<f64>> = class_recalls.iter().copied().collect();
    all?.into_iter().reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_by_hand() {
        // Class 0: labels at 0, 1, 2, of which 0 and 2 are right: 2/3. Class 1: one label, wrong:
        // 0/1. Class 2: none.
        let recalls = class_recall(Labels(&[0, 0, 0, 1]), Predictions(&[0, 1, 0, 9]), 3).unwrap();
        assert_eq!(recalls[0], Measured { n: 3, value: Some(2.0 / 3.0) });
        assert_eq!(recalls[1], Measured { n: 1, value: Some(0.0) });
        assert_eq!(recalls[2], Measured { n: 0, value: None });
    }

    #[test]
    fn empty_inputs_are_undefined() {
        assert_eq!(accuracy(Labels(&[]), Predictions(&[])).unwrap().value, None);
        assert_eq!(macro_accuracy(&[]), None);
        assert_eq!(worst_class_accuracy(&[]), None);
        assert_eq!(worst_class_accuracy(&[None, Some(0.2)]), None);
    }

    #[test]
    fn errors_name_the_argument() {
        let groups = Groups::new(&[0], 1).unwrap();
        assert!(matches!(
            accuracy_by_group(Labels(&[0, 1]), Predictions(&[0, 1]), &groups),
            Err(MetricError::LengthMismatch { parameter: "groups", length: 1, expected: 2, .. })
        ));
        assert_eq!(
            class_recall(Labels(&[0, 2]), Predictions(&[0, 0]), 2),
            Err(MetricError::ClassOutOfRange { parameter: "labels", index: 1, value: 2, n_classes: 2 })
        );
    }
}
