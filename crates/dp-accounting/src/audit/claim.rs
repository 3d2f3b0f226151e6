//! A claim "this composition is (ε, δ)-private", judged.

use super::ball::Ball;
use super::check::Evidence;
use super::settings::Steps;
use super::truth::Truth;
use crate::{Delta, DpEvent, Epsilon, NeighbouringRelation};

/// A verdict of 200-bit arithmetic on a claim; a larger one is worse for the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Opinion {
    /// The true δ at this ε is at most the one claimed.
    Confirmed(Evidence),
    /// It cannot say: it knows Gaussians, on all records or Poisson-sampled, and no more than it
    /// can invert in seconds.
    NotJudged,
    /// It is larger.
    Refuted,
}

/// Judges the claim that what was released is (ε, δ)-private, by formulas that share nothing with
/// the accountants'.
///
/// Where several sums share a sampled batch, a claim that is off by less than 1e-12 or so is not
/// judged.
///
/// **Example**
/// ```
/// use dp_accounting::audit::{Opinion, judge};
/// use dp_accounting::{Delta, DpEvent, Epsilon, NeighbouringRelation, NoiseMultiplier, SamplingRate};
/// let step = DpEvent::gaussian(NoiseMultiplier::new(1.0)?).poisson_sampled(SamplingRate::new(0.01)?);
/// let released = [(step, 1_000)];
/// let claim = |epsilon| Ok::<_, dp_accounting::AccountingError>((Epsilon::new(epsilon)?, Delta::new(1e-5)?));
/// let (epsilon, delta) = claim(2.0)?;
/// assert!(matches!(judge(&released, NeighbouringRelation::AddRemove, epsilon, delta), Opinion::Confirmed(_)));
/// let (epsilon, delta) = claim(1.7)?;
/// assert_eq!(judge(&released, NeighbouringRelation::AddRemove, epsilon, delta), Opinion::Refuted);
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
pub fn judge(released: &[(DpEvent, u64)], relation: NeighbouringRelation, epsilon: Epsilon, delta: Delta) -> Opinion {
    if released.iter().any(|(event, _)| event.check_levels().is_err()) {
        return Opinion::NotJudged;
    }
    let place = released.iter().position(|(event, count)| *count == 1 && matches!(event, DpEvent::OneOf(_)));
    if let Some((place, DpEvent::OneOf(alternatives))) = place.map(|place| (place, &released[place].0)) {
        // A record meets one of them: the claim is as good as for the worst.
        let met = |one: &DpEvent| {
            let mut released = released.to_vec();
            released[place].0 = one.clone();
            judge(&released, relation, epsilon, delta)
        };
        return alternatives.iter().map(met).max().unwrap_or(Opinion::NotJudged);
    }
    let mut queries = Vec::new();
    let known = released.iter().try_for_each(|(event, count)| flatten(event, *count, 1.0, &mut queries));
    let is_sampled = queries.iter().any(|query| query.q < 1.0);
    // Another record in a record's place moves a sampled sum in two ways.
    if known.is_none() || !epsilon.get().is_finite() || (is_sampled && relation.contributions() > 1.0) {
        return Opinion::NotJudged;
    }
    if queries.is_empty() {
        return Opinion::Confirmed(Evidence::Formula);
    }
    let against = |rounding: f64| compare(&steps(&queries, relation, rounding), relation, epsilon, delta);
    // Several sums over one sampled batch are one with less noise, which is rounded against each
    // verdict.
    match against(-ROUNDING) {
        Opinion::Refuted if against(ROUNDING) != Opinion::Refuted => Opinion::NotJudged,
        opinion => opinion,
    }
}

/// More than the relative error of a root of a sum of squares in double precision.
const ROUNDING: f64 = 1e-14;

/// Gaussian sums over the same batch.
struct Query {
    q: f64,
    sigmas: Vec<f64>,
    count: u64,
}

/// `None` for what has no formula here.
fn flatten(event: &DpEvent, count: u64, q: f64, into: &mut Vec<Query>) -> Option<()> {
    let sigmas = match event {
        _ if count == 0 => return Some(()),
        DpEvent::Gaussian { noise_multiplier } => vec![noise_multiplier.get()],
        DpEvent::JointGaussian { noise_multipliers } => noise_multipliers.iter().map(|sigma| sigma.get()).collect(),
        // A batch is drawn once for all that is inside: only for sums is that the same as one sum.
        DpEvent::PoissonSampled { sampling_rate, event } if q >= 1.0 => {
            let is_one_query = matches!(**event, DpEvent::Gaussian { .. } | DpEvent::JointGaussian { .. });
            return is_one_query.then(|| flatten(event, count, sampling_rate.get(), into))?;
        }
        DpEvent::Composed(events) if q >= 1.0 => {
            return events.iter().try_for_each(|event| flatten(event, count, q, into));
        }
        DpEvent::SelfComposed { event, count: times } if q >= 1.0 => {
            return flatten(event, count.checked_mul(*times)?, q, into);
        }
        _ => return None,
    };
    if q == 0.0 {
        return Some(());
    }
    into.push(Query { q, sigmas, count });
    Some(())
}

/// The queries in units of the sensitivity. Without sampling several sums are several steps, and
/// nothing is rounded.
fn steps(queries: &[Query], relation: NeighbouringRelation, rounding: f64) -> Vec<Steps> {
    let mut steps = Vec::new();
    for &Query { q, ref sigmas, count } in queries {
        if q >= 1.0 || sigmas.len() == 1 {
            steps.extend(sigmas.iter().map(|sigma| Steps { q, sigma: sigma / relation.contributions(), count }));
        } else {
            let precision: f64 = sigmas.iter().map(|sigma| (sigma * sigma).recip()).sum();
            steps.push(Steps { q, sigma: precision.sqrt().recip() * (1.0 + rounding), count });
        }
    }
    steps
}

fn compare(steps: &[Steps], relation: NeighbouringRelation, epsilon: Epsilon, delta: Delta) -> Opinion {
    let Some(truth) = Truth::of(steps) else { return Opinion::NotJudged };
    let Some(deltas) = truth.deltas(relation, &[epsilon.get()]) else { return Opinion::NotJudged };
    let claimed = Ball::exact(delta.get());
    let mut deltas = deltas.iter().flatten();
    if deltas.clone().any(|true_delta| claimed.is_certainly_below(true_delta)) {
        Opinion::Refuted
    } else if deltas.all(|true_delta| true_delta.is_certainly_below(&claimed)) {
        Opinion::Confirmed(truth.evidence())
    } else {
        Opinion::NotJudged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Accountant, NoiseMultiplier, PldAccountant, SamplingRate};

    const RELATION: NeighbouringRelation = NeighbouringRelation::ZeroOut;

    fn sigma(value: f64) -> NoiseMultiplier {
        NoiseMultiplier::new(value).unwrap()
    }

    /// The verdict on a multiple of the certified ε.
    fn opinion(released: &[(DpEvent, u64)], relation: NeighbouringRelation, factor: f64) -> Opinion {
        let mut accountant = PldAccountant::new(relation);
        for (event, count) in released {
            accountant.compose(event, *count).unwrap();
        }
        let delta = Delta::new(1e-6).unwrap();
        let epsilon = accountant.epsilon(delta).unwrap().epsilon.get();
        judge(released, relation, Epsilon::new(epsilon * factor).unwrap(), delta)
    }

    #[test]
    fn a_certified_epsilon_is_confirmed_and_a_smaller_one_refuted() {
        let sampled = DpEvent::joint_gaussian(vec![sigma(1.1), sigma(20.0)]);
        let sampled = sampled.poisson_sampled(SamplingRate::new(0.02).unwrap());
        let whole = DpEvent::joint_gaussian(vec![sigma(15.0), sigma(30.0)]);
        for (released, evidence) in [
            (vec![(whole.clone(), 60), (DpEvent::gaussian(sigma(9.0)), 1)], Evidence::Formula),
            (vec![(sampled.clone(), 1)], Evidence::Formula),
            (vec![(sampled.repeated(400), 2), (whole, 3)], Evidence::Inversion),
        ] {
            assert_eq!(opinion(&released, RELATION, 1.0 + 1e-9), Opinion::Confirmed(evidence), "{released:?}");
            assert_eq!(opinion(&released, RELATION, 0.999), Opinion::Refuted, "{released:?}");
        }
    }

    #[test]
    fn alternatives_are_judged_by_the_worst() {
        let sampled = |q, noise| DpEvent::gaussian(sigma(noise)).poisson_sampled(SamplingRate::new(q).unwrap());
        let of_groups = DpEvent::OneOf(vec![sampled(0.02, 1.5).repeated(300), sampled(0.01, 0.9).repeated(300)]);
        let released = [(DpEvent::gaussian(sigma(9.0)), 1), (of_groups.clone(), 1)];
        assert_eq!(opinion(&released, RELATION, 1.0 + 1e-9), Opinion::Confirmed(Evidence::Inversion));
        assert_eq!(opinion(&released, RELATION, 0.999), Opinion::Refuted);
        // Met twice, perhaps another one each time.
        assert_eq!(opinion(&[(of_groups, 2)], RELATION, 1.0), Opinion::NotJudged);
    }

    #[test]
    fn replacing_a_record_moves_a_sum_twice_as_far() {
        let whole = [(DpEvent::gaussian(sigma(15.0)), 60)];
        let relation = NeighbouringRelation::ReplaceOne;
        assert_eq!(opinion(&whole, relation, 1.0), Opinion::Confirmed(Evidence::Formula));
        assert_eq!(opinion(&whole, relation, 0.999), Opinion::Refuted);
    }

    #[test]
    fn what_has_no_formula_here_is_not_judged() {
        let laplace = DpEvent::laplace(sigma(3.0));
        let (epsilon, delta) = (Epsilon::new(1.0).unwrap(), Delta::new(1e-6).unwrap());
        for event in [laplace, DpEvent::NonPrivate] {
            assert_eq!(judge(&[(event, 1)], RELATION, epsilon, delta), Opinion::NotJudged);
        }
        assert_eq!(judge(&[], RELATION, epsilon, delta), Opinion::Confirmed(Evidence::Formula));
    }
}
