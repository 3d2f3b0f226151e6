//! Affine scaling of numeric inputs, fitted on the records that the model may see.

use serde::{Deserialize, Serialize};

/// On which records the scaling of numeric inputs is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingFit {
    /// On the training part: nothing of the test records reaches the model.
    #[default]
    TrainOnly,
    /// On training and test part together, as some papers did. Only to reproduce them.
    AllRecords,
}

impl ScalingFit {
    /// One sentence for the report.
    pub(crate) fn note(self) -> &'static str {
        match self {
            Self::TrainOnly => "Scaling is fitted on the training part only.",
            Self::AllRecords => {
                "Scaling is fitted on training and test part together, as published: test records influence the inputs."
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

/// `(x − shift)·factor`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Affine {
    shift: f64,
    factor: f64,
}

impl Affine {
    pub(crate) const IDENTITY: Self = Self { shift: 0.0, factor: 1.0 };

    /// Fits to `values`. A column that does not vary is only shifted; without values nothing is scaled.
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
        Self { shift, factor: if spread > 0.0 { spread.recip() } else { 1.0 } }
    }

    pub(crate) fn apply(self, value: f64) -> f32 {
        ((value - self.shift) * self.factor) as f32
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
    fn constant_and_empty_columns_stay_finite() {
        assert_eq!(Affine::fit(Scale::ZScore, &[3.0, 3.0]).apply(4.0), 1.0);
        assert_eq!(Affine::fit(Scale::UnitRange, &[3.0, 3.0]).apply(3.0), 0.0);
        assert_eq!(Affine::fit(Scale::UnitRange, &[]), Affine::IDENTITY);
    }
}
