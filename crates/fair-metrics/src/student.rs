//! Student's t-test of differences over seeds.

use serde::{Deserialize, Serialize};

use crate::interval::resampling_factor;
use crate::special::t_upper_tail;
use crate::{Alternative, Estimate, MetricError};

/// Outcome of a t-test: mean difference in standard errors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TTest {
    /// Mean over its standard error.
    pub t: f64,
    /// Degrees of freedom.
    pub degrees_of_freedom: f64,
    /// The alternative that was tested.
    pub alternative: Alternative,
    /// Probability, for normal differences with mean zero, of a `t` at least as extreme.
    pub p_value: f64,
}

/// Tests whether differences over seeds have a mean other than zero, or one on the side of the
/// alternative.
///
/// Unlike [`wilcoxon_signed_rank`](crate::wilcoxon_signed_rank) it has no least p-value, which many
/// comparisons at once need. It takes the differences as normal.
///
/// # Edge cases
/// `None` below two defined values. Equal differences leave no doubt about their sign (p-value 0,
/// or 1 for zero).
///
/// # Source
/// Student 1908.
pub fn t_test(differences: &Estimate, alternative: Alternative) -> Option<TTest> {
    test(differences, 1.0, alternative)
}

/// The same for seeds that partition one pool of records anew, about new records; see
/// [`resampled_t_interval`](crate::resampled_t_interval).
///
/// # Errors
/// [`MetricError::InvalidParameter`] without training records.
///
/// # Source
/// Nadeau and Bengio 2003, section 3.
pub fn resampled_t_test(
    differences: &Estimate,
    n_train: usize,
    n_test: usize,
    alternative: Alternative,
) -> Result<Option<TTest>, MetricError> {
    Ok(test(differences, resampling_factor(differences.n, n_train, n_test)?, alternative))
}

fn test(differences: &Estimate, factor: f64, alternative: Alternative) -> Option<TTest> {
    let (mean, error) = (differences.mean?, differences.standard_error? * factor);
    let degrees_of_freedom = (differences.n - 1) as f64;
    // 0/0 is no evidence, x/0 all of it.
    let t = if mean == 0.0 { 0.0 } else { mean / error };
    let p_value = match alternative {
        Alternative::Greater => t_upper_tail(t, degrees_of_freedom),
        Alternative::Less => t_upper_tail(-t, degrees_of_freedom),
        Alternative::TwoSided => (2.0 * t_upper_tail(t.abs(), degrees_of_freedom)).min(1.0),
    };
    Some(TTest { t, degrees_of_freedom, alternative, p_value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(values: &[f64]) -> Estimate {
        Estimate::over_seeds(&values.iter().copied().map(Some).collect::<Vec<_>>()).unwrap()
    }

    /// Mean 2, standard error 1/√3: t = 2√3 at two degrees of freedom, whose tail is
    /// 1/(√(2+t²)(√(2+t²)+t)).
    #[test]
    fn three_differences_by_hand() {
        let test = t_test(&estimate(&[1.0, 2.0, 3.0]), Alternative::Greater).unwrap();
        let t = 2.0 * 3.0_f64.sqrt();
        let root = (2.0 + t * t).sqrt();
        assert!((test.t - t).abs() < 1e-12);
        assert!((test.p_value - 1.0 / (root * (root + t))).abs() < 1e-12);
        let other = t_test(&estimate(&[1.0, 2.0, 3.0]), Alternative::Less).unwrap();
        assert!((other.p_value + test.p_value - 1.0).abs() < 1e-12);
    }

    #[test]
    fn differences_that_do_not_vary() {
        let p = |values: &[f64], alternative| t_test(&estimate(values), alternative).unwrap().p_value;
        assert_eq!(p(&[0.5, 0.5], Alternative::TwoSided), 0.0);
        assert_eq!(p(&[0.5, 0.5], Alternative::Less), 1.0);
        assert_eq!(p(&[0.0, 0.0], Alternative::TwoSided), 1.0);
        assert_eq!(t_test(&estimate(&[0.5]), Alternative::Less), None);
    }

    #[test]
    fn new_records_are_harder_to_tell() {
        let differences = estimate(&[1.0, 2.0, 3.0]);
        let splits = t_test(&differences, Alternative::TwoSided).unwrap();
        let records = resampled_t_test(&differences, 100, 25, Alternative::TwoSided).unwrap().unwrap();
        // √(1 + 3/4) smaller.
        assert!((splits.t / records.t - 1.75_f64.sqrt()).abs() < 1e-12);
        assert!(records.p_value > splits.p_value);
    }
}
