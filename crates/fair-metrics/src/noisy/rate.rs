//! Intervals of a rate and of a mean of rates.

use serde::{Deserialize, Serialize};

use super::contrast::{Contrast, USED};
use super::share::Share;
use crate::special::{beta_quantile, normal_quantile};

/// A rate with its interval, of sampling and of noise; unknown where its records cannot be told
/// from noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoisyRate {
    /// The estimate.
    pub value: Option<f64>,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl NoisyRate {
    /// Anything from 0 to 1.
    pub const UNKNOWN: Self = Self { value: None, low: 0.0, high: 1.0 };

    /// Whether the interval holds a value, but for rounding.
    pub fn contains(&self, value: f64) -> bool {
        self.low - 1e-9 <= value && value <= self.high + 1e-9
    }
}

/// The mean of independent rates with its equal-tailed interval at this level; of one share, its
/// rate.
///
/// # Edge cases
/// [`NoisyRate::UNKNOWN`] of no share, and where one is not [known](Share::is_known).
///
/// # Source
/// One share without noise: Clopper and Pearson 1934, of fractional counts Korn and Graubard 1998.
/// Otherwise see the [`noisy`](crate::noisy).
///
/// # Example
/// ```
/// use fair_metrics::noisy::{Share, mean_of_shares};
///
/// // Both recalls are 1, but for noise of standard deviation 4.
/// let recall = |others: f64| Share::independent(500.0, others, 16.0, 16.0);
/// let balanced = mean_of_shares(&[recall(5.0), recall(6.0)], 0.95);
/// assert_eq!(balanced.high, 1.0);
/// assert!(balanced.low > 0.97);
/// ```
pub fn mean_of_shares(shares: &[Share], level: f64) -> NoisyRate {
    let contrast = mean(shares);
    if shares.is_empty() || !contrast.is_known() {
        return NoisyRate::UNKNOWN;
    }
    let tail = 0.5 * (1.0 - level);
    let value = contrast.estimate().clamp(0.0, 1.0);
    let (low, high) = match shares {
        [share] if share.is_exact() => exact(share, tail),
        _ => {
            let z = contrast.quantile(tail);
            (contrast.lower_end(z), contrast.upper_end(z))
        }
    };
    NoisyRate { value: Some(value), low: low.clamp(0.0, value), high: high.clamp(value, 1.0) }
}

/// The interval of an estimate in [0, 1] that is normal, with this standard deviation, about the truth: on
/// the scale of log-odds, with a tenth of every tail kept back. An estimate nearer to 0 or 1 than `least`
/// counts as that far from it.
pub fn interval_of_estimate(value: f64, deviation: f64, least: f64, level: f64) -> NoisyRate {
    if !value.is_finite() || !deviation.is_finite() {
        return NoisyRate::UNKNOWN;
    }
    let value = value.clamp(0.0, 1.0);
    let inner = value.clamp(least.min(0.5), 1.0 - least.min(0.5));
    let z = normal_quantile(USED * 0.5 * (1.0 - level));
    let (middle, half) = ((inner / (1.0 - inner)).ln(), z * deviation.max(least) / (inner * (1.0 - inner)));
    let at = |logit: f64| 1.0 / (1.0 + (-logit).exp());
    NoisyRate { value: Some(value), low: at(middle - half).min(value), high: at(middle + half).max(value) }
}

/// The sum whose value is the mean of the shares.
pub(super) fn mean(shares: &[Share]) -> Contrast {
    let weight = 1.0 / shares.len() as f64;
    Contrast::new(shares.iter().map(|share| (weight, *share)))
}

fn exact(share: &Share, tail: f64) -> (f64, f64) {
    let Share { hits, others, .. } = *share;
    let low = if hits <= 0.0 { 0.0 } else { beta_quantile(tail, hits, others + 1.0) };
    let high = if others <= 0.0 { 1.0 } else { beta_quantile(1.0 - tail, hits + 1.0, others) };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clopper_pearson;

    fn noisy(hits: f64, others: f64, std: f64) -> Share {
        Share::independent(hits, others, std * std, std * std)
    }

    #[test]
    fn without_noise_one_rate_is_exact() {
        let found = mean_of_shares(&[Share::exact(8.0, 2.0)], 0.95);
        let expected = clopper_pearson(8, 10, 0.95).unwrap();
        assert_eq!((found.value, found.low, found.high), (Some(0.8), expected.low, expected.high));
    }

    /// The saddlepoint's ends of 90 of 100, beside Clopper and Pearson's 0.8238 and 0.9510: somewhat
    /// wider for the tenth of the tails that is kept back.
    #[test]
    fn little_noise_changes_little() {
        let found = mean_of_shares(&[noisy(90.0, 10.0, 0.01)], 0.95);
        assert!((found.low - 0.8238).abs() < 3e-3 && (found.high - 0.9510).abs() < 3e-3, "{found:?}");
    }

    /// At a rate of ½ and many records all is normal: the half-width is z·√(p(1 − p)/n + σ²/(2n²)) and
    /// half a record, with z = 2.005 for nine tenths of a tail of 2.5 %.
    #[test]
    fn noise_adds_its_variance() {
        let found = mean_of_shares(&[noisy(5_000.0, 5_000.0, 60.0)], 0.95);
        let half = 2.005 * (0.25 / 1e4 + 0.5 * 3_600.0 / 1e8_f64).sqrt() + 0.5 / 1e4;
        assert!((found.high - 0.5 - half).abs() < 0.02 * half, "{found:?} {half}");
        assert!((found.low + found.high - 1.0).abs() < 1e-9);
    }

    /// Hits of 3.1 with noise of standard deviation 1.2: 3.1 − ½ is 2.17 deviations from 0.
    #[test]
    fn noise_alone_decides_whether_a_rate_may_be_zero() {
        assert!(mean_of_shares(&[noisy(3.1, 900.0, 1.2)], 0.95).low > 0.0);
        assert_eq!(mean_of_shares(&[noisy(2.8, 900.0, 1.2)], 0.95).low, 0.0);
    }

    #[test]
    fn noise_drowns_and_nothing_leaves_the_range() {
        assert_eq!(mean_of_shares(&[noisy(8.0, 10.0, 30.0)], 0.95), NoisyRate::UNKNOWN);
        assert_eq!(mean_of_shares(&[noisy(-3.0, -1.0, 1.0)], 0.95), NoisyRate::UNKNOWN);
        assert_eq!(mean_of_shares(&[Share::exact(0.0, 0.0)], 0.95), NoisyRate::UNKNOWN);
        assert_eq!(mean_of_shares(&[Share::exact(f64::NAN, 1.0)], 0.95), NoisyRate::UNKNOWN);
        assert_eq!(mean_of_shares(&[], 0.95), NoisyRate::UNKNOWN);
        let all = mean_of_shares(&[noisy(1_010.0, -10.0, 5.0)], 0.95);
        assert_eq!((all.value, all.high), (Some(1.0), 1.0));
        assert!(all.low < 1.0 && all.low > 0.97, "{all:?}");
    }

    /// Both recalls fall short of 1 by about one standard deviation of their noise. Each half-width
    /// alone reaches 1; added in quadrature after clamping they would end at 0.9969.
    #[test]
    fn clamping_comes_last() {
        let found = mean_of_shares(&[noisy(500.0, 5.5, 5.0), noisy(500.0, 5.5, 5.0)], 0.95);
        assert_eq!(found.high, 1.0);
        assert!((found.value.unwrap() - 500.0 / 505.5).abs() < 1e-12);
    }
}
