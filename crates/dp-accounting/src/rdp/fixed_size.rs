//! Rényi divergence of the Gaussian on batches of fixed size, drawn without replacement, between
//! data sets that differ in one record.

use std::f64::consts::LN_2;

use super::quadrature::legendre;
use crate::log_sum::LogSum;
use crate::normal::log_density;

/// Rényi divergence of order `order` > 1, from the privacy profile that bounds this mechanism.
///
/// With `f` the profile of `(1-q)N(0) + qN(1/σ)` against `N(0)`, the mechanism's is at most `f(γ)`
/// for γ ≥ 1 (Balle, Barthe & Gaboardi 2018, Theorem 9) and, both orders of the neighbours being
/// neighbours, at most `1 - γ + γ f(1/γ)` for γ < 1. A pair of distributions with that profile
/// exists. Its losses are the positive losses of the sampled Gaussian, their mirror images, and an
/// atom at 0. The Rényi divergence increases with the profile, so this pair's bounds
/// the mechanism's. Its moment, with `w = 1 - q + q·exp((2z-1)/2σ²)`, is `1 + E[w^α + w^(1-α) - 1 -
/// w; w > 1] = 1 + E[(w^α - 1)(1 - w^(1-α)); w > 1]` under z ~ N(0, σ²), without cancellation.
pub(super) fn fixed_size_gaussian_rdp(q: f64, sigma: f64, order: f64) -> f64 {
    let proven = proven_fixed_size_gaussian_rdp(q, sigma, order);
    if sigma < LITTLE_NOISE {
        return proven;
    }
    // In units of σ: w > 1 from here on.
    let start = 0.5 / sigma;
    let log_odds = libm::log(q) - libm::log1p(-q) - start / sigma;
    let weight = |u: f64| 1.0 / (1.0 + libm::exp(-(u / sigma + log_odds)));
    let power = order.max(2.0);
    let hump = |mut u: f64| {
        for _ in 0..40 {
            u = power / sigma * weight(u);
        }
        u.max(start)
    };
    // As narrow as the curvature of the logarithm of the integrand asks for.
    let width = |u: f64| {
        0.25_f64.min(0.5 * sigma).min(0.7 / (1.0 + power / (sigma * sigma) * weight(u) * (1.0 - weight(u))).sqrt())
    };
    let mut sum = LogSum::default();
    let mut walk = |centre: f64, direction: f64, floor: f64| {
        let (mut u, mut negligible) = (centre, 0);
        while u + 1e-9 * direction > floor && (negligible < 3 || (u - centre).abs() < 10.0) {
            let to = (u + direction * width(u)).max(floor);
            let mut panel = LogSum::default();
            for (node, weight) in legendre(u.min(to), (to - u).abs()) {
                panel.add(log_density(node) + libm::log(weight) + log_gain(q, node / sigma - start / sigma, order));
            }
            negligible = if sum.add(panel.value()) { 0 } else { negligible + 1 };
            u = to;
        }
        u
    };
    // At most two humps, as for Poisson sampling; each is walked outwards.
    let low = hump(0.0);
    walk(low, -1.0, start);
    let end = walk(low, 1.0, start);
    let high = hump(power / sigma);
    if high > end {
        walk(high, -1.0, end);
        walk(high, 1.0, end);
    }
    let log_excess = sum.value();
    let log_moment = if log_excess > 36.0 { log_excess } else { libm::log1p(libm::exp(log_excess)) };
    (log_moment * (1.0 + 1e-10) / (order - 1.0)).min(proven)
}

/// With less noise the panels are too many, and the two humps so far apart that the proven bound is
/// as good.
const LITTLE_NOISE: f64 = 0.03;

/// The same without a panel: the integrand is the sum of the excesses `w^s - 1 - s(w - 1)` of the
/// powers α and 1 - α, of which neither is negative, so it may be integrated over all w; and the
/// second integral is at most the first, the larger direction of Poisson sampling.
pub(super) fn proven_fixed_size_gaussian_rdp(q: f64, sigma: f64, order: f64) -> f64 {
    let one_direction = super::sampled_gaussian_rdp(q, sigma, order);
    // ln(1 + 2(e^x - 1)).
    let exponent = one_direction * (order - 1.0);
    let log_moment = if exponent > 36.0 { exponent + LN_2 } else { libm::log1p(2.0 * libm::expm1(exponent)) };
    (log_moment / (order - 1.0) * (1.0 + 8.0 * f64::EPSILON))
        .min(order / (2.0 * sigma * sigma) * (1.0 + 8.0 * f64::EPSILON))
}

/// `ln((w^α - 1)(1 - w^(1-α)))` for `w = 1 + q(e^y - 1) > 1`.
fn log_gain(q: f64, y: f64, order: f64) -> f64 {
    let log_w = if y > 36.0 {
        libm::log(q) + y + libm::log1p((1.0 - q) / q * libm::exp(-y))
    } else {
        libm::log1p(q * libm::expm1(y))
    };
    let power = order * log_w;
    let first = if power > 36.0 { power } else { libm::log(libm::expm1(power)) };
    first + libm::log(-libm::expm1((1.0 - order) * log_w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_share_approaches_no_sampling() {
        for sigma in [0.5, 1.0, 4.0] {
            for order in [1.5, 3.0, 20.0] {
                let full = order / (2.0 * sigma * sigma);
                let nearly = fixed_size_gaussian_rdp(1.0 - 1e-9, sigma, order);
                assert!(nearly <= full * (1.0 + 1e-12) && nearly > 0.98 * full, "σ {sigma} α {order}: {nearly} {full}");
            }
        }
    }

    #[test]
    fn costs_at_least_as_much_as_one_direction_of_poisson_sampling() {
        // The profile agrees with the Poisson pair's for γ ≥ 1 and exceeds it below.
        for q in [1e-6, 0.01, 0.5] {
            for sigma in [0.4, 1.0, 5.0] {
                for order in [1.1, 2.0, 8.0, 64.0] {
                    let (fixed, poisson) =
                        (fixed_size_gaussian_rdp(q, sigma, order), super::super::sampled_gaussian_rdp(q, sigma, order));
                    assert!(fixed >= poisson * (1.0 - 1e-9), "q {q} σ {sigma} α {order}: {fixed} {poisson}");
                }
            }
        }
    }
}
