//! How far apart two samples are at least, in standard deviations.

use super::normal_cdf;

/// Points at which the density of a standard deviation is taken.
const POINTS: u32 = 800;

/// A lower bound on the difference of two normal distributions' means over their common standard
/// deviation, wrong with probability `failure` at most; 0 where the samples say nothing.
///
/// The two-sample statistic has a noncentral t distribution. Its upper tail grows with the
/// difference, and the bound is the difference at which that tail is `failure`.
///
/// **Assumption.** Both samples are normal with one standard deviation.
pub(crate) fn lower_bound(present: &[f64], absent: &[f64], failure: f64) -> f64 {
    let (n, m) = (present.len() as f64, absent.len() as f64);
    if n < 2.0 || m < 2.0 {
        return 0.0;
    }
    let mean = |sample: &[f64]| sample.iter().sum::<f64>() / sample.len() as f64;
    let (mean_present, mean_absent) = (mean(present), mean(absent));
    let squares = |sample: &[f64], mean: f64| sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let freedom = n + m - 2.0;
    let std = ((squares(present, mean_present) + squares(absent, mean_absent)) / freedom).sqrt();
    let weight = (n * m / (n + m)).sqrt();
    let statistic = (mean_present - mean_absent) / std * weight;
    if !statistic.is_finite() || upper_tail(0.0, statistic, freedom) > failure {
        return 0.0;
    }
    // The tail grows with the noncentrality, and is above one half at the statistic's 1.1-fold.
    let (mut low, mut high) = (0.0_f64, 1.1 * statistic + 1.0);
    for _ in 0..60 {
        let middle = low.midpoint(high);
        if upper_tail(middle, statistic, freedom) <= failure { low = middle } else { high = middle }
    }
    low / weight
}

/// `P(T ≥ t)` of a noncentral t: of a normal variate around `noncentrality` over the estimate of its
/// standard deviation, over whose density this is the mean.
fn upper_tail(noncentrality: f64, t: f64, freedom: f64) -> f64 {
    let spread = 9.0 / (2.0 * freedom).sqrt();
    let (from, to) = ((1.0 - spread).max(0.0), 1.0 + spread);
    let (mut total, mut tail) = (0.0, 0.0);
    for point in 0..POINTS {
        let s = from + (to - from) * (f64::from(point) + 0.5) / f64::from(POINTS);
        // The density of χ/√ν over its value near 1, without a gamma function.
        let density = ((freedom - 1.0) * s.ln() - 0.5 * freedom * (s * s - 1.0)).exp();
        total += density;
        tail += density * normal_cdf(noncentrality - t * s);
    }
    tail / total
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By SciPy 1.17: `t.sf(2, 10)` is 0.036694, and `nct.sf(3, 20, 1.5)` 0.092626.
    #[test]
    fn tails_are_those_of_tables() {
        assert!((upper_tail(0.0, 2.0, 10.0) - 0.036_694).abs() < 1e-5);
        assert!((upper_tail(1.5, 3.0, 20.0) - 0.092_626).abs() < 1e-5);
        let half = upper_tail(1.5, 1.5, 1e6);
        assert!((half - 0.5).abs() < 1e-3, "{half}");
    }

    /// Two samples of 1, −1 around 3 and 0: their difference over the standard deviation √(4·1/2) is
    /// 3/√2 = 2.12, and the bound is below.
    #[test]
    fn a_bound_is_below_the_estimate() {
        let bound = lower_bound(&[4.0, 2.0], &[1.0, -1.0], 0.05);
        assert!((0.0..2.2).contains(&bound), "{bound}");
        let many: Vec<f64> = (0..4_000).map(|i| f64::from(i % 2) * 2.0 - 1.0).collect();
        let shifted: Vec<f64> = many.iter().map(|x| x + 1.0).collect();
        let bound = lower_bound(&shifted, &many, 0.05);
        assert!(bound > 0.95 && bound < 0.99, "{bound}");
        assert_eq!(lower_bound(&many, &shifted, 0.05), 0.0);
        assert_eq!(lower_bound(&[1.0], &many, 0.05), 0.0);
        assert_eq!(lower_bound(&[1.0, 1.0], &[1.0, 1.0], 0.05), 0.0);
    }
}
