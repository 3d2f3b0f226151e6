//! Metrics of scores rather than of decisions.

use crate::error::{check_finite, check_len};
use crate::{Groups, Measured, MetricError};

/// Area under the ROC curve: the chance that a random positive scores above a random negative, ties
/// counting half.
///
/// # Shapes
/// Both `[records]`.
///
/// # Edge cases
/// Undefined without a positive or without a negative. `n` is the number of records.
///
/// # Errors
/// [`MetricError::LengthMismatch`]; [`MetricError::NotFinite`] names the score.
///
/// # Source
/// Hanley and McNeil 1982: the Mann-Whitney statistic, computed from midranks.
///
/// # Example
/// ```
/// let auc = fair_metrics::roc_auc(&[false, false, true, true], &[0.1, 0.4, 0.35, 0.8])?;
/// assert_eq!(auc.value, Some(0.75)); // 3 of the 4 pairs are in order
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn roc_auc(is_positive: &[bool], scores: &[f64]) -> Result<Measured, MetricError> {
    check_len("scores", scores.len(), "is_positive", is_positive.len())?;
    check_finite("scores", scores)?;
    let n = scores.len();
    let n_positive = is_positive.iter().filter(|positive| **positive).count();
    let n_negative = n - n_positive;
    if n_positive == 0 || n_negative == 0 {
        return Ok(Measured { n, value: None });
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]));
    let mut rank_sum = 0.0;
    let mut first = 1.0;
    // `==` joins −0 and 0, which `total_cmp` sorts next to each other.
    for run in order.chunk_by(|a, b| scores[*a] == scores[*b]) {
        let last = first + run.len() as f64 - 1.0;
        let n_positive_in_run = run.iter().filter(|index| is_positive[**index]).count() as f64;
        rank_sum += n_positive_in_run * f64::midpoint(first, last);
        first = last + 1.0;
    }
    let (positive, negative) = (n_positive as f64, n_negative as f64);
    let value = (rank_sum - positive * (positive + 1.0) / 2.0) / (positive * negative);
    Ok(Measured { n, value: Some(value) })
}

/// [`roc_auc`] among the records of each group.
///
/// # Shapes
/// `is_positive` and `scores` are `[records]`; returns `[groups]`.
///
/// # Edge cases
/// Undefined for a group without a positive or without a negative.
///
/// # Errors
/// As [`roc_auc`]; [`MetricError::LengthMismatch`] for another number of groups' records.
///
/// # Example
/// ```
/// use fair_metrics::{Groups, roc_auc_by_group};
///
/// let groups = Groups::new(&[0, 0, 1, 1, 1], 2)?;
/// let by_group = roc_auc_by_group(&[false, true, true, false, false], &[0.2, 0.9, 0.5, 0.5, 0.1], &groups)?;
/// assert_eq!((by_group[0].value, by_group[1].value), (Some(1.0), Some(0.75)));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn roc_auc_by_group(
    is_positive: &[bool],
    scores: &[f64],
    groups: &Groups<'_>,
) -> Result<Vec<Measured>, MetricError> {
    check_len("scores", scores.len(), "is_positive", is_positive.len())?;
    check_len("groups", groups.len(), "is_positive", is_positive.len())?;
    check_finite("scores", scores)?;
    let mut by_group = vec![(Vec::new(), Vec::new()); groups.n_groups()];
    for ((&positive, &score), &group) in is_positive.iter().zip(scores).zip(groups.assignment()) {
        by_group[group].0.push(positive);
        by_group[group].1.push(score);
    }
    by_group.iter().map(|(is_positive, scores)| roc_auc(is_positive, scores)).collect()
}

/// Log loss: the mean of `−ln p` of the probability given to what was true.
///
/// # Shapes
/// Both `[records]`; `probabilities` are of the positive class.
///
/// # Units
/// Nats.
///
/// # Edge cases
/// Undefined without records. Probabilities are kept [`f64::EPSILON`] away from 0 and 1, as
/// scikit-learn does, so that one certain mistake costs 36 nats instead of infinitely many.
///
/// # Errors
/// [`MetricError::LengthMismatch`]; [`MetricError::NotAProbability`] names the record.
///
/// # Example
/// ```
/// let loss = fair_metrics::log_loss(&[true, false], &[0.5, 0.5])?;
/// assert!((loss.value.unwrap() - 2.0_f64.ln()).abs() < 1e-15);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn log_loss(is_positive: &[bool], probabilities: &[f64]) -> Result<Measured, MetricError> {
    check_len("probabilities", probabilities.len(), "is_positive", is_positive.len())?;
    check_probabilities(probabilities)?;
    let sum: f64 = is_positive.iter().zip(probabilities).map(|(positive, p)| record_loss(*positive, *p)).sum();
    Ok(Measured::mean(sum, probabilities.len()))
}

fn record_loss(is_positive: bool, probability: f64) -> f64 {
    let p = probability.clamp(f64::EPSILON, 1.0 - f64::EPSILON);
    if is_positive { -p.ln() } else { -(-p).ln_1p() }
}

pub(crate) fn check_probabilities(probabilities: &[f64]) -> Result<(), MetricError> {
    match probabilities.iter().position(|p| !(0.0..=1.0).contains(p)) {
        Some(index) => {
            Err(MetricError::NotAProbability { parameter: "probabilities", index, value: probabilities[index] })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ties_count_half() {
        // Pairs (positive, negative): (0.5, 0.5) ties, (0.5, 0.2) in order: 1.5 of 2.
        assert_eq!(roc_auc(&[true, false, false], &[0.5, 0.5, 0.2]).unwrap().value, Some(0.75));
        assert_eq!(roc_auc(&[true, false], &[0.0, -0.0]).unwrap().value, Some(0.5));
    }

    #[test]
    fn one_class_alone_is_undefined() {
        assert_eq!(roc_auc(&[true, true], &[0.1, 0.2]).unwrap(), Measured { n: 2, value: None });
        assert_eq!(roc_auc(&[], &[]).unwrap().value, None);
        assert_eq!(log_loss(&[], &[]).unwrap().value, None);
    }

    #[test]
    fn a_certain_mistake_is_finite() {
        let loss = log_loss(&[true], &[0.0]).unwrap().value.unwrap();
        assert!((loss - 52.0 * 2.0_f64.ln()).abs() < 1e-12, "{loss}");
    }

    #[test]
    fn errors_name_the_record() {
        let error = log_loss(&[true, false], &[0.5, 1.5]).unwrap_err();
        assert_eq!(error, MetricError::NotAProbability { parameter: "probabilities", index: 1, value: 1.5 });
        assert!(log_loss(&[true], &[f64::NAN]).is_err());
        assert!(matches!(roc_auc(&[true], &[f64::NAN]), Err(MetricError::NotFinite { index: 0, .. })));
    }

    proptest! {
        #[test]
        fn auc_counts_pairs(records in prop::collection::vec((any::<bool>(), 0_u8..6), 1..40)) {
            let (labels, scores): (Vec<bool>, Vec<f64>) = records.iter().map(|(l, s)| (*l, f64::from(*s))).unzip();
            let (mut wins, mut pairs) = (0.0, 0.0);
            for (i, positive) in labels.iter().enumerate().filter(|(_, l)| **l) {
                for (j, negative) in labels.iter().enumerate().filter(|(_, l)| !**l) {
                    debug_assert!(*positive && !*negative);
                    pairs += 1.0;
                    wins += if scores[i] > scores[j] { 1.0 } else if scores[i] == scores[j] { 0.5 } else { 0.0 };
                }
            }
            let expected = (pairs > 0.0).then(|| wins / pairs);
            let actual = roc_auc(&labels, &scores).unwrap().value;
            let agree = match (expected, actual) {
                (Some(a), Some(b)) => (a - b).abs() < 1e-12,
                (a, b) => a == b,
            };
            prop_assert!(agree, "{expected:?} {actual:?}");
        }
    }
}
