//! Confidence intervals by resampling records.

use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::interval::check_level;
use crate::special::{normal_quantile, normal_upper_tail, t_quantile, t_upper_tail};

/// Below this number of records the resamples' tails are too short for their quantiles.
const FEW: usize = 30;

/// An interval between quantiles of resamples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BootstrapInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Nominal coverage, for example 0.95.
    pub level: f64,
    /// Resamples with a defined statistic: those the interval is made of.
    pub n_defined: usize,
    /// Resamples whose statistic was undefined (a group drawn without a record, say).
    pub n_undefined: usize,
}

/// Outcome of a paired bootstrap of `a − b`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PairedBootstrap {
    /// Interval of the difference.
    pub interval: BootstrapInterval,
    /// Two-sided p-value: twice the smaller share of resamples on either side of zero, counting one
    /// more on each side so that it is never 0, corrected for few records as the interval is.
    pub p_value: f64,
}

/// Bootstrap of any statistic of records, between expanded percentiles.
///
/// The plain percentile interval is too narrow for few records `n`: resamples vary by a factor
/// `√((n − 1)/n)` too little, and the normal distribution has lighter tails than Student's. Its
/// ends are therefore the quantiles `Φ(−√(n/(n−1))·t)`, with `t` of Student's distribution at `n −
/// 1` degrees of freedom. Below thirty records resamples have no tails to take such quantiles of;
/// an end is then moved out to Student's interval around the resamples where that is wider, and may
/// leave the statistic's range.
///
/// `statistic` receives row indices drawn with replacement, `n_records` at a time; see
/// [`MetricFrame::on_rows`](crate::MetricFrame::on_rows).
///
/// # Guarantee
/// Coverage is approximate, near the nominal level for means and smooth functions of them. A rate
/// near 0 or 1 is not smooth: if no record of a sample fails, none of any resample does. Use
/// [`Measured::rate_interval`](crate::Measured::rate_interval) for rates.
///
/// # Edge cases
/// `Ok(None)` if the statistic was undefined in every resample.
///
/// # Errors
/// [`MetricError::InvalidParameter`] for fewer than two records, no resamples or a level outside (0, 1);
/// [`MetricError::NotFinite`] if the statistic is NaN or infinite, naming the resample; whatever
/// `statistic` returns.
///
/// # Source
/// Efron 1979; expanded percentiles: Hesterberg 2015, section 3.4.1. Quantiles interpolate linearly
/// between order statistics, as NumPy's default does.
///
/// # Example
/// ```
/// use rand::SeedableRng;
///
/// let values = [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0];
/// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
/// let interval = fair_metrics::bootstrap(values.len(), 1000, 0.95, &mut rng, |rows| {
///     Ok(Some(rows.iter().map(|row| values[*row]).sum::<f64>() / rows.len() as f64))
/// })?.unwrap();
/// assert!(interval.low < 0.625 && 0.625 < interval.high);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn bootstrap(
    n_records: usize,
    n_resamples: usize,
    level: f64,
    rng: &mut impl Rng,
    statistic: impl FnMut(&[usize]) -> Result<Option<f64>, MetricError>,
) -> Result<Option<BootstrapInterval>, MetricError> {
    let values = resample(n_records, n_resamples, level, rng, statistic)?;
    Ok(interval(&values, n_records, n_resamples, level))
}

/// Paired bootstrap: the difference of two statistics on the same resamples, so that what they
/// share cancels.
///
/// # Edge cases
/// As [`bootstrap`]; a resample in which either statistic is undefined is counted as undefined.
///
/// # Errors
/// As [`bootstrap`].
pub fn paired_bootstrap(
    n_records: usize,
    n_resamples: usize,
    level: f64,
    rng: &mut impl Rng,
    mut a: impl FnMut(&[usize]) -> Result<Option<f64>, MetricError>,
    mut b: impl FnMut(&[usize]) -> Result<Option<f64>, MetricError>,
) -> Result<Option<PairedBootstrap>, MetricError> {
    let values = resample(n_records, n_resamples, level, rng, |rows| Ok(a(rows)?.zip(b(rows)?).map(|(a, b)| a - b)))?;
    Ok(interval(&values, n_records, n_resamples, level).map(|interval| {
        let n_low = values.iter().filter(|value| **value <= 0.0).count();
        let n_high = values.iter().filter(|value| **value >= 0.0).count();
        let share = (n_low.min(n_high) + 1) as f64 / (values.len() + 1) as f64;
        PairedBootstrap { interval, p_value: p_value(&values, share, n_records) }
    }))
}

/// Defined values of a statistic in the resamples, sorted.
fn resample(
    n_records: usize,
    n_resamples: usize,
    level: f64,
    rng: &mut impl Rng,
    mut statistic: impl FnMut(&[usize]) -> Result<Option<f64>, MetricError>,
) -> Result<Vec<f64>, MetricError> {
    if n_records < 2 {
        let accepted = "a whole number of at least 2";
        return Err(MetricError::invalid("n_records", n_records, accepted));
    }
    if n_resamples == 0 {
        return Err(MetricError::invalid("n_resamples", 0, "a whole number of at least 1"));
    }
    check_level(level)?;
    let mut rows = vec![0; n_records];
    let mut values = Vec::with_capacity(n_resamples);
    for index in 0..n_resamples {
        rows.fill_with(|| rng.random_range(0..n_records));
        let Some(value) = statistic(&rows)? else { continue };
        if !value.is_finite() {
            return Err(MetricError::NotFinite { parameter: "statistic", index, value });
        }
        values.push(value);
    }
    values.sort_by(f64::total_cmp);
    Ok(values)
}

/// `None` where no resample is defined, or the statistic is of one record, whose spread is
/// unknown.
fn interval(sorted: &[f64], n_records: usize, n_resamples: usize, level: f64) -> Option<BootstrapInterval> {
    let degrees = n_records.checked_sub(1).filter(|degrees| *degrees > 0)? as f64;
    let expansion = ((degrees + 1.0) / degrees).sqrt();
    let t = t_quantile((1.0 - level) / 2.0, degrees) * expansion;
    let tail = normal_upper_tail(t);
    let (mut low, mut high) = (quantile(sorted, tail)?, quantile(sorted, 1.0 - tail)?);
    if n_records < FEW {
        let (mean, deviation) = moments(sorted);
        low = low.min(mean - t * deviation);
        high = high.max(mean + t * deviation);
    }
    let n_undefined = n_resamples - sorted.len();
    Some(BootstrapInterval { low, high, level, n_defined: sorted.len(), n_undefined })
}

/// P-value of resamples of a difference against zero, by the rules of the interval; `share` of them
/// lie beyond it.
fn p_value(sorted: &[f64], share: f64, n_records: usize) -> f64 {
    let degrees = (n_records - 1) as f64;
    let shrink = (degrees / (degrees + 1.0)).sqrt();
    let two_sided = |t: f64| (2.0 * t_upper_tail(t, degrees)).min(1.0);
    if share >= 0.5 {
        return 1.0;
    }
    let by_share = two_sided(normal_quantile(share) * shrink);
    let (mean, deviation) = moments(sorted);
    if n_records < FEW && deviation > 0.0 {
        by_share.max(two_sided((mean / deviation).abs() * shrink))
    } else {
        by_share
    }
}

/// Mean and standard deviation of the resamples, which are sorted.
fn moments(values: &[f64]) -> (f64, f64) {
    // A constant is one exactly: rounding would give it a spread.
    if let [first, .., last] = values
        && first == last
    {
        return (*first, 0.0);
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt())
}

fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let position = share * sorted.len().checked_sub(1)? as f64;
    let below = position.floor();
    let low = sorted[below as usize];
    let high = *sorted.get(below as usize + 1).unwrap_or(&low);
    Some(low + (high - low) * (position - below))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn mean(values: &[f64], rows: &[usize]) -> f64 {
        rows.iter().map(|row| values[*row]).sum::<f64>() / rows.len() as f64
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(quantile(&[0.0, 1.0, 2.0, 3.0], 0.5), Some(1.5));
        assert_eq!(quantile(&[5.0], 0.975), Some(5.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    /// 400 samples of 40 fair coins; the 90 % interval should cover ½ about 90 % of the time. Fewer
    /// than 330 or more than 385 would be a false alarm of less than 1e-4.
    #[test]
    fn intervals_cover() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut n_covered = 0;
        for _ in 0..400 {
            let values: Vec<f64> = (0..40).map(|_| f64::from(u8::from(rng.random::<bool>()))).collect();
            let interval = bootstrap(40, 400, 0.9, &mut rng, |rows| Ok(Some(mean(&values, rows)))).unwrap().unwrap();
            n_covered += usize::from(interval.low <= 0.5 && 0.5 <= interval.high);
        }
        assert!((330..=385).contains(&n_covered), "{n_covered}");
    }

    #[test]
    fn pairing_cancels_what_is_shared() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let base: Vec<f64> = (0..50).map(|_| 10.0 * rng.random::<f64>()).collect();
        let better: Vec<f64> = base.iter().map(|value| value + 0.1).collect();
        let result = paired_bootstrap(
            50,
            500,
            0.95,
            &mut rng,
            |rows| Ok(Some(mean(&better, rows))),
            |rows| Ok(Some(mean(&base, rows))),
        )
        .unwrap()
        .unwrap();
        assert!((result.interval.low - 0.1).abs() < 1e-9 && (result.interval.high - 0.1).abs() < 1e-9);
        // One in 501, corrected for fifty records; no resample is on the other side.
        assert!(result.p_value > 2.0 / 501.0 && result.p_value < 0.01, "{}", result.p_value);
    }

    /// 2,000 samples of five normal values with mean zero. The plain percentile rule calls 20 % of
    /// them different from zero at 0.05; of 2,000, more than 140 (7 %) would be a false alarm of
    /// less than 1e-4 at a true rate of 5 %.
    #[test]
    fn five_records_are_not_called_different_too_often() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let (mut n_significant, mut n_missed) = (0, 0);
        for _ in 0..2_000 {
            let values: Vec<f64> = (0..5)
                .map(|_| {
                    let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
                    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
                })
                .collect();
            let zero = |_: &[usize]| Ok(Some(0.0));
            let result = paired_bootstrap(5, 2_000, 0.95, &mut rng, |rows| Ok(Some(mean(&values, rows))), zero);
            let result = result.unwrap().unwrap();
            n_significant += usize::from(result.p_value <= 0.05);
            n_missed += usize::from(result.interval.low > 0.0 || result.interval.high < 0.0);
        }
        assert!(n_significant <= 140 && n_missed <= 140, "{n_significant} {n_missed}");
    }

    #[test]
    fn undefined_resamples_are_counted() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut turn = 0;
        let interval = bootstrap(3, 10, 0.5, &mut rng, |_| {
            turn += 1;
            Ok((turn % 2 == 0).then_some(1.0))
        });
        let interval = interval.unwrap().unwrap();
        assert_eq!((interval.n_defined, interval.n_undefined, interval.low), (5, 5, 1.0));
        assert_eq!(bootstrap(3, 10, 0.5, &mut rng, |_| Ok(None)).unwrap(), None);
    }

    #[test]
    fn parameters_are_checked() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut run = |n, resamples, level| bootstrap(n, resamples, level, &mut rng, |_| Ok(Some(f64::NAN)));
        assert!(matches!(run(1, 1, 0.5), Err(MetricError::InvalidParameter { parameter: "n_records", .. })));
        assert!(matches!(run(2, 0, 0.5), Err(MetricError::InvalidParameter { parameter: "n_resamples", .. })));
        assert!(matches!(run(2, 1, 1.0), Err(MetricError::InvalidParameter { parameter: "level", .. })));
        assert!(matches!(run(2, 1, 0.5), Err(MetricError::NotFinite { parameter: "statistic", index: 0, .. })));
    }
}
