//! Distribution functions: normal, Student's t, beta.

use std::f64::consts::{PI, SQRT_2};

/// Steps of the continued fraction; the incomplete beta functions used here need a few dozen.
const MAX_STEPS: u32 = 10_000;

/// `P(Z > z)` of the standard normal distribution.
pub(crate) fn normal_upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// The `z ≥ 0` with `P(Z > z) = tail` of the standard normal distribution, for `0 < tail ≤ ½`.
///
/// `dp_accounting::normal_quantile` is the same function of the other tail. A leaf crate does not
/// depend on another, and here it is three lines on Newton's method, which Student's t needs anyway.
pub(crate) fn normal_quantile(tail: f64) -> f64 {
    let density = |z: f64| (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
    newton(0.0, |z| normal_upper_tail(z) - tail, density)
}

/// `P(T > t)` of Student's distribution with `degrees` of freedom.
pub(crate) fn t_upper_tail(t: f64, degrees: f64) -> f64 {
    if t < 0.0 {
        return 1.0 - t_upper_tail(-t, degrees);
    }
    // Written so that a large t does not overflow.
    let x = 1.0 / (1.0 + t * (t / degrees));
    0.5 * incomplete_beta(x, degrees / 2.0, 0.5)
}

/// The `t ≥ 0` with `P(T > t) = tail` of Student's distribution with `degrees` of freedom, for `0 <
/// tail ≤ ½`. Degrees need not be whole.
///
/// ```
/// assert!((fair_metrics::t_quantile(0.025, 9.0) - 2.262).abs() < 1e-3);
/// ```
pub fn t_quantile(tail: f64, degrees: f64) -> f64 {
    let log_scale = libm::lgamma(f64::midpoint(degrees, 1.0)) - libm::lgamma(degrees / 2.0) - 0.5 * (degrees * PI).ln();
    let density = |t: f64| (log_scale - f64::midpoint(degrees, 1.0) * (t * (t / degrees)).ln_1p()).exp();
    // The normal quantile is the smaller one: Newton's steps start left of the solution.
    newton(normal_quantile(tail), |t| t_upper_tail(t, degrees) - tail, density)
}

/// The `x` with `I_x(a, b) = probability`.
pub(crate) fn beta_quantile(probability: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while high - low > f64::EPSILON * high {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if incomplete_beta(middle, a, b) < probability { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// A root of a convex falling function from a point left of it: steps go right and do not pass the
/// root.
fn newton(start: f64, value: impl Fn(f64) -> f64, density: impl Fn(f64) -> f64) -> f64 {
    let mut x = start;
    for _ in 0..200 {
        let step = value(x) / density(x);
        // Rounding ends the climb: NaN and steps to the left too.
        if !step.is_finite() || step <= 1e-15 * x.abs() {
            break;
        }
        x += step;
    }
    x
}

/// The regularised incomplete beta function `I_x(a, b)`.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast on this side; the other follows by symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let log_front = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (-x).ln_1p() - a.ln();
    (log_front.exp() * continued_fraction(x, a, b)).min(1.0)
}

/// Lentz's method for the continued fraction of the incomplete beta function (DLMF 8.17.22).
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    let not_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..MAX_STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / not_zero(1.0 + even * d);
        c = not_zero(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / not_zero(1.0 + odd * d);
        c = not_zero(1.0 + odd / c);
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-11 * b.abs()
    }

    /// With one and two degrees of freedom the distribution is elementary: `½ − atan(t)/π` and `½ −
    /// t/(2√(2 + t²))`.
    #[test]
    fn tails_of_t_with_few_degrees_are_elementary() {
        for t in [0.0_f64, 0.1, 1.0, 3.0, 30.0, 1e6] {
            let (one, two): (f64, f64) =
                ((1.0 / t).atan() / PI, 1.0 / ((2.0 + t * t).sqrt() * ((2.0 + t * t).sqrt() + t)));
            assert!((t_upper_tail(t, 1.0) - one).abs() < 1e-11, "{t}");
            assert!(close(t_upper_tail(t, 2.0), two), "{t}: {} {two}", t_upper_tail(t, 2.0));
            assert!((t_upper_tail(-t, 2.0) + two - 1.0).abs() < 1e-15);
        }
    }

    /// Printed tables of Student's t at 0.975.
    #[test]
    fn quantiles_are_those_of_printed_tables() {
        for (degrees, printed) in [(1.0, 12.706_2), (4.0, 2.776_4), (9.0, 2.262_2), (30.0, 2.042_3), (120.0, 1.979_9)] {
            assert!((t_quantile(0.025, degrees) - printed).abs() < 5e-5, "{degrees}");
        }
        assert!((normal_quantile(0.025) - 1.959_963_984_540_054).abs() < 1e-12);
        assert_eq!(normal_quantile(0.5), 0.0);
    }

    #[test]
    fn quantiles_invert_tails() {
        for degrees in [1.0, 1.5, 3.0, 9.0, 1e4] {
            for tail in [0.5, 0.3, 0.025, 1e-4, 1e-9] {
                let t = t_quantile(tail, degrees);
                assert!((t_upper_tail(t, degrees) / tail - 1.0).abs() < 1e-9, "{degrees} {tail} {t}");
            }
        }
    }

    /// `I_x(1, b) = 1 − (1 − x)^b` and `I_x(a, 1) = x^a`.
    #[test]
    fn beta_quantiles_of_powers() {
        assert!(close(beta_quantile(0.975, 1.0, 10.0), 1.0 - 0.025_f64.powf(0.1)));
        assert!(close(beta_quantile(0.025, 30.0, 1.0), 0.025_f64.powf(1.0 / 30.0)));
    }
}
