//! Labels and predictions, as types that cannot be taken for each other.

use crate::MetricError;
use crate::error::check_len;

/// The true class of each record, `[records]`. Functions take labels before predictions.
///
/// # Example
/// ```
/// use fair_metrics::{Labels, Predictions, accuracy};
///
/// let (labels, predictions) = (vec![0, 1, 0, 0], vec![0, 1, 1, 0]);
/// let accuracy = accuracy(Labels(&labels), Predictions(&predictions))?;
/// assert_eq!(accuracy.value, Some(0.75));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
///
/// The wrong way round does not compile:
/// ```compile_fail,E0308
/// # use fair_metrics::{Labels, Predictions, accuracy};
/// accuracy(Predictions(&[1, 1]), Labels(&[1, 0]));
/// ```
#[derive(Debug)]
pub struct Labels<'a, L = u32>(pub &'a [L]);

/// A model's class for each record, `[records]`.
#[derive(Debug)]
pub struct Predictions<'a, L = u32>(pub &'a [L]);

impl<L> Clone for Labels<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Labels<'_, L> {}

impl<L> Clone for Predictions<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Predictions<'_, L> {}

/// Each record's label and prediction.
///
/// # Errors
/// [`MetricError::LengthMismatch`].
pub(crate) fn pairs<'a, L>(
    Labels(labels): Labels<'a, L>,
    Predictions(predictions): Predictions<'a, L>,
) -> Result<impl ExactSizeIterator<Item = (&'a L, &'a L)>, MetricError> {
    check_len("predictions", predictions.len(), "labels", labels.len())?;
    Ok(labels.iter().zip(predictions))
}
