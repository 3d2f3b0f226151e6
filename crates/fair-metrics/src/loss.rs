//! Mean loss by group.

use crate::error::{check_finite, check_len};
use crate::{Groups, Measured, MetricError};

/// Mean of per-record losses in each group.
///
/// # Shapes
/// `losses` and `groups` are `[records]`; returns `[groups]`.
///
/// # Units
/// As `losses`.
///
/// # Edge cases
/// Undefined for a group without records.
///
/// # Errors
/// [`MetricError::LengthMismatch`]; [`MetricError::NotFinite`] names the first record whose loss is
/// NaN or infinite.
///
/// # Example
/// ```
/// use fair_metrics::{Groups, mean_loss_by_group};
///
/// let groups = Groups::new(&[0, 1, 1], 2)?;
/// let losses = mean_loss_by_group(&[0.2, 0.4, 0.8], &groups)?;
/// assert!((losses[1].value.unwrap() - 0.6).abs() < 1e-12);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn mean_loss_by_group(losses: &[f64], groups: &Groups<'_>) -> Result<Vec<Measured>, MetricError> {
    check_len("losses", losses.len(), "groups", groups.len())?;
    check_finite("losses", losses)?;
    let mut sums = vec![0.0; groups.n_groups()];
    for (loss, &group) in losses.iter().zip(groups.assignment()) {
        sums[group] += loss;
    }
    Ok(sums.iter().zip(groups.counts()).map(|(&sum, &n)| Measured::mean(sum, n)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_loss_that_is_not_finite() {
        let groups = Groups::new(&[0, 0], 1).unwrap();
        let error = mean_loss_by_group(&[0.0, f64::INFINITY], &groups).unwrap_err();
        assert_eq!(error, MetricError::NotFinite { parameter: "losses", index: 1, value: f64::INFINITY });
    }
}
