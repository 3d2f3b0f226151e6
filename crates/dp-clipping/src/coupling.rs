//! Whether the records of a batch influence each other's gradient before or after it is clipped.

use serde::{Deserialize, Serialize};

use crate::error::{ClipError, check};

/// How the records of a batch influence each other, beyond being summed. Anything but [`Coupling::None`] breaks the
/// guarantee: one record then moves the others' contributions and the bound no longer limits the sum's sensitivity.
///
/// The scales of this crate are the same under every coupling; the trainer carries it out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Coupling {
    /// Records are independent: the only certified choice.
    #[default]
    None,
    /// The gradients are those of the loss with FairLens's two regularisers, which are functions of the whole batch.
    Fairlens {
        /// Weight γ1 of the clipping regulariser R1.
        gamma_1: f64,
        /// Weight γ2 of the noise regulariser R2.
        gamma_2: f64,
    },
    /// The sum keeps the unclipped direction and the clipped length: `(‖ḡ_B‖/‖g_B‖)·g_B`.
    MagnitudeOnly,
    /// The sum keeps the clipped direction and the unclipped length: `(‖g_B‖/‖ḡ_B‖)·ḡ_B`.
    DirectionOnly,
}

impl Coupling {
    pub(crate) fn validate(&self) -> Result<(), ClipError> {
        if let Self::Fairlens { gamma_1, gamma_2 } = *self {
            check("gamma_1", gamma_1, 0.0.., "a finite number of at least 0")?;
            check("gamma_2", gamma_2, 0.0.., "a finite number of at least 0")?;
        }
        Ok(())
    }
}
