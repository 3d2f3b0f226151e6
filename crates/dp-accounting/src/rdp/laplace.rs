//! Rényi divergence of the Laplace mechanism, alone and Poisson-sampled.

use super::quadrature::legendre;
use crate::log_sum::LogSum;

/// Rényi divergence of order `order` > 1 of the Laplace mechanism with scale over sensitivity
/// `scale`.
///
/// **Source.** Mironov 2017, Proposition 6.
pub(super) fn laplace_rdp(scale: f64, order: f64) -> f64 {
    let rate = scale.recip();
    let (up, down) = (order / (2.0 * order - 1.0), (order - 1.0) / (2.0 * order - 1.0));
    let log_moment = if (order - 1.0) * rate > 36.0 {
        (order - 1.0) * rate + libm::log(up) + libm::log1p(down / up * libm::exp(-(2.0 * order - 1.0) * rate))
    } else {
        // The first-order terms cancel inside the sum of two expm1: what is left keeps 16 -
        // log10(scale) digits.
        libm::log1p((up * libm::expm1((order - 1.0) * rate) + down * libm::expm1(-order * rate)).max(0.0))
    };
    // Both terms are α(α-1)r/(2α-1) up to second order, which is 2/((2α-1)r) ≤ 2·scale times the
    // sum, and each is right to 4 ulp; 1/scale is the pure ε.
    (log_moment * (1.0 + 16.0 * f64::EPSILON * (1.0 + scale)) / (order - 1.0)).min(rate * (1.0 + f64::EPSILON))
}

/// Upper bound on [`sampled_laplace_rdp`] without quadrature: the moment is at most that of the
/// mixture, `1 - q + q·E[L^α]`, and the loss at most its pure ε.
pub(super) fn mixed_laplace_rdp(q: f64, scale: f64, order: f64) -> f64 {
    let exponent = laplace_rdp(scale, order) * (order - 1.0);
    let log_moment = if exponent < 36.0 {
        libm::log1p(q * libm::expm1(exponent))
    } else {
        exponent + libm::log(q) + (1.0 - q) / q * libm::exp(-exponent)
    };
    let rate = scale.recip();
    let pure = if rate < 36.0 {
        libm::log1p(q * libm::expm1(rate))
    } else {
        rate + libm::log(q) + (1.0 - q) / q * libm::exp(-rate)
    };
    let rounding = 1.0 + 16.0 * f64::EPSILON * (1.0 - libm::log(q));
    (log_moment / (order - 1.0) * rounding).min(pure * rounding)
}

/// Rényi divergence of order `order` > 1 of the Poisson-sampled Laplace mechanism, the larger of
/// its two directions.
///
/// With `w = 1 - q + q·L` and `L` the likelihood ratio of the Laplace mechanism, the directions are
/// `E[w^α]` and `E[w^(1-α)]`.
pub(super) fn sampled_laplace_rdp(q: f64, scale: f64, order: f64) -> f64 {
    let rate = scale.recip();
    let pure = if rate < 700.0 { libm::log1p(q * libm::expm1(rate)) } else { rate + libm::log(q) };
    // Beyond this order the quadrature would need thousands of panels.
    if order * rate > 1_000.0 {
        return pure.min(mixed_laplace_rdp(q, scale, order));
    }
    let log_excess = log_excess(q, rate, order).max(log_excess(q, rate, 1.0 - order));
    let log_moment = if log_excess > 36.0 { log_excess } else { libm::log1p(libm::exp(log_excess)) };
    (log_moment * (1.0 + 1e-12) / (order - 1.0)).min(pure)
}

/// `ln E[w^s - 1 - s(w-1)]`, every term of which is positive for `s` outside (0, 1).
fn log_excess(q: f64, rate: f64, s: f64) -> f64 {
    let log_term = |log_likelihood_ratio: f64| {
        let above = q * libm::expm1(log_likelihood_ratio);
        let log_w = libm::log1p(above);
        if (s * above).abs() < 0.03 && above.abs() < 0.03 {
            let (mut term, mut sum) = (1.0, 1.0);
            for k in 3..14 {
                let k = f64::from(k);
                term *= (s - k + 1.0) / k * above;
                sum += term;
            }
            libm::log(0.5 * s * (s - 1.0)) + 2.0 * libm::log(above.abs()) + libm::log(sum)
        } else if s * log_w > 40.0 {
            s * log_w
        } else {
            libm::log((libm::expm1(s * log_w) - s * above).max(0.0))
        }
    };
    let half = libm::log(0.5_f64);
    let mut sum = LogSum::default();
    sum.add(half - rate + log_term(rate));
    sum.add(half + log_term(-rate));
    let panels = ((2.0 * s.abs() + 2.0) * rate).ceil().max(4.0);
    let width = rate / panels;
    for panel in 0..panels as u32 {
        for (y, weight) in legendre(f64::from(panel) * width, width) {
            sum.add(half - y + libm::log(weight) + log_term(2.0 * y - rate));
        }
    }
    sum.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laplace_by_hand() {
        // Scale 1, α = 2: ln(2/3·e + 1/3·e⁻²) = ln(1.85729...).
        let expected = (2.0 / 3.0 * 1.0_f64.exp() + (-2.0_f64).exp() / 3.0).ln();
        assert!((laplace_rdp(1.0, 2.0) - expected).abs() < 1e-14);
        // The pure ε is the limit.
        assert!(laplace_rdp(0.5, 1e7) <= 2.0 && laplace_rdp(0.5, 1e7) > 1.999_999);
    }

    #[test]
    fn sampling_everything_is_no_sampling() {
        for scale in [0.3, 1.0, 30.0] {
            for order in [1.1, 2.0, 9.5, 40.0] {
                let (sampled, plain) = (sampled_laplace_rdp(1.0, scale, order), laplace_rdp(scale, order));
                assert!((sampled / plain - 1.0).abs() < 1e-9, "scale {scale} α {order}: {sampled} {plain}");
            }
        }
    }
}
