//! The summed privacy loss of a composition of (sampled) Gaussians, through its moments.

use super::decay::Decay;
use super::moment::{Sketch, Tilted};
use super::nodes::{Nodes, step_for};

/// Which of the two data sets is the numerator of the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Record present against record absent.
    Remove,
    /// Record absent against record present.
    Add,
}

impl Direction {
    /// The power `P` of `w` that gives the moment of order `c` of the loss.
    pub(super) fn power(self, order: f64) -> f64 {
        match self {
            Self::Remove => 1.0 + order,
            Self::Add => -order,
        }
    }

    /// Sign of `ln w` in the loss.
    pub(super) const fn sign(self) -> f64 {
        match self {
            Self::Remove => 1.0,
            Self::Add => -1.0,
        }
    }
}

/// Equal Poisson-sampled Gaussians.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    pub(super) nodes: Nodes,
    /// Fewer of them, for plans.
    sketched: Nodes,
    pub(super) count: f64,
}

/// Negative logarithm of the error of a moment over all steps that is aimed at.
const TARGET: f64 = 34.0;

/// The same of a plan.
const SKETCHED_TARGET: f64 = 10.0;

/// The least power for which the nodes of a step are chosen; at lower ones their error grows.
const LEAST_POWER: f64 = -8.0;

impl Steps {
    pub(super) fn new(q: f64, mu: f64, count: f64, max_nodes: usize) -> Self {
        let nodes =
            |target: f64| Nodes::new(q, mu, step_for(mu, target + libm::log(count), LEAST_POWER, 0.0), max_nodes);
        Self { nodes: nodes(TARGET), sketched: nodes(SKETCHED_TARGET), count }
    }

    /// Moments to a few digits.
    fn sketched(&mut self, power: f64) -> Option<Sketch> {
        if power >= LEAST_POWER {
            return self.sketched.sketched(power, SKETCHED_TARGET + libm::log(self.count));
        }
        let Tilted { log_moment, mean, deviation, .. } = self.tilted(power)?;
        Some(Sketch { log_moment, mean, variance: deviation * deviation })
    }

    pub(super) fn tilted(&mut self, power: f64) -> Option<Tilted> {
        self.nodes.tilted(power, TARGET + libm::log(self.count))
    }

    fn refined(&self, step: f64, max_nodes: usize) -> Self {
        let with = |nodes: &Nodes| nodes.with_step(step, max_nodes);
        Self { nodes: with(&self.nodes), sketched: with(&self.sketched), count: self.count }
    }

    /// The step of nodes fine enough for the powers `power + iτ`, `|τ| ≤ t`.
    pub(super) fn step_for(&self, power: f64, t: f64) -> f64 {
        step_for(self.nodes.mu, TARGET + libm::log(self.count), power, t)
    }
}

/// A sum of independent losses.
#[derive(Debug, Clone)]
pub(super) struct Loss {
    pub(super) steps: Vec<Steps>,
    /// All Gaussians on the whole data, as one, with the loss `N(μ²/2, μ²)` in both directions; 0
    /// if there is none.
    pub(super) mu: f64,
}

/// `ln E[e^(cY)]` of the summed loss, and the loss under that tilt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cumulants {
    pub(super) log_moment: f64,
    /// Bound on the error of `log_moment`.
    pub(super) error: f64,
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Loss {
    /// The same loss on other nodes.
    pub(super) fn refined(&self, step: impl Fn(&Steps) -> f64, max_nodes: usize) -> Self {
        let refined = |steps: &Steps| steps.refined(step(steps), max_nodes);
        Self { steps: self.steps.iter().map(refined).collect(), mu: self.mu }
    }

    /// The steps' losses under the tilt of order `order`; `None` when that takes too many nodes.
    pub(super) fn tilted(&mut self, direction: Direction, order: f64) -> Option<Vec<Tilted>> {
        let power = direction.power(order);
        self.steps.iter_mut().map(|steps| steps.tilted(power)).collect()
    }

    /// Cumulants at one order to a few digits, for plans; `None` when that takes too many nodes.
    pub(super) fn sketched(&mut self, direction: Direction, order: f64) -> Option<Cumulants> {
        let power = direction.power(order);
        let mut sum = self.of_gaussians(order);
        for steps in &mut self.steps {
            let Sketch { log_moment, mean, variance } = steps.sketched(power)?;
            sum.log_moment += steps.count * log_moment;
            sum.mean += steps.count * direction.sign() * mean;
            sum.variance += steps.count * variance;
        }
        Some(sum)
    }

    /// Cumulants of the Gaussians on the whole data.
    fn of_gaussians(&self, order: f64) -> Cumulants {
        let squared = self.mu * self.mu;
        let log_moment = 0.5 * squared * order * (order + 1.0);
        // μ is right to 6 ulp, and its square to 12.
        let error = 20.0 * f64::EPSILON * log_moment;
        Cumulants { log_moment, error, mean: squared * (order + 0.5), variance: squared }
    }

    /// Cumulants at one order; `None` when that takes too many nodes.
    pub(super) fn cumulants(&mut self, direction: Direction, order: f64) -> Option<Cumulants> {
        let tilted = self.tilted(direction, order)?;
        Some(self.cumulants_of(&tilted, direction, order))
    }

    /// Cumulants of what [`tilted`](Self::tilted) gave.
    pub(super) fn cumulants_of(&self, tilted: &[Tilted], direction: Direction, order: f64) -> Cumulants {
        let mut sum = self.of_gaussians(order);
        for (steps, tilted) in self.steps.iter().zip(tilted) {
            sum.log_moment += steps.count * tilted.log_moment;
            sum.error += steps.count * (tilted.log_error + 4.0 * f64::EPSILON * tilted.log_moment.abs());
            sum.mean += steps.count * direction.sign() * tilted.mean;
            sum.variance += steps.count * tilted.deviation * tilted.deviation;
        }
        sum.error += self.steps.len() as f64 * f64::EPSILON * sum.log_moment.abs();
        sum
    }

    /// How fast the characteristic functions of the steps fall under the tilt.
    pub(super) fn decays(&self, tilted: &[Tilted]) -> Vec<Decay> {
        self.steps
            .iter()
            .zip(tilted)
            .map(|(steps, tilted)| Decay::new(tilted, steps.nodes.mu, steps.nodes.step))
            .collect()
    }

    /// Upper bound on the logarithm of the modulus of the sum's characteristic function beyond `t`.
    pub(super) fn log_fading(&self, decays: &[Decay], t: f64) -> f64 {
        let sampled: f64 = self.steps.iter().zip(decays).map(|(steps, decay)| steps.count * decay.log_bound(t)).sum();
        sampled - 0.5 * self.mu * self.mu * t * t
    }
}
