//! Where the contour runs and how finely it is sampled. Nothing here needs to be exact: any choice
//! gives valid bounds, good ones narrow bounds.

use std::f64::consts::PI;

use super::super::bracket::Question;
use super::super::convolve::log_largest_weight;
use super::loss::{Direction, Loss, Steps};
use super::moment::Tilted;

/// A contour `Re s = order`, the period of the trapezoidal sum over it and its length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plan {
    pub(super) order: f64,
    /// About the ε in question.
    pub(super) epsilon: f64,
    /// `2π` over the spacing of the terms.
    pub(super) period: f64,
    pub(super) n_terms: usize,
    /// Nodes of one kind of step at most.
    pub(super) max_nodes: usize,
    /// Orders whose Chernoff bounds limit the aliases from above and from below; 0 stands for `δ ≤
    /// 1`.
    pub(super) order_above: f64,
    pub(super) order_below: f64,
}

/// The saddle-point approximation of one point of the profile.
#[derive(Debug, Clone, Copy)]
struct Saddle {
    order: f64,
    epsilon: f64,
    log_delta: f64,
}

impl Saddle {
    /// The point whose saddle lies at an order.
    fn at(loss: &mut Loss, direction: Direction, order: f64) -> Option<Self> {
        let cumulants = loss.sketched(direction, order)?;
        let (first, second) = (order.recip(), (order + 1.0).recip());
        let epsilon = cumulants.mean - first - second;
        let curvature = cumulants.variance + first * first + second * second;
        let log_delta = exponent(cumulants.log_moment, order, epsilon) - 0.5 * libm::log(2.0 * PI * curvature);
        Some(Self { order, epsilon, log_delta })
    }

    /// The smallest order at which the integrand on the real line is at most `e^slack` times as
    /// large as at the saddle.
    fn smaller_order(&self, loss: &mut Loss, direction: Direction, slack: f64) -> Option<f64> {
        if slack <= 0.0 {
            return Some(self.order);
        }
        let mut at = |order: f64| Some(exponent(loss.sketched(direction, order)?.log_moment, order, self.epsilon));
        let allowed = at(self.order)? + slack;
        let (mut low, mut high) = (0.0, self.order);
        for _ in 0..8 {
            let middle = 0.5 * (low + high);
            if at(middle)? > allowed {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(high)
    }
}

/// Logarithm of the integrand at a real point.
fn exponent(log_moment: f64, order: f64, epsilon: f64) -> f64 {
    log_moment - order * epsilon - libm::log(order) - libm::log1p(order)
}

/// Plans for an error of `e^log_tolerance` relative to δ, within a budget of nodes times terms; the
/// shortest first.
///
/// Through the saddle point the terms are smallest. Where rare large losses begin to dominate
/// there, the sum is long, and a smaller order, at the price of some digits, makes it shorter.
pub(super) fn plans(
    loss: &mut Loss,
    direction: Direction,
    question: Question,
    start: f64,
    log_tolerance: f64,
    budget: f64,
) -> Option<Vec<Plan>> {
    let mut saddle = find_saddle(loss, direction, question, start)?;
    if saddle.epsilon < 0.0 {
        saddle = find_saddle(loss, direction, Question::Delta { epsilon: 0.0 }, saddle.order)?;
    }
    if let Question::Delta { epsilon } = question {
        saddle.epsilon = epsilon;
    }
    saddle.epsilon = saddle.epsilon.max(0.0);
    let mut found: Vec<(f64, Plan)> = Vec::new();
    for slack in [0.0, 3.0, 6.0] {
        let order = saddle.smaller_order(loss, direction, slack)?;
        found.extend(plan_at(loss, direction, &saddle, order, log_tolerance, budget));
        if found.iter().any(|(cost, _)| *cost < CHEAP) {
            break;
        }
    }
    found.retain(|(cost, _)| *cost <= budget);
    found.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    Some(found.into_iter().map(|(_, plan)| plan).collect())
}

/// So many nodes times terms take less time than planning.
const CHEAP: f64 = 5e4;

/// A plan on the line through an order, with its nodes times terms.
fn plan_at(
    loss: &mut Loss,
    direction: Direction,
    saddle: &Saddle,
    order: f64,
    log_tolerance: f64,
    budget: f64,
) -> Option<(f64, Plan)> {
    let tilted = loss.tilted(direction, order)?;
    let cumulants = loss.cumulants_of(&tilted, direction, order);
    let epsilon = saddle.epsilon;
    // The error allowed, in units of E[e^(cY)]: the saddle-point approximation may be a nat off.
    let log_allowed = saddle.log_delta + order * epsilon - cumulants.log_moment + log_tolerance - 1.0;
    let contour = Contour { order, log_moment: cumulants.log_moment, variance: cumulants.variance, log_allowed };
    let (period, order_above, order_below) = contour.alias_free_period(loss, direction, epsilon)?;
    let spacing = 2.0 * PI / period;
    let decays = loss.decays(&tilted);
    let suffices = |k: f64| loss.log_fading(&decays, (k + 1.0) * spacing) - libm::log(PI * k * spacing) <= log_allowed;
    let (mut short, mut long) = (0.0, 8.0);
    while !suffices(long) {
        (short, long) = (long, 2.0 * long);
        if long > budget {
            return None;
        }
    }
    while long - short > 1.0 + 0.02 * long {
        let middle = (0.5 * (short + long)).round();
        if suffices(middle) {
            long = middle;
        } else {
            short = middle;
        }
    }
    let power = direction.power(order);
    let n_nodes = |(steps, tilted): (&Steps, &Tilted)| {
        tilted.nodes.len() as f64 * steps.nodes.step / steps.step_for(power, long * spacing)
    };
    let n_nodes: f64 = loss.steps.iter().zip(&tilted).map(n_nodes).sum();
    let (n_terms, max_nodes) = (long as usize, (2.0 * budget / long) as usize);
    Some((n_nodes * long, Plan { order, epsilon, period, n_terms, max_nodes, order_above, order_below }))
}

/// Solves for the order, in the logarithm, to a few per cent.
fn find_saddle(loss: &mut Loss, direction: Direction, question: Question, start: f64) -> Option<Saddle> {
    // Both rise with the order.
    let excess = |saddle: &Saddle| match question {
        Question::Epsilon { delta } => libm::log(delta) - saddle.log_delta,
        Question::Delta { epsilon } => saddle.epsilon - epsilon,
    };
    let (mut low, mut high): (Option<Saddle>, Option<f64>) = (None, None);
    let mut order = start.clamp(1e-6, 1e9);
    let mut factor = 1.3;
    for turn in 0..60 {
        if turn > 8 && low.is_none() {
            return None;
        }
        match Saddle::at(loss, direction, order) {
            Some(saddle) if excess(&saddle) <= 0.0 => low = Some(saddle),
            // Moments of too large an order cannot be had.
            _ => high = Some(order),
        }
        order = match (&low, high) {
            (Some(low), Some(high)) if high / low.order < 1.03 => break,
            (Some(low), Some(high)) => (low.order * high).sqrt(),
            (Some(low), None) => low.order * factor,
            (None, Some(high)) => high / factor,
            (None, None) => return None,
        };
        if low.is_none() || high.is_none() {
            factor *= 1.2;
        }
        if !(1e-8..1e12).contains(&order) {
            break;
        }
    }
    low
}

/// A candidate for the contour.
#[derive(Debug, Clone, Copy)]
struct Contour {
    order: f64,
    log_moment: f64,
    variance: f64,
    /// Logarithm of the error allowed in units of `E[e^(cY)]`.
    log_allowed: f64,
}

impl Contour {
    /// A period at which all aliases together are below what is allowed, and the orders whose
    /// Chernoff bounds show it.
    fn alias_free_period(&self, loss: &mut Loss, direction: Direction, epsilon: f64) -> Option<(f64, f64, f64)> {
        // δ(x)e^(cx)/E[e^(cY)] ≤ weight(d)·E[e^(dY)]/E[e^(cY)]·e^((c-d)x): the x beyond which that
        // is allowed.
        let mut excess = |other: f64| {
            let log_moment = if other > 0.0 { loss.sketched(direction, other)?.log_moment } else { 0.0 };
            Some(log_largest_weight(other) + log_moment - self.log_moment - self.log_allowed + 1.0)
        };
        let curvature = self.variance + (self.order * self.order).recip();
        let scale = (-2.0 * self.log_allowed.min(-8.0) / curvature).sqrt();
        let shifts = || (-4..=10).map(|i| scale * 0.7_f64.powi(i));
        // From far to near as long as that helps.
        let mut nearest = |sign: f64, offset: f64| {
            let mut best: Option<(f64, f64)> = None;
            for order in shifts().map(|shift| self.order + sign * shift).filter(|order| *order > 0.0) {
                let Some(reach) = excess(order).map(|excess| excess / (order - self.order).abs() + offset) else {
                    continue;
                };
                match best {
                    Some((least, _)) if reach >= least => break,
                    _ => best = Some((reach, order)),
                }
            }
            best
        };
        let above = nearest(1.0, -epsilon);
        let below = nearest(-1.0, epsilon);
        // At order 0 the bound is δ ≤ 1.
        let mut below = below.unwrap_or((f64::INFINITY, 0.0));
        let at_zero = excess(0.0)? / self.order + epsilon;
        if at_zero <= below.0 {
            below = (at_zero, 0.0);
        }
        let (reach_above, order_above) = above?;
        let period = reach_above.max(below.0);
        (period > 0.0 && period.is_finite()).then_some((period, order_above, below.1))
    }
}
