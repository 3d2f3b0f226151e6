//! The privacy profile by a contour integral: for compositions of Gaussians, sampled or not, bounds
//! that agree in many digits, in microseconds.
//!
//! With `Y` the summed loss and `M(s) = E[e^(sY)]`, for any `c > 0`,
//!
//! `δ(ε) = E[(1 - e^(ε-Y))⁺] = 1/(2πi) ∫ M(s)·e^(-sε)/(s(s+1)) ds` over `Re s = c`.
//!
//! The trapezoidal sum of spacing `h` on that line is, by Poisson's formula, `Σ δ(ε + mW)·e^(cmW)`
//! over all integers `m`, `W = 2π/h`. So it is never below δ(ε), and its excess is bounded by
//! Chernoff bounds `δ(x) ≤ weight(d)·M(d)·e^(-dx)` at orders `d` above and below `c`. Beside these
//! aliases there are three errors, all bounded: the terms cut off (`decay`), the quadrature of each
//! moment (`nodes`, `moment`) and rounding (`line`). Along the line through the saddle point the
//! terms fall like a bell and hardly cancel, so relative errors stay small at any δ.
//!
//! Where a bound cannot be had or a sum would be too long (a handful of steps; losses on very
//! different scales), there is no answer here, and the grid gives it.

mod decay;
mod line;
mod loss;
mod moment;
mod nodes;
mod plan;
mod turns;

use line::{Line, LogBounds};
use loss::{Cumulants, Direction, Loss, Steps};
use plan::Plan;

use super::bracket::{Bracket, Effort, Guess, Question};
use super::convolve::log_largest_weight;
use super::mechanism::PldMechanism;

/// Products of nodes and terms for each point that a grid may have: a quarter of a second at the
/// default number of points.
const PRODUCTS_PER_POINT: f64 = 128.0;

/// Nodes, on either side of 0, of a real moment at most: there are many such moments to a plan.
const MAX_NODES: usize = 1 << 13;

/// Fewer steps are left to the grid: the bound on the terms cut off is the power of a single
/// step's, and would stay far above the tolerance.
const FEWEST_STEPS: f64 = 4.0;

/// Whether there is an integral at all for these mechanisms.
pub(super) fn can_answer(mechanisms: &[(PldMechanism, f64)]) -> bool {
    let has_gaussian = mechanisms.iter().any(|(mechanism, _)| mechanism.as_gaussian().is_some());
    let n_steps: f64 = mechanisms.iter().map(|(_, count)| count).sum();
    let is_known =
        |mechanism: &PldMechanism| mechanism.as_gaussian().or(mechanism.as_sampled_gaussian().map(|(_, mu)| mu));
    (has_gaussian || n_steps >= FEWEST_STEPS) && mechanisms.iter().all(|(mechanism, _)| is_known(mechanism).is_some())
}

/// Brackets the answer where that can be done, along lines planned for `planned`: for the question
/// itself, or for the ε that a coarser answer gives, near which an ε is then sought.
pub(super) fn bracket(
    mechanisms: &[(PldMechanism, f64)],
    question: Question,
    planned: Question,
    guess: Guess,
    effort: Effort,
    directions: [bool; 2],
) -> Option<Bracket> {
    if !can_answer(mechanisms) {
        return None;
    }
    let mut loss = Loss { steps: Vec::new(), mu: 0.0 };
    for (mechanism, count) in mechanisms {
        if let Some(mu) = mechanism.as_gaussian() {
            loss.mu = mu;
        } else {
            let (q, mu) = mechanism.as_sampled_gaussian()?;
            loss.steps.push(Steps::new(q, mu, *count, MAX_NODES.min(effort.max_points)));
        }
    }
    let mut integral = Integral { loss, question, planned, start: guess.order, effort };
    if let [false, _] = directions {
        return integral.bracket(Direction::Add);
    }
    let mut best = integral.bracket(Direction::Remove)?;
    if directions[1] && !integral.is_at_most(Direction::Add, best.lower) {
        let other = integral.bracket(Direction::Add)?;
        best = Bracket { lower: best.lower.max(other.lower), upper: best.upper.max(other.upper) };
    }
    Some(best)
}

/// The integrand and the accuracy that it needs.
#[derive(Debug)]
struct Integral {
    loss: Loss,
    question: Question,
    planned: Question,
    /// An order to start from.
    start: f64,
    effort: Effort,
}

impl Integral {
    /// Brackets the answer for one direction, as narrowly as asked if that can be done.
    fn bracket(&mut self, direction: Direction) -> Option<Bracket> {
        let log_tolerance = libm::log((1e-2 * self.effort.relative_width).clamp(1e-13, 1e-9));
        let budget = PRODUCTS_PER_POINT * self.effort.max_points as f64;
        let plans = plan::plans(&mut self.loss, direction, self.planned, self.start, log_tolerance, budget)?;
        let mut best: Option<Bracket> = None;
        for plan in plans {
            let Some(found) = Line::new(&mut self.loss, direction, &plan).and_then(|line| self.along(&line, &plan))
            else {
                continue;
            };
            // Both ends are proven, so brackets always overlap.
            best = Some(best.map_or(found, |best| best.intersection(found)));
            if found.is_narrow(self.question, self.effort.relative_width) {
                break;
            }
        }
        best.filter(|best| best.lower <= best.upper)
    }

    fn along(&self, line: &Line, plan: &Plan) -> Option<Bracket> {
        match self.question {
            Question::Epsilon { delta } => crossing(line, libm::log(delta), plan.epsilon, plan.order),
            Question::Delta { epsilon } => {
                let bounds = line.log_delta(epsilon);
                let (lower, upper) = (libm::exp(bounds.lower), libm::exp(bounds.upper).min(1.0));
                (lower <= upper).then_some(Bracket { lower, upper })
            }
        }
    }

    /// Whether it is easily shown that a direction's answer is at most `value`: by a Chernoff
    /// bound, or by a short integral at `value` alone.
    fn is_at_most(&mut self, direction: Direction, value: f64) -> bool {
        let (epsilon, log_delta) = match self.question {
            Question::Epsilon { delta } => (value, libm::log(delta)),
            Question::Delta { epsilon } => (epsilon, libm::log(value)),
        };
        // More than the rounding of both.
        let allowed = log_delta - 1e-12 * (1.0 + log_delta.abs());
        let bound = |cumulants: Cumulants, order: f64| {
            let log_bound = cumulants.log_moment + cumulants.error - order * epsilon + log_largest_weight(order);
            log_bound + 8.0 * f64::EPSILON * (cumulants.log_moment.abs() + order * epsilon)
        };
        let sketched = |loss: &mut Loss, order: f64| Some((order, bound(loss.sketched(direction, order)?, order)));
        let orders = (-1..=4).map(|i| self.start * 1.5_f64.powi(i));
        let best = orders.filter_map(|order| sketched(&mut self.loss, order)).min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((order, sketch)) = best
            && sketch <= allowed
            && self.loss.cumulants(direction, order).is_some_and(|cumulants| bound(cumulants, order) <= allowed)
        {
            return true;
        }
        let budget = PRODUCTS_PER_POINT * self.effort.max_points as f64;
        let planned = Question::Delta { epsilon };
        let plans = plan::plans(&mut self.loss, direction, planned, self.start, libm::log(LOOSE), budget);
        let line = plans.into_iter().flatten().next().and_then(|plan| Line::new(&mut self.loss, direction, &plan));
        line.is_some_and(|line| line.log_delta(epsilon).upper <= allowed)
    }
}

/// Relative error of δ where it need only be compared.
const LOOSE: f64 = 0.02;

/// Brackets the ε at which the profile crosses a δ.
fn crossing(line: &Line, log_delta: f64, start: f64, slope: f64) -> Option<Bracket> {
    // The logarithm of δ itself is rounded.
    let slack = 4.0 * f64::EPSILON * (1.0 - log_delta);
    let is_above = |epsilon: f64| line.log_delta(epsilon).upper <= log_delta - slack;
    let is_below = |epsilon: f64| line.log_delta(epsilon).lower > log_delta + slack;
    if is_above(0.0) {
        return Some(Bracket { lower: 0.0, upper: 0.0 });
    }
    // Far from where the line was planned only the upper bound may be left; it still says which way
    // to go.
    let excess = |bounds: LogBounds| {
        let middle = 0.5 * (bounds.lower + bounds.upper);
        if middle.is_finite() { middle - log_delta } else { bounds.upper - log_delta }
    };
    let (mut epsilon, mut slope) = (start, -slope);
    let mut bounds = line.log_delta(epsilon);
    for _ in 0..20 {
        let value = excess(bounds);
        let next = (epsilon - value / slope).max(0.0);
        let change = (next - epsilon).abs();
        let width = bounds.upper - bounds.lower;
        if width.is_finite() && value.abs() <= 0.05 * width || change <= 1e-15 * next {
            break;
        }
        bounds = line.log_delta(next);
        let at_next = excess(bounds);
        if !at_next.is_finite() {
            return None;
        }
        let secant = (at_next - value) / (next - epsilon);
        // Over less, rounding is all of the difference.
        if secant < 0.0 && change > 1e-9 * next {
            slope = secant;
        }
        epsilon = next;
    }
    // As far as the slope says, and further where it says too little.
    let margins = |distance: f64| {
        let first = 1.01 * (distance.max(0.0) + 2.0 * slack) / -slope + 2.0 * f64::EPSILON * epsilon;
        (0..14).map(move |i| first * 2.0_f64.powi(i))
    };
    let upper = margins(bounds.upper - log_delta).map(|margin| epsilon + margin).find(|epsilon| is_above(*epsilon))?;
    let lower = margins(log_delta - bounds.lower)
        .map(|margin| (epsilon - margin).max(0.0))
        .find(|epsilon| *epsilon == 0.0 || is_below(*epsilon))?;
    Some(Bracket { lower, upper })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::bracket::bracket as by_grid;
    use super::*;
    use crate::composition::Composition;
    use crate::gaussian::gaussian_delta;
    use crate::{DpEvent, NeighbouringRelation, NoiseMultiplier, SamplingRate};

    const BOTH: [bool; 2] = [true, true];

    const EFFORT: Effort = Effort { relative_width: 1e-3, max_points: 1 << 21 };

    fn mechanisms(steps: &[(f64, f64, u64)]) -> Vec<(PldMechanism, f64)> {
        let mut composition = Composition::new(NeighbouringRelation::AddRemove);
        for &(q, sigma, count) in steps {
            let event = DpEvent::gaussian(NoiseMultiplier::new(sigma).unwrap());
            composition.add(&event.poisson_sampled(SamplingRate::new(q).unwrap()), count).unwrap();
        }
        PldMechanism::of(&composition).unwrap()
    }

    #[test]
    fn one_gaussian_equals_its_closed_form() {
        for mu in [0.05, 1.0, 7.0] {
            for depth in [-1.0, 0.5, 3.0, 12.0] {
                // So many standard deviations above the mean loss.
                let epsilon = mu * (0.5 * mu + depth);
                if epsilon < 0.0 {
                    continue;
                }
                let mechanisms = mechanisms(&[(1.0, 1.0 / mu, 1)]);
                let guess = Guess { upper: 1.0, epsilon, order: 1.0 / mu };
                let found =
                    bracket(&mechanisms, Question::Delta { epsilon }, Question::Delta { epsilon }, guess, EFFORT, BOTH)
                        .unwrap();
                let (lower, exact) = gaussian_delta(mu, 4.0 * f64::EPSILON, epsilon);
                assert!(found.lower <= exact && lower <= found.upper, "{found:?} {exact}");
                assert!(found.upper - found.lower < 1e-8 * exact, "μ {mu} ε {epsilon}: {found:?} {exact}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

        /// Two methods that share nothing but the mechanism: their brackets overlap, and the
        /// contour's is much the narrower. Of settings of this size the contour answers every one;
        /// of smaller rates and δ over few steps it leaves some to the grid.
        #[test]
        fn agrees_with_the_grid(
            log_q in -5.0_f64..-0.1,
            log_sigma in -0.5_f64..2.5,
            count in 60_u64..3_000,
            log_delta in -25.0_f64..-2.0,
            other in prop::option::of((0.01_f64..0.3, 0.8_f64..4.0, 1_u64..500)),
        ) {
            let mut steps = vec![(log_q.exp(), log_sigma.exp(), count)];
            steps.extend(other);
            let mechanisms = mechanisms(&steps);
            let guess = Guess { upper: f64::INFINITY, epsilon: 1.0, order: 5.0 };
            let question = Question::Epsilon { delta: log_delta.exp() };
            let contour = bracket(&mechanisms, question, question, guess, EFFORT, BOTH);
            prop_assert!(contour.is_some_and(|found| found.is_narrow(question, EFFORT.relative_width)), "{contour:?}");
            let grid = by_grid(&mechanisms, question, guess, EFFORT, BOTH);
            prop_assert!(contour.is_some_and(|found| found.lower <= grid.upper && grid.lower <= found.upper), "{contour:?} {grid:?}");
        }
    }

    /// The saddle of the search need not be that of the answer: any order gives valid bounds.
    #[test]
    fn any_start_leads_to_the_same_answer() {
        let mechanisms = mechanisms(&[(0.01, 1.0, 1_000)]);
        let question = Question::Epsilon { delta: 1e-5 };
        let from = |order: f64| {
            bracket(&mechanisms, question, question, Guess { upper: f64::INFINITY, epsilon: 1.0, order }, EFFORT, BOTH)
                .unwrap()
        };
        let answers = [1e-3, 1.0, 8.0, 500.0].map(from);
        for [a, b] in [[0, 1], [1, 2], [2, 3]] {
            assert!(answers[a].lower <= answers[b].upper && answers[b].lower <= answers[a].upper, "{answers:?}");
        }
    }
}
