//! Rényi divergence of a record that is used in one step out of several, drawn at random.

use crate::log_sum::LogSum;

/// Integer orders for which the moment is computed.
const MAX_ORDER: usize = 128;

/// `(α - 1)·D_α` at the integers from 1 on, rounded up.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Allocation {
    sigma: f64,
    log_moments: Vec<f64>,
}

impl Allocation {
    /// With the record, the mean of `t` Gaussians one of which is moved; without it, none is.
    ///
    /// With `S/t` the likelihood ratio, `S` a sum of `t` independent log-normals of mean 1, the two
    /// directions are as follows.
    ///
    /// - `E[(S/t)^α]` for integer α is `α!/t^α` times the coefficient of `z^α` in `(Σ_j e^((j² -
    ///   j)/2σ²)·z^j/j!)^t`: all terms are positive.
    /// - `E[(S/t)^(1-α)]` is at most that of the geometric mean, `exp((α-1)/2σ² + (α-1)²/(2tσ²))`.
    ///
    /// **Source.** Feldman & Shenfeld 2025, "Privacy amplification by random allocation", Section
    /// 4, for the first; Jensen for the second.
    pub(super) fn new(sigma: f64, steps: f64) -> Self {
        let rho = 0.5 / (sigma * sigma);
        let mut log_factorial = vec![0.0; MAX_ORDER + 1];
        for j in 1..=MAX_ORDER {
            log_factorial[j] = log_factorial[j - 1] + libm::log(j as f64);
        }
        let one: Vec<f64> = (0..=MAX_ORDER).map(|j| rho * (j as f64) * (j as f64 - 1.0) - log_factorial[j]).collect();
        let mut base = one;
        let mut power: Option<Vec<f64>> = None;
        let mut left = steps as u64;
        while left > 0 {
            if left & 1 == 1 {
                power = Some(power.map_or_else(|| base.clone(), |power| product(&power, &base)));
            }
            left >>= 1;
            if left > 0 {
                base = product(&base, &base);
            }
        }
        let power = power.unwrap_or_default();
        let log_moment = |order: usize| {
            let exact = power[order] + log_factorial[order] - order as f64 * libm::log(steps);
            let excess = order as f64 - 1.0;
            let other = rho * excess * (1.0 + excess / steps);
            // Rounding of a few hundred additions of logarithms.
            let error = 1e-12 * (1.0 + power[order].abs() + log_factorial[order] + order as f64 * libm::log(steps));
            (exact + error).max(other).max(0.0) * (1.0 + 1e-12)
        };
        Self {
            sigma,
            log_moments: (1..=MAX_ORDER).map(|order| if order == 1 { 0.0 } else { log_moment(order) }).collect(),
        }
    }

    /// `(α - 1)·D_α` is convex in α and `D_α` increases, so the integers bound what lies between
    /// them. One step's divergence bounds all.
    pub(super) fn at(&self, order: f64) -> f64 {
        let whole = order * 0.5 / (self.sigma * self.sigma);
        let below = order.floor() as usize;
        if below >= MAX_ORDER {
            return whole;
        }
        let (low, high) = (self.log_moments[below - 1], self.log_moments[below]);
        let part = order - below as f64;
        let between = if below == 1 { high } else { (low + part * (high - low)) / (order - 1.0) };
        between.min(whole)
    }
}

/// Product of two power series with positive coefficients, given by their logarithms, up to the
/// length of the first.
fn product(a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..a.len())
        .map(|n| {
            let mut sum = LogSum::default();
            for k in 0..=n {
                sum.add(a[k] + b[n - k]);
            }
            sum.value()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_by_hand() {
        // One of one step is a Gaussian.
        let whole = Allocation::new(2.0, 1.0);
        assert!((whole.at(3.0) - 3.0 / 8.0).abs() < 1e-9);
        // One of t: E[(S/t)²] = 1 + (e^(1/σ²) - 1)/t; with σ = 0.5, t = 4 that exceeds the other
        // direction's bound e^(2 + 2/4).
        let four = Allocation::new(0.5, 4.0);
        let exact = (1.0 + (4.0_f64.exp() - 1.0) / 4.0).ln();
        assert!((four.at(2.0) - exact).abs() < 1e-9, "{} {exact}", four.at(2.0));
        assert!(four.at(1.5) >= 0.0 && four.at(2.5) <= four.at(3.0) && four.at(1e6) == 2e6);
    }
}
