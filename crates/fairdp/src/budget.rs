//! One (ε, δ), split between the releases of a run before it begins.

use dp_accounting::{Delta, DpEvent, Epsilon, NoiseMultiplier, analytic_gaussian_noise_multiplier};
use serde::Serialize;

use crate::account::Subset;
use crate::error::Result;

/// A release that will be made.
#[derive(Debug, Clone, PartialEq, Serialize)]
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

/// The budget of Gaussian releases on all records: together they are one Gaussian release with
/// `μ² = Σ 1/σ²`, so ε and δ fix `μ²`, and each release takes a share of it.
///
/// **Source.** Dong, Roth and Su 2022 (composition); Balle and Wang 2018, Theorem 8 (ε and δ of μ).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Budget {
    /// Noise multiplier of one release that takes everything.
    sigma: f64,
}

impl Budget {
    pub(crate) fn new(epsilon: Epsilon, delta: Delta) -> Result<Self> {
        Ok(Self { sigma: analytic_gaussian_noise_multiplier(epsilon, delta)?.get() })
    }

    /// `count` releases that take this share together, rounded towards privacy.
    pub(crate) fn planned(self, part: Subset, purpose: &str, share: f64, count: u64) -> Result<Planned> {
        let noise_multiplier = NoiseMultiplier::new(self.sigma * (count as f64 / share).sqrt() * (1.0 + 1e-9))?;
        let event = DpEvent::gaussian(noise_multiplier);
        Ok(Planned { part, purpose: purpose.to_owned(), share, count, noise_multiplier, event })
    }
}
