//! Rényi divergence of a dominating pair, the larger of its two directions.

use crate::log_sum::LogSum;
use crate::pair::{Component, Normals, Pair, Point, SimplePair};

/// Points of a trapezoidal sum at most; beyond, the divergence of the outermost normals bounds that
/// of mixtures of them.
const MAX_NODES: f64 = 32_768.0;

/// Standard deviations from the mean at which a moment of a discrete Gaussian may lie: its points
/// go 37 of them far, and beyond 9 more lies less than e^-40 of the moment.
const REACH: f64 = 28.0;

/// Rényi divergence of order `order` > 1.
pub(super) fn pair_rdp(pair: &Pair, order: f64) -> f64 {
    if pair.is_truncated() && order * (2.0 * pair.concentration()).sqrt() > REACH {
        return pair.concentration() * order;
    }
    let of_direction = |reversed: bool| {
        let logs = pair.parts().iter().map(|(weight, part)| (*weight, log_moment(part, order, reversed)));
        let logs: Vec<(f64, f64)> = logs.collect();
        if logs.iter().all(|(_, log)| *log < 1.0) {
            libm::log1p(logs.iter().map(|(weight, log)| weight * libm::expm1(*log)).sum())
        } else {
            let mut sum = LogSum::default();
            for (weight, log) in logs {
                sum.add(libm::log(weight) + log);
            }
            sum.value() * (1.0 + 1e-14)
        }
    };
    let forward = of_direction(false);
    let log = if pair.is_symmetric() { forward } else { forward.max(of_direction(true)) };
    (log / (order - 1.0)).min(pair.pure_epsilon()).min(pair.concentration() * order).max(0.0)
}

/// `ln E_P[(P/Q)^(α-1)]`, rounded up; with `P` and `Q` exchanged where it is reversed.
fn log_moment(part: &SimplePair, order: f64, reversed: bool) -> f64 {
    match part {
        SimplePair::Points(points) => of_points(points, order, reversed),
        SimplePair::Normals(normals) => {
            let sides = (&normals.present[..], &normals.absent[..]);
            let (numerator, denominator) = if reversed { (sides.1, sides.0) } else { sides };
            of_normals(normals, numerator, denominator, order, reversed)
        }
        SimplePair::Mirrored(normals) => {
            // Either half has at most the excess of the mixtures themselves: w^α - 1 - α(w - 1) ≥ 0
            // is larger at w ≥ 1 than w times the same at 1/w.
            let whole = of_normals(normals, &normals.present, &normals.absent, order, false);
            if whole < 1.0 { libm::log1p(2.0 * libm::expm1(whole)) } else { whole + std::f64::consts::LN_2 }
        }
    }
}

fn of_points(points: &[Point], order: f64, reversed: bool) -> f64 {
    let (mut sum, mut excess, mut size) = (LogSum::default(), 0.0, 0.0);
    for point in points {
        let (probability, loss) = if reversed { (point.absent, -point.loss) } else { (point.present, point.loss) };
        let exponent = (order - 1.0) * loss;
        sum.add(libm::log(probability) + exponent);
        excess += probability * libm::expm1(exponent.min(30.0));
        size += probability * (exponent.abs() + 1.0) * libm::exp(exponent.min(30.0));
    }
    let error = 16.0 * f64::EPSILON;
    if sum.value() < 1.0 {
        libm::log1p((excess + error * size).max(0.0))
    } else {
        sum.value() * (1.0 + error) + error * order
    }
}

/// The trapezoidal sum of `φ·(P/φ)^α·(Q/φ)^(1-α)`.
///
/// The integrand is analytic where no mixture is 0. On the lines `Im x = ±d` with `d` times a
/// mixture's spread of means at most π/3 its modulus is at most `e^(d²/2)·2^(α-1)` times the value
/// on the axis, so the relative error is below twice that over `e^(2πd/h) - 1`.
fn of_normals(
    normals: &Normals,
    numerator: &[Component],
    denominator: &[Component],
    order: f64,
    reversed: bool,
) -> f64 {
    let spread = |components: &[Component]| {
        let means = || components.iter().map(|component| component.mean);
        means().fold(f64::NEG_INFINITY, f64::max) - means().fold(f64::INFINITY, f64::min)
    };
    let (above, below) = (spread(numerator), spread(denominator));
    let strip = (std::f64::consts::FRAC_PI_3 / above.max(below)).min(6.0);
    let halves = if below > 0.0 { (order - 1.0) * std::f64::consts::LN_2 } else { 0.0 };
    let step = 2.0 * std::f64::consts::PI * strip / (36.0 + 0.5 * strip * strip + halves);
    // Beyond ±reach the integrand is below e^-45: |ln| of either mixture over φ is at most m|x| +
    // m²/2 - ln(its largest weight).
    let (low, high) = normals.means();
    let mean = low.abs().max(high.abs());
    let heaviest = denominator.iter().map(|component| component.weight).fold(0.0, f64::max);
    let slope = (2.0 * order - 1.0) * mean;
    let rest = 45.0 + (order - 1.0) * (0.5 * mean * mean - libm::log(heaviest));
    let reach = slope + (slope * slope + 2.0 * rest).sqrt();
    let nodes = (reach / step).ceil();
    if nodes.is_nan() || 2.0 * nodes > MAX_NODES {
        return f64::INFINITY;
    }
    let nodes = nodes as i64;
    let (mut sum, mut excess, mut size) = (LogSum::default(), 0.0, 0.0);
    for j in -nodes..=nodes {
        let x = j as f64 * step;
        let [present, absent] = normals.log_ratios(x);
        let (up, down) = if reversed { (absent, present) } else { (present, absent) };
        let exponent = order * up + (1.0 - order) * down;
        let log_density = crate::normal::log_density(x) + libm::log(step);
        sum.add(log_density + exponent);
        let density = libm::exp(log_density);
        excess += if exponent > 30.0 { libm::exp(log_density + exponent) } else { density * libm::expm1(exponent) };
        // Rounding of the logarithms of the mixtures, times their powers.
        let absolute = (2.0 * order) * (1.0 + up.abs().max(down.abs()) + mean * x.abs()) + 0.5 * x * x;
        size += libm::exp(log_density + exponent.max(0.0)) * absolute;
    }
    let error = 8.0 * f64::EPSILON;
    if sum.value() < 1.0 {
        libm::log1p((excess + error * size + 1e-15).max(0.0))
    } else {
        // The relative size of the rounding is that of the weighted mean.
        sum.value() + error * libm::exp(libm::log(size) - sum.value()).min(1e12) + 1e-14
    }
}

#[cfg(test)]
mod tests {
    use super::super::sampled_gaussian_rdp;
    use super::*;

    #[test]
    fn two_components_are_a_sampled_gaussian() {
        for (q, sigma) in [(0.01, 1.0), (0.3, 0.5), (1e-4, 2.0), (0.9, 5.0)] {
            let pair = Pair::mixture_of_gaussians(sigma, &[0.0, 1.0], &[1.0 - q, q]);
            for order in [1.2, 2.0, 5.5, 32.0] {
                let (found, known) = (pair_rdp(&pair, order), sampled_gaussian_rdp(q, sigma, order));
                // An upper bound: rounding is charged, which shows where the divergence itself is
                // 1e-9.
                assert!(
                    found >= known * (1.0 - 1e-7) && found <= known * (1.0 + 1e-3),
                    "q {q} σ {sigma} α {order}: {found} {known}"
                );
            }
        }
    }

    #[test]
    fn one_component_is_a_gaussian() {
        let pair = Pair::mixture_of_gaussians(2.0, &[3.0], &[1.0]);
        for order in [1.01, 2.0, 40.0] {
            let exact = order * 9.0 / 8.0;
            let found = pair_rdp(&pair, order);
            assert!(found <= exact * (1.0 + 1e-12) && found >= exact * (1.0 - 1e-9), "{order}: {found} {exact}");
        }
    }

    #[test]
    fn points_by_hand() {
        // Scale 1/ln 2, sensitivity 1: losses ±ln 2 with probabilities 2/3, 1/3; α = 2: 2/3·2 +
        // 1/3·1/2 = 3/2.
        let pair = Pair::discrete_laplace(std::f64::consts::LN_2.recip(), 1).unwrap();
        assert!((pair_rdp(&pair, 2.0) - 1.5_f64.ln()).abs() < 1e-13);
        // Discrete Gaussians are concentrated as continuous ones are, and nearly as much.
        let pair = Pair::discrete_gaussian(3.0, 2, 1.0).unwrap();
        let found = pair_rdp(&pair, 4.0);
        assert!(found <= 4.0 * 2.0 / 9.0 && found > 0.999 * 8.0 / 9.0, "{found}");
    }
}
