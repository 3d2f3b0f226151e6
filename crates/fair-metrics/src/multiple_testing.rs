//! P-values of several tests, adjusted so that any false alarm among them is rare.

use crate::MetricError;

/// Bonferroni's adjustment: every p-value times the number of tests, at most 1.
///
/// # Guarantee
/// Rejecting where the adjusted value is at most α makes a false alarm in the whole family with
/// probability at most α, however the tests depend on each other.
///
/// # Errors
/// [`MetricError::NotAProbability`] names the value.
///
/// # Source
/// Used by Soleymani 2025 for pairwise signed-rank tests.
///
/// # Example
/// ```
/// assert_eq!(fair_metrics::bonferroni(&[0.25, 0.0625, 0.5, 1.0])?, [1.0, 0.25, 1.0, 1.0]);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn bonferroni(p_values: &[f64]) -> Result<Vec<f64>, MetricError> {
    check(p_values)?;
    let m = p_values.len() as f64;
    Ok(p_values.iter().map(|p| (p * m).min(1.0)).collect())
}

/// Holm's step-down adjustment: never larger than [`bonferroni`]'s, with the same guarantee.
///
/// # Errors
/// [`MetricError::NotAProbability`] names the value.
///
/// # Source
/// Holm 1979.
///
/// # Example
/// ```
/// // Sorted: 0.01 × 3, 0.02 × 2, 0.03 × 1, each at least the one before.
/// let adjusted = fair_metrics::holm(&[0.02, 0.01, 0.03])?;
/// assert_eq!(adjusted, [0.04, 0.03, 0.04]);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn holm(p_values: &[f64]) -> Result<Vec<f64>, MetricError> {
    check(p_values)?;
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        let factor = (p_values.len() - rank) as f64;
        largest = largest.max((p_values[index] * factor).min(1.0));
        adjusted[index] = largest;
    }
    Ok(adjusted)
}

fn check(p_values: &[f64]) -> Result<(), MetricError> {
    match p_values.iter().position(|p| !(0.0..=1.0).contains(p)) {
        Some(index) => Err(MetricError::NotAProbability { parameter: "p_values", index, value: p_values[index] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bonferroni_stops_at_one() {
        assert_eq!(bonferroni(&[0.25, 0.5, 1.0]).unwrap(), [0.75, 1.0, 1.0]);
        assert!(bonferroni(&[]).unwrap().is_empty());
    }

    #[test]
    fn errors_name_the_value() {
        assert!(matches!(holm(&[0.5, 1.5]), Err(MetricError::NotAProbability { index: 1, .. })));
        assert!(bonferroni(&[f64::NAN]).is_err());
    }

    proptest! {
        #[test]
        fn holm_lies_between_raw_and_bonferroni(p in prop::collection::vec(0.0..=1.0_f64, 0..12)) {
            let (holm, bonferroni) = (holm(&p).unwrap(), bonferroni(&p).unwrap());
            for i in 0..p.len() {
                prop_assert!(p[i] <= holm[i] && holm[i] <= bonferroni[i]);
                for j in 0..p.len() {
                    prop_assert!(p[i] > p[j] || holm[i] <= holm[j]);
                }
            }
        }
    }
}
