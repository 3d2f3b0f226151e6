//! The paragraph an auditor needs.

use serde::{Deserialize, Serialize};

use crate::{
    Accountant, AccountingError, Certainty, Delta, Epsilon, Ledger, Mark, MarkedEpsilon, Method, NeighbouringRelation,
    PldAccountant, Rounding, decimal,
};

/// Where every statement points to.
const THREAT_MODEL: &str = "docs/threat-model.md";

/// A privacy guarantee in words and as data, complete enough to be checked.
///
/// **Example**
/// ```
/// use dp_accounting::{Delta, DpEvent, Ledger, NeighbouringRelation, RdpAccountant, Scope, Statement};
/// let (relation, delta) = (NeighbouringRelation::AddRemove, Delta::new(1e-5)?);
/// let mut ledger = Ledger::new(relation);
/// ledger.record(&DpEvent::gaussian_at(1.0)?.poisson_sampled_at(0.01)?, 1_000)?;
/// let scope = Scope::of("one person's record", ["the trained model"]);
/// let statement = Statement::new(&ledger, delta, scope.clone())?;
/// assert!(statement.to_string().starts_with("The trained model is (epsilon, delta)-differentially private with epsilon at most 1.82"));
/// assert!(statement.to_string().contains("(certified)"));
/// let looser = Statement::by(RdpAccountant::new(relation), &ledger, delta, scope)?;
/// assert!(looser.epsilon.epsilon().get() > 2.1);
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Statement {
    /// Which data sets count as neighbours.
    pub relation: NeighbouringRelation,
    /// Whether the number of records may be published.
    pub record_count_is_public: bool,
    /// The unit of privacy.
    pub unit_of_privacy: String,
    /// δ.
    pub delta: Delta,
    /// ε at that δ with its mark, what it covers and what it does not.
    #[serde(flatten)]
    pub epsilon: MarkedEpsilon,
    /// A proven lower bound on the ε of the same mechanisms, if the accountant has one.
    pub epsilon_lower: Option<Epsilon>,
    /// How much ε can be trusted.
    pub certainty: Certainty,
    /// Name of the accountant.
    pub accountant: String,
    /// How the accountant found the answer, if it has several ways.
    pub method: Option<Method>,
    /// Every event with its count, in words.
    pub events: Vec<String>,
    /// Digest of the ledger.
    pub ledger_digest: String,
    /// [`Scope::n_records`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_records: Option<u64>,
}

/// The part of a statement that only its author knows.
///
/// ```
/// use dp_accounting::Scope;
/// let mut scope = Scope::of("one person's record", ["the trained model"]);
/// scope.not_covered.push("the hyper-parameter search".into());
/// assert_eq!(scope.covered, ["the trained model"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// One record, in words, for example `one person's record`.
    pub unit_of_privacy: String,
    /// The releases under the guarantee.
    pub covered: Vec<String>,
    /// Other results derived from the data, which the guarantee does not cover, for example `the
    /// hyper-parameter search`.
    pub not_covered: Vec<String>,
    /// Conditions of the guarantee: constants that depend on the records and shape the releases,
    /// for example `the scaling, which was fitted on the private records`. With any of these, ε is
    /// conditional.
    #[serde(default, rename = "given", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// How many units of privacy there are, `n`, if that is public: a δ of 1/n or more permits that
    /// whole records are published, and is named as that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_records: Option<u64>,
}

impl Scope {
    /// A scope without exceptions, conditions and the number of records.
    pub fn of(unit_of_privacy: impl Into<String>, covered: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            unit_of_privacy: unit_of_privacy.into(),
            covered: covered.into_iter().map(Into::into).collect(),
            not_covered: Vec::new(),
            conditions: Vec::new(),
            n_records: None,
        }
    }
}

impl Statement {
    /// States what [`PldAccountant`] says of the whole ledger.
    ///
    /// # Errors
    /// As [`Self::by`].
    pub fn new(ledger: &Ledger, delta: Delta, scope: Scope) -> Result<Self, AccountingError> {
        Self::by(PldAccountant::new(ledger.relation()), ledger, delta, scope)
    }

    /// States what this accountant, which has composed nothing yet, says of the whole ledger.
    ///
    /// The statement composes the ledger itself, so that ε is the ε of the events that it lists.
    ///
    /// # Errors
    /// [`AccountingError::LedgerTampered`] when the ledger does not verify,
    /// [`AccountingError::RelationMismatch`] when it was kept under another relation,
    /// [`AccountingError::AccountantInUse`] when the accountant composed something before, and the
    /// accountant's own.
    pub fn by(
        mut accountant: impl Accountant,
        ledger: &Ledger,
        delta: Delta,
        scope: Scope,
    ) -> Result<Self, AccountingError> {
        ledger.verify()?;
        let relation = ledger.relation();
        // Every accountant says 0 at δ = 0 as long as it composed nothing, and only then, unless
        // what it composed reveals nothing.
        if accountant.epsilon(Delta::new(0.0)?)?.epsilon.get() > 0.0 {
            return Err(AccountingError::AccountantInUse { accountant: accountant.name() });
        }
        ledger.compose_into(&mut accountant)?;
        let bound = accountant.epsilon(delta)?;
        Ok(Self {
            relation,
            record_count_is_public: relation.record_count_is_public(),
            delta,
            epsilon: MarkedEpsilon::new(&bound, &scope),
            unit_of_privacy: scope.unit_of_privacy,
            epsilon_lower: bound.lower,
            certainty: bound.certainty,
            accountant: accountant.name(),
            method: bound.method,
            events: ledger.entries().iter().map(|entry| format!("{} × {}", entry.count(), entry.event())).collect(),
            ledger_digest: ledger.digest(),
            n_records: scope.n_records,
        })
    }
}

/// Without the number of records, a δ is called large if it is 1/n for fewer than these.
const FEW_RECORDS: f64 = 1_000.0;

impl Statement {
    /// The warning for a δ that is not below 1/n.
    fn large_delta(&self) -> Option<String> {
        let delta = self.delta.get();
        let n = match self.n_records {
            Some(n) if delta >= (n as f64).recip() => format!("n = {n}"),
            None if delta > FEW_RECORDS.recip() => format!("any n from {} on", delta.recip().ceil()),
            _ => return None,
        };
        Some(format!("which is not below 1/n for {n} and so permits that whole records are published"))
    }
}

impl std::fmt::Display for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let released = list(self.epsilon.covers()).unwrap_or_else(|| "what was released".to_owned());
        let verb = if self.epsilon.covers().len() > 1 { "are" } else { "is" };
        write!(f, "{} {verb} ", capitalised(&released))?;
        let (epsilon, delta) = (&self.epsilon, self.delta.get());
        match (epsilon.mark(), epsilon.epsilon().is_finite()) {
            (_, false) => write!(f, "not differentially private (epsilon is infinite at delta {delta:e})")?,
            (Mark::Nominal, true) => {
                write!(f, "estimated, without proof, to have epsilon about {epsilon:.4} at delta {delta:e}")?;
            }
            (Mark::Certified | Mark::Conditional, true) => {
                write!(
                    f,
                    "(epsilon, delta)-differentially private with epsilon at most {epsilon:.4} at delta {delta:e}"
                )?;
            }
        }
        if let Some(large) = self.large_delta() {
            write!(f, ", {large}")?;
        }
        if let Some(lower) = self.epsilon_lower.filter(|lower| lower.is_finite() && lower.get() > 0.0) {
            write!(f, " (no smaller than {} for these mechanisms)", decimal(lower.get(), 4, Rounding::Down))?;
        }
        if let Some(conditions) = list(epsilon.conditions()) {
            write!(f, ", given {conditions}")?;
        }
        write!(f, ", by the {} accountant", self.accountant)?;
        match (&self.certainty, self.method) {
            (Certainty::FallBack { reason }, _) => write!(f, " ({reason})")?,
            (_, Some(method)) => write!(f, " ({method})")?,
            (_, None) => {}
        }
        let meaning = match self.relation {
            NeighbouringRelation::AddRemove => "adding or removing",
            NeighbouringRelation::Remove => "removing",
            NeighbouringRelation::Add => "adding",
            NeighbouringRelation::ReplaceOne => "replacing",
            NeighbouringRelation::ZeroOut => "blanking",
        };
        write!(
            f,
            ". The guarantee compares data sets that differ in {meaning} {} ({} neighbours)",
            self.unit_of_privacy, self.relation
        )?;
        let public = if self.record_count_is_public { "is public" } else { "is protected as well" };
        write!(f, "; the number of records {public}. ")?;
        if self.events.is_empty() {
            f.write_str("Nothing was released.")?;
        } else {
            write!(f, "It accounts for: {}.", self.events.join("; "))?;
        }
        match list(self.epsilon.not_covered()) {
            Some(rest) => write!(f, " Not covered: {rest}.")?,
            None => f.write_str(" Nothing is excluded by the author of this statement.")?,
        }
        write!(f, " Ledger digest {}. Who sees what, and what is public: {THREAT_MODEL}.", self.ledger_digest)
    }
}

fn list(items: &[String]) -> Option<String> {
    match items {
        [] => None,
        [one] => Some(one.clone()),
        [first @ .., last] => Some(format!("{} and {last}", first.join(", "))),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DpEvent, GdpAccountant, NoiseMultiplier, RdpAccountant, SamplingRate};

    #[test]
    fn reads_as_a_paragraph_and_survives_json() {
        let mut ledger = Ledger::new(NeighbouringRelation::AddRemove);
        let queries = [NoiseMultiplier::new(1.0).unwrap(), NoiseMultiplier::new(10.0).unwrap()];
        ledger
            .record(&DpEvent::joint_gaussian(queries).poisson_sampled(SamplingRate::new(0.01).unwrap()), 1_000)
            .unwrap();
        let scope = Scope {
            unit_of_privacy: "one person's record".to_owned(),
            covered: vec!["the model".to_owned(), "the thresholds".to_owned()],
            not_covered: vec!["the choice of hyper-parameters".to_owned()],
            conditions: vec!["the scaling, which was fitted on the private records".to_owned()],
            n_records: Some(99_999),
        };
        let statement = Statement::new(&ledger, Delta::new(1e-5).unwrap(), scope).unwrap();
        insta::assert_snapshot!(statement.to_string(), @"The model and the thresholds are (epsilon, delta)-differentially private with epsilon at most 1.8475 (conditional) at delta 1e-5 (no smaller than 1.8474 for these mechanisms), given the scaling, which was fitted on the private records, by the PLD accountant (contour integral). The guarantee compares data sets that differ in adding or removing one person's record (add-remove neighbours); the number of records is protected as well. It accounts for: 1000 × Poisson-sampled (rate 0.01) joint Gaussian (noise multipliers 1, 10). Not covered: the scaling, which was fitted on the private records and the choice of hyper-parameters. Ledger digest 40ec4e2c78f9284c01c187c20f2abc4bb7d1244fa9ef28c501ec2fa4e8b30473. Who sees what, and what is public: docs/threat-model.md.");
        let json = serde_json::to_string(&statement).unwrap();
        assert_eq!(serde_json::from_str::<Statement>(&json).unwrap(), statement);
    }
    /// The first sentence of a statement about one Gaussian, μ = 1.
    fn first_sentence(delta: f64, n_records: Option<u64>) -> String {
        let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);
        ledger.record(&DpEvent::gaussian_at(1.0).unwrap(), 1).unwrap();
        let scope = Scope { n_records, ..Scope::of("one record", ["the mean"]) };
        let text = Statement::new(&ledger, Delta::new(delta).unwrap(), scope).unwrap().to_string();
        text.split(". ").next().unwrap().to_owned()
    }

    #[test]
    fn a_large_delta_is_in_the_first_sentence() {
        insta::assert_snapshot!(first_sentence(0.99, Some(1_000)), @"The mean is (epsilon, delta)-differentially private with epsilon at most 0.0000 (certified) at delta 9.9e-1, which is not below 1/n for n = 1000 and so permits that whole records are published, by the PLD accountant (closed form)");
        insta::assert_snapshot!(first_sentence(0.99, None), @"The mean is (epsilon, delta)-differentially private with epsilon at most 0.0000 (certified) at delta 9.9e-1, which is not below 1/n for any n from 2 on and so permits that whole records are published, by the PLD accountant (closed form)");
        // 1/49 times 49 is less than 1 in floating point.
        for (delta, n) in [(1e-3, 1_000), (1.0 / 49.0, 49), (1.0, 1), (1e-3, u64::MAX)] {
            assert!(first_sentence(delta, Some(n)).contains(&format!("not below 1/n for n = {n} ")), "{delta} {n}");
        }
        for (delta, n) in [(1e-3, Some(999)), (1e-3, None), (1e-9, None), (0.0, None), (0.0, Some(1)), (1.0, Some(0))] {
            assert!(!first_sentence(delta, n).contains("1/n"), "{delta} {n:?}");
        }
    }

    #[test]
    fn epsilon_is_that_of_the_ledger_itself() {
        let relation = NeighbouringRelation::AddRemove;
        let mut ledger = Ledger::new(relation);
        ledger.record(&DpEvent::gaussian_at(1.0).unwrap(), 8).unwrap();
        let (delta, scope) = (Delta::new(1e-5).unwrap(), Scope::of("one record", ["the sums"]));
        let by_hand = ledger.epsilon(delta).unwrap().epsilon;
        assert_eq!(Statement::new(&ledger, delta, scope.clone()).unwrap().epsilon.epsilon(), by_hand);
        // μ = √8: 17.0 at least, by every accountant.
        let by_rdp = Statement::by(RdpAccountant::new(relation), &ledger, delta, scope.clone()).unwrap();
        let by_gdp = Statement::by(GdpAccountant::new(relation), &ledger, delta, scope.clone()).unwrap();
        for statement in [by_rdp, by_gdp] {
            assert!(statement.epsilon.epsilon().get() > by_hand.get() * (1.0 - 1e-9));
        }
        let mut used = PldAccountant::new(relation);
        used.compose(&DpEvent::gaussian_at(50.0).unwrap(), 1).unwrap();
        insta::assert_snapshot!(Statement::by(used, &ledger, delta, scope.clone()).unwrap_err(), @"the PLD accountant composed something before: give a new one, into which the statement composes its ledger");
        let other = PldAccountant::new(NeighbouringRelation::ReplaceOne);
        insta::assert_snapshot!(Statement::by(other, &ledger, delta, scope).unwrap_err(), @"cannot combine add-remove with replace-one neighbours: keep both under one relation");
    }
}
