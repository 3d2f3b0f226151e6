//! An attacker's view: error rates, advantage, Bayes risk and the Gaussian that is no more private.

use crate::gaussian::log_gaussian_delta;
use crate::normal::normal_quantile;
use crate::{Accountant, AccountingError, Certainty, DeltaBound, NeighbouringRelation};

/// The trade-off between false positives and false negatives of every test for one record, for
/// whatever an accountant composed.
///
/// A test looks at everything that was released and says whether it came from one data set or its
/// neighbour. Its two error rates obey `f(false-positive rate) ≤ false-negative rate`; `f` follows
/// from the privacy profile δ(ε), and `f = max over ε of 1 - δ(ε) - e^ε·α` in both orders of the
/// neighbours.
///
/// **Guarantee.** [`AttackBound::guaranteed`] holds against every attack, [`AttackBound::possible`]
/// is reached by some attack on the worst pair of neighbours that the accountant knows.
///
/// **Source.** Wasserman & Zhou 2010; Dong, Roth & Su 2022, Proposition 2.12; Kaissis et al. 2024
/// on Bayes risk.
///
/// **Example**
/// ```
/// use dp_accounting::{Accountant, DpEvent, NeighbouringRelation, NoiseMultiplier, PldAccountant, TradeOff};
/// let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
/// accountant.compose(&DpEvent::gaussian(NoiseMultiplier::new(1.0)?), 1)?;
/// let trade_off = TradeOff::new(&accountant);
/// // μ = 1: at 5 % false positives an attacker misses 74 %: Φ(1.64485 - 1).
/// let missed = trade_off.false_negative_rate(0.05)?;
/// assert!(missed.guaranteed <= 0.740_489 && missed.guaranteed > 0.740_48);
/// assert!((trade_off.gaussian_mu(1e-6)?.guaranteed - 1.0).abs() < 1e-3);
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Clone, Copy)]
pub struct TradeOff<'a> {
    accountant: &'a dyn Accountant,
}

impl std::fmt::Debug for TradeOff<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TradeOff").field("accountant", &self.accountant.name()).finish()
    }
}

/// Bounds on the success of attacks, from above and from below.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AttackBound {
    /// No attack does better, unless the certainty says that this is an estimate.
    pub guaranteed: f64,
    /// An attack does at least this well, where the accountant has lower bounds.
    pub possible: Option<f64>,
    /// How much the guarantee can be trusted.
    pub certainty: Certainty,
}

/// Evaluations of the profile, at most, for one point of the curve and for μ.
const MAX_EVALUATIONS: usize = 32;
const MAX_TANGENTS: usize = 160;

/// Width of the bracket of μ, relatively, at which refinement ends.
const MU_WIDTH: f64 = 2e-4;

/// One tangent of `f`: slope `-s` and intercept `1 - δ`, between two bounds.
#[derive(Debug, Clone, Copy)]
struct Tangent {
    epsilon: f64,
    /// Bounds on δ.
    lower: f64,
    upper: f64,
    /// Lower bound on the μ of the Gaussian with this δ: a search, which refinement would repeat.
    mu: f64,
}

/// The concave function `1 - δ - s·α` at one slope, between two bounds.
#[derive(Debug, Clone, Copy)]
struct Sample {
    slope: f64,
    lower: f64,
    upper: f64,
}

impl<'a> TradeOff<'a> {
    /// The trade-off of everything that the accountant composed.
    pub const fn new(accountant: &'a dyn Accountant) -> Self {
        Self { accountant }
    }

    /// The smallest false-negative rate of any test with this false-positive rate, and at most what
    /// some test has.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for a rate outside [0, 1], and the accountant's.
    pub fn false_negative_rate(&self, false_positive_rate: f64) -> Result<AttackBound, AccountingError> {
        let alpha = in_unit("false_positive_rate", false_positive_rate)?;
        let mut trust = Trust::default();
        if alpha >= 1.0 {
            return Ok(trust.bound(0.0, Some(0.0)));
        }
        if alpha <= 0.0 {
            // Only what never happens without the record: its probability is δ at ε = ∞.
            let bound = self.accountant.delta(crate::Epsilon::INFINITE)?;
            let (delta, lower) = trust.take(bound);
            return Ok(trust.bound(1.0 - delta, lower.map(|lower| 1.0 - lower)));
        }
        if let Some(bound) = self.accountant.false_negative_rate_by_formula(alpha) {
            return Ok(bound);
        }
        // The value is 0 at slopes 0 and below 0 beyond 1/α.
        let mut samples = vec![Sample { slope: 0.0, lower: 0.0, upper: 0.0 }];
        let mut known = true;
        let mut at = |log_slope: f64| -> Result<f64, AccountingError> {
            let slope = libm::exp(log_slope);
            let epsilon = crate::Epsilon::new(log_slope.abs())?;
            let (delta, lower) = trust.take(if log_slope >= 0.0 {
                self.accountant.delta(epsilon)?
            } else {
                self.accountant.exchanged_delta(epsilon)?
            });
            known &= lower.is_some();
            let value = |delta: f64| {
                if log_slope >= 0.0 { 1.0 - delta - slope * alpha } else { slope * (1.0 - delta - alpha) }
            };
            let sample = Sample { slope, lower: value(delta), upper: value(lower.unwrap_or(0.0)) };
            samples.push(sample);
            Ok(sample.lower)
        };
        // Unimodal in the slope: outwards from 1 in steps of the curve's own size until the value
        // falls again.
        let centre = at(0.0)?;
        let size = 0.5 * mu_of(0.0, self.accountant.privacy_profile(0.0)?.delta).clamp(1e-6, 10.0);
        let (mut low, mut high) = (0.0, 0.0);
        for (sign, end, limit) in [(1.0, &mut high, -libm::log(alpha)), (-1.0, &mut low, 700.0)] {
            let (mut reach, mut best) = (size.min(limit), centre);
            loop {
                let value = at(sign * reach)?;
                *end = sign * reach;
                if value <= best || reach >= limit {
                    break;
                }
                best = value;
                reach = (2.0 * reach).min(limit);
            }
        }
        golden_section(low, high, MAX_EVALUATIONS, &mut at)?;
        let guaranteed = samples.iter().map(|sample| sample.lower).fold(0.0, f64::max);
        samples.push(Sample { slope: alpha.recip(), lower: -1.0, upper: 0.0 });
        let possible = known.then(|| concave_ceiling(&mut samples).clamp(guaranteed, 1.0 - alpha));
        Ok(trust.bound(guaranteed, possible))
    }

    /// The largest difference between true-positive and false-positive rate: the total variation
    /// distance, δ at ε = 0.
    ///
    /// # Errors
    /// The accountant's.
    pub fn advantage(&self) -> Result<AttackBound, AccountingError> {
        let mut trust = Trust::default();
        let (delta, lower) = trust.take(self.accountant.privacy_profile(0.0)?);
        Ok(trust.bound(delta, lower))
    }

    /// The smallest probability of error of an attacker who knows in advance that the record is in
    /// with probability `prior`.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for a probability outside [0, 1], and the accountant's.
    pub fn bayes_risk(&self, prior: f64) -> Result<AttackBound, AccountingError> {
        let prior = in_unit("prior", prior)?;
        let mut trust = Trust::default();
        // With odds γ ≥ 1 against it, the likelier answer alone errs with the smaller probability,
        // and evidence takes δ(ln γ) of it.
        let (smaller, larger) = (prior.min(1.0 - prior), prior.max(1.0 - prior));
        if smaller == 0.0 {
            return Ok(trust.bound(0.0, Some(0.0)));
        }
        let epsilon = crate::Epsilon::new(libm::log(larger / smaller))?;
        let first_is_likelier = (prior > 0.5) != (self.accountant.relation() == NeighbouringRelation::Add);
        let (delta, lower) = trust.take(if first_is_likelier {
            self.accountant.exchanged_delta(epsilon)?
        } else {
            self.accountant.delta(epsilon)?
        });
        Ok(trust.bound(smaller * (1.0 - delta), lower.map(|lower| smaller * (1.0 - lower))))
    }

    /// The smallest μ for which no test is better than the best test against a Gaussian of
    /// sensitivity μ, among tests both of whose error rates are at least `smallest_rate`.
    ///
    /// Without that limit the answer is often of no use: the curve of a sampled Gaussian approaches
    /// that of the Gaussian without sampling in its far corners.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for a rate outside [1e-12, 0.1], and the accountant's.
    pub fn gaussian_mu(&self, smallest_rate: f64) -> Result<AttackBound, AccountingError> {
        if !(1e-12..=0.1).contains(&smallest_rate) {
            return Err(AccountingError::invalid("smallest_rate", smallest_rate, "a number in [1e-12, 0.1]"));
        }
        let mut trust = Trust::default();
        let mut known = true;
        let relation = self.accountant.relation();
        let mut tangent = |epsilon: f64| -> Result<Tangent, AccountingError> {
            let at = crate::Epsilon::new(epsilon)?;
            let (mut upper, mut lower) = trust.take(self.accountant.delta(at)?);
            if relation != relation.exchanged() {
                // A Gaussian's curve is its own inverse: it has to lie below the inverse, too.
                let (other, least) = trust.take(self.accountant.exchanged_delta(at)?);
                upper = upper.max(other);
                lower = lower.zip(least).map(|(lower, least)| lower.max(least));
            }
            known &= lower.is_some();
            let lower = lower.unwrap_or(0.0);
            Ok(Tangent { epsilon, lower, upper, mu: mu_of(epsilon, lower) * (1.0 - 1e-9) })
        };
        let mut tangents = vec![tangent(0.0)?];
        if tangents[0].upper == 0.0 {
            return Ok(trust.bound(0.0, Some(0.0)));
        }
        if tangents[0].lower >= 1.0 {
            return Ok(trust.bound(f64::INFINITY, Some(f64::INFINITY)));
        }
        // A first guess at μ, whose tangents at ε lie at ε/μ + μ/2 standard deviations.
        let mut step = 0.5 * mu_of(0.0, tangents[0].upper).max(1e-9);
        loop {
            let last = tangents[tangents.len() - 1];
            let next = tangent(last.epsilon + step)?;
            tangents.push(next);
            if vertex(&last, &next).is_none_or(|(alpha, _)| alpha <= smallest_rate) {
                break;
            }
            if tangents.len() >= MAX_TANGENTS / 2 || !next.epsilon.is_finite() {
                // The curve has a corner further out than tangents reach: the rest is bounded by
                // the last one.
                break;
            }
            step *= 1.15;
        }
        loop {
            let (upper, worst) = mu_of_polygon(&tangents, smallest_rate);
            let lower = tangents
                .windows(2)
                .filter(|pair| contact(&pair[0], &pair[1]) >= smallest_rate)
                .map(|pair| pair[0].mu)
                .fold(0.0, f64::max);
            let upper = upper * (1.0 + 1e-9);
            let (left, right) = (tangents[worst].epsilon, tangents[worst + 1].epsilon);
            let middle = 0.5 * (left + right);
            let done = upper - lower <= MU_WIDTH * upper
                || !upper.is_finite()
                || tangents.len() >= MAX_TANGENTS
                || right - left <= 1e-9 * right;
            if done {
                let mut lower = lower;
                if known && lower < 0.9 * upper {
                    // Tangents say little where the curve has a corner: the curve itself, at the
                    // end of the range.
                    let missed = self.false_negative_rate(smallest_rate)?;
                    let detected = missed.possible.filter(|missed| *missed >= smallest_rate).map(|missed| 1.0 - missed);
                    let at_the_end =
                        detected.map_or(0.0, |power| normal_quantile(power) - normal_quantile(smallest_rate));
                    lower = lower.max(at_the_end * (1.0 - 1e-9));
                }
                let bound = trust.bound(upper, known.then(|| lower.min(upper)));
                if upper.is_finite() || bound.certainty != Certainty::Bound {
                    return Ok(bound);
                }
                let reason = "no Gaussian was found that is no more private".to_owned();
                return Ok(AttackBound { certainty: Certainty::FallBack { reason }, ..bound });
            }
            let between = tangent(middle)?;
            tangents.insert(worst + 1, between);
        }
    }
}

/// Certainty of an answer that rests on several.
#[derive(Debug, Default)]
struct Trust(Option<Certainty>);

impl Trust {
    /// Upper and lower bound on δ.
    fn take(&mut self, bound: DeltaBound) -> (f64, Option<f64>) {
        self.0 = Some(match self.0.take() {
            Some(certainty) => certainty.weaker(bound.certainty),
            None => bound.certainty,
        });
        (bound.delta, bound.lower)
    }

    fn bound(&self, guaranteed: f64, possible: Option<f64>) -> AttackBound {
        AttackBound { guaranteed, possible, certainty: self.0.clone().unwrap_or(Certainty::Bound) }
    }
}

/// Where two neighbouring tangents, from their upper bounds on δ, meet: false-positive rate and
/// true-positive rate.
fn vertex(left: &Tangent, right: &Tangent) -> Option<(f64, f64)> {
    let slope = libm::exp(left.epsilon);
    let alpha = ((left.upper - right.upper) / (slope * libm::expm1(right.epsilon - left.epsilon))).max(0.0);
    let power = left.upper + slope * alpha;
    power.is_finite().then_some((alpha, power))
}

/// Lower bound on the false-positive rate at which the curve touches the left tangent.
fn contact(left: &Tangent, right: &Tangent) -> f64 {
    (left.lower - right.upper) / (libm::exp(left.epsilon) * libm::expm1(right.epsilon - left.epsilon))
}

/// Largest μ over the vertices of the polygon, and the index of the tangent before the worst one.
///
/// A Gaussian's curve is convex, so it lies below a polygon whose vertices it lies below.
fn mu_of_polygon(tangents: &[Tangent], smallest_rate: f64) -> (f64, usize) {
    let mut worst = (0.0, 0);
    for (i, pair) in tangents.windows(2).enumerate() {
        let Some((alpha, power)) = vertex(&pair[0], &pair[1]) else {
            return (f64::INFINITY, i);
        };
        // Where the polygon leaves the range, the point on its edge counts.
        let (alpha, power) = if alpha < smallest_rate {
            (smallest_rate, pair[0].upper + libm::exp(pair[0].epsilon) * smallest_rate)
        } else {
            (alpha, power)
        };
        let mu = normal_quantile(power.min(1.0)) - normal_quantile(alpha);
        if mu > worst.0 {
            worst = (mu, i);
        }
        if alpha <= smallest_rate {
            return worst;
        }
    }
    // Beyond the last tangent it alone bounds the curve.
    if let [.., last] = tangents {
        let power = last.upper + libm::exp(last.epsilon) * smallest_rate;
        let mu = normal_quantile(power.min(1.0)) - normal_quantile(smallest_rate);
        if mu > worst.0 {
            worst = (mu, tangents.len().saturating_sub(2));
        }
    }
    worst
}

/// The μ of the Gaussian with this δ at this ε.
fn mu_of(epsilon: f64, delta: f64) -> f64 {
    if delta <= 0.0 {
        return 0.0;
    }
    if delta >= 1.0 {
        return f64::INFINITY;
    }
    let log_delta = libm::log(delta);
    let (mut low, mut high) = (-40.0_f64, 12.0_f64);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if middle == low || middle == high {
            break;
        }
        if log_gaussian_delta(libm::exp(middle), epsilon) > log_delta {
            high = middle;
        } else {
            low = middle;
        }
    }
    libm::exp(high)
}

/// Bound on the maximum of a concave function, from bounds on its values at some points: between
/// two of them it lies below the lines through the points on either side.
fn concave_ceiling(samples: &mut [Sample]) -> f64 {
    samples.sort_by(|a, b| a.slope.total_cmp(&b.slope));
    let rise = |from: &Sample, to: &Sample| (to.upper - from.lower) / (to.slope - from.slope);
    let mut ceiling = f64::NEG_INFINITY;
    for i in 1..samples.len() {
        let (left, right) = (&samples[i - 1], &samples[i]);
        let width = right.slope - left.slope;
        if width <= 0.0 {
            ceiling = ceiling.max(left.upper.min(right.upper));
            continue;
        }
        // The steepest that the function can still rise after `left`, and fall before `right`.
        let rising = samples[..i - 1].iter().map(|earlier| rise(earlier, left)).fold(f64::INFINITY, f64::min);
        let falling = samples[i + 1..].iter().map(|later| (right.upper - later.lower) / (later.slope - right.slope));
        let falling = falling.fold(f64::INFINITY, f64::min);
        let (rising, falling) = (rising.max(0.0), falling.max(0.0));
        // left.upper + rising·t and right.upper + falling·(width - t) meet at the highest point
        // that both allow.
        let meet = match (rising.is_finite(), falling.is_finite()) {
            (true, true) if rising + falling > 0.0 => {
                let t = ((right.upper - left.upper + falling * width) / (rising + falling)).clamp(0.0, width);
                (left.upper + rising * t).min(right.upper + falling * (width - t)).max(left.upper).max(right.upper)
            }
            (true, true) => left.upper.max(right.upper),
            (true, false) => left.upper + rising * width,
            (false, true) => right.upper + falling * width,
            // The value never exceeds 1.
            (false, false) => 1.0,
        };
        ceiling = ceiling.max(meet);
    }
    ceiling
}

fn golden_section(
    mut low: f64,
    mut high: f64,
    evaluations: usize,
    at: &mut impl FnMut(f64) -> Result<f64, AccountingError>,
) -> Result<(), AccountingError> {
    const RATIO: f64 = 0.618_033_988_749_894_9;
    let (mut left, mut right) = (high - RATIO * (high - low), low + RATIO * (high - low));
    let (mut at_left, mut at_right) = (at(left)?, at(right)?);
    for _ in 2..evaluations {
        if high - low < 1e-5 * (1.0 + high.abs()).min(1e-3 + high.abs().max(low.abs())) {
            break;
        }
        if at_left >= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - RATIO * (high - low);
            at_left = at(left)?;
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + RATIO * (high - low);
            at_right = at(right)?;
        }
    }
    Ok(())
}

fn in_unit(parameter: &'static str, value: f64) -> Result<f64, AccountingError> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(AccountingError::invalid(parameter, value, "a number in [0, 1]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search ends where halving changes nothing, so it inverts the profile up to rounding.
    #[test]
    fn a_gaussian_is_found_by_its_delta() {
        for mu in [1e-9, 0.03, 0.7, 3.0] {
            for epsilon in [0.0, 0.5 * mu, 4.0 * mu] {
                let found = mu_of(epsilon, libm::exp(log_gaussian_delta(mu, epsilon)));
                assert!((found / mu - 1.0).abs() < 1e-11, "{mu} {epsilon}: {found}");
            }
        }
        assert_eq!((mu_of(1.0, 0.0), mu_of(1.0, 1.0)), (0.0, f64::INFINITY));
    }
}
