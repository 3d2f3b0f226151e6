//! An ε with what it is worth.

use serde::{Deserialize, Serialize};

use crate::{AccountingError, Certainty, Epsilon, EpsilonBound, Rounding, Scope, decimal};

/// How far an ε may be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// A proven upper bound, with everything that depends on the records in the ledger.
    Certified,
    /// A proven upper bound given something that depends on the records, is named, and is not in
    /// the ledger.
    Conditional,
    /// A number without a proof.
    Nominal,
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Certified => "certified",
            Self::Conditional => "conditional",
            Self::Nominal => "nominal, not a guarantee",
        })
    }
}

/// An ε that cannot be printed without its [`Mark`].
///
/// `Display` writes both. ε is rounded up, to three decimals or to the precision of the format:
/// `2.414 (certified)`. A very small ε has an exponent: `4.20e-5 (certified)`. `{:#}` adds the
/// conditions. [`Epsilon`] itself has no `Display`, so this is the way to text. In JSON the fields
/// are `epsilon` (`null` for infinity), `mark`, `covers`, `not_covered`, and `given` where the mark
/// is conditional; everything in `given` is in `not_covered` as well.
///
/// **Example**
/// ```
/// use dp_accounting::{Accountant, Delta, DpEvent, Mark, MarkedEpsilon, NeighbouringRelation, NoiseMultiplier, RdpAccountant};
/// use dp_accounting::Scope;
/// let mut accountant = RdpAccountant::new(NeighbouringRelation::ZeroOut);
/// accountant.compose(&DpEvent::gaussian(NoiseMultiplier::new(2.0)?), 1)?;
/// let bound = accountant.epsilon(Delta::new(1e-5)?)?;
/// let mut scope = Scope::of("one record", ["the mean"]);
/// assert_eq!(MarkedEpsilon::new(&bound, &scope).to_string(), "2.166 (certified)");
/// scope.conditions.push("the scaling, which was fitted on the records".to_owned());
/// let marked = MarkedEpsilon::new(&bound, &scope);
/// assert_eq!(marked.mark(), Mark::Conditional);
/// assert_eq!(format!("{marked:#.1}"), "2.2 (conditional: given the scaling, which was fitted on the records)");
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked", into = "Unchecked")]
pub struct MarkedEpsilon {
    epsilon: Epsilon,
    mark: Mark,
    covers: Vec<String>,
    not_covered: Vec<String>,
    conditions: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Unchecked {
    epsilon: Epsilon,
    mark: Mark,
    covers: Vec<String>,
    not_covered: Vec<String>,
    #[serde(default, rename = "given", skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<String>,
}

impl MarkedEpsilon {
    /// Marks an accountant's answer for this scope: nominal if it is an estimate or infinite, else
    /// conditional if the scope names conditions, else certified.
    pub fn new(bound: &EpsilonBound, scope: &Scope) -> Self {
        let mark = match bound.certainty {
            Certainty::Estimate => Mark::Nominal,
            Certainty::Bound | Certainty::FallBack { .. } if !bound.epsilon.is_finite() => Mark::Nominal,
            Certainty::Bound | Certainty::FallBack { .. } if scope.conditions.is_empty() => Mark::Certified,
            Certainty::Bound | Certainty::FallBack { .. } => Mark::Conditional,
        };
        Self {
            epsilon: bound.epsilon,
            mark,
            covers: scope.covered.clone(),
            not_covered: scope.conditions.iter().chain(&scope.not_covered).cloned().collect(),
            conditions: if mark == Mark::Conditional { scope.conditions.clone() } else { Vec::new() },
        }
    }

    /// An ε without a proof, and what keeps it from having one.
    pub fn nominal(epsilon: Epsilon, not_covered: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let not_covered = not_covered.into_iter().map(Into::into).collect();
        Self { epsilon, mark: Mark::Nominal, covers: Vec::new(), not_covered, conditions: Vec::new() }
    }

    /// The number, to compute with.
    pub const fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// The mark.
    pub const fn mark(&self) -> Mark {
        self.mark
    }

    /// The releases that it covers.
    pub fn covers(&self) -> &[String] {
        &self.covers
    }

    /// Everything else that depends on the records, or could.
    pub fn not_covered(&self) -> &[String] {
        &self.not_covered
    }

    /// The conditions of a conditional ε; empty for other marks.
    pub fn conditions(&self) -> &[String] {
        &self.conditions
    }
}

impl TryFrom<Unchecked> for MarkedEpsilon {
    type Error = AccountingError;

    fn try_from(raw: Unchecked) -> Result<Self, AccountingError> {
        let Unchecked { epsilon, mark, covers, not_covered, conditions } = raw;
        let holds = match mark {
            Mark::Certified => epsilon.is_finite() && conditions.is_empty(),
            Mark::Conditional => epsilon.is_finite() && !conditions.is_empty(),
            Mark::Nominal => conditions.is_empty(),
        };
        if holds && conditions.iter().all(|condition| not_covered.contains(condition)) {
            Ok(Self { epsilon, mark, covers, not_covered, conditions })
        } else {
            Err(AccountingError::InconsistentMark { mark, epsilon: epsilon.get(), n_given: conditions.len() })
        }
    }
}

impl From<MarkedEpsilon> for Unchecked {
    fn from(marked: MarkedEpsilon) -> Self {
        let MarkedEpsilon { epsilon, mark, covers, not_covered, conditions } = marked;
        Self { epsilon, mark, covers, not_covered, conditions }
    }
}

impl std::fmt::Display for MarkedEpsilon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = decimal::bound(self.epsilon.get(), f.precision().unwrap_or(3), Rounding::Up);
        write!(f, "{digits} ({}", self.mark)?;
        if f.alternate() && !self.conditions.is_empty() {
            write!(f, ": given {}", self.conditions.join("; "))?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeltaBound;

    fn bound(epsilon: f64, certainty: Certainty) -> EpsilonBound {
        EpsilonBound { epsilon: Epsilon::new(epsilon).unwrap(), lower: None, certainty, order: None, method: None }
    }

    fn scope(conditions: &[&str]) -> Scope {
        Scope {
            conditions: conditions.iter().map(ToString::to_string).collect(),
            not_covered: vec!["running time".to_owned()],
            ..Scope::of("one record", ["the model"])
        }
    }

    #[test]
    fn marks_follow_from_proof_and_conditions() {
        let of = |epsilon, certainty, conditions: &[&str]| {
            format!("{:#}", MarkedEpsilon::new(&bound(epsilon, certainty), &scope(conditions)))
        };
        assert_eq!(of(1.5, Certainty::Bound, &[]), "1.500 (certified)");
        assert_eq!(of(1.500_1, Certainty::Bound, &["the bins"]), "1.501 (conditional: given the bins)");
        let fall_back = Certainty::FallBack { reason: "slow".to_owned() };
        assert_eq!(of(1.5, fall_back, &[]), "1.500 (certified)");
        assert_eq!(of(1.5, Certainty::Estimate, &["the bins"]), "1.500 (nominal, not a guarantee)");
        assert_eq!(of(4.199_1e-5, Certainty::Bound, &[]), "4.20e-5 (certified)");
        assert_eq!(of(f64::INFINITY, Certainty::Bound, &[]), "∞ (nominal, not a guarantee)");
        let of_delta =
            |delta, certainty| DeltaBound { delta, lower: None, certainty, order: None, method: None }.mark();
        assert_eq!(of_delta(1e-5, Certainty::Bound), Mark::Certified);
        assert_eq!(of_delta(1e-5, Certainty::FallBack { reason: "slow".to_owned() }), Mark::Certified);
        assert_eq!(of_delta(1e-5, Certainty::Estimate), Mark::Nominal);
        assert_eq!(of_delta(1.0, Certainty::Bound), Mark::Nominal);
        let nominal = MarkedEpsilon::nominal(Epsilon::new(2.0).unwrap(), ["how records act on each other"]);
        assert_eq!(format!("{nominal:.1}"), "2.0 (nominal, not a guarantee)");
    }

    #[test]
    fn json_has_mark_covers_and_not_covered_and_is_checked() {
        let marked = MarkedEpsilon::new(&bound(1.5, Certainty::Bound), &scope(&["the bins"]));
        let json = serde_json::to_string(&marked).unwrap();
        assert_eq!(
            json,
            r#"{"epsilon":1.5,"mark":"conditional","covers":["the model"],"not_covered":["the bins","running time"],"given":["the bins"]}"#
        );
        assert_eq!(serde_json::from_str::<MarkedEpsilon>(&json).unwrap(), marked);
        let error = |json: &str| serde_json::from_str::<MarkedEpsilon>(json).unwrap_err().to_string();
        insta::assert_snapshot!(error(&json.replace("conditional", "certified")), @"an epsilon of 1.5 given 1 things cannot be certified");
        insta::assert_snapshot!(error(r#"{"epsilon":null,"mark":"certified","covers":[],"not_covered":[]}"#), @"an epsilon of inf given 0 things cannot be certified");
    }
}
