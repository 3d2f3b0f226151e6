//! Counts of records by group, class and answer.

use super::share::Share;
use crate::MetricError;
use crate::error::{check_finite, check_len};

/// Variance that rounding to whole numbers adds to noise.
const ROUNDING: f64 = 1.0 / 12.0;

/// Records by group, class and answer, each count with independent noise of one variance.
///
/// **Example**
/// ```
/// use fair_metrics::noisy::{NoisyCounts, NoisyFigures};
/// // One group: of 100 records of class 0 the model answers 90 with 0, of 50 of class 1 it answers 40 with 1.
/// let counts = NoisyCounts::new(vec![90.0, 10.0, 10.0, 40.0], 1, 2, 0.0)?;
/// let figures = NoisyFigures::of(&counts, 0.95)?;
/// assert_eq!(figures.groups[0].recall[1].value, Some(0.8));
/// assert!(figures.groups[0].recall[1].contains(0.75));
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyCounts {
    n_groups: usize,
    n_classes: usize,
    values: Vec<f64>,
    noise_std: f64,
}

impl NoisyCounts {
    /// Takes counts with Gaussian noise of standard deviation `noise_std`, rounded to whole numbers
    /// or not, or exact counts with 0.
    ///
    /// **Shapes.** `values` are `[groups, classes, answers]`, with one answer for each class.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`], [`MetricError::NotFinite`]; [`MetricError::InvalidParameter`] for
    /// a standard deviation that is negative or not finite.
    pub fn new(values: Vec<f64>, n_groups: usize, n_classes: usize, noise_std: f64) -> Result<Self, MetricError> {
        check_len("values", values.len(), "groups × classes × answers", n_groups * n_classes * n_classes)?;
        check_finite("values", &values)?;
        if !(noise_std >= 0.0 && noise_std.is_finite()) {
            return Err(MetricError::invalid("noise_std", noise_std, "finite, at least 0"));
        }
        Ok(Self { n_groups, n_classes, values, noise_std })
    }

    /// Groups.
    pub const fn n_groups(&self) -> usize {
        self.n_groups
    }

    /// Classes.
    pub const fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// Standard deviation of the noise of every count.
    pub const fn noise_std(&self) -> f64 {
        self.noise_std
    }

    /// The records of some groups whose `(class, answer)` is in `whole`, and whether it is in
    /// `part`.
    pub fn share(
        &self,
        groups: &[usize],
        whole: impl Fn(usize, usize) -> bool,
        part: impl Fn(usize, usize) -> bool,
    ) -> Share {
        let variance = if self.noise_std > 0.0 { self.noise_std * self.noise_std + ROUNDING } else { 0.0 };
        let mut share = Share::exact(0.0, 0.0);
        for &group in groups {
            for class in 0..self.n_classes {
                for answer in (0..self.n_classes).filter(|&answer| whole(class, answer)) {
                    let value = self.values[(group * self.n_classes + class) * self.n_classes + answer];
                    if part(class, answer) {
                        share.hits += value;
                        share.noise_of_hits += variance;
                    } else {
                        share.others += value;
                        share.noise_of_others += variance;
                    }
                }
            }
        }
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_add_up_with_their_noise() {
        let counts = NoisyCounts::new((1..=8).map(f64::from).collect(), 2, 2, 2.0).unwrap();
        let accuracy = counts.share(&[0, 1], |_, _| true, |class, answer| class == answer);
        assert_eq!((accuracy.hits, accuracy.others), (1.0 + 4.0 + 5.0 + 8.0, 2.0 + 3.0 + 6.0 + 7.0));
        assert!((accuracy.noise_of_hits - 4.0 * (4.0 + 1.0 / 12.0)).abs() < 1e-12);
        let recall = counts.share(&[1], |class, _| class == 1, |_, answer| answer == 1);
        assert_eq!((recall.hits, recall.others), (8.0, 7.0));
    }

    #[test]
    fn what_is_no_count_is_refused() {
        assert!(NoisyCounts::new(vec![1.0; 7], 2, 2, 1.0).is_err());
        assert!(NoisyCounts::new(vec![f64::NAN; 8], 2, 2, 1.0).is_err());
        assert!(NoisyCounts::new(vec![1.0; 8], 2, 2, f64::INFINITY).is_err());
        assert!(NoisyCounts::new(vec![1.0; 8], 2, 2, 0.0).is_ok());
    }
}
