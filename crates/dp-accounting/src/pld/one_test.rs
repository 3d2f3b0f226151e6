//! A lower bound by one test of an attacker: whether any step, every step, or a number of steps
//! exceed a threshold.
//!
//! Such a test loses little where a step reveals a record or nothing, as with next to no noise on
//! small batches: there the grid, whose losses then lie far apart, has no useful lower bound.

use super::base_loss::BaseLoss;
use super::bracket::Question;
use super::mechanism::{PldMechanism, Sampling};
use crate::normal::survival;
use crate::pair::{Pair, SimplePair, binomial_chernoff};

/// Where thresholds lie between the smallest loss, -1, and the largest, 1; for Gaussians, between
/// the typical ones.
const THRESHOLDS: [f64; 7] = [-0.9, -0.5, 0.0, 0.25, 0.5, 0.75, 0.95];

/// Relative error of a probability, generously.
const ROUNDING: f64 = 1e-12;

/// Probabilities of one step's exceeding a threshold: a lower bound with the record, an upper bound
/// without it.
#[derive(Debug, Clone, Copy)]
struct Exceeds {
    present: f64,
    absent: f64,
}

/// A lower bound on the answer, 0 where no test is known.
pub(super) fn lower_bound(mechanisms: &[(PldMechanism, f64)], question: Question, directions: [bool; 2]) -> f64 {
    THRESHOLDS.iter().map(|&threshold| at(mechanisms, threshold, question, directions)).fold(0.0, f64::max)
}

fn at(mechanisms: &[(PldMechanism, f64)], threshold: f64, question: Question, directions: [bool; 2]) -> f64 {
    // Logarithms of the probabilities that all steps exceed it and that none does.
    let (mut all, mut none) = ([0.0; 2], [0.0; 2]);
    // How many do on average, out of how many.
    let (mut means, mut n) = ([0.0; 2], 0.0);
    for (mechanism, count) in mechanisms {
        let Some(step) = exceeds(mechanism, threshold) else { return 0.0 };
        for (i, probability) in [step.present, step.absent].into_iter().enumerate() {
            all[i] += count * libm::log(probability);
            none[i] += count * libm::log1p(-probability);
            means[i] += count * probability;
        }
        n += count;
    }
    // Probabilities under the first data set, a lower bound, and under the second, an upper one.
    let counted = SHARES.map(|share| at_least(n, means, share));
    let with: Vec<_> = [any(none), every(all)].into_iter().chain(counted).collect();
    // Exchanged, the test is that it fails.
    let fewer = counted.map(|[present, absent]| [1.0 - present, 1.0 - absent]);
    let without = [every(none), any(all)].into_iter().chain(fewer).map(|[present, absent]| [absent, present]).collect();
    let symmetric = mechanisms.iter().all(|(mechanism, _)| mechanism.is_symmetric());
    let tests = [(directions[0] || symmetric, with), (directions[1] && !symmetric, without)];
    let tests = tests.into_iter().filter(|(is_asked, _)| *is_asked).flat_map(|(_, tests)| tests);
    tests
        .map(|[first, second]| answer(first * (1.0 - ROUNDING), second * (1.0 + ROUNDING), question))
        .fold(0.0, f64::max)
}

/// Where the number of steps lies between both means.
const SHARES: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

/// Bound for a number of steps or more, by Chernoff's bound, which holds for steps with unlike
/// probabilities of this mean (Hoeffding 1963, Theorem 1).
fn at_least(n: f64, [present, absent]: [f64; 2], share: f64) -> [f64; 2] {
    // The complement of a smaller probability has no digits of it.
    if absent >= present || present / n < 1e-8 {
        return [0.0, 1.0];
    }
    let least = absent + share * (present - absent);
    [1.0 - binomial_chernoff(n, 1.0 - present / n, n - least), binomial_chernoff(n, absent / n, least)]
}

/// Probability for all steps.
fn every(log: [f64; 2]) -> [f64; 2] {
    let probability = |log: f64, sign: f64| libm::exp(log + sign * ROUNDING * log.abs()).min(1.0);
    [probability(log[0], -1.0), probability(log[1], 1.0)]
}

/// Probability for some step, from the logarithm of the probability for none.
fn any(log: [f64; 2]) -> [f64; 2] {
    log.map(|log| -libm::expm1(log))
}

/// The lower bound that `P(A) ≥ first` and `Q(A) ≤ second` give.
fn answer(first: f64, second: f64, question: Question) -> f64 {
    let bound = match question {
        Question::Delta { epsilon } => first - libm::exp(epsilon) * second,
        Question::Epsilon { delta } if first > delta => {
            (libm::log(first - delta) - libm::log(second.max(f64::MIN_POSITIVE))) * (1.0 - ROUNDING) - ROUNDING
        }
        Question::Epsilon { .. } => 0.0,
    };
    // NaN shows nothing.
    if bound > 0.0 { bound } else { 0.0 }
}

fn exceeds(mechanism: &PldMechanism, threshold: f64) -> Option<Exceeds> {
    let (used, absent, q) = match mechanism {
        // Negative losses of fixed-size batches are others.
        PldMechanism::Query { sampling: Sampling::FixedSize, .. } if threshold < 0.0 => return None,
        PldMechanism::Query { base, q, .. } => {
            let (used, absent) = base_exceeds(*base, threshold);
            (used, absent, *q)
        }
        PldMechanism::Pair(pair) => {
            let (present, absent) = points_exceed(pair, threshold)?;
            (present, absent, 1.0)
        }
        PldMechanism::Allocation(_) => return None,
    };
    let absent = (absent * (1.0 + ROUNDING)).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
    let present = ((1.0 - q) * absent * (1.0 - 4.0 * ROUNDING) + q * used * (1.0 - ROUNDING)).min(1.0 - f64::EPSILON);
    (present > 0.0).then_some(Exceeds { present, absent })
}

/// Before sampling.
fn base_exceeds(base: BaseLoss, threshold: f64) -> (f64, f64) {
    match base {
        BaseLoss::Gaussian { mu } => (survival(0.5 * mu * (threshold - 1.0)), survival(0.5 * mu * (threshold + 1.0))),
        // Noise above a value between the two sums.
        BaseLoss::Laplace { rate } => {
            let share = 0.5 * (1.0 + threshold);
            (1.0 - 0.5 * libm::exp(-rate * (1.0 - share)), 0.5 * libm::exp(-rate * share))
        }
        BaseLoss::RandomisedResponse { epsilon, n_outcomes } => {
            let (rest, fallen) = (f64::from(n_outcomes - 1), libm::exp(-epsilon));
            let total = 1.0 + rest * fallen;
            (total.recip(), fallen / total)
        }
    }
}

/// Outcomes that are not listed exceed any threshold.
fn points_exceed(pair: &Pair, threshold: f64) -> Option<(f64, f64)> {
    let [(weight, SimplePair::Points(points))] = pair.parts() else { return None };
    if *weight < 1.0 {
        return None;
    }
    let extreme = |sign: f64| points.iter().map(|point| sign * point.loss).fold(0.0, f64::max);
    let least = if threshold < 0.0 { -threshold * -extreme(-1.0) } else { threshold * extreme(1.0) };
    let sum = |of: fn(&crate::pair::Point) -> f64, above: bool| {
        points.iter().filter(|point| (point.loss > least) == above).map(of).sum::<f64>()
    };
    let rounding = ROUNDING + points.len() as f64 * f64::EPSILON;
    let below = [sum(|point| point.present, false), sum(|point| point.absent, false)];
    let present = 1.0 - below[0] * (1.0 + rounding);
    let absent =
        (1.0 - below[1] * (1.0 - rounding)).min(sum(|point| point.absent, true) * (1.0 + rounding) + pair.left_out());
    (present > 0.0).then_some((present, absent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Half of the steps reveal the record: 1 - 2^-k of any, and ε ≥ k·ln 2 when it is added.
        let base = BaseLoss::Gaussian { mu: 1e3 };
        let steps = [(PldMechanism::Query { base, q: 0.5, sampling: Sampling::Poisson }, 5.0)];
        let delta = lower_bound(&steps, Question::Delta { epsilon: 3.0 }, [true, false]);
        assert!((delta - 31.0 / 32.0).abs() < 1e-9 && delta <= 31.0 / 32.0, "{delta}");
        let exact = 5.0 * std::f64::consts::LN_2 + f64::ln_1p(-1e-5);
        let epsilon = lower_bound(&steps, Question::Epsilon { delta: 1e-5 }, [false, true]);
        assert!((epsilon - exact).abs() < 1e-9 && epsilon <= exact, "{epsilon} {exact}");
        // A response with ε = ln 3: 3/4 against 1/4; of both, 9/16 against 1/16 at e^ε = 3.
        let base = BaseLoss::RandomisedResponse { epsilon: 3.0_f64.ln(), n_outcomes: 2 };
        let steps = [(PldMechanism::Query { base, q: 1.0, sampling: Sampling::Poisson }, 2.0)];
        let delta = lower_bound(&steps, Question::Delta { epsilon: 3.0_f64.ln() }, [true, true]);
        assert!((delta - 6.0 / 16.0).abs() < 1e-9 && delta <= 6.0 / 16.0, "{delta}");
    }

    #[test]
    fn many_steps_that_hide_little_are_told_apart() {
        // 10⁴ responses with ε = 0.2: μ of about 20, 10 standard deviations from the middle.
        let base = BaseLoss::RandomisedResponse { epsilon: 0.2, n_outcomes: 2 };
        let steps = [(PldMechanism::Query { base, q: 1.0, sampling: Sampling::Poisson }, 1e4)];
        let delta = lower_bound(&steps, Question::Delta { epsilon: 1.0 }, [true, true]);
        assert!(delta > 1.0 - 1e-9 && delta < 1.0, "{delta}");
        // By hand: four steps, 0.9 against 0.1, at least two: KL(½ ‖ 0.1) = ½ ln 5 + ½ ln(5/9).
        let [present, absent] = at_least(4.0, [3.6, 0.4], 0.5);
        let chernoff = (-4.0 * 0.5 * (5.0_f64.ln() + (5.0_f64 / 9.0).ln())).exp();
        assert!((absent / chernoff - 1.0).abs() < 1e-6 && absent >= chernoff, "{absent} {chernoff}");
        assert!((present - (1.0 - chernoff)).abs() < 1e-6 && present <= 1.0 - chernoff);
        // The exact ones: 0.9963 and 0.0523.
        assert!(present <= 0.9963 && absent >= 0.0523);
    }

    /// Never above what is known exactly: one step.
    #[test]
    fn stays_below_the_formula() {
        use crate::gaussian::{absent_profile, present_profile};
        for (q, mu) in [(0.3, 0.5), (0.01, 4.0), (0.9, 30.0), (1e-4, 50.0)] {
            let base = BaseLoss::Gaussian { mu };
            let step = [(PldMechanism::Query { base, q, sampling: Sampling::Poisson }, 1.0)];
            for epsilon in [0.0, 0.1, 1.0, 5.0] {
                let of = |directions| lower_bound(&step, Question::Delta { epsilon }, directions);
                assert!(of([true, false]) <= present_profile(q, mu, epsilon).delta().1, "{q} {mu} {epsilon}");
                assert!(of([false, true]) <= absent_profile(q, mu, epsilon).delta().1, "{q} {mu} {epsilon}");
            }
        }
    }
}
