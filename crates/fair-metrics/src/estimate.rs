//! Mean and standard error over seeds.

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::error::{check_defined_finite, check_finite};

/// A mean over seeds with its standard error.
///
/// # Example
/// ```
/// use fair_metrics::Estimate;
///
/// // Sample variance of 1, 2, 3 is 1, so the standard error is 1/√3.
/// let estimate = Estimate::over_seeds(&[Some(1.0), Some(2.0), Some(3.0)])?;
/// assert_eq!(estimate.mean, Some(2.0));
/// assert!((estimate.standard_error.unwrap() - 1.0 / 3.0_f64.sqrt()).abs() < 1e-15);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean of the defined values; `None` if there is none.
    pub mean: Option<f64>,
    /// Standard error of the mean, `s/√n` with the sample standard deviation `s` (divisor `n − 1`);
    /// `None` below two defined values.
    pub standard_error: Option<f64>,
    /// Seeds with a defined value.
    pub n: usize,
    /// Seeds without one.
    pub n_undefined: usize,
}

impl Estimate {
    /// Averages one value per seed.
    ///
    /// # Edge cases
    /// Undefined values are left out and counted; without any defined value the mean is undefined.
    ///
    /// # Errors
    /// [`MetricError::NotFinite`] names the seed, or says that the mean or its error overflows.
    pub fn over_seeds(values: &[Option<f64>]) -> Result<Self, MetricError> {
        check_defined_finite("values", values)?;
        let defined: Vec<f64> = values.iter().copied().flatten().collect();
        let estimate = Self::of(&defined)?;
        Ok(Self { n_undefined: values.len() - estimate.n, ..estimate })
    }

    /// Averages values that are all defined.
    ///
    /// # Errors
    /// As [`Self::over_seeds`].
    pub fn of(values: &[f64]) -> Result<Self, MetricError> {
        check_finite("values", values)?;
        let n = values.len();
        let mean = (n > 0).then(|| values.iter().sum::<f64>() / n as f64);
        let standard_error = mean.filter(|_| n > 1).map(|mean| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (n - 1) as f64 / n as f64).sqrt()
        });
        check_finite("mean of `values`", mean.as_slice())?;
        check_finite("standard error of `values`", standard_error.as_slice())?;
        Ok(Self { mean, standard_error, n, n_undefined: 0 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_seed_has_no_standard_error() {
        let estimate = Estimate::over_seeds(&[Some(0.5), None]).unwrap();
        assert_eq!(estimate, Estimate { mean: Some(0.5), standard_error: None, n: 1, n_undefined: 1 });
    }

    #[test]
    fn no_seed_has_no_mean() {
        assert_eq!(Estimate::over_seeds(&[]).unwrap().mean, None);
        assert_eq!(Estimate::over_seeds(&[None]).unwrap().n_undefined, 1);
    }

    #[test]
    fn names_the_seed_that_is_not_finite() {
        assert!(matches!(
            Estimate::over_seeds(&[Some(0.0), None, Some(f64::NAN)]),
            Err(MetricError::NotFinite { index: 2, .. })
        ));
    }

    #[test]
    fn a_sum_that_overflows_is_an_error() {
        assert!(matches!(
            Estimate::of(&[1e308, 1e308]),
            Err(MetricError::NotFinite { parameter: "mean of `values`", .. })
        ));
        assert!(Estimate::of(&[1e200, -1e200]).is_err(), "its square");
    }

    proptest! {
        #[test]
        fn scaling_scales_mean_and_error(values in prop::collection::vec(-1e3..1e3_f64, 2..20), factor in -8.0..8.0_f64) {
            let plain: Vec<_> = values.iter().copied().map(Some).collect();
            let scaled: Vec<_> = values.iter().map(|v| Some(v * factor)).collect();
            let (plain, scaled) = (Estimate::over_seeds(&plain).unwrap(), Estimate::over_seeds(&scaled).unwrap());
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs());
            prop_assert!(close(plain.mean.unwrap() * factor, scaled.mean.unwrap()));
            prop_assert!(close(plain.standard_error.unwrap() * factor.abs(), scaled.standard_error.unwrap()));
        }
    }
}
