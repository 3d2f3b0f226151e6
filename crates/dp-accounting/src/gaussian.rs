//! The exact (ε, δ) of the Gaussian mechanism, between bounds on its rounding.

use crate::normal::{LOG_SQRT_TAU, MILLS_ERROR, MILLS_SLOPE_ERROR, mills, mills_slope};
use crate::{AccountingError, Delta, Epsilon, NoiseMultiplier};

const ULP: f64 = f64::EPSILON;

/// Bounds on the δ of a mechanism at one ε.
///
/// Where δ is near 1, its distance to 1 has the digits that δ itself has elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Profile {
    /// On `ln δ`.
    pub(crate) log_lower: f64,
    pub(crate) log_upper: f64,
    /// On `1 - δ`.
    pub(crate) rest_lower: f64,
    pub(crate) rest_upper: f64,
}

impl Profile {
    /// From `ln δ` and a bound on its error.
    fn of_log(log: f64, error: f64) -> Self {
        // NaN bounds nothing.
        let log_lower = if (log - error).is_nan() { f64::NEG_INFINITY } else { log - error };
        let log_upper = (log + error).min(0.0);
        let log_upper = if log_upper.is_nan() { 0.0 } else { log_upper };
        Self {
            log_lower,
            log_upper,
            rest_lower: -libm::expm1(log_upper) * (1.0 - 2.0 * ULP),
            rest_upper: -libm::expm1(log_lower) * (1.0 + 2.0 * ULP),
        }
    }

    /// From `1 - δ` and a bound on its relative error.
    fn of_rest(rest: f64, error: f64) -> Self {
        let (rest_lower, rest_upper) = (rest * (1.0 - error), (rest * (1.0 + error)).clamp(f64::MIN_POSITIVE, 1.0));
        Self {
            log_lower: libm::log1p(-rest_upper) * (1.0 + 2.0 * ULP),
            log_upper: libm::log1p(-rest_lower) * (1.0 - 2.0 * ULP),
            rest_lower,
            rest_upper,
        }
    }

    /// This mechanism on a share of the data: `δ = q·δ'`, `1 - δ = (1 - q) + q·(1 - δ')`.
    ///
    /// `log_share` is `ln q`, `rest` is `1 - q`; `error` bounds the error of the former and the
    /// relative one of the latter.
    fn scaled(self, log_share: f64, rest: f64, error: f64) -> Self {
        let share = libm::exp(log_share);
        let error = error + 4.0 * ULP * (1.0 + log_share.abs());
        Self {
            log_lower: self.log_lower + log_share - error,
            log_upper: self.log_upper + log_share + error,
            rest_lower: (rest + share * self.rest_lower) * (1.0 - error),
            rest_upper: (rest + share * self.rest_upper) * (1.0 + error),
        }
    }

    /// Bounds on the larger of two δ.
    fn larger(self, other: Self) -> Self {
        Self {
            log_lower: self.log_lower.max(other.log_lower),
            log_upper: self.log_upper.max(other.log_upper),
            rest_lower: self.rest_lower.min(other.rest_lower),
            rest_upper: self.rest_upper.min(other.rest_upper),
        }
    }

    /// Whether it is certain that this δ is at most `delta`.
    fn is_at_most(&self, delta: f64) -> bool {
        // 1 - δ is exact from a half upwards.
        if delta >= 0.5 {
            self.rest_lower >= 1.0 - delta
        } else {
            self.log_upper <= libm::log(delta) * (1.0 + 2.0 * ULP)
        }
    }

    /// Whether it is certain that this δ is at least `delta`.
    fn is_at_least(&self, delta: f64) -> bool {
        if delta >= 0.5 {
            self.rest_upper <= 1.0 - delta
        } else {
            self.log_lower >= libm::log(delta) * (1.0 - 2.0 * ULP)
        }
    }

    /// Bounds on δ.
    pub(crate) fn delta(&self) -> (f64, f64) {
        let lower = if self.rest_upper < 0.5 {
            (1.0 - self.rest_upper).next_down()
        } else {
            libm::exp(self.log_lower) * (1.0 - 4.0 * ULP)
        };
        let upper = if self.rest_lower < 0.5 {
            (1.0 - self.rest_lower).next_up()
        } else {
            // Rounded up where it is subnormal too.
            (libm::exp(self.log_upper) * (1.0 + 4.0 * ULP)).next_up()
        };
        (lower.max(0.0), upper.min(1.0))
    }
}

/// δ of the Gaussian mechanism with `μ = sensitivity/σ`.
///
/// With the Mills ratio `m` and `near`, `far` the points `ε/μ ∓ μ/2`, where `e^ε = φ(near)/φ(far)`,
/// `δ = φ(near)·(m(near) - m(far))`, and `1 - δ = φ(near)·(m(-near) + m(far))`.
///
/// **Source.** Balle & Wang 2018, Theorem 8: `δ = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ)`.
pub(crate) fn gaussian_profile(mu: f64, epsilon: f64) -> Profile {
    let (ratio, half) = (epsilon / mu, 0.5 * mu);
    let (near, far) = (ratio - half, ratio + half);
    // The quotient is rounded, then the sum; halving is exact.
    let (near_error, far_error) = (ULP * (0.5 * ratio + near.abs()), ULP * (0.5 * ratio + far));
    if near > 1e6 || near.is_nan() {
        // δ ≤ exp(-near²/2), far below any number.
        return Profile { log_lower: f64::NEG_INFINITY, log_upper: -1e11, rest_lower: 1.0 - ULP, rest_upper: 1.0 };
    }
    let log_density = -0.5 * near * near - LOG_SQRT_TAU;
    let density_error = near.abs() * near_error + ULP * (near * near + 2.0);
    if near < -1.0 {
        let sum = mills(-near) + mills(far);
        // m(t)·(1 + |dm/m|·error), and |m'/m| is at most 0.8 from 0 on.
        let error = density_error + MILLS_ERROR + near_error + far_error + 4.0 * ULP;
        return Profile::of_rest(libm::exp(log_density) * sum, (error + libm::expm1(error)).min(1.0));
    }
    let (difference, error) =
        if mu < 0.1 { narrow_difference(ratio, mu) } else { wide_difference(near, far, near_error, far_error) };
    let log = log_density + libm::log(difference);
    // -ln(1 - e) ≤ e + e².
    let error = density_error + error * (1.0 + error) + 4.0 * ULP * (1.0 + log.abs());
    Profile::of_log(log, if error < 0.5 { error } else { f64::INFINITY })
}

/// Upper bound on `ln δ` of the Gaussian mechanism.
pub(crate) fn log_gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    gaussian_profile(mu, epsilon).log_upper
}

/// `m(near) - m(far)` and a bound on its relative error.
fn wide_difference(near: f64, far: f64, near_error: f64, far_error: f64) -> (f64, f64) {
    let (first, second) = (mills(near), mills(far));
    let difference = first - second;
    let error = MILLS_ERROR * (first + second)
        + 1.01 * (mills_slope(near) * near_error + mills_slope(far) * far_error)
        + ULP * difference;
    (difference, error / difference)
}

/// `m(c - μ/2) - m(c + μ/2)` and a bound on its relative error, for small μ: the integral of `-m'`,
/// by Gauss–Legendre.
///
/// `-m'(t) = ∫ s·e^(-ts - s²/2) ds` over `s > 0`, so its tenth derivative over it is at most `3840`
/// at 0 and less beyond: below 5000 from -0.05 on. The rule's error is `μ¹¹·(5!)⁴/(11·(10!)³)`
/// times that: relatively below `4e-13·5000·μ¹⁰`, 2e-19.
fn narrow_difference(centre: f64, mu: f64) -> (f64, f64) {
    const RULE: [(f64, f64); 5] = [
        (-0.906_179_845_938_664, 0.236_926_885_056_189_08),
        (-0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
        (0.0, 0.568_888_888_888_888_9),
        (0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
        (0.906_179_845_938_664, 0.236_926_885_056_189_08),
    ];
    let integral: f64 =
        RULE.iter().map(|(node, weight)| 0.5 * mu * weight * mills_slope(centre + 0.5 * mu * node)).sum();
    // |m''/m'| is at most 1.26 from 0 on, 1.3 from -0.05 on.
    (integral, MILLS_SLOPE_ERROR + 8.0 * ULP + 1.3 * 2.0 * ULP * (centre + mu))
}

/// δ of one Poisson-sampled Gaussian, the larger of its two directions: a sampled pair's profile is
/// the unsampled one's, at another ε.
///
/// With `γ = e^ε`: record present against absent is `q·δ'(ln(1 + (γ-1)/q))`; absent against present
/// is `d·δ'(ln(γq/d))` with `d = 1 - γ(1-q)` where that is positive, else 0.
pub(crate) fn sampled_gaussian_profile(q: f64, mu: f64, epsilon: f64) -> Profile {
    present_profile(q, mu, epsilon).larger(absent_profile(q, mu, epsilon))
}

/// Record present against absent. Of fixed-size batches, too, at every `ε ≥ 0`.
pub(crate) fn present_profile(q: f64, mu: f64, epsilon: f64) -> Profile {
    if q >= 1.0 {
        return gaussian_profile(mu, epsilon);
    }
    let (inner, error) = if epsilon < 36.0 {
        let inner = libm::log1p(libm::expm1(epsilon) / q);
        (inner, 6.0 * ULP * inner)
    } else {
        let log_rate = libm::log(q);
        (epsilon - log_rate - (1.0 - q) * libm::exp(-epsilon), 4.0 * ULP * (epsilon - log_rate))
    };
    at_uncertain_epsilon(mu, inner, error).scaled(libm::log(q), 1.0 - q, 2.0 * ULP)
}

/// Record absent against present.
pub(crate) fn absent_profile(q: f64, mu: f64, epsilon: f64) -> Profile {
    let nothing =
        Profile { log_lower: f64::NEG_INFINITY, log_upper: f64::NEG_INFINITY, rest_lower: 1.0, rest_upper: 1.0 };
    if q >= 1.0 {
        return gaussian_profile(mu, epsilon);
    }
    // d = q(1 - x).
    let x = (1.0 - q) * libm::expm1(epsilon) / q;
    let x_error = 6.0 * ULP * x;
    if x - x_error >= 1.0 {
        return nothing;
    }
    let share_error = x_error / (1.0 - x);
    if share_error >= 1e-3 || share_error.is_nan() {
        // So near the end of the losses that only δ ≤ d is left.
        let share = q * (1.0 - x + 2.0 * x_error).max(0.0);
        return Profile {
            log_upper: libm::log(share) + 8.0 * ULP * (1.0 + libm::log(share).abs()),
            rest_lower: 1.0 - share - ULP,
            ..nothing
        };
    }
    let log_share = libm::log1p(-x);
    let inner = epsilon - log_share;
    let error = 1.01 * share_error + 4.0 * ULP * inner;
    let rest = (1.0 - q) + q * x;
    at_uncertain_epsilon(mu, inner, error).scaled(log_share + libm::log(q), rest, 1.01 * share_error + 8.0 * ULP)
}

/// The profile where ε is known up to an error.
fn at_uncertain_epsilon(mu: f64, epsilon: f64, error: f64) -> Profile {
    let (above, below) = (gaussian_profile(mu, (epsilon - error).max(0.0)), gaussian_profile(mu, epsilon + error));
    Profile {
        log_lower: below.log_lower,
        log_upper: above.log_upper,
        rest_lower: above.rest_lower,
        rest_upper: below.rest_upper,
    }
}

/// Bounds on the smallest ε at a δ, for a profile that falls.
///
/// `less` and `more` are the profile for the smallest and the largest μ that rounding allows.
pub(crate) fn invert(
    less: impl Fn(f64) -> Profile,
    more: impl Fn(f64) -> Profile,
    delta: f64,
    start: f64,
) -> (f64, f64) {
    let upper = invert_from_above(more, delta, start);
    if !upper.is_finite() {
        return (0.0, f64::INFINITY);
    }
    let lower = if less(0.0).is_at_least(delta) {
        last_true(0.0, upper, |epsilon| less(epsilon).is_at_least(delta))
    } else {
        0.0
    };
    (lower, upper)
}

/// The upper of both bounds alone.
fn invert_from_above(more: impl Fn(f64) -> Profile, delta: f64, start: f64) -> f64 {
    if more(0.0).is_at_most(delta) {
        return 0.0;
    }
    let mut high = start.max(f64::MIN_POSITIVE);
    while !more(high).is_at_most(delta) {
        high *= 2.0;
        if !high.is_finite() {
            return f64::INFINITY;
        }
    }
    last_true(high, 0.0, |epsilon| more(epsilon).is_at_most(delta))
}

/// Bisection from where something holds towards where it need not: the last point found at which it
/// does.
fn last_true(holds: f64, fails: f64, at: impl Fn(f64) -> bool) -> f64 {
    let (mut holds, mut fails) = (holds, fails);
    for _ in 0..200 {
        let middle = 0.5 * (holds + fails);
        if middle == holds || middle == fails {
            break;
        }
        if at(middle) {
            holds = middle;
        } else {
            fails = middle;
        }
    }
    holds
}

/// Upper bound on the smallest ε of the Gaussian mechanism, `μ = sensitivity/σ` being known to a
/// relative error.
pub(crate) fn gaussian_epsilon_at_most(mu: f64, mu_error: f64, delta: f64) -> f64 {
    if mu == 0.0 || !mu.is_finite() {
        return mu;
    }
    let largest = mu * (1.0 + mu_error);
    invert_from_above(|epsilon| gaussian_profile(largest, epsilon), delta, beyond(largest, delta))
}

/// About an ε whose δ is smaller.
fn beyond(mu: f64, delta: f64) -> f64 {
    mu * (0.5 * mu + (-2.0 * libm::log(delta)).sqrt())
}

/// Bounds on δ of the Gaussian mechanism, `μ = sensitivity/σ` being known to a relative error.
pub(crate) fn gaussian_delta(mu: f64, mu_error: f64, epsilon: f64) -> (f64, f64) {
    let (least, largest) = (mu * (1.0 - mu_error), mu * (1.0 + mu_error));
    (gaussian_profile(least, epsilon).delta().0, gaussian_profile(largest, epsilon).delta().1)
}

/// The smallest noise multiplier with which the Gaussian mechanism is (ε, δ)-differentially
/// private, rounded up.
///
/// **Units.** Noise standard deviation over sensitivity.
///
/// **Source.** Balle & Wang 2018, Algorithm 1, by bisection.
///
/// # Errors
/// [`AccountingError::InvalidParameter`] for ε = ∞ or δ = 1, which any noise meets, δ = 0, which none
/// does, and for parameters that ask for noise beyond 1e300.
///
/// # Examples
/// ```
/// use dp_accounting::{Delta, Epsilon, analytic_gaussian_noise_multiplier};
/// let sigma = analytic_gaussian_noise_multiplier(Epsilon::new(1.0)?, Delta::new(1e-5)?)?;
/// assert!((sigma.get() - 3.730_63).abs() < 1e-5);
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
pub fn analytic_gaussian_noise_multiplier(epsilon: Epsilon, delta: Delta) -> Result<NoiseMultiplier, AccountingError> {
    if !epsilon.is_finite() {
        return Err(AccountingError::invalid("epsilon", epsilon.get(), "a finite number"));
    }
    if delta.get() <= 0.0 || delta.get() >= 1.0 {
        return Err(AccountingError::invalid("delta", delta.get(), "a number in (0, 1), for Gaussian noise"));
    }
    let meets = |sigma: f64| {
        let mu = sigma.recip() * (1.0 + ULP);
        gaussian_profile(mu, epsilon.get()).is_at_most(delta.get())
    };
    // In the logarithm first, then in σ itself, whose neighbours the logarithm does not tell apart.
    let coarse = last_true(700.0, -13.0, |log_sigma| meets(libm::exp(log_sigma)));
    let high = libm::exp(coarse) * (1.0 + 1e-12);
    let low = high * (1.0 - 1e-11);
    NoiseMultiplier::new(if meets(high) { last_true(high, low, meets) } else { high * (1.0 + 1e-11) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether both bounds hold a value and agree to a relative width.
    fn encloses((lower, upper): (f64, f64), exact: f64, width: f64) -> bool {
        lower <= exact && exact <= upper && upper - lower <= width * upper
    }

    /// Bounds on the smallest ε, `μ` being exact.
    fn gaussian_epsilon(mu: f64, delta: f64) -> (f64, f64) {
        let profile = |epsilon: f64| gaussian_profile(mu, epsilon);
        let (lower, upper) = invert(profile, profile, delta, beyond(mu, delta));
        assert_eq!(gaussian_epsilon_at_most(mu, 0.0, delta), upper);
        (lower, upper)
    }

    #[test]
    fn delta_at_zero_is_the_total_variation() {
        // ε = 0: Φ(μ/2) - Φ(-μ/2) = erf(μ/√8), by mpmath 1.3 with 50 digits.
        for (mu, exact) in [
            (1e-8, 3.989_422_804_014_327e-9),
            (1e-3, 3.989_422_637_788_383e-4),
            (0.09, 0.035_892_691_044_278_13),
            (0.11, 0.043_861_536_205_646_95),
            (1.0, 0.382_924_922_548_026_2),
            (5.0, 0.987_580_669_348_447_7),
        ] {
            assert!(encloses(gaussian_delta(mu, 0.0, 0.0), exact, 1e-12), "{mu} {:?}", gaussian_delta(mu, 0.0, 0.0));
        }
    }

    #[test]
    fn both_branches_agree_where_they_meet() {
        for epsilon in [0.001, 0.1, 0.5, 2.0] {
            let (left, right) = (gaussian_profile(0.1 - 1e-15, epsilon), gaussian_profile(0.1 + 1e-15, epsilon));
            assert!(
                left.log_lower <= right.log_upper + 1e-10 && right.log_lower <= left.log_upper + 1e-10,
                "{epsilon}: {left:?} {right:?}"
            );
        }
    }

    #[test]
    fn epsilon_inverts_delta_out_to_tiny_delta() {
        for mu in [1e-4, 0.05, 0.3, 1.0, 20.0, 1e5] {
            for delta in [1.0 - 1e-9, 0.9, 1e-2, 1e-6, 1e-30, 1e-200] {
                let (lower, upper) = gaussian_epsilon(mu, delta);
                assert!(upper == 0.0 || (upper - lower) < 1e-9 * upper, "{mu} {delta}: [{lower}, {upper}]");
                assert!(
                    gaussian_delta(mu, 0.0, upper).0 <= delta
                        && (lower == 0.0 || gaussian_delta(mu, 0.0, lower).1 >= delta)
                );
            }
        }
    }

    /// Where an assumed relative error of 1e-11 was too little: ε near 0, δ near 1, δ near 0.
    #[test]
    fn corners_enclose_values_of_fifty_digits() {
        let exact = 7.308_033_377_113_851e-8;
        let (lower, upper) = gaussian_epsilon(1.0, 0.382_924_9);
        assert!(lower <= exact && exact <= upper && upper - lower < 1e-13, "[{lower}, {upper}]");
        // σ = 1, T = 100.
        let (lower, upper) = gaussian_epsilon(10.0, 0.999_999);
        assert!(
            lower <= 1.124_472_302_591_755 && 1.124_472_302_591_755 <= upper && upper - lower < 1e-9,
            "[{lower}, {upper}]"
        );
        let (lower, upper) = gaussian_delta(9.99_f64.recip(), 4.0 * ULP, 3.0);
        let exact = 1.801_266_073_161_251e-199;
        assert!(lower <= exact && exact <= upper && upper < exact * (1.0 + 1e-9), "[{lower}, {upper}]");
    }
}
