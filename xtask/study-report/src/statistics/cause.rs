//! Which term of a decomposition sets two groups apart.

use std::fmt;

use fair_metrics::{Alternative, Estimate, MetricError, t_test};
use serde::{Deserialize, Serialize};

use super::SIGNIFICANCE;

/// One term of a decomposition of the excessive risk, run by run.
///
/// **Units.** Those of the loss, per whatever the caller's decomposition is about: for a
/// decomposition of single steps, per step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RiskTerm {
    /// Name of the term.
    pub name: String,
    /// What it adds to each group's excessive risk, with its sign, `[runs][groups]`.
    pub by_run: Vec<Vec<f64>>,
}

/// What sets two groups apart, as far as the runs can tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RiskCause {
    /// All terms together make one group's excessive risk the higher, and this one adds most to
    /// that: both significantly by one-sided t-tests over runs at [`SIGNIFICANCE`], the second in
    /// every comparison with another term and divided by the number of terms, since the runs choose
    /// which of them it is.
    Term {
        /// Its name.
        name: String,
        /// The term for the first group less that for the second, mean over runs.
        difference: Estimate,
        /// The same of all terms together. It may be the smaller of the two: terms have signs.
        of: Estimate,
    },
    /// The risk can be split in several ways, and these terms, one of each split, add most to it:
    /// no split tells what sets the groups apart.
    Disputed(Vec<String>),
    /// The terms do not add up to such a difference, or none is so far ahead of the others, or
    /// there are fewer than two runs.
    Unclear,
}

impl RiskCause {
    /// Compares the terms of every split of the same risk: a cause is the same term in all.
    ///
    /// # Errors
    /// As [`Self::among`].
    pub(super) fn in_every(
        splits: &[Vec<RiskTerm>],
        n_groups: usize,
        pair: (usize, usize),
    ) -> Result<Self, MetricError> {
        let causes = splits.iter().map(|terms| Self::among(terms, n_groups, pair)).collect::<Result<Vec<_>, _>>()?;
        let names: Option<Vec<&str>> = causes.iter().map(Self::name).collect();
        Ok(match (names, causes.first()) {
            (Some(names), Some(first)) if names.iter().all(|name| *name == names[0]) => first.clone(),
            (Some(names), Some(_)) => Self::Disputed(names.into_iter().map(str::to_owned).collect()),
            _ => Self::Unclear,
        })
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Term { name, .. } => Some(name),
            Self::Disputed(_) | Self::Unclear => None,
        }
    }

    /// Compares the terms for the groups `higher` and `lower`, by their positions.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if terms differ in their runs or a run does not have
    /// `n_groups` groups; [`MetricError::NotFinite`].
    fn among(terms: &[RiskTerm], n_groups: usize, (higher, lower): (usize, usize)) -> Result<Self, MetricError> {
        let n_runs = terms.first().map_or(0, |term| term.by_run.len());
        let mut by_term = Vec::with_capacity(terms.len());
        for term in terms {
            check_len("by_run", term.by_run.len(), "runs of the first term", n_runs)?;
            for groups in &term.by_run {
                check_len("a run's groups", groups.len(), "groups", n_groups)?;
            }
            by_term.push(term.by_run.iter().map(|groups| groups[higher] - groups[lower]).collect::<Vec<f64>>());
        }
        let estimates = by_term.iter().map(|values| estimate(values)).collect::<Result<Vec<_>, _>>()?;
        let mean = |index: usize| estimates[index].mean.unwrap_or(0.0);
        let Some(largest) = (0..terms.len()).max_by(|&a, &b| mean(a).total_cmp(&mean(b))) else {
            return Ok(Self::Unclear);
        };
        let total: Vec<f64> = (0..n_runs).map(|run| by_term.iter().map(|values| values[run]).sum()).collect();
        let rivals = by_term.iter().enumerate().filter(|(index, _)| *index != largest).map(|(_, values)| values);
        let leads = rivals.map(|rival| by_term[largest].iter().zip(rival).map(|(a, b)| a - b).collect());
        let tests = leads.map(|lead| (lead, terms.len())).chain([(total.clone(), 1)]);
        for (positive, n_choices) in tests {
            if !is_positive(&estimate(&positive)?, n_choices) {
                return Ok(Self::Unclear);
            }
        }
        let name = terms[largest].name.clone();
        Ok(Self::Term { name, difference: estimates[largest], of: estimate(&total)? })
    }
}

/// Whether a value that was chosen among `n_choices` is significantly above 0.
fn is_positive(estimate: &Estimate, n_choices: usize) -> bool {
    t_test(estimate, Alternative::Greater).is_some_and(|test| test.p_value * n_choices as f64 <= SIGNIFICANCE)
}

fn estimate(by_run: &[f64]) -> Result<Estimate, MetricError> {
    Estimate::over_seeds(&by_run.iter().copied().map(Some).collect::<Vec<_>>())
}

impl fmt::Display for RiskCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Term { name, difference, of } => {
                write!(f, "{name}, {} of {}", scientific(difference), scientific(of))
            }
            Self::Disputed(names) => {
                write!(f, "{} in the one decomposition and {} in the other", names[0], names[1..].join(" or "))?;
                f.write_str(", so that neither explains it")
            }
            Self::Unclear => f.write_str("none stands out"),
        }
    }
}

fn scientific(estimate: &Estimate) -> String {
    match (estimate.mean, estimate.standard_error) {
        (Some(mean), Some(error)) => format!("{mean:.2e} ± {error:.0e}"),
        (Some(mean), None) => format!("{mean:.2e}"),
        (None, _) => "undefined".to_owned(),
    }
}

pub(super) fn check_len(
    name: &'static str,
    found: usize,
    reference: &'static str,
    expected: usize,
) -> Result<(), MetricError> {
    if found == expected {
        Ok(())
    } else {
        Err(MetricError::LengthMismatch { parameter: name, length: found, reference, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(name: &str, by_run: &[[f64; 2]]) -> RiskTerm {
        RiskTerm { name: name.to_owned(), by_run: by_run.iter().map(|groups| groups.to_vec()).collect() }
    }

    /// Differences 4, 5, 6 of one term, −1 of another: 5 of 4, both ± 1/√3. It is ahead by 5, 6, 7.
    /// The other way round the second term is ahead by as much, but of a total of −4.
    #[test]
    fn by_hand() {
        let terms =
            [term("a", &[[5.0, 1.0], [6.0, 1.0], [7.0, 1.0]]), term("b", &[[0.0, 1.0], [1.0, 2.0], [0.5, 1.5]])];
        let RiskCause::Term { name, difference, of } = RiskCause::among(&terms, 2, (0, 1)).unwrap() else {
            panic!("a term")
        };
        assert_eq!((name.as_str(), difference.mean, of.mean), ("a", Some(5.0), Some(4.0)));
        assert_eq!(RiskCause::among(&terms, 2, (0, 1)).unwrap().to_string(), "a, 5.00e0 ± 6e-1 of 4.00e0 ± 6e-1");
        assert_eq!(RiskCause::among(&terms, 2, (1, 0)).unwrap().to_string(), "none stands out");
    }

    #[test]
    fn what_the_runs_cannot_tell_is_unclear() {
        let unclear = |terms: &[RiskTerm]| RiskCause::among(terms, 2, (0, 1)).unwrap() == RiskCause::Unclear;
        let clear = term("a", &[[5.0, 0.0], [5.5, 0.0]]);
        assert!(!unclear(std::slice::from_ref(&clear)));
        // As large, but ahead by 4 and −3 only.
        assert!(unclear(&[clear.clone(), term("b", &[[1.0, 0.0], [8.5, 0.0]])]));
        // Both push the other way.
        assert!(unclear(&[term("a", &[[0.0, 1.0], [0.0, 1.0]])]));
        assert!(unclear(&[term("a", &[[5.0, 0.0]])]));
        assert!(unclear(&[]));
    }

    /// What is called magnitude in one split is called direction in the other.
    #[test]
    fn splits_that_disagree_name_no_cause() {
        let split = |a: f64, b: f64| vec![term("a", &[[a, 0.0], [a, 0.1]]), term("b", &[[b, 0.0], [b, 0.1]])];
        let of = |splits: &[Vec<RiskTerm>]| RiskCause::in_every(splits, 2, (0, 1)).unwrap();
        assert!(matches!(of(&[split(9.0, 1.0), split(8.0, 2.0)]), RiskCause::Term { name, .. } if name == "a"));
        assert_eq!(
            of(&[split(9.0, 1.0), split(1.0, 9.0)]).to_string(),
            "a in the one decomposition and b in the other, so that neither explains it"
        );
        assert_eq!(of(&[split(9.0, 1.0), split(5.0, 5.0)]), RiskCause::Unclear);
        assert_eq!(of(&[]), RiskCause::Unclear);
    }

    #[test]
    fn lists_must_match() {
        let a = term("a", &[[5.0, 0.0], [5.5, 0.0]]);
        assert!(RiskCause::among(&[a.clone(), term("b", &[[1.0, 0.0]])], 2, (0, 1)).is_err());
        assert!(RiskCause::among(&[a], 3, (0, 1)).is_err());
    }
}
