//! A value estimated by sampling.

use serde::{Deserialize, Serialize};

/// A mean over independent draws and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sampled {
    /// The mean.
    pub mean: f64,
    /// Its standard error: standard deviation of the draws over the root of their number; `None`
    /// for a single draw.
    pub standard_error: Option<f64>,
}

impl Sampled {
    /// The mean of these draws; 0 without a standard error where there is none.
    pub(super) fn over(draws: impl ExactSizeIterator<Item = f64> + Clone) -> Self {
        let n = draws.len() as f64;
        if n == 0.0 {
            return Self { mean: 0.0, standard_error: None };
        }
        let mean = draws.clone().sum::<f64>() / n;
        let variance = draws.map(|draw| (draw - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Self { mean, standard_error: (n > 1.0).then(|| (variance / n).sqrt()) }
    }

    /// The estimate of a multiple.
    pub(super) fn times(self, factor: f64) -> Self {
        Self { mean: self.mean * factor, standard_error: self.standard_error.map(|error| error * factor.abs()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws 1, 2, 6: mean 3, squared deviations 4 + 1 + 9 = 14, variance 7, standard error √(7/3).
    #[test]
    fn by_hand() {
        let sampled = Sampled::over([1.0, 2.0, 6.0].into_iter());
        assert_eq!(sampled, Sampled { mean: 3.0, standard_error: Some((7.0_f64 / 3.0).sqrt()) });
        assert_eq!(sampled.times(-2.0).mean, -6.0);
        assert_eq!(sampled.times(-2.0).standard_error, Some(2.0 * (7.0_f64 / 3.0).sqrt()));
        assert_eq!(Sampled::over([4.0].into_iter()), Sampled { mean: 4.0, standard_error: None });
    }
}
