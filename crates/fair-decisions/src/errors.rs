//! A release of the errors of predicted numbers by group.

use dp_clipping::noise::StepNoise;
use fair_metrics::noisy::{LARGEST_ERROR_TERMS, N_ERROR_SUMS, NoisyErrorSums, error_terms};
use rand::CryptoRng;

use crate::error::DecisionError;
use crate::hook;

/// Steps in 1 of the grid on which terms are added.
const PER_UNIT: f64 = (1_u64 << 24) as f64;
/// More records would leave the integers of double precision.
const MOST_RECORDS: usize = 1 << 28;

/// The share of the squared sensitivity that each of the [`error_terms`] has. Sums of squares are small
/// beside their largest term, so they have the most.
const SHARES: [f64; N_ERROR_SUMS] = [0.1, 0.15, 0.2, 0.35, 0.05, 0.07, 0.07];

/// Sums over records by group, exact and **not private** until they are released.
///
/// A record adds its terms, each divided by its largest magnitude and multiplied by the root of its
/// share, rounded towards zero to a grid of 2⁻²⁴. Sums are then whole numbers, the same in any order and on
/// any number of ranks.
///
/// **Sensitivity.** The squares of what a record adds are at most the shares, whose sum is below 1: a vector of
/// norm at most 1 in one group.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorCells {
    values: Vec<f64>,
}

impl ErrorCells {
    /// Without records.
    pub fn new(n_groups: usize) -> Self {
        Self { values: vec![0.0; n_groups * N_ERROR_SUMS] }
    }

    /// Sums that were added up elsewhere, in steps.
    pub const fn of(values: Vec<f64>) -> Self {
        Self { values }
    }

    /// The sums in steps: whole numbers, `[groups, terms]`.
    pub fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// Adds a record. Prediction and label are places in the range, from −½ to ½; a prediction that is no
    /// number counts as the middle.
    ///
    /// # Panics
    /// If there is no such group.
    pub fn add(&mut self, group: usize, prediction: f64, label: f64) {
        let place = |value: f64| if value.is_nan() { 0.0 } else { value };
        let terms = error_terms(place(prediction), place(label));
        let values = &mut self.values[group * N_ERROR_SUMS..(group + 1) * N_ERROR_SUMS];
        for (k, (value, term)) in values.iter_mut().zip(terms).enumerate() {
            *value += (term * factor(k) * PER_UNIT).trunc();
        }
    }

    /// Releases the sums with noise.
    ///
    /// **Guarantee.** If a unit has at most `records_per_unit` records, each in one group, this is a Gaussian
    /// mechanism with this noise multiplier. Noise is exactly rounded to the grid.
    ///
    /// # Errors
    /// [`DecisionError::InvalidParameter`] for a noise multiplier that is not above 0 and finite, and for more
    /// than 2²⁸ records.
    pub fn release(
        mut self,
        noise_multiplier: f64,
        records_per_unit: u64,
        rng: &mut dyn CryptoRng,
    ) -> Result<Vec<NoisyErrorSums>, DecisionError> {
        if !(noise_multiplier > 0.0 && noise_multiplier.is_finite()) {
            return Err(DecisionError::invalid("noise_multiplier", noise_multiplier, "above 0 and finite"));
        }
        let n: f64 = self.values.iter().step_by(N_ERROR_SUMS).sum::<f64>() / (factor(0) * PER_UNIT);
        if n > MOST_RECORDS as f64 {
            return Err(DecisionError::invalid("records", n, format!("at most {MOST_RECORDS}")));
        }
        let std = noise_multiplier * records_per_unit as f64 * hook::column_norm(1.0);
        StepNoise::draw(rng, std * PER_UNIT).add_f64(0, &mut self.values);
        let of_group = |values: &[f64]| NoisyErrorSums {
            sums: std::array::from_fn(|k| values[k] / PER_UNIT / factor(k)),
            variances: std::array::from_fn(|k| (std / factor(k)).powi(2)),
        };
        Ok(self.values.chunks_exact(N_ERROR_SUMS).map(of_group).collect())
    }

    /// What one record adds, in units of the sensitivity.
    pub fn moved(prediction: f64, label: f64) -> f64 {
        let mut cells = Self::new(1);
        cells.add(0, prediction, label);
        let square: f64 = cells.values.iter().map(|value| (value / PER_UNIT).powi(2)).sum();
        square.sqrt() / hook::column_norm(1.0)
    }
}

/// What a term is multiplied by.
fn factor(place: usize) -> f64 {
    SHARES[place].sqrt() / LARGEST_ERROR_TERMS[place]
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn a_record_moves_the_sums_by_1_at_most() {
        assert!(SHARES.iter().sum::<f64>() < 1.0);
        let places = [-9.0, -0.5, -0.3, 0.0, 0.25, 0.5, 7.0, f64::NAN, f64::INFINITY];
        let moved = places.iter().flat_map(|&prediction| places.map(|label| ErrorCells::moved(prediction, label)));
        let most = moved.fold(0.0, f64::max);
        assert!(most <= 1.0 && most > 0.99, "{most}");
    }

    /// With next to no noise the sums are those of the records.
    #[test]
    fn sums_are_those_of_the_records() {
        let mut cells = ErrorCells::new(2);
        (0..100).for_each(|_| cells.add(1, 0.25, -0.25));
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let released = ErrorCells::of(cells.into_values()).release(1e-6, 1, &mut rng).unwrap();
        assert!(released[0].sums.iter().all(|sum| sum.abs() < 1e-3), "{released:?}");
        let expected = [100.0, 50.0, 50.0, 25.0, 6.25, -25.0, 6.25];
        for (sum, expected) in released[1].sums.iter().zip(expected) {
            assert!((sum - expected).abs() < 1e-3, "{released:?}");
        }
        assert!(ErrorCells::new(1).release(0.0, 1, &mut rng).is_err());
    }
}
