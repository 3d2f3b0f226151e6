//! Xu's test of equal privacy cost.

use serde::{Deserialize, Serialize};

use crate::error::check_finite;
use crate::gap::{PairGap, gaps_over_seeds, pairwise_gaps};
use crate::{Alternative, Estimate, MetricError, t_test};

/// Whether privacy costs every group about the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EqualCost {
    /// Largest difference accepted, τ.
    pub tolerance: f64,
    /// `Some(false)` if a pair exceeds the tolerance, `Some(true)` if every pair is defined and
    /// within it, else `None`.
    pub holds: Option<bool>,
    /// The difference of every two groups.
    pub pairs: Vec<PairGap>,
}

impl EqualCost {
    /// The pairs that exceed the tolerance.
    pub fn violations(&self) -> impl Iterator<Item = &PairGap> {
        self.pairs.iter().filter(|pair| exceeds(pair, self.tolerance))
    }
}

/// Tests equal cost: `|Δ_i − Δ_j| ≤ τ` for every two groups, `Δ` being the loss of accuracy by
/// privacy.
///
/// # Shapes
/// `costs` is `[groups]`, as [`privacy_cost`](crate::privacy_cost) returns it.
///
/// # Edge cases
/// One run's costs are a draw: this describes them, and [`equal_cost_over_runs`] is the test. With
/// fewer than two groups it holds. With an undefined group it is undefined, unless another pair
/// already fails.
///
/// # Errors
/// [`MetricError::NotFinite`] names the group; [`MetricError::InvalidParameter`] for a negative or
/// non-finite tolerance.
///
/// # Source
/// Xu 2021, section 6.1.4, with τ = 0.05.
///
/// # Example
/// ```
/// let test = fair_metrics::equal_cost(&[Some(0.074), Some(0.028)], 0.05)?; // Xu's DPSGD on Adult: 0.046 apart
/// assert_eq!(test.holds, Some(true));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn equal_cost(costs: &[Option<f64>], tolerance: f64) -> Result<EqualCost, MetricError> {
    check_finite("tolerance", &[tolerance])?;
    if tolerance < 0.0 {
        return Err(MetricError::invalid("tolerance", tolerance, "a finite number of at least 0"));
    }
    let pairs = pairwise_gaps(costs)?;
    let holds = if pairs.iter().any(|pair| exceeds(pair, tolerance)) {
        Some(false)
    } else if pairs.iter().all(|pair| pair.gap.is_some()) {
        Some(true)
    } else {
        None
    };
    Ok(EqualCost { tolerance, holds, pairs })
}

/// The answer of runs about equal cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EqualCostAnswer {
    /// The costs of every two groups differ by less than τ.
    Holds,
    /// The costs of two groups differ by more than τ.
    Fails,
    /// τ lies within the uncertainty.
    NotDecidable,
    /// A group is undefined, or there are fewer than two runs.
    Undefined,
}

/// Equal cost over runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EqualCostOverRuns {
    /// Largest difference accepted, τ.
    pub tolerance: f64,
    /// Whether the runs can tell.
    pub answer: EqualCostAnswer,
    /// P-value of "holds": the largest over pairs of two one-sided tests. `None` where undefined.
    pub p_holds: Option<f64>,
    /// P-value of "fails": the smallest over pairs, times their number and the two signs. `None`
    /// where undefined.
    pub p_fails: Option<f64>,
}

/// Tests equal cost over runs, against the uncertainty of the mean costs.
///
/// # Shapes
/// `costs` is `[runs][groups]`.
///
/// # Guarantee
/// At significance α, "holds" is said of a difference of τ or more with probability at most α,
/// "fails" of differences up to τ with probability at most α, for normal costs.
///
/// # Edge cases
/// With fewer than two groups it holds; without runs it is undefined.
///
/// # Errors
/// As [`equal_cost`]; [`MetricError::LengthMismatch`] if runs differ in their groups;
/// [`MetricError::InvalidParameter`] unless `0 < significance < 1`.
///
/// # Source
/// Xu 2021, section 6.1.4; two one-sided tests: Schuirmann 1987.
pub fn equal_cost_over_runs(
    costs: &[Vec<Option<f64>>],
    tolerance: f64,
    significance: f64,
) -> Result<EqualCostOverRuns, MetricError> {
    crate::interval::check_level(significance)
        .map_err(|_| MetricError::invalid("significance", significance, "a number above 0 and below 1"))?;
    equal_cost(&[], tolerance)?;
    let pairs = gaps_over_seeds(costs)?;
    let undefined = EqualCostOverRuns { tolerance, answer: EqualCostAnswer::Undefined, p_holds: None, p_fails: None };
    if costs.is_empty() {
        return Ok(undefined);
    }
    let n_pairs = pairs.len() as f64;
    let (mut p_holds, mut p_fails) = (0.0_f64, 1.0_f64);
    for pair in &pairs {
        if pair.difference.n_undefined > 0 {
            return Ok(undefined);
        }
        // The distance of the mean from τ, either way, in the units of its error; by symmetry the
        // sign of the mean is no matter.
        let Some(size) = pair.gap else { return Ok(undefined) };
        let beyond = Estimate { mean: Some(size - tolerance), ..pair.difference };
        let test = |alternative| t_test(&beyond, alternative).map(|test| test.p_value);
        let (Some(within), Some(above)) = (test(Alternative::Less), test(Alternative::Greater)) else {
            return Ok(undefined);
        };
        p_holds = p_holds.max(within);
        p_fails = p_fails.min((2.0 * n_pairs * above).min(1.0));
    }
    let answer = if p_holds <= significance {
        EqualCostAnswer::Holds
    } else if p_fails <= significance {
        EqualCostAnswer::Fails
    } else {
        EqualCostAnswer::NotDecidable
    };
    Ok(EqualCostOverRuns { tolerance, answer, p_holds: Some(p_holds), p_fails: Some(p_fails) })
}

fn exceeds(pair: &PairGap, tolerance: f64) -> bool {
    pair.gap.is_some_and(|gap| gap > tolerance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundary_is_within() {
        assert_eq!(equal_cost(&[Some(0.25), Some(0.5)], 0.25).unwrap().holds, Some(true));
        let test = equal_cost(&[Some(0.25), Some(0.5), Some(0.3)], 0.24).unwrap();
        assert_eq!(test.holds, Some(false));
        assert_eq!(test.violations().count(), 1);
    }

    #[test]
    fn an_undefined_group_never_passes() {
        assert_eq!(equal_cost(&[Some(0.1), None], 0.05).unwrap().holds, None);
        assert_eq!(equal_cost(&[Some(0.1), None, Some(0.9)], 0.05).unwrap().holds, Some(false));
        assert_eq!(equal_cost(&[], 0.05).unwrap().holds, Some(true));
    }

    #[test]
    fn a_tolerance_within_the_uncertainty_is_not_decidable() {
        let answer = |gaps: &[f64]| {
            let costs: Vec<Vec<Option<f64>>> = gaps.iter().map(|gap| vec![Some(0.1 - gap), Some(0.1)]).collect();
            equal_cost_over_runs(&costs, 0.05, 0.05).unwrap().answer
        };
        assert_eq!(answer(&[0.01, 0.02, 0.015, 0.01]), EqualCostAnswer::Holds);
        assert_eq!(answer(&[0.09, 0.08, 0.085, 0.09]), EqualCostAnswer::Fails);
        assert_eq!(answer(&[0.03, 0.06, 0.05, 0.08]), EqualCostAnswer::NotDecidable);
        assert_eq!(answer(&[0.03]), EqualCostAnswer::Undefined);
        let one_group = vec![vec![Some(0.1)]; 3];
        assert_eq!(equal_cost_over_runs(&one_group, 0.05, 0.05).unwrap().answer, EqualCostAnswer::Holds);
        let missing = vec![vec![Some(0.1), None], vec![Some(0.1), Some(0.1)]];
        assert_eq!(equal_cost_over_runs(&missing, 0.05, 0.05).unwrap().answer, EqualCostAnswer::Undefined);
    }

    #[test]
    fn tolerance_is_checked() {
        assert!(matches!(equal_cost(&[], -0.1), Err(MetricError::InvalidParameter { parameter: "tolerance", .. })));
        assert!(equal_cost(&[], f64::NAN).is_err());
    }
}
