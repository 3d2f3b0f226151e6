//! One setting: what the accountants say of it, and whether that holds.

use std::time::{Duration, Instant};

use super::ball::Ball;
use super::exact::{Direction, gaussian_delta, sampled_gaussian_delta};
use super::inversion::Inversion;
use super::settings::{Setting, Steps};
use crate::{
    Accountant, AccountingError, Delta, DpEvent, Epsilon, NeighbouringRelation, NoiseMultiplier, PldAccountant,
    RdpAccountant, SamplingRate,
};

/// How the true profile was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Evidence {
    /// By a formula.
    Formula,
    /// By inverting the characteristic function of the loss.
    Inversion,
    /// Not at all: only the accountants' own order was checked.
    None,
}

/// What was found out about one setting.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finding {
    /// Why the setting was chosen.
    pub kind: String,
    /// The setting, in words.
    pub setting: String,
    /// How the true profile was found.
    pub evidence: Evidence,
    /// What does not hold, in words; empty if all holds.
    pub violations: Vec<String>,
    /// The longest time of an accountant's answer.
    pub slowest: Duration,
}

/// The accountants' answers.
struct Answers {
    pld: (f64, f64),
    rdp: f64,
    /// An ε, and the bracket of δ there.
    delta: (f64, f64, f64),
    slowest: Duration,
}

/// The true profile.
enum Truth {
    Gaussian { squared_mu: Ball },
    OneSampled { q: f64, sigma: f64 },
    Inverted(Inversion),
}

impl Truth {
    fn of(setting: &Setting) -> Option<Self> {
        let square = |sigma: f64| Ball::exact(sigma) * Ball::exact(sigma);
        match setting.steps[..] {
            [Steps { q, sigma, count: 1 }] if q < 1.0 => Some(Self::OneSampled { q, sigma }),
            _ if setting.steps.iter().all(|steps| steps.q >= 1.0) => {
                let one = |steps: &Steps| Ball::from_count(steps.count) / square(steps.sigma);
                let squared_mu = setting.steps.iter().map(one).fold(Ball::exact(0.0), |sum, one| sum + one);
                Some(Self::Gaussian { squared_mu })
            }
            _ => Inversion::new(&setting.steps).map(Self::Inverted),
        }
    }

    const fn evidence(&self) -> Evidence {
        match self {
            Self::Inverted(_) => Evidence::Inversion,
            _ => Evidence::Formula,
        }
    }

    /// δ in both directions at each ε; `None` where that takes too long.
    fn deltas(&self, epsilons: &[f64]) -> Option<Vec<[Ball; 2]>> {
        const BOTH: [Direction; 2] = [Direction::Remove, Direction::Add];
        match self {
            Self::Gaussian { squared_mu } => {
                let delta = |epsilon: &f64| gaussian_delta(squared_mu, &Ball::exact(*epsilon));
                Some(epsilons.iter().map(delta).map(|delta| [delta.clone(), delta]).collect())
            }
            Self::OneSampled { q, sigma } => {
                let delta = |epsilon: &f64, direction: Direction| {
                    sampled_gaussian_delta(*q, *sigma, direction, &Ball::exact(*epsilon))
                };
                Some(epsilons.iter().map(|epsilon| BOTH.map(|direction| delta(epsilon, direction))).collect())
            }
            Self::Inverted(inversion) => {
                // One direction is enough of a truth, with a bound on the other, which often has no loss as large as ε.
                let [remove, add] = BOTH.map(|direction| inversion.delta(direction, epsilons));
                if remove.is_none() && add.is_none() {
                    return None;
                }
                let [remove, add] = [(remove, Direction::Remove), (add, Direction::Add)]
                    .map(|(deltas, direction)| deltas.unwrap_or_else(|| inversion.at_most(direction, epsilons)));
                Some(remove.into_iter().zip(add).map(<[Ball; 2]>::from).collect())
            }
        }
    }
}

impl Setting {
    fn answers(&self) -> Result<Answers, AccountingError> {
        let mut slowest = Duration::ZERO;
        let mut pld = PldAccountant::new(NeighbouringRelation::AddRemove);
        let mut rdp = RdpAccountant::new(NeighbouringRelation::AddRemove);
        for steps in &self.steps {
            let event = DpEvent::gaussian(NoiseMultiplier::new(steps.sigma)?);
            let event = event.poisson_sampled(SamplingRate::new(steps.q)?);
            pld.compose(&event, steps.count)?;
            rdp.compose(&event, steps.count)?;
        }
        let delta = Delta::new(self.delta)?;
        let mut timed = |ask: &mut dyn FnMut() -> Result<(f64, f64), AccountingError>| {
            let start = Instant::now();
            let answer = ask();
            slowest = slowest.max(start.elapsed());
            answer
        };
        let bracket = timed(&mut || {
            let bound = pld.epsilon(delta)?;
            Ok((bound.lower.map_or(0.0, Epsilon::get), bound.epsilon.get()))
        })?;
        let (rdp, _) = timed(&mut || Ok((rdp.epsilon(delta)?.epsilon.get(), 0.0)))?;
        let at = if bracket.1.is_finite() { bracket.1 } else { rdp };
        let at_epsilon = timed(&mut || {
            let bound = pld.delta(Epsilon::new(at)?)?;
            Ok((bound.lower.unwrap_or(0.0), bound.delta))
        })?;
        Ok(Answers { pld: bracket, rdp, delta: (at, at_epsilon.0, at_epsilon.1), slowest })
    }

    pub(super) fn check(&self) -> Finding {
        let mut finding = Finding {
            kind: self.kind.to_string(),
            setting: self.to_string(),
            evidence: Evidence::None,
            violations: Vec::new(),
            slowest: Duration::ZERO,
        };
        let answers = match self.answers() {
            Ok(answers) => answers,
            Err(error) => {
                finding.violations.push(format!("no answer: {error}"));
                return finding;
            }
        };
        finding.slowest = answers.slowest;
        let violations = &mut finding.violations;
        let (lower, upper) = answers.pld;
        let (at, delta_lower, delta_upper) = answers.delta;
        let in_order = lower >= 0.0 && lower <= upper && delta_lower <= delta_upper && delta_upper <= 1.0;
        if !in_order || answers.rdp < lower {
            violations.push(format!(
                "out of order: {lower:?} ≤ {upper:?}, RDP {:?}, δ({at:?}) {delta_lower:?} ≤ {delta_upper:?}",
                answers.rdp
            ));
        }
        let Some(truth) = Truth::of(self) else { return finding };
        let asked = Ball::exact(self.delta);
        let is_above =
            |delta: f64, deltas: &[Ball; 2]| deltas.iter().any(|one| Ball::exact(delta).is_certainly_below(one));
        let is_below =
            |delta: f64, deltas: &[Ball; 2]| deltas.iter().all(|one| one.is_certainly_below(&Ball::exact(delta)));
        // Close to each other, the ends need one inversion.
        let questions = [lower, upper, at].map(|epsilon| if epsilon.is_finite() { epsilon } else { 0.0 });
        let Some(deltas) = truth.deltas(&questions) else { return finding };
        finding.evidence = truth.evidence();
        let [at_lower, at_upper, there] = &deltas[..] else { return finding };
        // The profile falls, so ε is too small an upper bound exactly if δ is still larger there.
        if upper.is_finite() && is_above(self.delta, at_upper) {
            violations.push(format!("the upper end of [{lower:?}, {upper:?}] is below ε"));
        }
        if lower > 0.0 && at_lower.iter().all(|delta| delta.is_certainly_below(&asked)) {
            violations.push(format!("the lower end of [{lower:?}, {upper:?}] is above ε"));
        }
        // Where RDP is above an upper end that holds, it holds.
        if answers.rdp < upper && truth.deltas(&[answers.rdp]).is_some_and(|deltas| is_above(self.delta, &deltas[0])) {
            violations.push(format!("RDP's {:?} is below ε", answers.rdp));
        }
        if at.is_finite() && (is_above(delta_upper, there) || (delta_lower > 0.0 && is_below(delta_lower, there))) {
            let truth = there.iter().map(Ball::to_f64).fold(0.0, f64::max);
            violations.push(format!("δ({at:?}) is {truth:?} and not in [{delta_lower:?}, {delta_upper:?}]"));
        }
        finding
    }
}
