//! Refines a grid until the bounds are as close as asked for, or the budget is spent.

use super::convolve::{Side, Summands, TiltedSum, convolve, log_largest_weight, transform_length};
use super::discrete::DiscreteLoss;
use super::mechanism::PldMechanism;
use crate::rdp::Orders;

/// The question about a composition.
#[derive(Debug, Clone, Copy)]
pub(super) enum Question {
    /// ε at this δ.
    Epsilon { delta: f64 },
    /// δ at this ε.
    Delta { epsilon: f64 },
}

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effort {
    /// Width of the bracket over its upper end.
    pub(super) relative_width: f64,
    /// Cells of a grid and length of a transform.
    pub(super) max_points: usize,
}

/// Two bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bracket {
    pub(super) lower: f64,
    pub(super) upper: f64,
}

impl Question {
    /// The bracket before anything is computed.
    pub(super) const fn anything(self) -> Bracket {
        let upper = match self {
            Self::Epsilon { .. } => f64::INFINITY,
            Self::Delta { .. } => 1.0,
        };
        Bracket { lower: 0.0, upper }
    }

    /// A bracket this narrow is narrow whatever its upper end is: for ε, that may be 0.
    const fn negligible(self) -> f64 {
        match self {
            Self::Epsilon { .. } => 1e-9,
            Self::Delta { .. } => 0.0,
        }
    }
}

impl Bracket {
    pub(super) fn is_narrow(self, question: Question, relative_width: f64) -> bool {
        self.upper - self.lower <= (relative_width * self.upper).max(question.negligible())
    }

    /// The intersection of both. Both are proven, so it is not empty; should it be, their union.
    pub(super) const fn intersection(self, other: Self) -> Self {
        let (lower, upper) = (self.lower.max(other.lower), self.upper.min(other.upper));
        if lower <= upper {
            Self { lower, upper }
        } else {
            Self { lower: self.lower.min(other.lower), upper: self.upper.max(other.upper) }
        }
    }

    /// This bracket with a coarser accountant's upper bound. Where they contradict, what either
    /// allows.
    pub(super) const fn within(self, upper: f64) -> Self {
        if upper < self.lower {
            Self { lower: upper, upper: self.upper }
        } else {
            Self { lower: self.lower, upper: self.upper.min(upper) }
        }
    }
}

/// Brackets the answer on grids alone; what is guessed only says which grid comes first and which
/// is fine enough.
///
/// All grids together have no more points than the largest may have, so that every question is
/// answered in the time of one of those.
pub(super) fn bracket(
    mechanisms: &[(PldMechanism, f64)],
    question: Question,
    guess: Guess,
    effort: Effort,
    asked: [bool; 2],
) -> Bracket {
    let steps: f64 = mechanisms.iter().map(|(_, count)| count).sum();
    // Probability that the grid may leave out: a millionth of δ over all steps. When δ is the
    // question, of what is known of it.
    let log_tail_of = |best: Bracket| {
        let log_delta = match question {
            Question::Epsilon { delta } => libm::log(delta),
            Question::Delta { .. } => libm::log(best.within(guess.upper).upper).max(-700.0),
        };
        (log_delta - 14.0 - libm::log(steps)).min(-40.0)
    };
    let symmetric = mechanisms.iter().all(|(mechanism, _)| mechanism.is_symmetric());
    // Record present against absent, then absent against present.
    let mut directions: Vec<_> = (0..2)
        .filter(|d| if symmetric { *d == 0 } else { asked[*d] })
        .map(|side| Direction { side, ..Direction::default() })
        .collect();
    let mut best = question.anything();
    let is_done = |best: Bracket| best.within(guess.upper).is_narrow(question, effort.relative_width);
    let mut points_left = effort.max_points as f64;
    let cells_at = |log_tail: f64, interval: f64| {
        mechanisms.iter().map(|(m, _)| m.n_cells(log_tail, interval)).fold(0.0, f64::max)
    };
    let max_points = effort.max_points as f64;
    let mut interval =
        (guess.epsilon / 200.0).max(cells_at(log_tail_of(best), 1.0) / 4096.0_f64.min(max_points)).max(1e-12);
    // With next to no noise, panels take all of the time: a grid with a cell for each takes hardly
    // longer than a coarse one.
    let n_panels = mechanisms.iter().map(|(m, _)| m.n_panels(log_tail_of(best))).fold(0.0, f64::max);
    if n_panels > MANY_PANELS {
        // Not so fine that the first transform is too long.
        let finest = (16.0 * cells_at(log_tail_of(best), 1.0) / n_panels).max(guess.epsilon / 65_536.0);
        interval = interval.min(finest);
    }
    interval = mechanisms.iter().fold(interval, |interval, (mechanism, _)| {
        mechanism.affordable(log_tail_of(best), interval, 0.03 * max_points)
    });
    // The ends of wider cells differ so much that rounding at one drowns the other.
    interval = interval.min(WIDEST);
    for level in 0..40 {
        // Relative probability, under the tilt, that may lie outside the window of the transform;
        // less each time, in case it was too much.
        let log_window_tail = libm::log(effort.relative_width) - 10.0 - SLACK - f64::from(level);
        let log_tail = log_tail_of(best);
        let work_at = |interval: f64| mechanisms.iter().map(|(m, _)| m.work(log_tail, interval)).fold(0.0, f64::max);
        let work = work_at(interval);
        if work > points_left {
            return best;
        }
        points_left -= work;
        let cuts: Vec<_> =
            mechanisms.iter().map(|(mechanism, count)| (mechanism.cut(log_tail, interval), *count)).collect();
        let outside: f64 = cuts.iter().map(|(cut, count)| count * cut.outside).sum();
        let mut too_long = false;
        for direction in &mut directions {
            let d = direction.side;
            // A direction that cannot be the larger one needs no refinement.
            if direction.bracket.is_some_and(|known| known.upper <= best.lower) {
                continue;
            }
            let upper: Vec<_> =
                cuts.iter().map(|(cut, count)| (DiscreteLoss::upper(&cut.directions[d]), *count)).collect();
            let lower: Vec<_> =
                cuts.iter().map(|(cut, count)| (DiscreteLoss::lower(cut.lower(d), interval), *count)).collect();
            let upper = Summands { interval, parts: upper };
            match direction.answer(&upper, lower, question, outside, log_window_tail, points_left) {
                Some((found, points)) => {
                    points_left -= points;
                    direction.bracket = Some(direction.bracket.map_or(found, |known| known.intersection(found)));
                }
                None => too_long = true,
            }
        }
        if directions.iter().all(|direction| direction.bracket.is_some()) {
            let of = |end: fn(Bracket) -> f64| directions.iter().filter_map(|d| d.bracket).map(end).fold(0.0, f64::max);
            best = Bracket { lower: of(|b| b.lower), upper: of(|b| b.upper) };
        }
        if too_long || is_done(best) {
            return best;
        }
        // The error is quadratic in the interval once that is finer than the loss of one step.
        let upper = best.within(guess.upper).upper;
        let relative = (upper - best.lower) / upper;
        let ratio = if relative.is_finite() { (0.7 * effort.relative_width / relative).sqrt() } else { 0.0 };
        let next = interval * ratio.clamp(if relative < 0.3 { 0.2 } else { 0.125 }, 0.7);
        // The last grid that fits is worth trying: its cut may take half of what is left, the
        // transforms the rest.
        let fits = |interval: f64| work_at(interval) <= 0.5 * points_left;
        let last = if fits(next) { next } else { last_true(interval, next, fits) };
        interval = if last < 0.85 * interval { last } else { next };
    }
    best
}

/// The last of 20 intervals, in the logarithm, on the way from one that holds to one that does not.
fn last_true(mut holds: f64, mut fails: f64, at: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..20 {
        let middle = (holds * fails).sqrt();
        if at(middle) {
            holds = middle;
        } else {
            fails = middle;
        }
    }
    holds
}

/// The widest cells.
const WIDEST: f64 = 4.0;

/// More panels than a first grid has cells by far.
const MANY_PANELS: f64 = 65_536.0;

/// The bound of a coarser accountant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guess {
    /// An upper bound on the answer.
    pub(super) upper: f64,
    /// About the ε of the question or of its answer.
    pub(super) epsilon: f64,
    /// About the order of the best Chernoff bound.
    pub(super) order: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Direction {
    /// Its index among a cut's.
    side: usize,
    bracket: Option<Bracket>,
    tilt: Option<f64>,
}

impl Direction {
    /// Bounds from one grid, and the points that its transforms have; `None` when there would be
    /// too many.
    fn answer(
        &mut self,
        upper: &Summands,
        lower: Vec<(Vec<DiscreteLoss>, f64)>,
        question: Question,
        outside: f64,
        log_window_tail: f64,
        max_points: f64,
    ) -> Option<(Bracket, f64)> {
        let coarse = upper.coarsened();
        let settled = self.bracket.is_some_and(|known| known.upper - known.lower < 0.02 * known.upper);
        let tilt = match self.tilt.filter(|_| settled) {
            Some(tilt) => tilt,
            None => saddle_point(&coarse, question),
        };
        self.tilt = Some(tilt);
        // The candidate with the largest moment at the tilt: all are valid.
        let interval = upper.interval;
        let value = |loss: &DiscreteLoss| loss.log_moment(tilt, interval) + tilt * loss.offset;
        let best = |candidates: Vec<DiscreteLoss>| candidates.into_iter().max_by(|a, b| value(a).total_cmp(&value(b)));
        let lower = lower.into_iter().filter_map(|(candidates, count)| Some((best(candidates)?, count))).collect();
        let lower = Summands { interval, parts: lower };
        let windows = [&coarse, &lower.coarsened()].map(|summands| summands.window(tilt, log_window_tail, interval));
        let length = transform_length(&windows);
        let points = length as f64 * (1 + upper.parts.len()) as f64 * 0.5;
        if points > max_points {
            return None;
        }
        let (upper, lower) = convolve(upper, &lower, tilt, &windows, length);
        let found = match question {
            Question::Epsilon { delta } => Bracket {
                // The logarithm of δ is rounded, too.
                lower: crossing(&lower, Side::Lower, libm::log(delta) * (1.0 - 2.0 * f64::EPSILON)),
                // Probability that the grid left out counts as infinite loss.
                upper: if outside < delta {
                    crossing(&upper, Side::Upper, libm::log(delta - outside) * (1.0 + 4.0 * f64::EPSILON))
                } else {
                    f64::INFINITY
                },
            },
            Question::Delta { epsilon } => Bracket {
                lower: value_at(&lower, Side::Lower, epsilon).unwrap_or(0.0),
                upper: (value_at(&upper, Side::Upper, epsilon).unwrap_or(1.0) + outside).min(1.0),
            },
        };
        Some((found, points))
    }
}

/// How much worse than the best tilt's the Chernoff bound of the chosen tilt may be, in nats.
const SLACK: f64 = 4.0;

/// A tilt at which the Chernoff bound is nearly smallest: there the transform's rounding hardly
/// matters.
///
/// The best tilt often lies where rare large losses begin to dominate, so that the tilted sum has a
/// long upper tail. The smallest tilt within [`SLACK`] of the best avoids it, and needs a transform
/// several times shorter.
fn saddle_point(summands: &Summands, question: Question) -> f64 {
    let offset = summands.offset();
    let exponent = |tilt: f64| summands.log_moment(tilt) + tilt * offset + log_largest_weight(tilt);
    let best = Orders::Adaptive.minimise(
        |order| {
            let tilt = order - 1.0;
            match question {
                Question::Epsilon { delta } => ((exponent(tilt) - libm::log(delta)) / tilt, exponent(tilt) / tilt),
                Question::Delta { epsilon } => (exponent(tilt) - tilt * epsilon, f64::NEG_INFINITY),
            }
        },
        tilts(summands.interval),
    );
    if !best.is_finite() {
        return 1.0;
    }
    let epsilon = match question {
        Question::Epsilon { .. } => best.value,
        Question::Delta { epsilon } => epsilon,
    };
    let excess = |tilt: f64| exponent(tilt) - tilt * epsilon;
    let (mut low, mut high) = (0.0, best.order - 1.0);
    let allowed = excess(high) + SLACK;
    for _ in 0..12 {
        let middle = 0.5 * (low + high);
        if excess(middle) > allowed {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Range of tilts: beyond it a single grid step fades by more than e^-30 and sums over the grid
/// would underflow.
fn tilts(interval: f64) -> (f64, f64) {
    let largest = 30.0 / interval;
    (1e-3 * largest.min(1.0), largest)
}

/// The ε at which the profile's bound falls below a δ.
fn crossing(sum: &TiltedSum, side: Side, log_delta: f64) -> f64 {
    let mut above: Option<(f64, f64)> = None;
    let mut answer = None;
    sum.scan(side, 0.0, |epsilon, log_value| {
        if log_value.is_nan() {
            // Fails closed.
            answer = Some(if side == Side::Upper { f64::INFINITY } else { 0.0 });
            return false;
        }
        if log_value <= log_delta {
            above = Some((epsilon, log_value));
            return true;
        }
        answer = Some(match above {
            // Between grid points the profile is linear in e^ε, and the allowances for errors bend
            // the bound the safe way.
            Some((next, log_next)) => {
                let part = (1.0 - libm::exp(log_delta - log_value)) / (1.0 - libm::exp(log_next - log_value));
                epsilon + libm::log1p(part.clamp(0.0, 1.0) * libm::expm1(next - epsilon))
            }
            None if side == Side::Upper => f64::INFINITY,
            None => epsilon,
        });
        false
    });
    let crossing = match (answer, above, side) {
        (Some(answer), _, _) => answer,
        (None, _, Side::Lower) => 0.0,
        // Everything that was visited is below δ: its lowest point, at or below 0 unless the window
        // ends above, bounds ε from above.
        (None, Some((epsilon, _)), Side::Upper) => epsilon,
        (None, None, Side::Upper) => f64::INFINITY,
    };
    let rounding = sum.rounding_of_losses(crossing);
    (if side == Side::Upper { crossing + rounding } else { crossing - rounding }).max(0.0)
}

/// The profile's bound at an ε; `None` below the window, and where a bound is not a number.
fn value_at(sum: &TiltedSum, side: Side, epsilon: f64) -> Option<f64> {
    let rounding = sum.rounding_of_losses(epsilon);
    let epsilon = if side == Side::Upper { epsilon - rounding } else { epsilon + rounding };
    let mut above: Option<(f64, f64)> = None;
    let mut answer = None;
    let mut is_beyond = true;
    sum.scan(side, epsilon, |grid_epsilon, log_value| {
        if grid_epsilon > epsilon {
            above = Some((grid_epsilon, log_value));
            is_beyond = false;
            return true;
        }
        answer = above.map(|(next, log_next)| {
            let part = libm::expm1(epsilon - grid_epsilon) / libm::expm1(next - grid_epsilon);
            (1.0 - part) * libm::exp(log_value) + part * libm::exp(log_next)
        });
        // A bound that is not a number is no bound.
        answer = answer.filter(|answer: &f64| !answer.is_nan());
        false
    });
    if is_beyond {
        return Some(if side == Side::Upper { sum.beyond(epsilon) } else { 0.0 }).filter(|bound| !bound.is_nan());
    }
    answer
}
