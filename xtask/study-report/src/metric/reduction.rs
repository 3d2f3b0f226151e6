//! By how much a method's loss gaps are smaller than another's.

use fair_metrics::Estimate;
use run_records::{ExperimentResults, MethodResults};

use super::column::{Column, Metric, Subject};

/// The mean loss gaps of a run, and of the run of another method that it is held against.
pub(super) struct LossGaps {
    pub(super) index: usize,
    pub(super) ours: f64,
    pub(super) base: f64,
}

/// Those of the seeds that both methods have; none if the other was not run.
pub(super) fn loss_gaps(
    experiment: &ExperimentResults,
    method: &MethodResults,
    base: &str,
    pairs: &[(String, String)],
) -> anyhow::Result<Vec<LossGaps>> {
    let subject = Subject::Average(pairs.to_vec());
    let gap = Column { metric: Metric::LossGap, subject, percent: false, order_only: false, in_batches: false };
    let mut others = experiment.methods.iter();
    let Some(other) = others.find(|other| other.base == base && other.coordinates == method.coordinates) else {
        return Ok(Vec::new());
    };
    let theirs = gap.by_run(experiment, other)?;
    let both = gap.by_run(experiment, method)?.into_iter().filter_map(|(index, ours)| {
        let (_, base) = theirs.iter().find(|(candidate, _)| *candidate == index)?;
        let (ours, base) = ours.zip(*base)?;
        Some(LossGaps { index, ours, base })
    });
    Ok(both.collect())
}

/// `1 - mean(ours)/mean(theirs)` of the mean loss gaps, over the seeds that both have; the error is
/// that of a ratio to first order.
pub(super) fn reduction(
    experiment: &ExperimentResults,
    method: &MethodResults,
    base: &str,
    pairs: &[(String, String)],
) -> anyhow::Result<Estimate> {
    let both = loss_gaps(experiment, method, base, pairs)?;
    let mean = |of: fn(&LossGaps) -> f64| both.iter().map(of).sum::<f64>() / both.len() as f64;
    let (ours, base) = (mean(|gaps| gaps.ours), mean(|gaps| gaps.base));
    if base.is_nan() || base <= 0.0 {
        return Ok(Estimate::over_seeds(&vec![None; method.runs.len()])?);
    }
    let ratio = ours / base;
    let residuals: Vec<Option<f64>> = both.iter().map(|gaps| Some((gaps.ours - ratio * gaps.base) / base)).collect();
    Ok(Estimate { mean: Some(1.0 - ratio), ..Estimate::over_seeds(&residuals)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::metric::paired;

    #[test]
    fn a_reduction_is_a_ratio_of_means() {
        let experiment = fixture::study().experiments.remove(0);
        let of = |against: &str| {
            let column = Column::parse("disparity_reduction_pct", &format!("{against}: male|female")).unwrap();
            column.estimate(&experiment, &experiment.methods[2]).unwrap()
        };
        // DPSGD-F's gap is 0.52 − 0.31, DPSGD's 0.78 − 0.40; over seeds both vary in proportion.
        let estimate = of("dpsgd");
        assert!((estimate.mean.unwrap() - 100.0 * (1.0 - 0.21 / 0.38)).abs() < 1e-9, "{estimate:?}");
        assert!(estimate.standard_error.unwrap() < 1e-9);
        assert_eq!(of("naive").mean, None, "not run");
    }

    /// DPSGD's reduction against itself is 0 in every seed, and DPSGD-F's a larger one.
    #[test]
    fn reductions_are_compared_as_values() {
        let experiment = fixture::study().experiments.remove(0);
        let column = Column::parse("disparity_reduction_pct", "dpsgd: male|female").unwrap();
        let of = |method: usize| (&column, &experiment, &experiment.methods[method]);
        let (smaller, larger) = paired(of(1), of(2)).unwrap().unwrap();
        let compared = fair_metrics::compare(&smaller, &larger).unwrap();
        assert!((compared.difference.mean.unwrap() - (1.0 - 0.21 / 0.38)).abs() < 1e-9);
        assert_eq!(compared.p_smaller, compared.least_p_smaller);
    }
}
