//! Whether probabilities mean what they say, in each group.

use serde::{Deserialize, Serialize};

use crate::error::check_len;
use crate::score::check_probabilities;
use crate::{Groups, Measured, MetricError};

/// One bin of equal width over [0, 1]; the last includes 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CalibrationBin {
    /// Mean predicted probability of the records in the bin.
    pub mean_probability: Measured,
    /// Share of positives among them.
    pub positive_rate: Measured,
}

/// Calibration of one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GroupCalibration {
    /// In order of probability.
    pub bins: Vec<CalibrationBin>,
    /// Expected calibration error: mean of `|positive rate − mean probability|` over records;
    /// undefined without records.
    pub expected_error: Measured,
}

/// Calibration by group, in `n_bins` bins of equal width.
///
/// # Shapes
/// `is_positive`, `probabilities` and `groups` are `[records]`; returns `[groups]`.
///
/// # Edge cases
/// A bin without a record is undefined and adds nothing to the expected error.
///
/// # Errors
/// [`MetricError::LengthMismatch`]; [`MetricError::NotAProbability`] names the record;
/// [`MetricError::InvalidParameter`] without bins.
///
/// # Source
/// Naeini, Cooper and Hauskrecht 2015 (expected calibration error).
///
/// # Example
/// ```
/// use fair_metrics::{Groups, calibration_by_group};
///
/// let groups = Groups::new(&[0, 0], 1)?;
/// let calibration = calibration_by_group(&[true, false], &[0.75, 0.75], &groups, 2)?;
/// assert_eq!(calibration[0].expected_error.value, Some(0.25)); // half are positive, 0.75 was said
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn calibration_by_group(
    is_positive: &[bool],
    probabilities: &[f64],
    groups: &Groups<'_>,
    n_bins: usize,
) -> Result<Vec<GroupCalibration>, MetricError> {
    check_len("probabilities", probabilities.len(), "is_positive", is_positive.len())?;
    check_len("groups", groups.len(), "is_positive", is_positive.len())?;
    check_probabilities(probabilities)?;
    if n_bins == 0 {
        return Err(MetricError::invalid("n_bins", 0, "a whole number of at least 1"));
    }
    let mut sums = vec![vec![(0_usize, 0.0_f64, 0.0_f64); n_bins]; groups.n_groups()];
    for ((positive, probability), &group) in is_positive.iter().zip(probabilities).zip(groups.assignment()) {
        let bin = ((probability * n_bins as f64) as usize).min(n_bins - 1);
        let (n, total, positives) = &mut sums[group][bin];
        *n += 1;
        *total += probability;
        *positives += f64::from(u8::from(*positive));
    }
    Ok(sums
        .into_iter()
        .map(|bins| {
            let n: usize = bins.iter().map(|(n, _, _)| n).sum();
            // n·|positives/n − total/n| = |positives − total|.
            let error: f64 = bins.iter().map(|(_, total, positives)| (positives - total).abs()).sum();
            let bins = bins.into_iter().map(|(n, total, positives)| CalibrationBin {
                mean_probability: Measured::mean(total, n),
                positive_rate: Measured::mean(positives, n),
            });
            GroupCalibration { bins: bins.collect(), expected_error: Measured::mean(error, n) }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_by_hand() {
        // Bins [0, ½) and [½, 1]: 0.25 alone (negative), 0.5 and 1 (one positive each way).
        let groups = Groups::new(&[0, 0, 0], 2).unwrap();
        let result = calibration_by_group(&[false, true, true], &[0.25, 0.5, 1.0], &groups, 2).unwrap();
        assert_eq!(result[0].bins[0].positive_rate, Measured { n: 1, value: Some(0.0) });
        assert_eq!(result[0].bins[1].mean_probability, Measured { n: 2, value: Some(0.75) });
        // (|0 − 0.25| + |2 − 1.5|) / 3
        assert_eq!(result[0].expected_error.value, Some(0.25));
        assert_eq!(result[1].expected_error, Measured { n: 0, value: None });
    }

    #[test]
    fn inputs_are_checked() {
        let groups = Groups::new(&[0], 1).unwrap();
        assert!(calibration_by_group(&[true], &[0.5], &groups, 0).is_err());
        assert!(matches!(
            calibration_by_group(&[true], &[-0.5], &groups, 1),
            Err(MetricError::NotAProbability { index: 0, .. })
        ));
    }
}
