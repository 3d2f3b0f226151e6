//! Rényi divergence of the Poisson-sampled Gaussian at any real order: an upper bound, by
//! quadrature with every error charged to it.
//!
//! With `u ~ N(0, 1)`, `μ = 1/σ` and `w = 1 - q + q·e^(μu - μ²/2)`, the moment is `E[w^α] = 1 +
//! E[g]`, `g = w^α - 1 - α(w - 1) ≥ 0`: nothing cancels, however small q is. `E[g]` is a
//! trapezoidal sum of step `h`, and these are its errors (`docs/accounting.md` derives them):
//!
//! - *The step.* `g` is analytic for `|Im u| < π/μ`, and on `Im u = ±a` its modulus against `φ`
//!   integrates to at most `e^(a²/2)·(E[w^α] + 1 + 2α)`.
//! - *What is left out.* The range of nodes is halved until a block is short, or is shown to be
//!   negligible by its convex majorant; then the bound on it is added.
//! - *Rounding*, term by term.
//!
//! Where that takes too many nodes, or rounding leaves nothing, Minkowski's inequality answers:
//! `E[w^α]^(1/α) ≤ 1 - q + q·e^((α-1)μ²/2)`.

use std::f64::consts::{LN_2, PI};

use crate::normal::LOG_SQRT_TAU;

const EPSILON: f64 = f64::EPSILON;

/// Rényi divergence of order `order` > 1 of the Poisson-sampled Gaussian, the larger of its two
/// directions: an upper bound, and no larger than it by more than rounding where the quadrature
/// succeeds.
///
/// **Source.** Mironov, Talwar & Zhang 2019, Section 3.3; that record present against absent is the
/// larger direction is their Theorem 5.
pub(crate) fn sampled_gaussian_rdp(q: f64, sigma: f64, order: f64) -> f64 {
    let by_convexity = by_minkowski(q, sigma, order);
    match log_excess_moment(q, sigma.recip(), order) {
        Some(log_excess) => (log_one_plus_exp(log_excess) / (order - 1.0) * (1.0 + 8.0 * EPSILON)).min(by_convexity),
        None => by_convexity,
    }
}

/// `ln(1 + e^x)`.
fn log_one_plus_exp(x: f64) -> f64 {
    if x > 36.0 { x + libm::exp(-x) } else { libm::log1p(libm::exp(x)) }
}

/// `α/(α-1)·ln(1 - q + q·e^((α-1)μ²/2))`, rounded up; never more than without sampling.
fn by_minkowski(q: f64, sigma: f64, order: f64) -> f64 {
    let exponent = (order - 1.0) / (2.0 * sigma * sigma);
    let unsampled = order / (2.0 * sigma * sigma);
    let log_norm = if exponent < 36.0 {
        libm::log1p(q * libm::expm1(exponent))
    } else {
        // The larger of ln q + x and 0, plus the share of the smaller.
        let larger = (exponent + libm::log(q)).max(0.0);
        let smaller = (exponent + libm::log(q)).min(0.0) - larger;
        larger + libm::log1p(libm::exp(smaller))
    };
    let rounding = 16.0 * EPSILON * (1.0 + (exponent - libm::log(q)) / log_norm.max(1e-300)).min(1e15);
    (order / (order - 1.0) * log_norm * (1.0 + rounding)).min(unsampled * (1.0 + 8.0 * EPSILON))
}

/// More nodes than this are not summed.
const MAX_NODES: f64 = 32_768.0;

/// Exponentials of more overflow, or nearly.
const LARGEST_EXPONENT: f64 = 700.0;

/// A block this short is summed node by node.
const SHORT: i64 = 8;

/// Blocks below `e^-46` of what is known already are bounded, not summed.
const NEGLIGIBLE: f64 = 46.0;

/// Upper bound on `ln(E[w^α] - 1)`; `None` where the sum would be too long or too inexact.
fn log_excess_moment(q: f64, mu: f64, order: f64) -> Option<f64> {
    // Beyond, rounding of exponents of the size of (αμ)² leaves no digits.
    if !(order * mu < 1e6 && q < 1.0) {
        return None;
    }
    // The accuracy that the sum needs, relative to 1: E[w^α] - 1 is at least (α-1)·KL, and KL at
    // least twice the squared total variation. Should that be wrong by anything, the bound is
    // wider, not wrong.
    let log_excess_at_least =
        libm::log(2.0 * (order - 1.0)) + 2.0 * (libm::log(q) + libm::log(libm::erf(mu / 8.0_f64.sqrt())));
    let target = 40.0 + libm::log(2.0 + 2.0 * order) - log_excess_at_least.min(0.0);
    // The distance a from the real line at which the error, e^(a²/2 - 2πa/h), is best met; short of
    // the zeros of w.
    let distance = (2.0 * target).sqrt().min(PI / mu * (1.0 - 1e-9));
    let step = 2.0 * PI / (0.5 * distance + target / distance);
    let reach = (2.0 * target).sqrt() + 1.0;
    if 4.0 * reach / step > MAX_NODES {
        return None;
    }
    let mut sum = Sum { integrand: Integrand::new(q, mu, order), step, logs: Vec::new(), largest: f64::NEG_INFINITY };
    // Where maxima tend to be; only the order of work depends on it.
    for u in [0.0, 1.0, 2.0 * mu, order * mu] {
        sum.largest = sum.largest.max(sum.integrand.log_term(u) - 1.0);
    }
    let (first, last) = ((-reach / step).floor() as i64, ((order * mu + reach) / step).ceil() as i64);
    sum.add_block(first, last);
    sum.add_tails(first, last);
    let log_sum = sum.value()? + libm::log(step) - LOG_SQRT_TAU;
    // excess ≤ sum + e·(2 + 2α + excess), e = 2e^(a²/2)/(e^(2πa/h) - 1); the exponential in its
    // denominator is beyond e^40.
    let log_step_error = LN_2 + 0.5 * distance * distance - 2.0 * PI * distance / step + 1e-9;
    let error = libm::exp(log_step_error);
    let log_error = log_step_error + libm::log(2.0 + 2.0 * order);
    let (large, small) = (log_sum.max(log_error), log_sum.min(log_error));
    let log_excess = large + libm::log1p(libm::exp(small - large)) - libm::log1p(-error);
    Some(log_excess + 8.0 * EPSILON * (4.0 + log_excess.abs()))
}

/// `φ(u)·g(u)`, without the constant of `φ`.
#[derive(Debug, Clone, Copy)]
struct Integrand {
    q: f64,
    mu: f64,
    order: f64,
    /// Logarithms of the rate and of the binomial coefficient `α(α-1)/2`, which every term needs.
    log_q: f64,
    log_pairs: f64,
}

impl Integrand {
    fn new(q: f64, mu: f64, order: f64) -> Self {
        Self { q, mu, order, log_q: libm::log(q), log_pairs: libm::log(0.5 * order * (order - 1.0)) }
    }

    /// `ln w`, for `y = μu - μ²/2`.
    fn log_ratio(self, y: f64) -> f64 {
        if y > LARGEST_EXPONENT {
            y + self.log_q + libm::log1p((1.0 - self.q) / self.q * libm::exp(-y))
        } else {
            libm::log1p(self.q * libm::expm1(y))
        }
    }

    /// Upper bound on the logarithm of a term.
    fn log_term(self, u: f64) -> f64 {
        let Self { q, mu, order, log_pairs, .. } = self;
        let y = mu * u - 0.5 * mu * mu;
        // The errors of y itself, of the node and of μ.
        let y_error = 6.0 * EPSILON * (mu * u.abs() + mu * mu);
        let log_density = -0.5 * u * u + 2.0 * EPSILON * u * u;
        if y > LARGEST_EXPONENT {
            let log_ratio = self.log_ratio(y);
            let above = libm::expm1(log_ratio);
            let above_error = (1.0 + above) * (y_error + 8.0 * EPSILON * y);
            return self.log_excess(log_density, (y, y_error), log_ratio, (above, above_error));
        }
        let growth = libm::expm1(y);
        let above = q * growth;
        let above_error = q * (1.0 + growth) * y_error + 4.0 * EPSILON * above.abs();
        if above.abs() * order < 0.03 && above.abs() < 0.03 {
            // Binomial series from the second term; the closed form would lose half the digits. The
            // terms left out are below 1e-17 of the first.
            let (mut term, mut sum) = (1.0, 1.0);
            for k in 3..14 {
                let k = f64::from(k);
                term *= (order - k + 1.0) / k * above;
                sum += term;
                if term.abs() < 1e-17 {
                    break;
                }
            }
            let rounding = 32.0 * EPSILON + (order + 2.0) * above_error;
            return log_density + log_pairs + 2.0 * libm::log(above.abs() + above_error) + libm::log(sum) + rounding;
        }
        self.log_excess(log_density, (y, y_error), libm::log1p(above), (above, above_error))
    }

    /// Upper bound on `ln φ·g` away from `w = 1`, from `y` and its error, `ln w`, and `w - 1` and
    /// its error.
    fn log_excess(
        self,
        log_density: f64,
        (y, y_error): (f64, f64),
        log_ratio: f64,
        (above, above_error): (f64, f64),
    ) -> f64 {
        let Self { order, log_q, .. } = self;
        let power = order * log_ratio;
        if power > 30.0 {
            // g = w^α·(1 - α·w^(1-α) + (α-1)·w^-α), the difference as an exponential less 1.
            let ratio_error = y_error + 8.0 * EPSILON * (1.0 + log_ratio.abs() + y.abs() + log_q.abs());
            let exponent = libm::log1p(order - 1.0) - (order - 1.0) * log_ratio;
            let rest = -libm::expm1(exponent) + (order - 1.0) * libm::exp(-power);
            let rest_error = 4.0 * EPSILON * (1.0 + (order - 1.0) * log_ratio) * libm::exp(exponent).max(rest)
                + (order - 1.0) * ratio_error * (libm::exp(exponent) + libm::exp(-power));
            let factor = (rest + rest_error).min(1.0);
            return log_density + power + libm::log(factor) + order * ratio_error + 4.0 * EPSILON * power;
        }
        // w^α - 1 - α(w - 1), and what may be wrong with each of its parts.
        let moment = libm::expm1(power);
        let ratio_error = above_error / (1.0 + above).max(EPSILON) + 2.0 * EPSILON * log_ratio.abs();
        let error = (moment + 1.0) * (order * ratio_error + 2.0 * EPSILON * power.abs()).min(1.0)
            + order * above_error
            + 4.0 * EPSILON * (moment.abs() + order * above.abs());
        log_density + libm::log((moment - order * above).max(0.0) + error)
    }

    /// `max(0, ln w)`, which is convex in u.
    fn log_majorant(self, u: f64) -> f64 {
        self.log_ratio(self.mu * u - 0.5 * self.mu * self.mu).max(0.0)
    }

    /// Upper bound on the logarithm of every term between two points. `g` is at most `max(1, w)^α`
    /// and at most α where `w < 1`; the logarithm of the first lies below its chord, and `-u²/2`
    /// plus a chord is a parabola.
    fn log_block_bound(self, from: f64, to: f64) -> f64 {
        let (left, right) = (self.log_majorant(from), self.log_majorant(to));
        let slope = self.order * (right - left) / (to - from);
        let top = slope.clamp(from, to);
        let exponent = -0.5 * top * top + self.order * left + slope * (top - from);
        let size = 0.5 * top * top + self.order * (left + right);
        exponent + libm::log(1.0 + self.order) + 1e-3 + 16.0 * EPSILON * size
    }
}

/// Logarithms of terms, and of bounds on those left out.
#[derive(Debug)]
struct Sum {
    integrand: Integrand,
    step: f64,
    logs: Vec<f64>,
    largest: f64,
}

impl Sum {
    fn add(&mut self, log: f64) {
        self.largest = self.largest.max(log);
        self.logs.push(log);
    }

    /// All nodes from one to another.
    fn add_block(&mut self, first: i64, last: i64) {
        let length = last - first + 1;
        if length <= SHORT {
            for i in first..=last {
                self.add(self.integrand.log_term(i as f64 * self.step));
            }
            return;
        }
        #[cfg(feature = "audit")]
        if crate::hook::leaves_out(self.integrand.q, first as f64 * self.step) {
            return;
        }
        let bound = self.integrand.log_block_bound(first as f64 * self.step, last as f64 * self.step)
            + libm::log(length as f64);
        if bound < self.largest - NEGLIGIBLE {
            self.logs.push(bound);
            return;
        }
        let middle = first + length / 2;
        self.add_block(first, middle - 1);
        self.add_block(middle, last);
    }

    /// Adds bounds on the terms beyond the nodes, as geometric series.
    fn add_tails(&mut self, first: i64, last: i64) {
        let Integrand { mu, order, .. } = self.integrand;
        // On the left w < 1, where g is at most α.
        let left = (first as f64 * self.step).abs();
        self.logs.push(-0.5 * left * left + libm::log(1.0 + order) - libm::log(-libm::expm1(-left * self.step)));
        // On the right the slope of α·ln w is at most αμ, and g at most w^α.
        let right = last as f64 * self.step;
        #[cfg(feature = "audit")]
        if crate::hook::leaves_out(self.integrand.q, right) {
            return;
        }
        let rate = right - order * mu;
        self.logs.push(
            self.integrand.log_block_bound(right, right + self.step) - libm::log(-libm::expm1(-rate * self.step)),
        );
    }

    /// Logarithm of the sum, rounded up.
    fn value(&self) -> Option<f64> {
        let largest = self.logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = self.logs.iter().map(|log| libm::exp(log - largest)).sum();
        let rounding = EPSILON * (self.logs.len() as f64 + 64.0);
        let value = largest + libm::log(sum) + rounding + 2.0 * EPSILON * largest.abs();
        value.is_finite().then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_sum::LogSum;

    /// `Σ_k C(n,k) (1-q)^(n-k) q^k e^(k(k-1)/2σ²)`, exact for integer orders.
    fn by_binomial_sum(q: f64, sigma: f64, order: u32) -> f64 {
        let n = f64::from(order);
        let sum = (0..=order)
            .map(|k| {
                let k = f64::from(k);
                let log_binomial = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
                log_binomial + (n - k) * libm::log1p(-q) + k * f64::ln(q) + k * (k - 1.0) / (2.0 * sigma * sigma)
            })
            .fold(LogSum::default(), |mut sum, term| {
                sum.add(term);
                sum
            });
        sum.value() / (n - 1.0)
    }

    #[test]
    fn integer_orders_equal_the_binomial_sum() {
        for q in [0.01, 0.2, 0.7] {
            for sigma in [0.4, 0.8, 1.0, 2.0, 5.0] {
                for order in [2, 3, 8, 20] {
                    let (ours, theirs) =
                        (sampled_gaussian_rdp(q, sigma, f64::from(order)), by_binomial_sum(q, sigma, order));
                    assert!((ours / theirs - 1.0).abs() < 1e-9, "q {q} σ {sigma} α {order}: {ours} {theirs}");
                }
            }
        }
    }

    #[test]
    fn order_two_is_exact_at_tiny_rates() {
        // α = 2: E[w²] - 1 = q²(e^(1/σ²) - 1), in closed form.
        for q in [1e-12, 1e-6, 0.3] {
            for sigma in [0.05, 0.3, 1.0, 10.0, 1e4_f64] {
                let exact = {
                    let log = 2.0 * f64::ln(q)
                        + if sigma < 0.1 { 1.0 / (sigma * sigma) } else { libm::expm1(1.0 / (sigma * sigma)).ln() };
                    if log > 36.0 { log } else { libm::log1p(log.exp()) }
                };
                let ours = sampled_gaussian_rdp(q, sigma, 2.0);
                assert!((ours / exact - 1.0).abs() < 1e-12, "q {q} σ {sigma}: {ours} {exact}");
            }
        }
    }

    #[test]
    fn grows_with_the_order() {
        for (q, sigma) in [(1e-9, 0.05), (1e-4, 0.3), (0.01, 1.0), (0.3, 20.0), (0.999, 0.7)] {
            let mut previous = 0.0;
            let mut order = 1.0 + 1e-6;
            while order < 1e8 {
                let rdp = sampled_gaussian_rdp(q, sigma, order);
                assert!(rdp >= previous * (1.0 - 1e-11), "q {q} σ {sigma} α {order}: {rdp} after {previous}");
                previous = rdp;
                order = 1.0 + (order - 1.0) * 1.7;
            }
        }
    }
}
