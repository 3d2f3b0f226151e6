//! Sums to which a record adds one of several amounts.

use serde::{Deserialize, Serialize};

use crate::pair::binomial;
use crate::{AccountingError, NoiseMultiplier, SamplingRate};

/// A sum to which a record adds one of several amounts, drawn with public probabilities, under
/// Gaussian noise.
///
/// So is a step in which one record may be in several batches that are added, or in which a user
/// has several records. Under replace-one, the records that come in add such amounts, too, drawn on
/// their own.
///
/// **Units.** Amounts are in units of the bound on one record's contribution; the noise multiplier
/// divides by that bound.
///
/// **Source.** Choquette-Choo et al. 2024, "Privacy Amplification for Matrix Mechanisms", Section
/// 4.
///
/// **Example**
/// ```
/// use dp_accounting::{MixtureOfGaussians, NoiseMultiplier, SamplingRate};
/// // A user with two records, each in the batch with probability 1/10.
/// let step = MixtureOfGaussians::of_user(NoiseMultiplier::new(2.0)?, SamplingRate::new(0.1)?, 2)?;
/// assert!((step.probabilities()[1] - 0.18).abs() < 1e-12);
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedMixture", into = "UncheckedMixture")]
pub struct MixtureOfGaussians {
    noise_multiplier: NoiseMultiplier,
    amounts: Vec<f64>,
    probabilities: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedMixture {
    noise_multiplier: NoiseMultiplier,
    amounts: Vec<f64>,
    probabilities: Vec<f64>,
}

/// Largest number of amounts.
const MAX_AMOUNTS: usize = 256;

impl MixtureOfGaussians {
    /// Adds `amounts[i]` with probability `probabilities[i]`. A sum that differs from 1 by more than
    /// the rounding of its terms is divided out.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless there is one probability for each of 1 to 256
    /// amounts, the amounts are at least 0 and finite, and the probabilities in [0, 1] with sum 1
    /// to within 1e-9.
    pub fn new(
        noise_multiplier: NoiseMultiplier,
        amounts: impl Into<Vec<f64>>,
        probabilities: impl Into<Vec<f64>>,
    ) -> Result<Self, AccountingError> {
        let (amounts, mut probabilities) = (amounts.into(), probabilities.into());
        let out_of_range = |parameter, value, accepted| Err(AccountingError::invalid(parameter, value, accepted));
        if amounts.is_empty() || amounts.len() > MAX_AMOUNTS {
            return out_of_range("length of amounts", amounts.len() as f64, "1 to 256");
        }
        if amounts.len() != probabilities.len() {
            return out_of_range("length of probabilities", probabilities.len() as f64, "as many as there are amounts");
        }
        if let Some(&bad) = amounts.iter().find(|amount| !(**amount >= 0.0 && amount.is_finite())) {
            return out_of_range("amounts", bad, "a finite number of at least 0");
        }
        if let Some(&bad) = probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            return out_of_range("probabilities", bad, "a number in [0, 1]");
        }
        let total: f64 = probabilities.iter().sum();
        if (total - 1.0).abs() > 1e-9 {
            return out_of_range("sum of probabilities", total, "1 to within 1e-9");
        }
        // Normalised probabilities stay as they are, so that reading a ledger gives the ledger that
        // was written.
        if (total - 1.0).abs() > probabilities.len() as f64 * f64::EPSILON {
            for probability in &mut probabilities {
                *probability /= total;
            }
        }
        Ok(Self { noise_multiplier, amounts, probabilities })
    }

    /// A user with `records` records, each of which enters the batch on its own with the same
    /// probability.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless there are 1 to 255 records.
    pub fn of_user(
        noise_multiplier: NoiseMultiplier,
        sampling_rate: SamplingRate,
        records: u32,
    ) -> Result<Self, AccountingError> {
        if !(1..MAX_AMOUNTS as u32).contains(&records) {
            return Err(AccountingError::invalid("records", records, "1 to 255"));
        }
        let amounts: Vec<f64> = (0..=records).map(f64::from).collect();
        let mut probabilities = binomial(records, sampling_rate.get());
        let total: f64 = probabilities.iter().sum();
        for probability in &mut probabilities {
            *probability = (*probability / total).min(1.0);
        }
        Self::new(noise_multiplier, amounts, probabilities)
    }

    /// Standard deviation of the noise over the bound on one record's contribution.
    pub const fn noise_multiplier(&self) -> NoiseMultiplier {
        self.noise_multiplier
    }

    /// The amounts that may be added, in units of the bound on one record's contribution.
    pub fn amounts(&self) -> &[f64] {
        &self.amounts
    }

    /// Probability of each amount.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }
}

impl std::fmt::Display for MixtureOfGaussians {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "mixture of Gaussians (noise multiplier {}, amounts", self.noise_multiplier)?;
        for (i, (amount, probability)) in self.amounts.iter().zip(&self.probabilities).enumerate() {
            write!(f, "{} {amount} with probability {probability}", if i == 0 { "" } else { "," })?;
        }
        f.write_str(")")
    }
}

impl TryFrom<UncheckedMixture> for MixtureOfGaussians {
    type Error = AccountingError;
    fn try_from(value: UncheckedMixture) -> Result<Self, AccountingError> {
        Self::new(value.noise_multiplier, value.amounts, value.probabilities)
    }
}

impl From<MixtureOfGaussians> for UncheckedMixture {
    fn from(value: MixtureOfGaussians) -> Self {
        let MixtureOfGaussians { noise_multiplier, amounts, probabilities } = value;
        Self { noise_multiplier, amounts, probabilities }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_mixtures_are_refused() {
        insta::assert_snapshot!(
            MixtureOfGaussians::new(NoiseMultiplier::new(1.0).unwrap(), [0.0, 1.0], [0.5, 0.6]).unwrap_err(),
            @"sum of probabilities = 1.1: expected 1 to within 1e-9"
        );
        let json = r#"{"noise_multiplier":1.0,"amounts":[0.0,-1.0],"probabilities":[0.5,0.5]}"#;
        insta::assert_snapshot!(serde_json::from_str::<MixtureOfGaussians>(json).unwrap_err(), @"amounts = -1: expected a finite number of at least 0");
    }

    /// A sum of 1 cannot be had in floating point for each of these.
    #[test]
    fn what_was_written_is_read_again() {
        let noise = NoiseMultiplier::new(4.0).unwrap();
        let given = [0.959_459_430_399_998_8, 0.040_121_139_3, 0.000_419_430_400_000_000_07];
        let of_users = [(0.01, 3), (0.3, 7), (0.0201, 40), (1.0 / 3.0, 255)]
            .map(|(rate, n)| MixtureOfGaussians::of_user(noise, SamplingRate::new(rate).unwrap(), n).unwrap());
        for mixture in of_users.into_iter().chain([MixtureOfGaussians::new(noise, [0.0, 1.0, 2.0], given).unwrap()]) {
            let json = serde_json::to_string(&mixture).unwrap();
            assert_eq!(serde_json::from_str::<MixtureOfGaussians>(&json).unwrap(), mixture, "{json}");
        }
    }
}
