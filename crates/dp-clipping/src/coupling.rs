//! Whether the records of a batch influence each other's gradient before or after it is clipped.

use serde::{Deserialize, Serialize};

use crate::error::{ClipError, check};

/// How the records of a batch influence each other, beyond being summed. Anything but
/// [`Coupling::None`] breaks the guarantee: one record then moves the others' contributions and the
/// bound no longer limits the sum's sensitivity.
///
/// The scales of this crate are the same under every coupling; the trainer carries it out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Coupling {
    /// Records are independent: the only certified choice.
    #[default]
    None,
    /// The loss has FairLens's two regularisers, which are functions of the whole batch.
    Fairlens {
        /// Weight γ1 of the clipping regulariser R1.
        gamma_1: f64,
        /// Weight γ2 of the noise regulariser R2.
        gamma_2: f64,
        /// Whose regularisers.
        #[serde(default)]
        form: FairlensForm,
    },
    /// The sum keeps the unclipped direction and the clipped length: `(‖ḡ_B‖/‖g_B‖)·g_B`.
    MagnitudeOnly,
    /// The sum keeps the clipped direction and the unclipped length: `(‖g_B‖/‖ḡ_B‖)·ḡ_B`.
    DirectionOnly,
}

/// The form of FairLens's regularisers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FairlensForm {
    /// Algorithm 4 of Esipova 2023: R2 is of predicted probabilities, clipping factors in R1 count
    /// as constants, and every record gets the same vector, the gradient of both regularisers.
    #[default]
    Paper,
    /// The trainer that printed the paper's rows, of which a public fork of the authors' code has a
    /// copy: R2 is the difference between groups of the mean of `o(1 − o)` over the model's raw
    /// outputs `o`, clipping factors are differentiated, and every record keeps its own share of
    /// the regularisers' gradient.
    Code,
}

impl Coupling {
    /// Turns the clipped sum into what the analysis couplings train with, given the sum without
    /// clipping.
    ///
    /// **Shapes.** Both `[params]`.
    ///
    /// **Edge cases.** [`Coupling::None`] and [`Coupling::Fairlens`] leave the sum as it is. A sum
    /// of norm 0 has no direction: the result is then 0.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn recombine(&self, clipped_sum: &mut [f64], plain_sum: &[f64]) {
        assert_eq!(clipped_sum.len(), plain_sum.len(), "both sums are over the same parameters");
        let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
        let (clipped_norm, plain_norm) = (norm(clipped_sum), norm(plain_sum));
        let ratio = |numerator: f64, denominator: f64| if denominator > 0.0 { numerator / denominator } else { 0.0 };
        match self {
            Self::None | Self::Fairlens { .. } => {}
            Self::MagnitudeOnly => {
                let factor = ratio(clipped_norm, plain_norm);
                for (clipped, plain) in clipped_sum.iter_mut().zip(plain_sum) {
                    *clipped = factor * plain;
                }
            }
            Self::DirectionOnly => {
                let factor = ratio(plain_norm, clipped_norm);
                for clipped in clipped_sum {
                    *clipped *= factor;
                }
            }
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ClipError> {
        if let Self::Fairlens { gamma_1, gamma_2, .. } = *self {
            check("gamma_1", gamma_1, 0.0.., "a finite number of at least 0")?;
            check("gamma_2", gamma_2, 0.0.., "a finite number of at least 0")?;
        }
        Ok(())
    }
}
