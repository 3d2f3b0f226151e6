//! Answers that need no analysis: nothing composed, no privacy at all, δ of 0 or 1, ε of infinity,
//! and mechanisms that fail with a known probability.

use crate::composition::{Composition, Interval};
use crate::{Accountant, AccountingError, Certainty, Delta, DeltaBound, Epsilon, EpsilonBound};

/// An accountant whose whole state is a composition and settings.
pub(crate) trait OverComposition: Accountant + Sized {
    /// The composition.
    fn composition(&self) -> &Composition;

    /// The same settings with another composition.
    fn with_composition(&self, composition: Composition) -> Self;
}

/// ε where it follows from the composition alone.
pub(crate) fn epsilon(
    accountant: &impl OverComposition,
    delta: Delta,
) -> Result<Option<EpsilonBound>, AccountingError> {
    let composition = accountant.composition();
    let exactly = |value: Interval| {
        let (epsilon, lower) = (Epsilon::new(value.upper)?, Some(Epsilon::new(value.lower)?));
        Ok(Some(EpsilonBound { epsilon, lower, certainty: Certainty::Bound, order: None, method: None }))
    };
    if composition.parts().is_empty() || delta.get() >= 1.0 {
        return exactly(Interval::exactly(0.0));
    }
    if composition.is_non_private() {
        return exactly(Interval::exactly(f64::INFINITY));
    }
    if delta.get() <= 0.0 {
        return exactly(composition.pure_epsilon());
    }
    let (rest, log_survival) = composition.without_failures();
    if log_survival == 0.0 {
        return Ok(None);
    }
    let left = remaining_delta(delta.get(), log_survival);
    if left.upper < 0.0 {
        return exactly(Interval::exactly(f64::INFINITY));
    }
    let accountant = accountant.with_composition(rest);
    // The smaller δ bounds ε from above, the larger one from below.
    let lower = accountant.epsilon(Delta::new(left.upper)?)?.lower;
    if left.lower <= 0.0 {
        let upper = accountant.composition().pure_epsilon().upper;
        let lower = lower.map_or(0.0, Epsilon::get).min(upper);
        return exactly(Interval { lower, upper });
    }
    let bound = accountant.epsilon(Delta::new(left.lower)?)?;
    let lower = lower.map(|lower| if lower > bound.epsilon { bound.epsilon } else { lower });
    Ok(Some(EpsilonBound { lower, ..bound }))
}

/// An answer at δ > 0, which is at most the pure ε.
pub(crate) fn at_most_pure(composition: &Composition, bound: EpsilonBound) -> Result<EpsilonBound, AccountingError> {
    let pure = composition.pure_epsilon().upper;
    if bound.epsilon.get() <= pure {
        return Ok(bound);
    }
    Ok(EpsilonBound { epsilon: Epsilon::new(pure)?, certainty: Certainty::Bound, order: None, ..bound })
}

/// δ where it follows from the composition alone.
pub(crate) fn delta(
    accountant: &impl OverComposition,
    epsilon: Epsilon,
) -> Result<Option<DeltaBound>, AccountingError> {
    let composition = accountant.composition();
    let exactly = |value: Interval| {
        let (delta, lower) = (value.upper.min(1.0), Some(value.lower.clamp(0.0, 1.0)));
        Ok(Some(DeltaBound { delta, lower, certainty: Certainty::Bound, order: None, method: None }))
    };
    if composition.parts().is_empty() {
        return exactly(Interval::exactly(0.0));
    }
    if composition.is_non_private() {
        return exactly(Interval::exactly(1.0));
    }
    if epsilon.get() >= composition.pure_epsilon().upper && epsilon.is_finite() {
        return exactly(Interval::exactly(0.0));
    }
    let (rest, log_survival) = composition.without_failures();
    if !epsilon.is_finite() {
        return exactly(Interval::around(-libm::expm1(log_survival), 8.0 * f64::EPSILON));
    }
    if log_survival == 0.0 {
        return Ok(None);
    }
    let bound = accountant.with_composition(rest).delta(epsilon)?;
    // 1 - (1 - δ)·survival: increasing in δ, and its rounding is relative.
    let total = |delta: f64| -libm::expm1(log_survival + libm::log1p(-delta));
    let upper = total(bound.delta) * (1.0 + 8.0 * f64::EPSILON);
    let lower = bound.lower.map(|lower| total(lower) * (1.0 - 8.0 * f64::EPSILON));
    Ok(Some(DeltaBound { delta: upper.min(1.0), lower, ..bound }))
}

/// The δ that failures leave to the rest, `1 - (1 - δ)/survival`; below 0 where they alone exceed
/// δ.
fn remaining_delta(delta: f64, log_survival: f64) -> Interval {
    let left = -libm::expm1(libm::log1p(-delta) - log_survival);
    let error = 8.0 * f64::EPSILON * (delta - log_survival + left.abs());
    Interval { lower: left - error, upper: (left + error).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_leave_the_rest_of_delta() {
        // 1 - (1 - 0.3)/(1 - 0.1) = 2/9.
        let left = remaining_delta(0.3, f64::ln(0.9));
        assert!(left.lower <= 2.0 / 9.0 && left.upper >= 2.0 / 9.0 && left.upper - left.lower < 1e-14);
        assert!(remaining_delta(0.1, f64::ln(0.8)).upper < 0.0);
    }
}
