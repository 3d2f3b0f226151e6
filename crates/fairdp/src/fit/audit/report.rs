//! What an audit found.

use std::fmt::Write as _;

use dp_accounting::{Rounding, decimal};
use dp_audit::one_run::{Claim, EpsilonBounds, Score};
use serde::Serialize;

use super::{AuditFault, AuditOptions};
use crate::error::{FairdpError, Result};
use crate::subset::Subset;

/// Confidence of each bound that is printed.
const CONFIDENCE: f64 = 0.95;

/// A group and a class, where there are any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OfKind {
    /// The group.
    pub group: Option<String>,
    /// The class; empty for all.
    pub class: String,
}

impl OfKind {
    fn in_words(&self) -> String {
        let group = self.group.as_deref().unwrap_or("all");
        if self.class.is_empty() { group.to_owned() } else { format!("{group}, {}", self.class) }
    }
}

/// An attack on one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AttackedRun {
    /// The gradients, as the ledger has them; where groups have rates of their own, what holds for all.
    pub claim: Claim,
    /// The same for each group, where groups have rates of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims_of_groups: Vec<Claim>,
    /// Bounds from all canaries, each with 95 % confidence.
    pub bounds: EpsilonBounds,
    /// The largest ε of them, over the claim.
    pub share: f64,
    /// The same without an assumption.
    pub share_without_assumption: f64,
    /// Bounds from the canaries of each group, each with 95 % confidence.
    pub by_group: Vec<(OfKind, EpsilonBounds)>,
    /// Whether a bound that holds together with all others of the audit is above the claim.
    pub refuted: bool,
    /// Whether half of the noise would be refuted, in nineteen of twenty audits.
    pub finds_half_the_noise: bool,
    /// Weights of the model: canaries at most.
    pub weights: Option<usize>,
    /// Seconds of the training with canaries.
    pub seconds: Option<f64>,
    /// Seconds of the same training without them.
    pub plain_seconds: Option<f64>,
}

impl AttackedRun {
    /// `claims` is one for all canaries, or one for each group.
    pub(super) fn new(claims: &[Claim], scores: &[Score], kinds: &[OfKind], failure: f64) -> Result<Self> {
        let nothing = || FairdpError::Internal("an attack on no claim".into());
        let claim = &Claim::of_any(claims).ok_or_else(nothing)?;
        let of = |kind: usize| scores.iter().copied().filter(|score| score.kind == kind).collect::<Vec<_>>();
        // Scores of some group are as far apart as all are: what holds whichever group it is.
        let bounds =
            claims.iter().map(|claim| claim.bounds(scores, 1.0 - CONFIDENCE)).collect::<Result<Vec<_>, _>>()?;
        let bounds = bounds.into_iter().min_by(|a, b| a.gaussian.total_cmp(&b.gaussian));
        let bounds = bounds.ok_or_else(nothing)?;
        let mut refuted = claim.refuted(scores, failure);
        let mut by_group = Vec::new();
        for (number, kind) in kinds.iter().enumerate() {
            let (scores, claim) = (of(number), claims.get(number).unwrap_or(claim));
            refuted |= claim.refuted(&scores, failure);
            by_group.push((kind.clone(), claim.bounds(&scores, 1.0 - CONFIDENCE)?));
        }
        Ok(Self {
            share: bounds.gaussian.max(bounds.without_assumption()) / claim.epsilon,
            share_without_assumption: bounds.without_assumption() / claim.epsilon,
            finds_half_the_noise: claim.would_refute(0.5, scores.len(), failure / 3.0),
            claim: claim.clone(),
            claims_of_groups: if claims.len() > 1 { claims.to_vec() } else { Vec::new() },
            bounds,
            by_group,
            refuted,
            weights: None,
            seconds: None,
            plain_seconds: None,
        })
    }
}

/// An attack on one release, for one group and class.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AttackedRelease {
    /// Its purpose in the ledger.
    pub release: String,
    /// The records that it is about.
    pub part: Subset,
    /// The group and class of the extreme record.
    #[serde(flatten)]
    pub kind: OfKind,
    /// One over the noise multiplier in the ledger; 0 for a release that is not in it.
    pub claimed_mu: f64,
    /// A lower bound on it. All lower bounds of the table hold together with 97.5 %.
    pub mu: f64,
    /// Repetitions in either world.
    pub repeats: u32,
    /// Whether half of the noise would be refuted, in nineteen of twenty audits.
    pub finds_half_the_noise: bool,
    /// Whether the bound is above the ledger's.
    pub refuted: bool,
}

/// What an audit found. **Not private**: it is computed from the records.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AuditReport {
    /// ε of the whole run, as its statement will have it.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// The fault that was put in, if one was.
    pub plant: Option<AuditFault>,
    /// Whether any claim is refuted. Of honest runs that happens to one in twenty at most.
    pub refuted: bool,
    /// Canaries in the gradients, whose sums are seen.
    pub white_box: AttackedRun,
    /// Canaries among the records; the losses of the final model are seen.
    pub black_box: AttackedRun,
    /// Every release by group and class.
    pub releases: Vec<AttackedRelease>,
}

impl AuditReport {
    pub(super) fn new(
        options: &AuditOptions,
        (epsilon, delta): (f64, f64),
        white_box: AttackedRun,
        black_box: AttackedRun,
        releases: Vec<AttackedRelease>,
    ) -> Self {
        let refuted = white_box.refuted || black_box.refuted || releases.iter().any(|release| release.refuted);
        Self { epsilon, delta, plant: options.fault, refuted, white_box, black_box, releases }
    }

    /// The report in Markdown.
    pub fn markdown(&self) -> String {
        let up = |value: f64| decimal(value, 2, Rounding::Up);
        let down = |value: f64| decimal(value, 2, Rounding::Down);
        let percent = |share: f64| format!("{:.0} %", (100.0 * share).floor());
        let mut text = String::new();
        let plant = self.plant.map_or(String::new(), |fault| format!(", with a fault put in: {}", fault.name()));
        let claim = &self.white_box.claim;
        let verdict = if self.refuted { "**refuted**" } else { "stands" };
        let _ = writeln!(
            text,
            "The claim {verdict}{plant}: ε = {} at δ = {:e}, of which {} for {} gradients.\n",
            up(self.epsilon),
            self.delta,
            up(claim.epsilon),
            claim.steps
        );
        text.push_str(
            "| attack on the gradients | canaries | ε, normal scores ≥ | ε, no assumption ≥ | share of the claim |\n\
             |---|---|---|---|---|\n",
        );
        let all = OfKind { group: None, class: String::new() };
        let by_group = self.white_box.by_group.iter().filter(|_| self.white_box.by_group.len() > 1);
        let of_groups = &self.white_box.claims_of_groups;
        let by_group = by_group.enumerate().map(|(number, (kind, bounds))| {
            ("white box", kind, bounds, of_groups.get(number).unwrap_or(claim).epsilon)
        });
        let white = std::iter::once(("white box", &all, &self.white_box.bounds, claim.epsilon)).chain(by_group);
        let black = std::iter::once(("black box", &all, &self.black_box.bounds, claim.epsilon));
        for (name, kind, bounds, claimed) in white.chain(black) {
            let _ = writeln!(
                text,
                "| {name}: {} | {} | {} | {} | {} |",
                kind.in_words(),
                bounds.canaries,
                down(bounds.gaussian),
                down(bounds.without_assumption()),
                percent(bounds.gaussian.max(bounds.without_assumption()) / claimed)
            );
        }
        text.push_str(
            "\n| release | group, class | μ ≤ (ledger) | μ ≥ | repetitions | half the noise | verdict |\n\
             |---|---|---|---|---|---|---|\n",
        );
        for release in &self.releases {
            let _ = writeln!(
                text,
                "| {} ({}) | {} | {} | {} | {} | {} | {} |",
                release.release,
                release.part.name(),
                release.kind.in_words(),
                decimal(release.claimed_mu, 4, Rounding::Up),
                decimal(release.mu, 4, Rounding::Down),
                release.repeats,
                if release.finds_half_the_noise { "would show" } else { "may not show" },
                if release.refuted { "**refuted**" } else { "stands" }
            );
        }
        let power = if self.white_box.finds_half_the_noise { "would" } else { "may not" };
        let _ = writeln!(
            text,
            "\nThe attack on the gradients {power} refute half of the noise. Bounds on ε hold with 95 % each. \
             What refutes does so with 95 % for the whole report. *Normal scores* assumes that scores of canaries \
             are normal with one spread."
        );
        text
    }
}
