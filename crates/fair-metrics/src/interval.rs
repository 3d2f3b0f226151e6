//! Confidence intervals with the coverage they state, also for few seeds and rates near 0 or 1.

use serde::{Deserialize, Serialize};

use crate::special::{beta_quantile, t_quantile};
use crate::{Estimate, Measured, MetricError};

/// A confidence interval.
///
/// ```
/// use fair_metrics::clopper_pearson;
/// // 8 of 10, with a level of 95 %.
/// let interval = clopper_pearson(8, 10, 0.95)?;
/// assert!((interval.low - 0.4439).abs() < 1e-4 && (interval.high - 0.9748).abs() < 1e-4);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Nominal coverage, for example 0.95.
    pub level: f64,
}

impl Interval {
    /// Whether the value lies in it, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Student's interval of a mean over seeds: what is uncertain because there are few of them.
///
/// If each seed partitions the same pool of records anew, this is about other partitions *of this
/// pool*. About new records it says too little, see [`resampled_t_interval`].
///
/// # Edge cases
/// `None` below two defined values.
///
/// # Errors
/// [`MetricError::InvalidParameter`] unless `0 < level < 1`.
///
/// # Source
/// Student 1908.
///
/// # Example
/// ```
/// use fair_metrics::{Estimate, t_interval};
///
/// let estimate = Estimate::over_seeds(&[Some(1.0), Some(2.0), Some(3.0)])?;
/// let interval = t_interval(&estimate, 0.95)?.unwrap();
/// // t = 4.303 at two degrees of freedom, and the standard error is 1/√3.
/// assert!((interval.high - (2.0 + 4.303 / 3.0_f64.sqrt())).abs() < 1e-3);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn t_interval(estimate: &Estimate, level: f64) -> Result<Option<Interval>, MetricError> {
    widened(estimate, level, 1.0)
}

/// The same for a mean over seeds that partition one pool of records anew: about other records of
/// the same kind.
///
/// Training parts of such seeds overlap, so that their results vary less than results on new
/// pools would. The standard error is multiplied by `√(1 + n·n_test/n_train)` for `n` seeds.
///
/// # Edge cases
/// `None` below two defined values.
///
/// # Errors
/// [`MetricError::InvalidParameter`] unless `0 < level < 1`, or without training records.
///
/// # Source
/// Nadeau and Bengio 2003, section 3: the correlation of two seeds is taken as `n_test/(n_test +
/// n_train)`. An approximation; no unbiased estimate exists (Bengio and Grandvalet 2004).
pub fn resampled_t_interval(
    estimate: &Estimate,
    n_train: usize,
    n_test: usize,
    level: f64,
) -> Result<Option<Interval>, MetricError> {
    widened(estimate, level, resampling_factor(estimate.n, n_train, n_test)?)
}

/// By how much a standard error over partitions of one pool understates that over new records.
pub(crate) fn resampling_factor(n: usize, n_train: usize, n_test: usize) -> Result<f64, MetricError> {
    if n_train == 0 {
        return Err(MetricError::invalid("n_train", 0, "at least 1"));
    }
    Ok((1.0 + n as f64 * (n_test as f64 / n_train as f64)).sqrt())
}

fn widened(estimate: &Estimate, level: f64, factor: f64) -> Result<Option<Interval>, MetricError> {
    check_level(level)?;
    let (Some(mean), Some(error)) = (estimate.mean, estimate.standard_error) else { return Ok(None) };
    let half = t_quantile((1.0 - level) / 2.0, (estimate.n - 1) as f64) * factor * error;
    Ok(Some(Interval { low: mean - half, high: mean + half, level }))
}

/// The exact interval of a rate: `successes` of `n` independent records.
///
/// # Guarantee
/// Covers the true rate with at least the stated probability, whatever the rate and however few the
/// records. A percentile bootstrap does not: of 30 records at a rate of 0.97 two in five samples
/// hold no failure, and every resample of such a one is 1.
///
/// # Edge cases
/// Without records every rate is possible: `[0, 1]`.
///
/// # Errors
/// [`MetricError::InvalidParameter`] if there are more successes than records, or unless `0 < level < 1`.
///
/// # Source
/// Clopper and Pearson 1934.
///
/// # Example
/// ```
/// // No failure among 10: the lower end is 0.025^(1/10).
/// let interval = fair_metrics::clopper_pearson(10, 10, 0.95)?;
/// assert!((interval.low - 0.6915).abs() < 1e-4);
/// assert_eq!(interval.high, 1.0);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn clopper_pearson(successes: usize, n: usize, level: f64) -> Result<Interval, MetricError> {
    check_level(level)?;
    if successes > n {
        return Err(MetricError::invalid("successes", successes, "at most the number of records"));
    }
    let tail = (1.0 - level) / 2.0;
    let (x, failures) = (successes as f64, (n - successes) as f64);
    let low = if successes == 0 { 0.0 } else { beta_quantile(tail, x, failures + 1.0) };
    let high = if successes == n { 1.0 } else { beta_quantile(1.0 - tail, x + 1.0, failures) };
    Ok(Interval { low, high, level })
}

impl Measured {
    /// The [`clopper_pearson`] interval of a share of records: accuracy, selection rate, recall.
    ///
    /// # Errors
    /// [`MetricError::InvalidParameter`] unless `0 < level < 1`, or if the value is no share of `n`
    /// records: a mean loss, a weighted share, undefined although there are records. A share of
    /// something else that happens to be one of records passes.
    pub fn rate_interval(&self, level: f64) -> Result<Interval, MetricError> {
        let n = self.n as f64;
        let successes = self.value.unwrap_or(0.0) * n;
        let rounded = successes.round();
        let is_share = (0.0..=n).contains(&rounded) && (successes - rounded).abs() <= 1e-6 * n.max(1.0);
        if !is_share || (self.value.is_none() && self.n > 0) {
            return Err(MetricError::invalid("value", self.value.unwrap_or(f64::NAN), "a share of the records"));
        }
        clopper_pearson(rounded as usize, self.n, level)
    }
}

pub(crate) fn check_level(level: f64) -> Result<(), MetricError> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    Err(MetricError::invalid("level", level, "a number above 0 and below 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_has_no_interval() {
        let one = Estimate::over_seeds(&[Some(1.0)]).unwrap();
        assert_eq!(t_interval(&one, 0.95).unwrap(), None);
        assert!(t_interval(&one, 1.0).is_err());
    }

    /// Ten seeds and a test part a quarter of the training part: √(1 + 10/4) = √3.5.
    #[test]
    fn new_records_widen_the_interval() {
        let values: Vec<Option<f64>> = (0..10).map(|seed| Some(f64::from(seed))).collect();
        let estimate = Estimate::over_seeds(&values).unwrap();
        let width = |interval: Interval| interval.high - interval.low;
        let (pool, records) =
            (t_interval(&estimate, 0.9).unwrap(), resampled_t_interval(&estimate, 400, 100, 0.9).unwrap());
        assert!((width(records.unwrap()) / width(pool.unwrap()) - 3.5_f64.sqrt()).abs() < 1e-12);
        assert!(resampled_t_interval(&estimate, 0, 100, 0.9).is_err());
    }

    /// The coverage over all outcomes of 30 records, added up exactly.
    #[test]
    fn rates_are_covered() {
        for rate in [0.03, 0.5, 0.9, 0.97, 0.999] {
            let mut covered = 0.0;
            let mut probability = (1.0_f64 - rate).powi(30);
            for successes in 0..=30_usize {
                if clopper_pearson(successes, 30, 0.95).unwrap().contains(rate) {
                    covered += probability;
                }
                probability *= (30 - successes) as f64 / (successes + 1) as f64 * rate / (1.0 - rate);
            }
            assert!(covered >= 0.95, "{rate}: {covered}");
        }
    }

    #[test]
    fn only_shares_are_rates() {
        assert_eq!(Measured::mean(0.0, 0).rate_interval(0.95).unwrap(), Interval { low: 0.0, high: 1.0, level: 0.95 });
        assert!(Measured::mean(3.0, 4).rate_interval(0.95).is_ok());
        assert!(Measured { value: None, n: 4 }.rate_interval(0.95).is_err());
        assert!(Measured::mean(3.3, 4).rate_interval(0.95).is_err());
        assert!(Measured::mean(8.0, 4).rate_interval(0.95).is_err());
        assert!(clopper_pearson(5, 4, 0.95).is_err());
    }
}
