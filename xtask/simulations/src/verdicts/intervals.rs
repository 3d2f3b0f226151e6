//! Intervals, and tests over records.

use fair_metrics::{Alternative, Estimate, MetricError, clopper_pearson, resampled_t_interval, t_interval, t_test};
use study_report::statistics::SIGNIFICANCE;

use super::{Scenario, Sink};
use crate::draws::Draws;

const LEVEL: f64 = 1.0 - SIGNIFICANCE;

fn t_misses(draws: &mut Draws<'_>, n: usize) -> Result<bool, MetricError> {
    let interval = t_interval(&Estimate::of(&draws.normals(n, 0.0, 1.0))?, LEVEL)?;
    Ok(interval.is_none_or(|interval| !interval.contains(0.0)))
}

fn t_is_significant(draws: &mut Draws<'_>, n: usize) -> Result<bool, MetricError> {
    let test = t_test(&Estimate::of(&draws.normals(n, 0.0, 1.0))?, Alternative::TwoSided);
    Ok(test.is_some_and(|test| test.p_value <= SIGNIFICANCE))
}

fn rate_misses(draws: &mut Draws<'_>, n: usize, rate: f64) -> Result<bool, MetricError> {
    Ok(!clopper_pearson(draws.binomial(n, rate), n, LEVEL)?.contains(rate))
}

/// Ten seeds that partition one pool, a fifth of it for testing.
fn resampled_misses(draws: &mut Draws<'_>) -> Result<bool, MetricError> {
    let shared = 0.2_f64.sqrt() * draws.normal();
    let values: Vec<f64> = draws.normals(10, 0.0, 0.8_f64.sqrt()).iter().map(|own| own + shared).collect();
    let interval = resampled_t_interval(&Estimate::of(&values)?, 4, 1, LEVEL)?;
    Ok(interval.is_none_or(|interval| !interval.contains(0.0)))
}

pub(super) fn simulate(sink: Sink<'_>) -> Result<(), MetricError> {
    const T: &str = "95 % interval of a mean over seeds (t): misses it";
    const RATE: &str = "95 % interval of a rate (Clopper and Pearson): misses it";
    sink(Scenario { rule: T, truth: "two seeds", trial: &|d| t_misses(d, 2) })?;
    sink(Scenario { rule: T, truth: "five seeds", trial: &|d| t_misses(d, 5) })?;
    sink(Scenario { rule: T, truth: "ten seeds", trial: &|d| t_misses(d, 10) })?;
    sink(Scenario {
        rule: "95 % interval over new records (Nadeau and Bengio): misses it",
        truth: "ten partitions of one pool, a fifth of it for testing",
        trial: &|d| resampled_misses(d),
    })?;
    sink(Scenario { rule: RATE, truth: "30 records, rate 0.97", trial: &|d| rate_misses(d, 30, 0.97) })?;
    sink(Scenario { rule: RATE, truth: "30 records, rate 0.5", trial: &|d| rate_misses(d, 30, 0.5) })?;
    sink(Scenario {
        rule: "paired t-test: significant",
        truth: "no difference, five seeds",
        trial: &|d| t_is_significant(d, 5),
    })
}
