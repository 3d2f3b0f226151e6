//! Lower bounds on the difference between two groups' excessive risks, beside the difference
//! itself.
//!
//! Esipova 2023 draws the bound in the proof of Tran 2021, Theorem 3, and gives no formula, only
//! that it rests on `⟨x, y⟩ ≥ −‖x‖‖y‖`. The one here follows from that inequality, with `A =
//! ‖g_Da‖`, `B = ‖g_Db‖`, `g_D = p_a g_Da + p_b g_Db` and `p_a + p_b = 1`:
//!
//! - first order: `⟨g_Da − g_Db, g_D⟩ ≥ p_a A² − |p_b − p_a| AB − p_b B²` and `−⟨g_Da − g_Db, ḡ_D⟩
//!   ≥ −C(A + B)`;
//! - second order, for a convex loss and `η ≤ 1/λ`: `−η/2 (E‖ḡ_B‖² + E‖g_B‖²)`, with `E‖ḡ_B‖² ≤ C²`
//!   and, leaving out the variance over batches, `E‖g_B‖² ≈ ‖g_D‖² ≤ p_a² A² + 2 p_a p_b AB + p_b²
//!   B²`.
//!
//! With `B ≤ A` and `C ≤ A` the sum of these is at least `ηA (A(p_a − p_a²/2) − 5C/2 − B(|p_b −
//! p_a| + p_a p_b + p_b + p_b²/2))`, and `|p_b − p_a| + p_a p_b ≤ 1`.

use serde::{Deserialize, Serialize};

use super::decomposition::{GroupTerms, StepDecomposition};

/// `R_a − R_b` of one step and what theory says about it.
///
/// **Units.** Nats per step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RiskGapBounds {
    /// `R_a^clip − R_b^clip`.
    pub clip_gap: f64,
    /// Its lower bound from the groups' gradient norms alone, in the way of Tran 2021, Theorem 3:
    /// `η‖g_Da‖ (‖g_Da‖(p_a − p_a²/2) − 5C/2 − ‖g_Db‖(1 + p_b + p_b²/2))`, `p` the share of a group
    /// and `C` the bound on what a record adds. `None` unless the two groups hold all records.
    pub tran: Option<f64>,
    /// `R_a^dir − R_b^dir`.
    pub direction_gap: f64,
    /// Its lower bound by Esipova 2023, Proposition 3 (Eq. 12).
    pub proposition_3: f64,
    /// The bound before the condition on the learning rate is put in (Eq. 11), with the groups' own
    /// largest eigenvalues.
    pub with_eigenvalues: Option<f64>,
    /// `R_a^dir* − R_b^dir*`.
    pub direction_star_gap: f64,
    /// Its lower bound by Proposition 3*. The paper prints `E‖g_B‖` in its last term; the proof
    /// gives `E‖g_B‖²`, as here.
    pub proposition_3_star: f64,
}

impl StepDecomposition {
    /// Gaps between groups `a` and `b`, and their bounds; `None` unless both have records.
    ///
    /// The bounds of Propositions 3 and 3* hold for convex losses where [`Self::rate_condition`]
    /// does. Tran's moreover needs `‖g_Da‖` to be at least `C` and `‖g_Db‖`, and takes `‖g_D‖²` for
    /// `E‖g_B‖²`: beyond a full batch it is an approximation.
    pub fn risk_gap_bounds(&self, a: usize, b: usize) -> Option<RiskGapBounds> {
        let of = |group: usize| self.groups.get(group).and_then(Option::as_ref);
        let (a, b) = (of(a)?, of(b)?);
        let rate = self.learning_rate;
        let gap = |value: fn(&GroupTerms) -> f64| value(a) - value(b);
        let slopes = gap(|group| group.direction_slope.mean);
        let star_slopes = gap(|group| group.direction_star_slope.mean);
        let eigenvalues = a.largest_eigenvalue.zip(b.largest_eigenvalue).map(|(a, b)| a.value + b.value);
        let tran = || {
            let bracket = a.gradient_norm * (a.share - a.share * a.share / 2.0)
                - 2.5 * self.bound
                - b.gradient_norm * (1.0 + b.share + b.share * b.share / 2.0);
            rate * a.gradient_norm * bracket
        };
        let hold_all_records = (a.share + b.share - 1.0).abs() < 1e-9;
        Some(RiskGapBounds {
            clip_gap: gap(|group| group.clip.mean),
            tran: hold_all_records.then(tran),
            direction_gap: gap(|group| group.direction.mean),
            proposition_3: rate * (slopes - self.clipped_sq_norm.mean),
            with_eigenvalues: eigenvalues
                .map(|sum| rate * slopes - rate * rate / 2.0 * sum * self.clipped_sq_norm.mean),
            direction_star_gap: gap(|group| group.direction_star.mean),
            proposition_3_star: rate * (star_slopes - self.plain_sq_norm.mean),
        })
    }
}
