//! One setting: what the accountants say of it, and whether that holds.

use std::time::{Duration, Instant};

use super::ball::Ball;
use super::truth::Truth;
use crate::{Accountant, AccountingError, Delta, DpEvent, Epsilon, NeighbouringRelation, PldAccountant, RdpAccountant};

/// How the true profile was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Evidence {
    /// By a formula.
    Formula,
    /// By inverting the characteristic function of the loss.
    Inversion,
    /// Within two bounds, one of them close.
    Bounds,
    /// Not at all: only the accountants' own order was checked.
    None,
}

/// The result of auditing one setting.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finding {
    /// Why the setting was chosen.
    pub kind: String,
    /// The setting, in words.
    pub setting: String,
    /// How the true profile was found.
    pub evidence: Evidence,
    /// Violations, in words; empty if every bound holds.
    pub violations: Vec<String>,
    /// The longest time of an accountant's answer.
    pub slowest: Duration,
}

impl Finding {
    /// The finding for a setting that is refused.
    pub(super) fn unanswered(error: &AccountingError) -> Self {
        Self {
            kind: "refused".to_owned(),
            setting: String::new(),
            evidence: Evidence::None,
            violations: vec![format!("no setting: {error}")],
            slowest: Duration::ZERO,
        }
    }
}

/// The accountants' answers.
struct Answers {
    pld: (f64, f64),
    rdp: f64,
    /// An ε, and the bracket of δ there.
    delta: (f64, f64, f64),
    slowest: Duration,
}

/// A composition and a δ, and what is known of the composition's profile.
pub(super) struct AuditCase {
    pub(super) kind: String,
    pub(super) setting: String,
    pub(super) parts: Vec<(DpEvent, u64)>,
    pub(super) relation: NeighbouringRelation,
    pub(super) delta: f64,
    pub(super) truth: Option<Truth>,
}

impl AuditCase {
    fn answers(&self) -> Result<Answers, AccountingError> {
        let mut slowest = Duration::ZERO;
        let mut pld = PldAccountant::new(self.relation);
        let mut rdp = RdpAccountant::new(self.relation);
        for (event, count) in &self.parts {
            pld.compose(event, *count)?;
            rdp.compose(event, *count)?;
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
            kind: self.kind.clone(),
            setting: self.setting.clone(),
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
        let Some(truth) = &self.truth else { return finding };
        let asked = Ball::exact(self.delta);
        let is_above =
            |delta: f64, deltas: &[Ball]| deltas.iter().any(|one| Ball::exact(delta).is_certainly_below(one));
        let is_below =
            |delta: f64, deltas: &[Ball]| deltas.iter().all(|one| one.is_certainly_below(&Ball::exact(delta)));
        // Close to each other, the ends need one inversion.
        let questions = [lower, upper, at].map(|epsilon| if epsilon.is_finite() { epsilon } else { 0.0 });
        let Some(deltas) = truth.deltas(self.relation, &questions) else { return finding };
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
        if answers.rdp < upper
            && truth.deltas(self.relation, &[answers.rdp]).is_some_and(|deltas| is_above(self.delta, &deltas[0]))
        {
            violations.push(format!("RDP's {:?} is below ε", answers.rdp));
        }
        if at.is_finite() && (is_above(delta_upper, there) || (delta_lower > 0.0 && is_below(delta_lower, there))) {
            let truth = there.iter().map(Ball::to_f64).fold(0.0, f64::max);
            violations.push(format!("δ({at:?}) is {truth:?} and not in [{delta_lower:?}, {delta_upper:?}]"));
        }
        finding
    }
}
