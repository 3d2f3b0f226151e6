//! The trapezoidal sum along the contour, with every error bounded.

use rustfft::num_complex::Complex64;

use super::super::convolve::{exponential, log_largest_weight};
use super::loss::{Direction, Loss, Steps};
use super::moment::Tilted;
use super::nodes::relative_error;
use super::plan::Plan;
use super::turns::{characteristic_excess, summing_error};

/// Samples of `ψ(t)/((c + it)(c + 1 + it))` at `t = h, 2h, …`, `ψ` being the characteristic
/// function of the loss under the tilt, about `centre`.
#[derive(Debug, Clone)]
pub(super) struct Line {
    order: f64,
    spacing: f64,
    period: f64,
    /// `ln E[e^(cY)]` and a bound on its error.
    log_moment: f64,
    log_error: f64,
    centre: f64,
    terms: Vec<Complex64>,
    /// Bound on the summed error of the terms.
    error: f64,
    /// `Σ |term|` and `Σ |term|·t`.
    size: f64,
    moment: f64,
    /// Bound on what was cut off.
    tail: f64,
    /// Chernoff bounds on the aliases: distance to the contour, and logarithm at ε = 0.
    above: (f64, f64),
    below: (f64, f64),
}

/// Bounds on `ln δ` at one ε.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogBounds {
    pub(super) lower: f64,
    pub(super) upper: f64,
}

impl Line {
    /// Samples the contour; `None` when a moment takes too many nodes. `real` is for moments at
    /// real powers: nodes that others share.
    pub(super) fn new(real: &mut Loss, direction: Direction, plan: &Plan) -> Option<Self> {
        let (order, spacing, n) = (plan.order, 2.0 * std::f64::consts::PI / plan.period, plan.n_terms);
        let power = direction.power(order);
        let mut loss = real.refined(|steps| steps.step_for(power, n as f64 * spacing), plan.max_nodes);
        let tilted = loss.tilted(direction, order)?;
        let cumulants = loss.cumulants_of(&tilted, direction, order);
        // ln|ψ| and its phase, and how much ln|ψ| may be too small.
        let mut logs: Vec<Sample> = (1..=n)
            .map(|k| {
                let log_modulus = -0.5 * (loss.mu * k as f64 * spacing).powi(2);
                // μ itself is right to 6 ulp.
                Sample { log_modulus, phase: 0.0, slack: 16.0 * f64::EPSILON * -log_modulus, size: -log_modulus }
            })
            .collect();
        let mut centre = loss.mu * loss.mu * (order + 0.5);
        for (steps, tilted) in loss.steps.iter().zip(&tilted) {
            add_samples(&mut logs, steps, tilted, direction, spacing);
            centre += steps.count * direction.sign() * tilted.mean;
        }
        let mut line = Self {
            order,
            spacing,
            period: plan.period,
            log_moment: cumulants.log_moment,
            log_error: cumulants.error,
            centre,
            terms: Vec::with_capacity(n),
            error: 0.0,
            size: 0.0,
            moment: 0.0,
            tail: 0.0,
            above: (plan.order_above - order, 0.0),
            below: (order - plan.order_below, 0.0),
        };
        let groups = loss.steps.len() as f64;
        for (k, sample) in (1..).zip(&logs) {
            let t = f64::from(k) * spacing;
            let kernel = Complex64::new(order, t) * Complex64::new(order + 1.0, t);
            let term = exponential(sample.log_modulus, sample.phase) / kernel;
            let modulus = term.norm_sqr().sqrt();
            // Each group of steps adds a rounding of the sums so far.
            let sums = (groups + 4.0) * f64::EPSILON * sample.size;
            line.error += modulus * (libm::expm1(sample.slack + sums) + 32.0 * f64::EPSILON);
            line.size += modulus;
            line.moment += modulus * t;
            line.terms.push(term);
        }
        let beyond = (n as f64 + 1.0) * spacing;
        // |s(s+1)| ≥ t², and Σ 1/k² over k > n is below 1/n.
        line.tail =
            libm::exp(loss.log_fading(&loss.decays(&tilted), beyond)) / (std::f64::consts::PI * spacing * n as f64);
        for (order_of_bound, bound) in [(plan.order_above, &mut line.above), (plan.order_below, &mut line.below)] {
            if order_of_bound > 0.0 {
                let other = real.cumulants(direction, order_of_bound)?;
                bound.1 = other.log_moment + other.error + log_largest_weight(order_of_bound);
            }
            bound.1 += cumulants.error - cumulants.log_moment;
        }
        Some(line)
    }

    /// Bounds at any ε; they are narrow near the one that the line was planned for.
    pub(super) fn log_delta(&self, epsilon: f64) -> LogBounds {
        let offset = epsilon - self.centre;
        let sum: f64 = (1..)
            .zip(&self.terms)
            .map(|(k, term)| {
                let (sin, cos) = libm::sincos(f64::from(k) * self.spacing * offset);
                term.re * cos + term.im * sin
            })
            .sum();
        let middle = 0.5 / (self.order * (self.order + 1.0));
        let scale = self.spacing / std::f64::consts::PI;
        let rounding = f64::EPSILON
            * ((self.terms.len() as f64 + 16.0) * (self.size + middle)
                + 24.0 * self.moment * (epsilon.abs() + self.centre.abs()));
        let error = scale * (self.error + rounding) + self.tail;
        // All aliases are positive: Poisson's sum has δ(ε + mW)·e^(c(ε + mW)) for every m.
        let above = libm::exp(self.above.1 - self.above.0 * (epsilon + self.period))
            / -libm::expm1(-self.above.0 * self.period);
        let below = libm::exp(self.below.1 - self.below.0 * (self.period - epsilon))
            / -libm::expm1(-self.below.0 * self.period);
        let value = scale * (middle + sum);
        let log_scale = self.log_moment - self.order * epsilon;
        let log_error = self.log_error
            + 4.0 * f64::EPSILON * (self.log_moment.abs() + self.order * epsilon.abs() + log_scale.abs() + 4.0);
        LogBounds {
            lower: log_scale - log_error + libm::log((value - error - 1.001 * (above + below)).max(0.0)),
            upper: log_scale + log_error + libm::log(value + error),
        }
    }
}

/// `ln ψ` at one `t`.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    log_modulus: f64,
    phase: f64,
    /// From `|a|` and `|a| + error` of every factor: logarithm of the quotient, and rounding of the
    /// powers.
    slack: f64,
    /// Sum of the moduli of what was added to the modulus and to the phase.
    size: f64,
}

/// Adds `count·ln E[e^(it(x - mean))]` at `t = h, 2h, …`.
fn add_samples(logs: &mut [Sample], steps: &Steps, tilted: &Tilted, direction: Direction, spacing: f64) {
    let count = steps.count;
    let losses: Vec<f64> = tilted.nodes.iter().map(|node| direction.sign() * (node.log_ratio - tilted.mean)).collect();
    let excess = characteristic_excess(&losses, &tilted.weights, spacing, logs.len());
    let quadrature = relative_error(steps.nodes.mu, steps.nodes.step, tilted.power, logs.len() as f64 * spacing);
    let rounding: Vec<Rounding> = (0..=logs.len().next_power_of_two().ilog2())
        .map(|i| Rounding::up_to(tilted, &losses, spacing * f64::from(i).exp2()))
        .collect();
    for (k, (sample, z)) in (1_usize..).zip(logs.iter_mut().zip(excess)) {
        let rounding = rounding[k.next_power_of_two().ilog2() as usize];
        let error = 1.001 * (rounding.error + (quadrature + tilted.outside) * (2.0 + rounding.size)) + 1e-300;
        let square = 2.0 * z.re + z.norm_sqr();
        let log_modulus = if square.abs() < 0.5 {
            0.5 * libm::log1p(square)
        } else {
            0.5 * libm::log((z + 1.0).norm_sqr().max(1e-300))
        };
        let phase = libm::atan2(z.im, 1.0 + z.re);
        sample.log_modulus += count * log_modulus;
        sample.phase += count * phase;
        sample.slack += count * libm::log1p(error * libm::exp(-log_modulus))
            + 4.0 * f64::EPSILON * count * (log_modulus.abs() + phase.abs());
        sample.size += count * (log_modulus.abs() + phase.abs());
    }
}

/// Bound on the rounding of `Σ weights·(e^(iτx) - 1)` for `τ` up to some `t`.
#[derive(Debug, Clone, Copy)]
struct Rounding {
    /// `Σ weights·|e^(iτx) - 1|`.
    size: f64,
    error: f64,
}

impl Rounding {
    fn up_to(tilted: &Tilted, losses: &[f64], t: f64) -> Self {
        let sum = summing_error(tilted.nodes.len());
        let (mut size, mut error) = (0.0, 0.0);
        for (i, x) in losses.iter().enumerate() {
            let chord = tilted.weights[i] * (t * x.abs()).min(2.0);
            size += chord;
            error += chord * (sum + tilted.weight_errors[i]);
            // Errors of the loss itself and of the angles made from it.
            let argument = tilted.nodes[i].error + 4.0 * f64::EPSILON * (x.abs() + tilted.mean.abs());
            error += tilted.weights[i] * t * argument;
        }
        Self { size, error }
    }
}
