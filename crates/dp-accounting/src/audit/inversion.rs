//! The privacy profile of many steps, by inverting the loss's moment-generating function in
//! multiple precision.
//!
//! With `Y` the summed loss, `δ(ε) = 1/(2πi) ∫ E[e^(sY)]·e^(-sε)/(s(s+1)) ds` along `Re s = c > 0`.
//! A trapezoidal sum of spacing `2π/W` gives `Σ δ(ε + mW)·e^(cmW)` over all integers m. The moments
//! of a step are trapezoidal sums over u, taken to the power of the count by squaring, so that no
//! logarithm and no angle is ever formed.
//!
//! The sum over the contour ends when [`QUIET`] terms in a row are below `2^-72` of the first; that
//! none later is larger is not proved here. Arithmetic, aliases and the step in u are bounded, and
//! the bound is the radius of the answer.
//!
//! Moments are kept relative to the one at the contour's real point, so that their moduli are at
//! most 1 and fixed-point numbers do.

use std::f64::consts::PI;

use super::ball::Ball;
use super::exact::Direction;
use super::fixed::{Constants, FUNCTION_ERROR, Fixed, UNIT};
use super::rotating_sum::{Complex, RotatingSum};
use super::settings::Steps;

/// `-ln` of the relative error aimed at.
const TARGET: f64 = 46.0;

/// Terms in a row that must be negligible at the end of the sum.
const QUIET: usize = 24;

/// Products of nodes and terms that are affordable: a fifth of a second.
const BUDGET: f64 = 2e6;

/// So few that nothing cheaper is looked for.
const CHEAP: f64 = 1e5;

/// Terms of a sum at most.
const MAX_TERMS: usize = 20_000;

/// Nodes of a rule at most.
const MAX_NODES: i64 = 20_000;

/// One kind of step on the nodes of a rule.
struct Nodes {
    count: u64,
    /// Weight under the tilt, of which there is 1 altogether, and `ln w`.
    points: Vec<(Fixed, Fixed)>,
    /// `ln E[w^P]`, by the rule.
    log_moment: Ball,
    /// Bound on the error of the rule, relative to the real moment.
    rule_error: f64,
    /// Bounds on the errors of all weights together and of any `ln w`.
    weight_error: f64,
    log_error: f64,
}

/// A composition that can be inverted.
pub(super) struct Inversion {
    kinds: Vec<(Steps, f64)>,
    /// Gaussians on the whole data.
    squared_mu: Ball,
}

/// `ln E[w^p]` of a step at a real power, mean and variance, nearly: to plan with. Infinite where
/// it takes too long.
fn rough_log_moment(q: f64, mu: f64, power: f64) -> (f64, f64, f64) {
    let step = (0.3_f64).min(1.2 / mu);
    let reach = 12.0;
    let (first, last) = ((-reach / step) as i64, ((power.max(0.0) * mu + reach) / step) as i64 + 1);
    if last - first > MAX_NODES {
        return (f64::INFINITY, f64::NAN, f64::NAN);
    }
    let terms: Vec<(f64, f64)> = (first..=last)
        .map(|i| {
            let u = i as f64 * step;
            let y = mu * u - 0.5 * mu * mu;
            let log_ratio = if y > 30.0 { y + q.ln() } else { (q * y.exp_m1()).ln_1p() };
            (power * log_ratio - 0.5 * u * u, log_ratio)
        })
        .collect();
    let largest = terms.iter().map(|(log, _)| *log).fold(f64::NEG_INFINITY, f64::max);
    let sum = |f: &dyn Fn(f64) -> f64| terms.iter().map(|(log, x)| (log - largest).exp() * f(*x)).sum::<f64>();
    let total = sum(&|_| 1.0);
    let mean = sum(&|x| x) / total;
    let variance = sum(&|x| (x - mean) * (x - mean)) / total;
    (largest + total.ln() + step.ln() - 0.5 * (2.0 * PI).ln(), mean, variance)
}

impl Inversion {
    /// `None` where it would take too long.
    pub(super) fn new(steps: &[Steps]) -> Option<Self> {
        let (mut kinds, mut squared_mu) = (Vec::new(), Ball::exact(0.0));
        for one in steps {
            if one.q < 1.0 {
                kinds.push((*one, one.sigma.recip()));
            } else {
                squared_mu =
                    squared_mu + Ball::from_count(one.count) / (Ball::exact(one.sigma) * Ball::exact(one.sigma));
            }
        }
        let is_within_reach = kinds.iter().all(|(one, mu)| *mu < 64.0 && one.count < 1 << 40)
            && squared_mu.is_certainly_below(&Ball::exact(1e9));
        (is_within_reach && !kinds.is_empty()).then_some(Self { kinds, squared_mu })
    }

    /// Real power of `w` and sign of the loss.
    fn power(direction: Direction, order: f64) -> (f64, f64) {
        match direction {
            Direction::Remove => (1.0 + order, 1.0),
            Direction::Add => (-order, -1.0),
        }
    }

    /// Nearly: `ln E[e^(cY)]`, mean and variance of the tilted loss.
    fn rough(&self, direction: Direction, order: f64) -> (f64, f64, f64) {
        let (power, sign) = Self::power(direction, order);
        let squared = self.squared_mu.to_f64();
        let mut sum = (0.5 * squared * order * (order + 1.0), squared * (order + 0.5), squared);
        for (one, mu) in &self.kinds {
            let (log, mean, variance) = rough_log_moment(one.q, *mu, power);
            let count = one.count as f64;
            sum = (sum.0 + count * log, sum.1 + sign * count * mean, sum.2 + count * variance);
        }
        sum
    }

    /// The order at which the integrand for ε is smallest on the real line.
    fn saddle(&self, direction: Direction, epsilon: f64) -> f64 {
        let (mut low, mut high) = (1e-7_f64.ln(), 1e4_f64.ln());
        for _ in 0..30 {
            let middle = 0.5 * (low + high);
            let order = middle.exp();
            let slope = self.rough(direction, order).1 - epsilon - order.recip() - (order + 1.0).recip();
            if slope < 0.0 { low = middle } else { high = middle }
        }
        (0.5 * (low + high)).exp()
    }

    /// Logarithm of the integrand for ε on the real line, nearly.
    fn log_integrand(&self, direction: Direction, epsilon: f64, order: f64) -> f64 {
        self.rough(direction, order).0 - order * epsilon - (order * (order + 1.0)).ln()
    }

    /// Upper bounds on δ, by Chernoff's inequality.
    pub(super) fn at_most(&self, direction: Direction, epsilons: &[f64]) -> Vec<Ball> {
        let order = self.saddle(direction, epsilons.iter().copied().fold(0.0, f64::max));
        // A nat is given away for what the rough moment is off by.
        let log_moment = Ball::exact(self.rough(direction, order).0 + 1.0);
        let one = |epsilon: &f64| (log_moment.clone() - Ball::exact(order) * Ball::exact(*epsilon)).exp().around_zero();
        epsilons.iter().map(one).collect()
    }

    /// The cheapest line found; `None` where each would take too long.
    ///
    /// Through the saddle point, terms are smallest. Where rare large losses begin to dominate
    /// there, the sum is long, and shorter at a smaller order, at the price of some digits.
    fn plan(&self, direction: Direction, epsilons: &[f64]) -> Option<Plan> {
        let largest = epsilons.iter().copied().fold(0.0, f64::max);
        let saddle = self.saddle(direction, largest);
        let lowest = self.log_integrand(direction, largest, saddle);
        let mut best: Option<Plan> = None;
        for factor in [1.0, 0.75, 0.5, 0.35, 0.25, 0.15] {
            let order = saddle * factor;
            let excess = (self.log_integrand(direction, largest, order) - lowest).max(0.0);
            if excess.is_nan() || excess > 30.0 {
                break;
            }
            if let Some(plan) = self.plan_at(direction, order, excess, epsilons)
                && best.as_ref().is_none_or(|best| plan.cost() < best.cost())
            {
                best = Some(plan);
            }
            if best.as_ref().is_some_and(|best| best.cost() < CHEAP) {
                break;
            }
        }
        best.filter(|best| best.cost() <= BUDGET)
    }

    /// A line whose integrand is `e^excess` times as large as at the saddle.
    fn plan_at(&self, direction: Direction, order: f64, excess: f64, epsilons: &[f64]) -> Option<Plan> {
        let largest = epsilons.iter().copied().fold(0.0, f64::max);
        let (log_moment, _, variance) = self.rough(direction, order);
        // The size of δ, in units of the integrand there.
        let deviation = (variance + order.recip().powi(2)).sqrt();
        let log_size = -(order * (order + 1.0) * deviation).ln() - 1.0 - excess;
        let (period, log_alias) = self.period(direction, order, log_moment, epsilons, log_size - TARGET)?;
        let spacing = 2.0 * PI / period;
        let n_terms = self.n_terms(direction, order, spacing, excess)?;
        let far = n_terms as f64 * spacing;
        let power = Self::power(direction, order).0;
        let rules: Vec<Rule> = self
            .kinds
            .iter()
            .map(|(one, mu)| Rule::new(TARGET + excess + (one.count as f64).ln(), *mu, power, far))
            .collect::<Option<_>>()?;
        let is_representable = far < 1e9 && largest * spacing < 1e9;
        is_representable.then_some(Plan { order, excess, spacing, n_terms, rules, log_moment, log_alias })
    }

    /// δ at each of several ε that lie close to each other; `None` where it would take too long.
    pub(super) fn delta(&self, direction: Direction, epsilons: &[f64]) -> Option<Vec<Ball>> {
        let plan = self.plan(direction, epsilons)?;
        let Plan { order, spacing, log_moment, log_alias, ref rules, .. } = plan;
        let constants = Constants::new();
        let kinds: Vec<Nodes> = self
            .kinds
            .iter()
            .zip(rules)
            .map(|((one, _), rule)| Nodes::new(one, rule, direction, order, &constants))
            .collect();
        let (sums, error) = self.sum(direction, &plan, &kinds, epsilons, &constants)?;
        let c = Ball::exact(order);
        let gaussian = self.squared_mu.clone() * Ball::exact(0.5) * c.clone() * (c.clone() + Ball::exact(1.0));
        let exact_log_moment =
            kinds.iter().fold(gaussian, |sum, kind| sum + Ball::from_count(kind.count) * kind.log_moment.clone());
        // The real moment is in the rule's within its error, count by count.
        let rule_error: f64 = kinds.iter().map(|kind| kind.count as f64 * kind.rule_error).sum();
        let exact_log_moment = exact_log_moment + Ball::exact(2.0 * rule_error).around_zero();
        // δ = spacing/π·e^(-cε)·sum, less the aliases.
        Some(
            sums.into_iter()
                .zip(epsilons)
                .map(|(sum, epsilon)| {
                    let fall = c.clone() * Ball::exact(*epsilon);
                    let scale = Ball::exact(spacing) / Ball::pi() * (exact_log_moment.clone() - fall.clone()).exp();
                    let aliases = (Ball::exact(log_alias) + Ball::exact(log_moment) - fall).exp();
                    scale * (sum + error.around_zero()) + aliases.around_zero()
                })
                .collect(),
        )
    }

    /// Terms until the sum is over, nearly, and a few more; `None` where they are too many.
    fn n_terms(&self, direction: Direction, order: f64, spacing: f64, excess: f64) -> Option<usize> {
        let power = Self::power(direction, order).0;
        let mut rough: Vec<(f64, Vec<[f64; 4]>)> = self
            .kinds
            .iter()
            .map(|(one, mu)| {
                let step = (0.3_f64).min(1.2 / mu);
                let (first, last) = ((-12.0 / step) as i64, ((power.max(0.0) * mu + 12.0) / step) as i64 + 1);
                let node = |i: i64| {
                    let u = i as f64 * step;
                    let log_ratio = {
                        let y = mu * u - 0.5 * mu * mu;
                        if y > 30.0 { y + one.q.ln() } else { (one.q * y.exp_m1()).ln_1p() }
                    };
                    (power * log_ratio - 0.5 * u * u, log_ratio)
                };
                let terms: Vec<(f64, f64)> = (first..=last).map(node).collect();
                let largest = terms.iter().map(|(log, _)| *log).fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = terms.iter().map(|(log, _)| (log - largest).exp()).sum();
                let kept = terms.into_iter().map(|(log, x)| ((log - largest).exp() / total, x));
                let kept = kept.filter(|(weight, _)| *weight > 1e-18);
                // A number that turns, and its turn.
                let numbers = kept.map(|(weight, x)| {
                    let (sin, cos) = (spacing * x).sin_cos();
                    [weight, 0.0, cos, sin]
                });
                (one.count as f64, numbers.collect())
            })
            .collect();
        let mut quiet = 0;
        let squared = self.squared_mu.to_f64();
        for k in 1..MAX_TERMS {
            let t = k as f64 * spacing;
            let log_modulus: f64 = rough
                .iter_mut()
                .map(|(count, numbers)| {
                    let (mut sum_re, mut sum_im) = (0.0, 0.0);
                    for [re, im, cos, sin] in numbers {
                        (*re, *im) = (*re * *cos - *im * *sin, *re * *sin + *im * *cos);
                        sum_re += *re;
                        sum_im += *im;
                    }
                    0.5 * *count * f64::ln(sum_re * sum_re + sum_im * sum_im)
                })
                .sum::<f64>()
                - 0.5 * squared * t * t;
            quiet = if log_modulus < -52.0 - excess { quiet + 1 } else { 0 };
            if quiet > QUIET {
                return Some(k + 64);
            }
        }
        None
    }

    /// A period at which the aliases are below what is allowed, in units of `E[e^(cY)]·e^(-cε)`,
    /// and a bound on the logarithm of their sum.
    fn period(
        &self,
        direction: Direction,
        order: f64,
        log_moment: f64,
        epsilons: &[f64],
        log_allowed: f64,
    ) -> Option<(f64, f64)> {
        let (lowest, highest) =
            epsilons.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), e| (low.min(*e), high.max(*e)));
        let scale = (2.0 * -log_allowed).sqrt() / self.rough(direction, order).2.sqrt();
        // δ(x) ≤ E[e^(dY)]·e^(-dx) for every d ≥ 0; a nat is given away for what the rough moments
        // are off by.
        let reach = |other: f64| {
            let moment = if other > 0.0 { self.rough(direction, other).0 + 1.0 } else { 0.0 };
            moment - log_moment - log_allowed + 1.0
        };
        let shifts: Vec<f64> = (-3..=9).map(|i| scale * 0.7_f64.powi(i)).collect();
        let above = shifts
            .iter()
            .map(|shift| reach(order + shift) / shift - lowest)
            .fold(f64::INFINITY, |least, x| if x < least { x } else { least });
        let below = shifts
            .iter()
            .filter(|shift| **shift < order)
            .map(|shift| reach(order - shift) / shift + highest)
            .fold(reach(0.0) / order + highest, |least, x| if x < least { x } else { least });
        let period = above.max(below).max(highest - lowest + 1e-300) * 1.01;
        // Two geometric series, of which the first terms are at most what is allowed each; ratios
        // are below a half where the period is as long.
        (period.is_finite() && period > 0.0).then_some((period, log_allowed + 2.0))
    }

    /// `Σ' ψ(t)·e^(-itε)/(s(s+1))` over `s = c + ikh`, the term at 0 halved, and a bound on its
    /// error; `ψ(t)` is `E[e^(sY)]/E[e^(cY)]`.
    fn sum(
        &self,
        direction: Direction,
        plan: &Plan,
        kinds: &[Nodes],
        epsilons: &[f64],
        constants: &Constants,
    ) -> Option<(Vec<Ball>, Ball)> {
        let Plan { order, spacing, excess, .. } = *plan;
        let sign = Self::power(direction, order).1;
        let (c, h) = (Ball::exact(order), Fixed::from_f64(spacing));
        // Every node turns by the same angle from one term to the next, and so does the factor of
        // every ε.
        let turn = h * Fixed::from_f64(sign);
        let mut sums: Vec<(u64, RotatingSum)> = kinds
            .iter()
            .map(|kind| {
                let numbers = kind.points.iter().map(|(weight, log_ratio)| (*weight, *log_ratio * turn));
                (kind.count, RotatingSum::new(numbers, spacing * kind.log_error + UNIT, constants))
            })
            .collect();
        let mut factors: Vec<RotatingSum> = epsilons
            .iter()
            .map(|e| RotatingSum::new(std::iter::once((Fixed::ONE, -(Fixed::from_f64(*e) * h))), UNIT, constants))
            .collect();
        let mut totals = vec![Ball::exact(0.0); epsilons.len()];
        let (mut size, mut kernels, mut quiet, mut first) = (0.0_f64, 0.0, 0, 0.0);
        let half_square = Fixed::near(&(self.squared_mu.clone() * Ball::exact(0.5)));
        let drift = half_square * (Fixed::from_f64(order) + Fixed::from_f64(order) + Fixed::ONE);
        for k in 0..plan.n_terms {
            let t = Fixed::from_f64(k as f64) * h;
            let mut moment = Complex::ONE;
            for (count, nodes) in &mut sums {
                moment = moment.times(nodes.next().power(*count));
            }
            // The Gaussians' factor: e^(μ²/2·(s(s+1) - c(c+1))).
            let distance = k as f64 * spacing;
            if self.squared_mu.to_f64() * distance * distance > 400.0 {
                moment = Complex { re: Fixed::ZERO, im: Fixed::ZERO };
            } else if half_square != Fixed::ZERO {
                let modulus = (-(half_square * (t * t))).exp(constants);
                let (cos, sin) = (drift * t).cos_sin(constants);
                moment = moment.times(Complex { re: modulus * cos, im: modulus * sin });
            }
            // Division by s(s+1) = c(c+1) - t² + i(2c+1)t.
            let t = t.ball(0.0);
            let re = c.clone() * (c.clone() + Ball::exact(1.0)) - t.clone() * t.clone();
            let im = (c.clone() + c.clone() + Ball::exact(1.0)) * t;
            let norm = re.clone() * re.clone() + im.clone() * im.clone();
            let kernel = norm.to_f64().sqrt().recip();
            let (re, im) = (re / norm.clone(), im / norm);
            let modulus = (moment.re.to_f64().abs() + moment.im.to_f64().abs()) * kernel;
            if k == 0 {
                first = modulus;
            }
            size += modulus;
            kernels += kernel;
            for (total, factor) in totals.iter_mut().zip(&mut factors) {
                let turned = moment.times(factor.next());
                let value = turned.re.ball(0.0) * re.clone() + turned.im.ball(0.0) * im.clone();
                *total = total.clone() + if k == 0 { value * Ball::exact(0.5) } else { value };
            }
            quiet = if modulus < first * 2.0_f64.powi(-72) * (-excess).exp() { quiet + 1 } else { 0 };
            if quiet >= QUIET {
                // All moduli are at most 1: a factor's error counts as often as the factor, over
                // the kernel.
                let of_moments: f64 = kinds
                    .iter()
                    .zip(&sums)
                    .map(|(kind, (count, nodes))| {
                        let one = kind.weight_error + nodes.error_after(k) + 2.0 * kind.rule_error + 8.0 * UNIT;
                        *count as f64 * one
                    })
                    .sum();
                let of_factors: f64 = factors.iter().map(|factor| factor.error_after(k)).sum();
                let angle = drift.to_f64() * distance;
                let of_gaussians =
                    FUNCTION_ERROR * (4.0 + angle) + 8.0 * UNIT * (1.0 + distance) * (1.0 + distance) * (2.0 + order);
                let relative = 1.01 * (of_moments + of_factors + of_gaussians) + 64.0 * UNIT;
                return Some((totals, Ball::exact(kernels * relative + size * 2.0_f64.powi(-66) * (-excess).exp())));
            }
        }
        None
    }
}

/// A contour, the spacing and number of its terms, and the rules for the moments on it.
#[derive(Debug)]
struct Plan {
    order: f64,
    /// Logarithm of the integrand there over that at the saddle.
    excess: f64,
    spacing: f64,
    n_terms: usize,
    rules: Vec<Rule>,
    /// Nearly.
    log_moment: f64,
    /// Bound on the logarithm of the aliases, in units of `E[e^(cY)]·e^(-cε)`.
    log_alias: f64,
}

impl Plan {
    /// Products of nodes and terms.
    fn cost(&self) -> f64 {
        self.rules.iter().map(Rule::n_nodes).sum::<i64>() as f64 * self.n_terms as f64
    }
}

/// A trapezoidal rule over multiples of a step.
#[derive(Debug)]
struct Rule {
    step: f64,
    first: i64,
    last: i64,
    /// Bound on its error, relative to the real moment.
    error: f64,
}

impl Rule {
    /// Right to `e^-target` for powers `power + iτ`, `|τ| ≤ far`; `None` where it would be too
    /// long.
    fn new(target: f64, mu: f64, power: f64, far: f64) -> Option<Self> {
        // On the lines Im u = ±a the integrand is at most e^(a²/2 + μ·far·a) times its real
        // counterpart, over cos(μa/2) to the power for negative ones.
        let widest = (0.96 * PI / mu).min(14.0);
        let step = (1..=40)
            .map(|i| f64::from(i) / 40.0 * widest)
            .map(|a| {
                let penalty = if power < 0.0 { power * (0.5 * mu * a).cos().ln() } else { 0.0 };
                2.0 * PI * a / (0.5 * a * a + mu * far * a + penalty + target)
            })
            .fold(0.0, f64::max);
        let reach = (2.0 * target).sqrt() + 2.0;
        let (first, last) = ((-reach / step) as i64 - 1, ((power.max(0.0) * mu + reach) / step) as i64 + 1);
        let rule = Self { step, first, last, error: 8.0 * (-target).exp() };
        (step > 0.0 && rule.n_nodes() <= MAX_NODES).then_some(rule)
    }

    const fn n_nodes(&self) -> i64 {
        self.last.saturating_sub(self.first)
    }
}

impl Nodes {
    /// The nodes of a rule, for an order of the loss.
    fn new(steps: &Steps, rule: &Rule, direction: Direction, order: f64, constants: &Constants) -> Self {
        let Steps { q, sigma, count } = *steps;
        let Rule { step, first, last, error: rule_error } = *rule;
        let power = Inversion::power(direction, order).0;
        let mu = Fixed::near(&(Ball::exact(1.0) / Ball::exact(sigma)));
        let half_square = (mu * mu).over(2);
        let exact_power = match direction {
            Direction::Remove => Fixed::ONE + Fixed::from_f64(order),
            Direction::Add => -Fixed::from_f64(order),
        };
        let (rate, rest) = (Fixed::from_f64(q), Fixed::ONE - Fixed::from_f64(q));
        let mut smallest = 1.0_f64;
        let nodes: Vec<(Fixed, Fixed)> = (first..=last)
            .map(|i| {
                let u = Fixed::from_f64(i as f64) * Fixed::from_f64(step);
                let y = mu * u - half_square;
                // w, or w·e^-y: a number up to 1.
                let is_above = y.to_f64() > 0.0;
                let inner = if is_above { rate + rest * (-y).exp(constants) } else { rest + rate * y.exp(constants) };
                smallest = smallest.min(inner.to_f64());
                let log = inner.ln(constants);
                let log_ratio = if is_above { y + log } else { log };
                (exact_power * log_ratio - (u * u).over(2), log_ratio)
            })
            .collect();
        let widest = nodes.len() as f64 * step;
        let log_error = 4.0 * (FUNCTION_ERROR + (1.0 + widest) * UNIT) / smallest.max(UNIT);
        let largest = nodes.iter().map(|(exponent, _)| exponent.to_f64()).fold(f64::NEG_INFINITY, f64::max);
        let shift = Fixed::from_f64(largest);
        let weights: Vec<Fixed> = nodes.iter().map(|(exponent, _)| (*exponent - shift).exp(constants)).collect();
        let sum = weights.iter().fold(Fixed::ZERO, |sum, weight| sum + *weight);
        // Errors of the exponents, which are relative, and of the exponentials.
        let one = power.abs() * log_error + 4.0 * UNIT * (1.0 + widest);
        let weight_error = 4.0 * (one + weights.len() as f64 * FUNCTION_ERROR);
        let sum = sum.ball(weight_error * weights.len() as f64);
        let inverse = Fixed::near(&(Ball::exact(1.0) / sum.clone()));
        let points =
            weights.iter().zip(&nodes).map(|(weight, (_, log_ratio))| (*weight * inverse, *log_ratio)).collect();
        let scale = Ball::exact(step) / (Ball::exact(2.0) * Ball::pi()).sqrt();
        let log_moment = (sum * scale).ln() + Ball::exact(largest);
        Self { count, points, log_moment, rule_error, weight_error, log_error }
    }
}
