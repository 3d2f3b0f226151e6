//! Learning-rate schedules.

use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};

/// Step size over the steps of a run. It is fixed before training, hence costs no privacy.
///
/// **Example**
/// ```
/// use dp_train::LearningRate;
/// let cosine = LearningRate::Cosine { first: 0.5, last: 0.1 };
/// assert!((cosine.at(0, 100) - 0.5).abs() < 1e-15 && (cosine.at(50, 100) - 0.3).abs() < 1e-15);
/// let step = LearningRate::Step { first: 1.0, factor: 0.5, every: 10 };
/// assert_eq!((step.at(9, 100), step.at(10, 100), step.at(25, 100)), (1.0, 0.5, 0.25));
/// let inverse_sqrt = LearningRate::InverseSqrt { first: 0.2, hold: 16 };
/// assert_eq!((inverse_sqrt.at(15, 100), inverse_sqrt.at(63, 100)), (0.2, 0.1)); // √(16/64) = ½
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum LearningRate {
    /// The same at every step.
    Constant(f64),
    /// `1/√T` at every one of `T` steps (Xu 2021).
    InverseSqrtSteps,
    /// `first · factor^⌊t/every⌋` at the 0-based step `t`.
    Step {
        /// Rate of the first `every` steps.
        first: f64,
        /// Factor of each fall, above 0 and at most 1.
        factor: f64,
        /// Steps between two falls, at least 1.
        every: u64,
    },
    /// `last + (first − last)(1 + cos(πt/T))/2` at the 0-based step `t` of `T` (Loshchilov and
    /// Hutter 2017, without restarts).
    Cosine {
        /// Rate of the first step.
        first: f64,
        /// Where the curve ends, one step after the last; at least 0.
        last: f64,
    },
    /// `first` for `hold` steps, then `first · √(hold/(t + 1))` at the 0-based step `t`.
    InverseSqrt {
        /// Rate of the first steps.
        first: f64,
        /// Steps before it falls, at least 1.
        hold: u64,
    },
}

impl LearningRate {
    /// The rate at a 0-based step of a run of `steps` steps, at least 1.
    pub fn at(self, step: u64, steps: u64) -> f64 {
        match self {
            Self::Constant(rate) => rate,
            Self::InverseSqrtSteps => 1.0 / (steps as f64).sqrt(),
            Self::Step { first, factor, every } => first * factor.powf((step / every) as f64),
            Self::Cosine { first, last } => {
                // A step beyond the plan's last one stays at the end of the curve.
                let turn = (step as f64 / steps as f64).min(1.0) * std::f64::consts::PI;
                last + 0.5 * (first - last) * (1.0 + turn.cos())
            }
            Self::InverseSqrt { first, hold } => first * (hold as f64 / (step + 1).max(hold) as f64).sqrt(),
        }
    }

    pub(crate) fn validate(self) -> Result<()> {
        let positive = |name, value: f64| {
            if value.is_finite() && value > 0.0 {
                return Ok(());
            }
            Err(TrainError::invalid(name, value, "a finite number above 0"))
        };
        let at_least_one =
            |name, value| if value > 0 { Ok(()) } else { Err(TrainError::invalid(name, value, "at least 1")) };
        match self {
            Self::Constant(rate) => positive("learning_rate", rate),
            Self::InverseSqrtSteps => Ok(()),
            Self::Step { first, factor, every } => {
                positive("learning_rate.first", first)?;
                if !(factor > 0.0 && factor <= 1.0) {
                    return Err(TrainError::invalid("learning_rate.factor", factor, "above 0, at most 1"));
                }
                at_least_one("learning_rate.every", every)
            }
            Self::Cosine { first, last } => {
                positive("learning_rate.first", first)?;
                if !(last.is_finite() && last >= 0.0) {
                    return Err(TrainError::invalid("learning_rate.last", last, "a finite number of at least 0"));
                }
                Ok(())
            }
            Self::InverseSqrt { first, hold } => {
                positive("learning_rate.first", first)?;
                at_least_one("learning_rate.hold", hold)
            }
        }
    }
}

/// Factor on the rate of a 0-based step during a linear warm-up: `1/w`, `2/w`, …, 1, and 1 from
/// then on.
///
/// The schedule below it runs on meanwhile; no steps are no warm-up.
pub(crate) fn warm_up(step: u64, warm_up_steps: u64) -> f64 {
    if step >= warm_up_steps { 1.0 } else { (step + 1) as f64 / warm_up_steps as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_is_a_straight_line_to_one() {
        assert_eq!([0, 1, 2, 3, 4].map(|step| warm_up(step, 4)), [0.25, 0.5, 0.75, 1.0, 1.0]);
        assert_eq!(warm_up(0, 0), 1.0);
    }

    #[test]
    fn schedules_by_hand() {
        // A quarter of the way: last + (first − last)(1 + √½)/2.
        let cosine = LearningRate::Cosine { first: 1.0, last: 0.0 };
        assert!((cosine.at(1, 4) - 0.5 * (1.0 + 0.5_f64.sqrt())).abs() < 1e-15);
        assert!(cosine.at(4, 4) < 1e-16 && cosine.at(1_000, 4) < 1e-16);
        // Xu: 1/√T, whatever the step.
        assert_eq!((LearningRate::InverseSqrtSteps.at(0, 16), LearningRate::InverseSqrtSteps.at(15, 16)), (0.25, 0.25));
        // 0.2 · √(16/64).
        assert!((LearningRate::InverseSqrt { first: 0.2, hold: 16 }.at(63, 100) - 0.1).abs() < 1e-15);
        assert_eq!(LearningRate::Step { first: 1.0, factor: 0.1, every: 1 }.at(0, 1), 1.0);
    }
}
