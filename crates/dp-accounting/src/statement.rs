//! The paragraph an auditor needs.

use serde::{Deserialize, Serialize};

use crate::{
    Accountant, AccountingError, Certainty, Delta, Epsilon, Ledger, Mark, MarkedEpsilon, Method, NeighbouringRelation,
    Rounding, decimal,
};

/// Where every statement points to.
const THREAT_MODEL: &str = "docs/threat-model.md";

/// What was protected, from whom, and how well, complete enough to be checked.
///
/// **Example**
/// ```
/// use dp_accounting::{Delta, DpEvent, Ledger, NeighbouringRelation, NoiseMultiplier, RdpAccountant, SamplingRate, Scope, Statement};
/// let mut ledger = Ledger::new(NeighbouringRelation::AddRemove);
/// let step = DpEvent::gaussian(NoiseMultiplier::new(1.0)?).poisson_sampled(SamplingRate::new(0.01)?);
/// ledger.record(&step, 1_000)?;
/// let mut accountant = RdpAccountant::new(NeighbouringRelation::AddRemove);
/// ledger.compose_into(&mut accountant)?;
/// let scope = Scope::of("one person's record", ["the trained model"]);
/// let statement = Statement::new(&ledger, &accountant, Delta::new(1e-5)?, scope)?;
/// assert!(statement.to_string().starts_with("The trained model is (epsilon, delta)-differentially private with epsilon at most 2.10"));
/// assert!(statement.to_string().contains("(certified)"));
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Which data sets count as neighbours.
    pub relation: NeighbouringRelation,
    /// Whether the number of records may be published.
    pub record_count_is_public: bool,
    /// What one record is.
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
}

/// The part of a statement that only its author knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// What one record is, for example `one person's record`.
    pub unit_of_privacy: String,
    /// What is released under the guarantee.
    pub covered: Vec<String>,
    /// What else was derived from the data and is not under the guarantee, for example `the
    /// hyper-parameter search`.
    pub not_covered: Vec<String>,
    /// What the guarantee is conditional on: constants that depend on the records and shape what is
    /// released, for example `the scaling, which was fitted on the private records`. With any of
    /// these, ε is conditional.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<String>,
}

impl Scope {
    /// What is covered for a unit of privacy, without exceptions or conditions.
    pub fn of(unit_of_privacy: impl Into<String>, covered: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            unit_of_privacy: unit_of_privacy.into(),
            covered: covered.into_iter().map(Into::into).collect(),
            not_covered: Vec::new(),
            given: Vec::new(),
        }
    }
}

impl Statement {
    /// States what `accountant`, into which the whole ledger was composed, says of it.
    ///
    /// # Errors
    /// [`AccountingError::LedgerTampered`] when the ledger does not verify,
    /// [`AccountingError::RelationMismatch`] when it was kept under another relation, and the
    /// accountant's own.
    pub fn new(
        ledger: &Ledger,
        accountant: &impl Accountant,
        delta: Delta,
        scope: Scope,
    ) -> Result<Self, AccountingError> {
        ledger.verify()?;
        let relation = ledger.relation();
        if relation != accountant.relation() {
            return Err(AccountingError::RelationMismatch { left: relation, right: accountant.relation() });
        }
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
        })
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
        if let Some(lower) = self.epsilon_lower.filter(|lower| lower.is_finite() && lower.get() > 0.0) {
            write!(f, " (no smaller than {} for these mechanisms)", decimal(lower.get(), 4, Rounding::Down))?;
        }
        if let Some(given) = list(epsilon.given()) {
            write!(f, ", given {given}")?;
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
    use crate::{DpEvent, NoiseMultiplier, PldAccountant, SamplingRate};

    #[test]
    fn reads_as_a_paragraph_and_survives_json() {
        let mut ledger = Ledger::new(NeighbouringRelation::AddRemove);
        let queries = [NoiseMultiplier::new(1.0).unwrap(), NoiseMultiplier::new(10.0).unwrap()];
        ledger
            .record(&DpEvent::joint_gaussian(queries).poisson_sampled(SamplingRate::new(0.01).unwrap()), 1_000)
            .unwrap();
        let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
        ledger.compose_into(&mut accountant).unwrap();
        let scope = Scope {
            unit_of_privacy: "one person's record".to_owned(),
            covered: vec!["the model".to_owned(), "the thresholds".to_owned()],
            not_covered: vec!["the choice of hyper-parameters".to_owned()],
            given: vec!["the scaling, which was fitted on the private records".to_owned()],
        };
        let statement = Statement::new(&ledger, &accountant, Delta::new(1e-5).unwrap(), scope).unwrap();
        insta::assert_snapshot!(statement.to_string(), @"The model and the thresholds are (epsilon, delta)-differentially private with epsilon at most 1.8475 (conditional) at delta 1e-5 (no smaller than 1.8474 for these mechanisms), given the scaling, which was fitted on the private records, by the PLD accountant (contour integral). The guarantee compares data sets that differ in adding or removing one person's record (add-remove neighbours); the number of records is protected as well. It accounts for: 1000 × Poisson-sampled (rate 0.01) joint Gaussian (noise multipliers 1, 10). Not covered: the scaling, which was fitted on the private records and the choice of hyper-parameters. Ledger digest 40ec4e2c78f9284c01c187c20f2abc4bb7d1244fa9ef28c501ec2fa4e8b30473. Who sees what, and what is public: docs/threat-model.md.");
        let json = serde_json::to_string(&statement).unwrap();
        assert_eq!(serde_json::from_str::<Statement>(&json).unwrap(), statement);
    }
}
