//! Whether a claim holds: several comparisons that all have to come out as claimed.

use fair_metrics::Compared;
use serde::{Deserialize, Serialize};

/// What a test says about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Significantly as claimed.
    Confirmed,
    /// Significantly otherwise.
    Contradicted,
    /// Neither.
    Undecided,
}

/// A claim, tested.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TestedClaim {
    /// P-value of the claim.
    pub p_claim: f64,
    /// P-value of its contradiction.
    pub p_contradiction: f64,
    /// The least `p_claim` that this number of seeds can give.
    pub least_p_claim: f64,
    /// The least `p_contradiction`.
    pub least_p_contradiction: f64,
}

impl TestedClaim {
    /// Tests the claim that in *every* comparison the smaller is smaller.
    ///
    /// - The claim's p-value is the largest of the comparisons'. No correction is due: a claim of
    ///   several parts is false as soon as one part is, and that part's test alone keeps the level
    ///   (an intersection–union test).
    /// - One part that is significantly otherwise contradicts the claim. Here a correction is due,
    ///   for there are as many chances as parts: the smallest p-value times their number
    ///   (Bonferroni).
    ///
    /// Two equal methods are then called better or worse with probability α each; by the sign of a
    /// mean it would be one half. P-values are those of this claim alone; a report of many claims
    /// adjusts them by [`holm`](fair_metrics::holm), or says so.
    ///
    /// # Edge cases
    /// Without comparisons nothing is known: p-values of 1.
    ///
    /// # Source
    /// Berger 1982; Bonferroni.
    pub fn new(comparisons: &[Compared]) -> Self {
        let largest = |of: fn(&Compared) -> f64| comparisons.iter().map(of).fold(0.0, f64::max);
        let corrected = |of: fn(&Compared) -> f64| {
            (comparisons.iter().map(of).fold(1.0, f64::min) * comparisons.len() as f64).min(1.0)
        };
        if comparisons.is_empty() {
            return Self { p_claim: 1.0, p_contradiction: 1.0, least_p_claim: 1.0, least_p_contradiction: 1.0 };
        }
        Self {
            p_claim: largest(|compared| compared.p_smaller),
            p_contradiction: corrected(|compared| compared.p_larger),
            least_p_claim: largest(|compared| compared.least_p_smaller),
            least_p_contradiction: corrected(|compared| compared.least_p_larger),
        }
    }

    /// The answer at this level of significance.
    pub fn direction(&self, significance: f64) -> Direction {
        if self.p_claim <= significance {
            Direction::Confirmed
        } else if self.p_contradiction <= significance {
            Direction::Contradicted
        } else {
            Direction::Undecided
        }
    }
}

#[cfg(test)]
mod tests {
    use fair_metrics::Estimate;

    use super::*;

    fn compared(p_smaller: f64, p_larger: f64) -> Compared {
        let difference = Estimate { mean: Some(0.0), standard_error: Some(1.0), n: 10, n_undefined: 0 };
        Compared { difference, is_chosen: false, p_smaller, p_larger, least_p_smaller: 0.001, least_p_larger: 0.001 }
    }

    #[test]
    fn every_part_must_hold_and_one_may_contradict() {
        let of = |parts: &[Compared]| TestedClaim::new(parts).direction(0.05);
        assert_eq!(of(&[compared(0.04, 0.97), compared(0.05, 0.96)]), Direction::Confirmed);
        assert_eq!(of(&[compared(0.04, 0.97), compared(0.06, 0.95)]), Direction::Undecided);
        // Three chances: 0.02 × 3 = 0.06, 0.016 × 3 = 0.048.
        assert_eq!(of(&[compared(0.04, 0.97), compared(0.9, 0.02), compared(0.5, 0.5)]), Direction::Undecided);
        assert_eq!(of(&[compared(0.04, 0.97), compared(0.9, 0.016), compared(0.5, 0.5)]), Direction::Contradicted);
        assert_eq!(of(&[]), Direction::Undecided);
    }
}
