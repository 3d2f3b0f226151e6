//! A release that is planned before a run begins.

use dp_accounting::{DpEvent, NoiseMultiplier};
use dp_linear::GaussianBudget;
use serde::Serialize;

use crate::error::Result;
use crate::subset::Subset;

/// A release that will be made.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Planned {
    /// On which records.
    pub part: Subset,
    /// What it is for.
    pub purpose: String,
    /// Share of the part's budget, of `μ²`.
    pub share: f64,
    /// How often it is made.
    pub count: u64,
    /// Standard deviation of its noise over what one unit can change.
    pub noise_multiplier: NoiseMultiplier,
    /// What one of them releases.
    pub event: DpEvent,
}

impl Planned {
    /// `count` Gaussian releases that together take this share of a part's budget.
    pub(crate) fn gaussian(
        budget: GaussianBudget,
        part: Subset,
        purpose: &str,
        share: f64,
        count: u64,
    ) -> Result<Self> {
        let noise_multiplier = budget.noise_multiplier(share, count)?;
        let event = DpEvent::gaussian(noise_multiplier);
        Ok(Self { part, purpose: purpose.to_owned(), share, count, noise_multiplier, event })
    }
}
