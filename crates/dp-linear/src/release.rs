//! Releases and the ledger.

use dp_accounting::{DpEvent, Ledger, NoiseMultiplier};

use crate::error::Result;

/// Notes a Gaussian release in the ledger: before it is made, so that what cannot be noted is not
/// released.
pub(crate) fn record(ledger: &mut Ledger, noise_multiplier: NoiseMultiplier) -> Result<()> {
    Ok(ledger.record(&DpEvent::gaussian(noise_multiplier), 1)?)
}
