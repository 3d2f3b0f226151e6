//! Lower bounds on the difference between two groups' excessive risks, beside the difference itself.

use serde::{Deserialize, Serialize};

use super::decomposition::{GroupTerms, StepDecomposition};

/// `R_a − R_b` of one step and what theory says about it.
///
/// **Units.** Nats per step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RiskGapBounds {
    /// `R_a^clip − R_b^clip`.
    pub clip_gap: f64,
    /// Its lower bound by Tran 2021, Theorem 3: `η‖g_Da‖ (‖g_Da‖(p_a − p_a²/2) − 5C/2 − ‖g_Db‖(1 + p_b + p_b²/2))`, `p` the share of a group and
    /// `C` the bound on what a record adds.
    pub tran: f64,
    /// `R_a^dir − R_b^dir`.
    pub direction_gap: f64,
    /// Its lower bound by Esipova 2023, Proposition 3 (Eq. 12).
    pub proposition_3: f64,
    /// The bound before the condition on the learning rate is put in (Eq. 11), with the groups' own largest eigenvalues.
    pub with_eigenvalues: Option<f64>,
    /// `R_a^dir* − R_b^dir*`.
    pub direction_star_gap: f64,
    /// Its lower bound by Proposition 3*. The paper prints `E‖g_B‖` in its last term; the proof gives `E‖g_B‖²`, as here.
    pub proposition_3_star: f64,
}

impl StepDecomposition {
    /// Gaps between groups `a` and `b`, and their bounds; `None` unless both have records.
    ///
    /// The bounds of Propositions 3 and 3* hold for convex losses where [`Self::rate_condition`] does; Tran's moreover where
    /// `‖g_Da‖` is at least `C` and `‖g_Db‖`.
    pub fn risk_gap_bounds(&self, a: usize, b: usize) -> Option<RiskGapBounds> {
        let of = |group: usize| self.groups.get(group).and_then(Option::as_ref);
        let (a, b) = (of(a)?, of(b)?);
        let rate = self.learning_rate;
        let gap = |value: fn(&GroupTerms) -> f64| value(a) - value(b);
        let slopes = gap(|group| group.direction_slope.mean);
        let star_slopes = gap(|group| group.direction_star_slope.mean);
        let eigenvalues = a.largest_eigenvalue.zip(b.largest_eigenvalue).map(|(a, b)| a.value + b.value);
        let tran = a.gradient_norm * (a.share - a.share * a.share / 2.0)
            - 2.5 * self.bound
            - b.gradient_norm * (1.0 + b.share + b.share * b.share / 2.0);
        Some(RiskGapBounds {
            clip_gap: gap(|group| group.clip.mean),
            tran: rate * a.gradient_norm * tran,
            direction_gap: gap(|group| group.direction.mean),
            proposition_3: rate * (slopes - self.clipped_sq_norm.mean),
            with_eigenvalues: eigenvalues
                .map(|sum| rate * slopes - rate * rate / 2.0 * sum * self.clipped_sq_norm.mean),
            direction_star_gap: gap(|group| group.direction_star.mean),
            proposition_3_star: rate * (star_slopes - self.plain_sq_norm.mean),
        })
    }
}
