//! Affine scaling of numeric inputs, by declared ranges or fitted on records.

use serde::{Deserialize, Serialize};

use crate::constants::InputConstant;

/// The source of the scaling of numeric inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingFit {
    /// Declared ranges, which are public; values outside are clamped. No record affects the inputs
    /// of another one.
    #[default]
    Public,
    /// Fitted on the training part, as the papers did: nothing of the test records reaches the
    /// model, but one training record moves the inputs of all others. A guarantee for training is
    /// conditional on it.
    TrainOnly,
    /// Fitted on training and test part together, as some papers did. Only to reproduce them.
    AllRecords,
}

impl ScalingFit {
    /// One sentence for the report.
    pub(crate) fn note(self) -> &'static str {
        match self {
            Self::Public => "Scaling is by declared ranges, which are public; values outside are clamped.",
            Self::TrainOnly => "Scaling is fitted on the training part only.",
            Self::AllRecords => {
                "Scaling is fitted on training and test part together, as published: test records influence the inputs."
            }
        }
    }

    /// The scaling as a constant with its source.
    pub(crate) fn constant(self) -> InputConstant {
        match self {
            Self::Public => InputConstant::public("the scaling"),
            Self::TrainOnly => InputConstant::from_records("the scaling", "was fitted on the private records"),
            Self::AllRecords => {
                InputConstant::from_records("the scaling", "was fitted on the private records and on the test records")
            }
        }
    }
}

/// How a numeric input is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// To mean 0 and (population) standard deviation 1.
    ZScore,
    /// To `[0, 1]` over the fitted records; others may fall outside.
    UnitRange,
}

/// `(x − shift)·factor`, of a value that is clamped to a range first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Affine {
    shift: f64,
    factor: f64,
    range: (f64, f64),
}

impl Affine {
    pub(crate) const IDENTITY: Self = Self { shift: 0.0, factor: 1.0, range: (f64::NEG_INFINITY, f64::INFINITY) };

    /// Scales a declared range to `[0, 1]`, or, instead of a z-score, to `[−1, 1]`.
    pub(crate) fn declared(scale: Scale, (low, high): (f64, f64)) -> Self {
        let (shift, factor) = match scale {
            Scale::UnitRange => (low, (high - low).recip()),
            Scale::ZScore => (low.midpoint(high), 2.0 / (high - low)),
        };
        Self { shift, factor, range: (low, high) }
    }

    /// Fits to `values`. A column that does not vary is only shifted; without values nothing is
    /// scaled.
    pub(crate) fn fit(scale: Scale, values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::IDENTITY;
        }
        let (shift, spread) = match scale {
            Scale::ZScore => {
                let n = values.len() as f64;
                let mean = values.iter().sum::<f64>() / n;
                // Two passes: the one-pass formula cancels for columns like the final weight.
                let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
                (mean, variance.sqrt())
            }
            Scale::UnitRange => {
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                (low, high - low)
            }
        };
        Self { shift, factor: if spread > 0.0 { spread.recip() } else { 1.0 }, ..Self::IDENTITY }
    }

    pub(crate) fn apply(self, value: f64) -> f32 {
        ((value.clamp(self.range.0, self.range.1) - self.shift) * self.factor) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Mean 4, deviations −2, 0, 0, 2: variance 8/4 = 2.
        let z = Affine::fit(Scale::ZScore, &[2.0, 4.0, 4.0, 6.0]);
        assert_eq!(z.apply(6.0), (2.0 / 2f64.sqrt()) as f32);
        let unit = Affine::fit(Scale::UnitRange, &[2.0, 4.0, 6.0]);
        assert_eq!([unit.apply(2.0), unit.apply(3.0), unit.apply(8.0)], [0.0, 0.25, 1.5]);
    }

    #[test]
    fn declared_ranges_clamp() {
        let unit = Affine::declared(Scale::UnitRange, (10.0, 30.0));
        assert_eq!([0.0, 10.0, 15.0, 31.0].map(|x| unit.apply(x)), [0.0, 0.0, 0.25, 1.0]);
        let centred = Affine::declared(Scale::ZScore, (10.0, 30.0));
        assert_eq!([0.0, 10.0, 20.0, 1e9].map(|x| centred.apply(x)), [-1.0, -1.0, 0.0, 1.0]);
    }

    #[test]
    fn constant_and_empty_columns_stay_finite() {
        assert_eq!(Affine::fit(Scale::ZScore, &[3.0, 3.0]).apply(4.0), 1.0);
        assert_eq!(Affine::fit(Scale::UnitRange, &[3.0, 3.0]).apply(3.0), 0.0);
        assert_eq!(Affine::fit(Scale::UnitRange, &[]), Affine::IDENTITY);
    }
}
