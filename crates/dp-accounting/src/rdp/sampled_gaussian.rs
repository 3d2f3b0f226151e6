//! Rényi divergence of the Poisson-sampled Gaussian at any real order, by quadrature.

use std::f64::consts::PI;

use crate::log_sum::LogSum;
use crate::normal::log_density;

/// Rényi divergence of order `order` > 1 of the Poisson-sampled Gaussian, the larger of its two directions.
///
/// With `w = 1 - q + q·exp((2z-1)/2σ²)` it is `ln E[w^α]/(α-1)` under z ~ N(0, σ²) (Mironov, Talwar & Zhang 2019, Section 3.3; that this
/// direction is the larger one is their Theorem 5).
///
/// The trapezoidal rule converges geometrically here: the integrand is analytic and bounded by its values on the real line in
/// the strip |Im z| < πσ², where `w` has its first zeros. The step is chosen for a relative error below 1e-15. What is summed is
/// `w^α - 1 - α(w-1)`, which is never negative, so that nothing cancels however small q is.
pub(crate) fn sampled_gaussian_rdp(q: f64, sigma: f64, order: f64) -> f64 {
    let log_excess = log_excess_moment(q, sigma, order);
    // ln(1 + e^x) without overflow.
    let log_moment = if log_excess > 36.0 { log_excess } else { libm::log1p(log_excess.exp()) };
    // Sampling never costs more than no sampling; this also covers the last digits at orders where both agree.
    (log_moment / (order - 1.0)).min(order / (2.0 * sigma * sigma))
}

/// `ln(E[w^α] - 1)`.
fn log_excess_moment(q: f64, sigma: f64, order: f64) -> f64 {
    // Step in units of σ: exp(a²/2 - 2πa/h) at the best a, which is 2π/h or, for small σ, the distance πσ of the zeros of w.
    let step = if sigma > 2.73 { 0.73 } else { 2.0 * PI * PI * sigma / (37.0 + 0.5 * PI * PI * sigma * sigma) };
    let log_rest = libm::log1p(-q);
    let log_term = |i: i64| {
        let u = i as f64 * step;
        log_density(u) + log_excess(q, log_rest, u / sigma - 0.5 / (sigma * sigma), order)
    };
    // Each hump of the integrand is walked outwards until its terms no longer matter, so that large orders cost no more than small ones.
    let mut sum = LogSum::default();
    let radius = (3.0 / step) as i64;
    let mut end = i64::MIN;
    for hump in humps(q, sigma, log_rest, order) {
        let centre = (hump / step).round() as i64;
        if centre > end {
            end = walk_hump(&mut sum, centre, end, radius, log_term);
        }
    }
    sum.value() + step.ln()
}

/// Points near every local maximum of `φ(u)·(w^α - 1 - α(w-1))`, in increasing order; some may be near none.
///
/// Where the logarithm of the second factor has the slope `λ(u)`, maxima solve `u = λ(u)`. The slope is about `(α/σ)·r(u)` where w is large, with r the logistic weight
/// of the second term of w, `2/σ` where w is little above 1, and between these, for α < 2, it falls from one to the other.
fn humps(q: f64, sigma: f64, log_rest: f64, order: f64) -> Vec<f64> {
    let power = order.max(2.0);
    let log_odds = q.ln() - log_rest - 0.5 / (sigma * sigma);
    let next = |u: f64| power / sigma / (1.0 + (-(u / sigma + log_odds)).exp());
    // Iterating from below and from above converges to the lowest and the highest solution.
    let settle = |start: f64| (0..40).fold(start, |u, _| next(u));
    let mut humps = vec![settle(0.0), settle(power / sigma)];
    // With less noise than this the valley before 2/σ is deeper than a walk goes. Where α(w-1) is not small there, it is no maximum but a slope.
    let log_excess = order.ln() + q.ln() + 1.5 / (sigma * sigma);
    if sigma < 0.06 && log_excess < 0.0 {
        humps.push(2.0 / sigma);
    }
    if order < 2.0 {
        // Where w is above 2, λ falls: there is one solution or none, and it lies below 2/σ.
        let slope = |u: f64| {
            let log_w = libm::log1p(q * libm::expm1(u / sigma - 0.5 / (sigma * sigma)));
            let share = 1.0 / (1.0 + (-(u / sigma + log_odds)).exp());
            // α(w^α - w)/(w^α - 1 - α(w-1)), over w^α.
            let gain = -libm::expm1((1.0 - order) * log_w);
            let rest = (order - 1.0) * (((1.0 - order) * log_w).exp() - (-order * log_w).exp());
            order * gain / (gain - rest) * share / sigma
        };
        let (mut low, mut high) = (sigma * (-q.ln() + 0.5 / (sigma * sigma)), 2.0 / sigma + 1.0);
        if low < high && slope(low) > low {
            while high - low > 0.5 {
                let middle = 0.5 * (low + high);
                if slope(middle) > middle {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            humps.push(high);
        }
    }
    humps.sort_by(f64::total_cmp);
    humps
}

/// Adds all terms around `centre` that matter, those above `floor` only; returns the last index added.
fn walk_hump(sum: &mut LogSum, centre: i64, floor: i64, radius: i64, log_term: impl Fn(i64) -> f64) -> i64 {
    let mut walk = |start: i64, direction: i64| {
        let (mut i, mut negligible) = (start, 0);
        while i > floor && (negligible < 3 || (i - centre).abs() < radius) {
            negligible = if sum.add(log_term(i)) { 0 } else { negligible + 1 };
            i += direction;
        }
        i - direction
    };
    let last = walk(centre, 1);
    walk(centre - 1, -1);
    last
}

/// `ln(w^α - 1 - α(w-1))` for `w = 1 + q(e^y - 1)`.
fn log_excess(q: f64, log_rest: f64, y: f64, order: f64) -> f64 {
    let above = if y < 700.0 { q * libm::expm1(y) } else { f64::INFINITY };
    if above.abs() * order < 0.03 && above.abs() < 0.03 {
        // Binomial series from the second term: the closed form would lose half the digits.
        let (mut term, mut sum) = (1.0, 1.0);
        for k in 3..14 {
            let k = f64::from(k);
            term *= (order - k + 1.0) / k * above;
            sum += term;
            if term.abs() < 1e-17 {
                break;
            }
        }
        return (0.5 * order * (order - 1.0)).ln() + 2.0 * above.abs().ln() + sum.ln();
    }
    let log_w = if y > 36.0 { libm::log1p((log_rest - q.ln() - y).exp()) + q.ln() + y } else { libm::log1p(above) };
    let power = order * log_w;
    if power > 40.0 && order > 1.0 + 1e-3 && power - order.ln() - log_w > 40.0 {
        power
    } else {
        excess_near(power, log_w, above, order)
    }
}

/// The closed form, scaled by `e^power` where that is large.
fn excess_near(power: f64, log_w: f64, above: f64, order: f64) -> f64 {
    if power > 40.0 {
        // w^α (1 - α w^(1-α) + (α-1) w^-α).
        power + libm::log1p(-order * (log_w - power).exp() + (order - 1.0) * (-power).exp())
    } else {
        (libm::expm1(power) - order * above).max(0.0).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
