//! `F(P)` at real powers with its error, and the distribution of the loss under the tilt.

use super::nodes::{Node, Nodes, Side, relative_error};
use crate::normal::LOG_SQRT_TAU;

/// The law of `ln w` with density `φ(u)·w^P/F(P)`, on nodes in increasing order.
#[derive(Debug, Clone)]
pub(super) struct Tilted {
    pub(super) power: f64,
    pub(super) nodes: Vec<Node>,
    /// Probability of each node: density of `u` times the step.
    pub(super) weights: Vec<f64>,
    /// `ln F(P)` and a bound on its error.
    pub(super) log_moment: f64,
    pub(super) log_error: f64,
    /// Mean of `ln w`.
    pub(super) mean: f64,
    pub(super) deviation: f64,
    /// Bound on the probability outside the nodes.
    pub(super) outside: f64,
    /// Bounds on the relative rounding errors of the weights.
    pub(super) weight_errors: Vec<f64>,
}

/// `ln F(P)`, and mean and variance of `ln w` under the tilt, to a few digits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sketch {
    pub(super) log_moment: f64,
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Nodes {
    /// Tilts by a real power outside (0, 1); what lies beyond `e^-log_cut` of the whole is left out
    /// and bounded.
    ///
    /// `None` when that takes too many nodes.
    pub(super) fn tilted(&mut self, power: f64, log_cut: f64) -> Option<Tilted> {
        let (right, right_factor) = self.walk(Side::Right, power, log_cut, f64::NEG_INFINITY)?;
        let largest = right.iter().map(|(_, log)| *log).fold(f64::NEG_INFINITY, f64::max);
        let (left, left_factor) = self.walk(Side::Left, power, log_cut, largest)?;
        // Each side ends in a node that bounds all beyond it, by this factor.
        let ends = [(left.last().copied()?, left_factor), (right.last().copied()?, right_factor)];
        let terms: Vec<(Node, f64)> = left.into_iter().rev().chain(right).collect();
        let largest = terms.iter().map(|(_, log)| *log).fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = terms.iter().map(|(_, log)| libm::exp(log - largest)).collect();
        let sum = blocked_sum(weights.iter().copied());
        for weight in &mut weights {
            *weight /= sum;
        }
        let nodes: Vec<Node> = terms.into_iter().map(|(node, _)| node).collect();
        let over = |f: &dyn Fn(&Node) -> f64| -> f64 { nodes.iter().zip(&weights).map(|(n, p)| p * f(n)).sum() };
        let mean = over(&|node| node.log_ratio);
        let deviation = over(&|node| (node.log_ratio - mean) * (node.log_ratio - mean)).sqrt();
        // An exponential's relative error is its argument's absolute one.
        let relative = |node: &Node| {
            4.0 * f64::EPSILON * (0.5 * node.u * node.u + (power * node.log_ratio).abs() + 2.0)
                + power.abs() * node.error
        };
        let log_density = libm::log(self.step) - LOG_SQRT_TAU;
        let outside: f64 = ends.iter().map(|((_, log), factor)| factor * libm::exp(log - largest) / sum).sum();
        let outside_density: f64 = ends
            .iter()
            .map(|((node, _), _)| {
                libm::exp(log_density - 0.5 * node.u * node.u) / libm::expm1(node.u.abs() * self.step)
            })
            .sum();
        let summing = summing_error(nodes.len());
        let log_direct = largest + libm::log(sum) + log_density;
        let (log_moment, rounding) = if log_direct < 1.0 {
            // F - 1 as a sum of small terms: over many steps, the rounding of a sum near 1 would
            // add up.
            let excess = |node: &Node| {
                let (exponent, log_normal) = (power * node.log_ratio, log_density - 0.5 * node.u * node.u);
                if exponent > 30.0 {
                    libm::exp(exponent + log_normal) - libm::exp(log_normal)
                } else {
                    libm::exp(log_normal) * libm::expm1(exponent)
                }
            };
            let values: Vec<f64> = nodes.iter().map(excess).collect();
            let size = |(node, value): (&Node, &f64)| {
                value.abs() * (4.0 * f64::EPSILON * (0.5 * node.u * node.u + 2.0) + summing)
            };
            let error: f64 = nodes.iter().zip(&values).map(size).sum();
            (
                libm::log1p(blocked_sum(values.into_iter())),
                error + power.abs() * over(&|node| node.error) * libm::exp(log_direct) + outside_density,
            )
        } else {
            (log_direct, over(&relative) + summing + 4.0 * f64::EPSILON * log_direct.abs())
        };
        // F is at least 1 outside (0, 1), so an absolute error is a relative one; 1.001·e is at
        // least -ln(1 - e) up to 2e-3.
        let log_error = 1.001 * (rounding + outside + relative_error(self.mu, self.step, power, 0.0));
        let complete = log_moment.is_finite() && log_error < 1e-3 && deviation > 0.0;
        let weight_errors = nodes.iter().map(|node| relative(node) + summing).collect();
        complete.then_some(Tilted {
            power,
            nodes,
            weights,
            weight_errors,
            log_moment,
            log_error,
            mean,
            deviation,
            outside: 1.001 * outside,
        })
    }

    /// The same without any error: for plans, which may be as rough as they like.
    pub(super) fn sketched(&mut self, power: f64, log_cut: f64) -> Option<Sketch> {
        let (right, _) = self.walk(Side::Right, power, log_cut, f64::NEG_INFINITY)?;
        let largest = right.iter().map(|(_, log)| *log).fold(f64::NEG_INFINITY, f64::max);
        let (left, _) = self.walk(Side::Left, power, log_cut, largest)?;
        let largest = left.iter().map(|(_, log)| *log).fold(largest, f64::max);
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for (node, log) in left.iter().chain(&right) {
            let weight = libm::exp(log - largest);
            sum += weight;
            first += weight * node.log_ratio;
            second += weight * node.log_ratio * node.log_ratio;
        }
        let (mean, square) = (first / sum, second / sum);
        let log_moment = largest + libm::log(sum * self.step) - LOG_SQRT_TAU;
        let variance = (square - mean * mean).max(1e-14 * square);
        (log_moment.is_finite() && variance > 0.0).then_some(Sketch { log_moment, mean, variance })
    }

    /// Nodes on one side with `ln φ·w^P`, up to a constant, until what remains is provably below
    /// `e^-log_cut`; with a factor by which the last term bounds all beyond it.
    fn walk(&mut self, side: Side, power: f64, log_cut: f64, largest: f64) -> Option<(Vec<(Node, f64)>, f64)> {
        let mut largest = largest;
        let mut terms = Vec::new();
        for j in 0..self.limit {
            let node = self.node(side, j);
            let log_density = -0.5 * node.u * node.u;
            let log_term = log_density + power * node.log_ratio;
            terms.push((node, log_term));
            largest = largest.max(log_term);
            if log_term < largest - log_cut
                && log_density < -log_cut
                && let Some(factor) = self.remainder(side, power, node)
            {
                return Some((terms, factor));
            }
        }
        None
    }

    /// A factor by which the term of `node` bounds the sum of all terms beyond it, where one is
    /// known.
    fn remainder(&self, side: Side, power: f64, node: Node) -> Option<f64> {
        let (u, mu) = (node.u.abs(), self.mu);
        let geometric = |rate: f64| (rate > 0.5).then(|| libm::expm1(rate * self.step).recip());
        match (side, power < 0.0) {
            // w^P falls as well.
            (Side::Left, false) | (Side::Right, true) => geometric(u),
            // Concave: the logarithm falls ever faster.
            (Side::Left, true) => geometric(u + power * node.share * mu),
            // The slope of P·ln w is at most Pμ; before that can be used, w^P lies below its chord
            // to where it can.
            (Side::Right, false) if u >= power * mu + 1.0 => geometric(u - power * mu),
            (Side::Right, false) => {
                let chord = geometric(u - power * self.chord_slope(node, power * mu + 1.0))?;
                Some(chord - libm::expm1(-self.step).recip())
            }
        }
    }
}

/// Numbers summed before their sum is added to the others.
const BLOCK: usize = 32;

/// A sum with an error that grows with a fraction of its length.
fn blocked_sum(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let mut values = values;
    let mut total = 0.0;
    while values.len() > 0 {
        total += values.by_ref().take(BLOCK).sum::<f64>();
    }
    total
}

/// Bound on the error of [`blocked_sum`] relative to the sum of the moduli.
pub(super) fn summing_error(n: usize) -> f64 {
    f64::EPSILON * (BLOCK + n / BLOCK + 16) as f64
}

#[cfg(test)]
mod tests {
    use super::super::nodes::step_for;
    use super::*;

    #[test]
    fn moments_equal_the_binomial_sum() {
        // E[w²] = 1 + q²(e^(μ²) - 1), E[w³] = 1 + 3q²(e^(μ²) - 1) + q³(e^(3μ²) - 3e^(μ²) + 2).
        for (q, mu) in [(1e-9_f64, 0.1_f64), (1e-3, 1.0), (0.2, 0.05), (0.7, 2.0), (0.01, 5.0)] {
            let mut nodes = Nodes::new(q, mu, step_for(mu, 40.0, 3.0, 0.0), 10_000);
            let (one, three) = (libm::expm1(mu * mu), libm::expm1(3.0 * mu * mu));
            for (power, excess) in [(2.0, q * q * one), (3.0, 3.0 * q * q * one + q * q * q * (three - 3.0 * one))] {
                let tilted = nodes.tilted(power, 40.0).unwrap();
                let (exact, found) = (f64::ln_1p(excess), tilted.log_moment);
                assert!(
                    (found - exact).abs() <= tilted.log_error + 4.0 * f64::EPSILON * exact.abs(),
                    "{found} {exact}"
                );
                assert!(tilted.log_error < 1e-12 * (1.0 + exact), "q {q} μ {mu}: {}", tilted.log_error);
            }
        }
    }

    #[test]
    fn far_humps_are_not_cut_off() {
        // With q = 1e-12 and μ = 5 the term q⁴e^(6μ²) of E[w⁴], around u = 20, is e^39.5; the sum
        // walks through the valley before it.
        let (q, mu) = (1e-12_f64, 5.0_f64);
        let tilted = Nodes::new(q, mu, step_for(mu, 40.0, 4.0, 0.0), 10_000).tilted(4.0, 40.0).unwrap();
        let exact = 4.0 * q.ln() + 6.0 * mu * mu;
        assert!((tilted.log_moment - exact).abs() < 1e-9, "{} {exact}", tilted.log_moment);
    }

    #[test]
    fn negative_powers_agree_on_any_step() {
        for (q, mu) in [(1e-4, 0.5), (0.3, 1.0), (0.9, 3.0), (1.0 - 1e-12, 1.0)] {
            let at =
                |target: f64| Nodes::new(q, mu, step_for(mu, target, -7.0, 0.0), 10_000).tilted(-7.0, 60.0).unwrap();
            let (coarse, fine) = (at(20.0), at(60.0));
            let difference = (coarse.log_moment - fine.log_moment).abs();
            assert!(difference <= coarse.log_error + fine.log_error, "q {q} μ {mu}: {difference}");
        }
    }
}
