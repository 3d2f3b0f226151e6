//! The normal distribution through its Mills ratio, which neither underflows nor cancels.

use std::f64::consts::FRAC_1_SQRT_2;

/// `ln √(2π)`.
pub(crate) const LOG_SQRT_TAU: f64 = 0.918_938_533_204_672_8;

/// Bound on the relative error of [`mills`].
///
/// Below 2.5, `erfc` (2 ulp) sees an argument that is right to `ε`, whose share in the result is at
/// most `t·φ/(1 - Φ) ≤ 7.1`; the exponential adds `t²/2 ≤ 3.2` and 1, the products 2. Beyond, every
/// step of the continued fraction is a sum of positive numbers that halves, at least, the errors
/// below it.
pub(crate) const MILLS_ERROR: f64 = 16.0 * f64::EPSILON;

/// Bound on the relative error of [`mills_slope`]: `t·m(t) ≤ 0.887` is taken from 1 below 2.5.
pub(crate) const MILLS_SLOPE_ERROR: f64 = 160.0 * f64::EPSILON;

/// Where the continued fraction takes over.
const FAR: f64 = 2.5;

/// Probability that a standard normal exceeds `x`.
pub(crate) fn survival(x: f64) -> f64 {
    0.5 * libm::erfc(x * FRAC_1_SQRT_2)
}

/// Natural logarithm of [`survival`], which underflows at 38.
pub(crate) fn log_survival(x: f64) -> f64 {
    if x < FAR { libm::log(survival(x)) } else { log_density(x) + libm::log(mills(x)) }
}

/// Natural logarithm of the standard normal density.
pub(crate) fn log_density(x: f64) -> f64 {
    -0.5 * x * x - LOG_SQRT_TAU
}

/// The `x` below which a standard normal variable falls with probability `p`: minus infinity for
/// `p ≤ 0`, infinity for `p ≥ 1`.
///
/// Right to rounding for every `p ≤ ½`, however small: it is found from the logarithm of the tail.
///
/// ```
/// assert!((dp_accounting::normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
/// ```
pub fn normal_quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    // ln p is concave in the distance from 0, so Newton's method from the far side converges.
    let (target, mut distance) = (libm::log(p), (-2.0 * libm::log(p)).sqrt());
    for _ in 0..60 {
        let log = log_survival(distance);
        let next = distance + (log - target) * libm::exp(log - log_density(distance));
        if (next - distance).abs() <= 1e-15 * distance.abs().max(1e-3) {
            return -next;
        }
        distance = next;
    }
    // Newton's steps no longer change more than rounding does.
    debug_assert!((survival(distance) / p - 1.0).abs() < 1e-9);
    -distance
}

/// The Mills ratio `m(t) = (1 - Φ(t))/φ(t)`, for `t ≥ -1`.
pub(crate) fn mills(t: f64) -> f64 {
    if t < FAR {
        return 0.5 * libm::erfc(t * FRAC_1_SQRT_2) * libm::exp(0.5 * t * t + LOG_SQRT_TAU);
    }
    (t + inner_fraction(t)).recip()
}

/// `1 - t·m(t) = -m'(t)`, positive everywhere and falling; for `t ≥ -1`.
pub(crate) fn mills_slope(t: f64) -> f64 {
    if t < FAR {
        return 1.0 - t * mills(t);
    }
    // 1 - t/(t + r) = r/(t + r), without cancellation.
    let rest = inner_fraction(t);
    rest / (t + rest)
}

/// `1/(t + 2/(t + 3/(t + …)))`, so that `m = 1/(t + …)`: successive convergents enclose it, and
/// after 80 terms they agree to 6e-17 at 2.5.
fn inner_fraction(t: f64) -> f64 {
    let mut inner = t;
    for k in (2..=80).rev() {
        inner = t + f64::from(k) / inner;
    }
    inner.recip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mills_ratios_are_within_their_error() {
        // mpmath 1.3, 50 digits: (erfc(t/√2)/2)/φ(t) and 1 - t times that.
        for (t, ratio, slope) in [
            (-1.0, 3.477_051_811_703_694_5, 4.477_051_811_703_694),
            (0.0, 1.253_314_137_315_500_3, 1.0),
            (0.7, 0.774_893_848_779_390_6, 0.457_574_305_854_426_6),
            (2.499_999, 0.354_265_225_667_049_6, 0.114_337_290_097_601_8),
            (2.5, 0.354_265_111_329_793_7, 0.114_337_221_675_515_83),
            (5.0, 0.192_808_104_715_315_77, 0.035_959_476_423_421_18),
            (38.0, 0.026_297_602_974_252_964, 6.910_869_783_873_537e-4),
            (1e6, 9.999_999_999_99e-7, 9.999_999_999_97e-13),
        ] {
            assert!((mills(t) / ratio - 1.0).abs() < MILLS_ERROR, "{t}: {} {ratio}", mills(t));
            assert!((mills_slope(t) / slope - 1.0).abs() < MILLS_SLOPE_ERROR, "{t}: {} {slope}", mills_slope(t));
        }
    }

    /// mpmath 1.3, 50 digits: roots of `ln(erfc(-x/√2)/2) - ln p`.
    #[test]
    fn quantiles_are_right_far_out() {
        for (p, quantile) in [
            (1e-300, -37.047_096_299_361_2),
            (1e-30, -11.464_024_688_443_615),
            (1e-5, -4.264_890_793_922_825),
            (0.025, -1.959_963_984_540_054_3),
            (0.3, -0.524_400_512_708_040_8),
            (0.6, 0.253_347_103_135_799_7),
            (0.975, 1.959_963_984_540_053_8),
        ] {
            assert!((normal_quantile(p) / quantile - 1.0).abs() < 4e-15, "{p}: {} {quantile}", normal_quantile(p));
        }
        assert_eq!((normal_quantile(0.0), normal_quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(normal_quantile(0.5).abs() < 1e-15);
    }

    #[test]
    fn successive_convergents_agree() {
        let convergent = |t: f64, depth: u32| (2..=depth).rev().fold(t, |inner, k| t + f64::from(k) / inner);
        for t in [2.5, 3.0, 6.0, 30.0] {
            assert!((convergent(t, 80) / convergent(t, 81) - 1.0).abs() < 1e-15, "{t}");
        }
    }
}
