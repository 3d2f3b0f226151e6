//! The trapezoidal rule for `F(p) = E[w^p]`, `w = 1 - q + q·e^(μu - μ²/2)`, `u ~ N(0, 1)`, at
//! complex powers, with its error.
//!
//! `F` is the moment-generating function of both directions of the Poisson-sampled Gaussian: of
//! "present against absent" at `p = 1 + s`, of "absent against present" at `p = -s`. The integrand
//! is analytic for `|Im u| < π/μ`, where `w` has its first zeros. With `p = P + it` and `b = Im u`,
//!
//! - `|φ(u + ib)| = φ(u)·e^(b²/2)`;
//! - `|arg w(u + ib)| ≤ μ|b|`, so `|w^p| ≤ |w|^P·e^(μ|tb|)`;
//! - `w(u)·cos(μb/2) ≤ |w(u + ib)| ≤ w(u)`, the left side because `(1-q)·q·e^y ≤ w²/4`.
//!
//! So on the lines `Im u = ±a` the integrand's modulus integrates to at most `e^(a²/2 + μta)·F(P)`,
//! times `cos(μa/2)^P` for negative `P`, and the trapezoidal sum of step `h` is within
//! `2/(e^(2πa/h) - 1)` times that (Trefethen & Weideman 2014, Theorem 5.1).

use std::f64::consts::PI;

/// One node of the rule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) u: f64,
    /// `ln w(u)`.
    pub(super) log_ratio: f64,
    /// Share `r` of the second term in `w`: `d ln w/du = μ·r`.
    pub(super) share: f64,
    /// Bound on the rounding error of `log_ratio`.
    pub(super) error: f64,
}

/// Nodes at the multiples of a step, made as they are needed.
#[derive(Debug, Clone)]
pub(super) struct Nodes {
    q: f64,
    pub(super) mu: f64,
    pub(super) step: f64,
    /// On either side at most: beyond, something else is the better method.
    pub(super) limit: usize,
    /// From 0 upwards, and from one step below 0 downwards.
    sides: [Vec<Node>; 2],
}

/// Which way the nodes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Right,
    Left,
}

impl Nodes {
    pub(super) const fn new(q: f64, mu: f64, step: f64, limit: usize) -> Self {
        Self { q, mu, step, limit, sides: [Vec::new(), Vec::new()] }
    }

    /// The same integrand on another step.
    pub(super) const fn with_step(&self, step: f64, limit: usize) -> Self {
        Self::new(self.q, self.mu, step, limit)
    }

    /// The `j`-th node on a side.
    pub(super) fn node(&mut self, side: Side, j: usize) -> Node {
        let index = usize::from(side == Side::Left);
        while self.sides[index].len() <= j {
            let k = self.sides[index].len() as f64;
            let u = if side == Side::Left { -(k + 1.0) * self.step } else { k * self.step };
            let node = self.node_at(u);
            self.sides[index].push(node);
        }
        self.sides[index][j]
    }

    fn node_at(&self, u: f64) -> Node {
        let (q, mu) = (self.q, self.mu);
        let y = mu * (u - 0.5 * mu);
        let (log_ratio, cancelling) = if y < 0.0 && q > 0.5 {
            // Near q = 1 the sum 1 + q(e^y - 1) would lose what is left of 1 - q.
            (libm::log((1.0 - q) + q * libm::exp(y)), 1.0)
        } else if y < 36.0 {
            (libm::log1p(q * libm::expm1(y)), 0.0)
        } else {
            (y + libm::log(q) + libm::log1p((1.0 - q) / q * libm::exp(-y)), 0.0)
        };
        let share = 1.0 / (1.0 + (1.0 - q) / q * libm::exp(-y));
        let error = 8.0 * f64::EPSILON * (log_ratio.abs() + share * mu * (u.abs() + mu) + cancelling);
        Node { u, log_ratio, share, error }
    }

    /// A slope of `ln w` that its chord from `node` to any point between `node` and `u_far` does
    /// not exceed.
    pub(super) fn chord_slope(&self, node: Node, u_far: f64) -> f64 {
        // ln w is convex, so the longest chord is the steepest.
        (self.node_at(u_far).log_ratio - node.log_ratio) / (u_far - node.u)
    }
}

/// Distances from the real line at which the bound is evaluated.
fn strip(mu: f64) -> impl Iterator<Item = f64> {
    let widest = (PI / mu * (1.0 - 1e-9)).min(16.0);
    (0..48).map(move |i| widest * 0.86_f64.powi(i))
}

/// The cost of leaving the real line: `ln cos(μa/2)^P` for negative powers.
fn penalty(mu: f64, a: f64, power: f64) -> f64 {
    if power < 0.0 { power * libm::log(libm::cos(0.5 * mu * a)) } else { 0.0 }
}

/// The largest step whose error, relative to `F(P)`, is below `4.1·e^(-target)` at all powers `P +
/// iτ` with `|τ| ≤ t`.
pub(super) fn step_for(mu: f64, target: f64, power: f64, t: f64) -> f64 {
    let needed = strip(mu)
        .map(|a| t * mu + 0.5 * a + (target + penalty(mu, a, power)) / a)
        .fold(f64::INFINITY, |least, needed| if needed < least { needed } else { least });
    2.0 * PI / needed
}

/// The error of a step, relative to `F(P)`, at all powers `P + iτ` with `|τ| ≤ t`.
pub(super) fn relative_error(mu: f64, step: f64, power: f64, t: f64) -> f64 {
    let exponent = strip(mu)
        .map(|a| 2.0 * PI * a / step - 0.5 * a * a - t * mu * a - penalty(mu, a, power))
        .fold(f64::NEG_INFINITY, f64::max);
    // The integrand is w^p, or w^p less its value at another power of no larger modulus: twice the
    // bound of one.
    4.1 * libm::exp(-exponent)
}
