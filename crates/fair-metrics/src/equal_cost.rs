//! Xu's test of equal privacy cost.

use serde::{Deserialize, Serialize};

use crate::gap::{PairGap, pairwise_gaps};
use crate::{MetricError, error::check_finite};

/// The tolerance Xu uses.
pub const XU_TOLERANCE: f64 = 0.05;

/// Whether privacy costs every group about the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EqualCost {
    /// Largest difference accepted, τ.
    pub tolerance: f64,
    /// `Some(false)` if a pair exceeds the tolerance, `Some(true)` if every pair is defined and within it, else `None`.
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

/// Tests equal cost: `|Δ_i − Δ_j| ≤ τ` for every two groups, `Δ` being the loss of accuracy by privacy.
///
/// # Shapes
/// `costs` is `[groups]`, as [`privacy_cost`](crate::privacy_cost) returns it.
///
/// # Edge cases
/// With fewer than two groups it holds. With an undefined group it is undefined, unless another pair already fails.
///
/// # Errors
/// [`MetricError::NotFinite`] names the group; [`MetricError::OutOfRange`] for a negative or non-finite tolerance.
///
/// # Source
/// Xu 2021, section 6.1.4, with τ = 0.05 ([`XU_TOLERANCE`]).
///
/// # Example
/// ```
/// use fair_metrics::{XU_TOLERANCE, equal_cost};
///
/// let test = equal_cost(&[Some(0.074), Some(0.028)], XU_TOLERANCE)?; // Xu's DPSGD on Adult: 0.046 apart
/// assert_eq!(test.holds, Some(true));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn equal_cost(costs: &[Option<f64>], tolerance: f64) -> Result<EqualCost, MetricError> {
    check_finite("tolerance", &[tolerance])?;
    if tolerance < 0.0 {
        return Err(MetricError::OutOfRange {
            name: "tolerance",
            value: tolerance,
            accepted: "a finite number of at least 0",
        });
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
    fn tolerance_is_checked() {
        assert!(matches!(equal_cost(&[], -0.1), Err(MetricError::OutOfRange { name: "tolerance", .. })));
        assert!(equal_cost(&[], f64::NAN).is_err());
    }
}
