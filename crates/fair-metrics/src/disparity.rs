//! How unevenly loss and accuracy fall on groups, as the papers summarise it.

use crate::MetricError;
use crate::error::check_defined_finite;
use crate::gap::{largest_gap, pairwise_gaps};

/// Loss gap of one attribute: the widest difference between two of its groups' mean losses.
///
/// # Edge cases
/// Undefined if fewer than two groups have a loss. Undefined groups are left out.
///
/// # Errors
/// [`MetricError::NotFinite`] names the group.
///
/// # Source
/// Soleymani 2025: `|L_a − L_b|` for two groups.
///
/// # Example
/// ```
/// assert_eq!(fair_metrics::loss_gap(&[Some(0.75), Some(0.5)])?, Some(0.25));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn loss_gap(group_losses: &[Option<f64>]) -> Result<Option<f64>, MetricError> {
    Ok(largest_gap(&pairwise_gaps(group_losses)?).and_then(|pair| pair.gap))
}

/// Average disparity: the mean of the loss gaps over protected attributes.
///
/// # Edge cases
/// Undefined without attributes, or if any gap is undefined: a mean over the rest would be another
/// quantity.
///
/// # Errors
/// [`MetricError::NotFinite`] names the attribute.
///
/// # Source
/// Soleymani 2025, Table 2.
pub fn average_disparity(loss_gaps: &[Option<f64>]) -> Result<Option<f64>, MetricError> {
    check_defined_finite("loss_gaps", loss_gaps)?;
    let sum = loss_gaps.iter().copied().sum::<Option<f64>>();
    Ok(sum.filter(|_| !loss_gaps.is_empty()).map(|sum| sum / loss_gaps.len() as f64))
}

/// Share of a baseline's average disparity that a method removes; negative if it adds to it.
///
/// # Edge cases
/// Undefined if the baseline's disparity is zero.
///
/// # Source
/// Soleymani 2025, Table 2.
///
/// # Example
/// ```
/// assert_eq!(fair_metrics::disparity_reduction(0.5, 0.125), Some(0.75));
/// assert_eq!(fair_metrics::disparity_reduction(0.0, 0.1), None);
/// ```
pub fn disparity_reduction(baseline: f64, disparity: f64) -> Option<f64> {
    (baseline != 0.0).then(|| (baseline - disparity) / baseline)
}

/// Worst-group accuracy (or any rate where more is better), with the group's index.
///
/// # Edge cases
/// Undefined if any group is undefined or there is none; the first of several equals.
///
/// # Example
/// ```
/// assert_eq!(fair_metrics::worst_group(&[Some(0.9), Some(0.7)]), Some((1, 0.7)));
/// ```
pub fn worst_group(rates: &[Option<f64>]) -> Option<(usize, f64)> {
    let all: Option<Vec<f64>> = rates.iter().copied().collect();
    all?.into_iter().enumerate().reduce(|worst, next| if next.1 < worst.1 { next } else { worst })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn average_needs_every_attribute() {
        assert_eq!(average_disparity(&[Some(0.25), Some(0.75)]).unwrap(), Some(0.5));
        assert_eq!(average_disparity(&[Some(0.25), None]).unwrap(), None);
        assert_eq!(average_disparity(&[]).unwrap(), None);
        assert!(average_disparity(&[Some(f64::NAN)]).is_err());
    }

    #[test]
    fn worst_group_is_undefined_with_an_undefined_group() {
        assert_eq!(worst_group(&[Some(0.9), None]), None);
        assert_eq!(worst_group(&[]), None);
        assert_eq!(worst_group(&[Some(0.5), Some(0.5)]), Some((0, 0.5)));
    }

    #[test]
    fn one_group_has_no_gap() {
        assert_eq!(loss_gap(&[Some(0.5), None]).unwrap(), None);
    }
}
