//! One release, many times with a record and many times without it.

use dp_train::Result;
use serde::Serialize;

use super::difference::lower_bound;

/// Attack on one release of a ledger: repetitions in both worlds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoSamples {
    /// What the ledger says: one over the noise multiplier, or 0 for a release that it does not have.
    pub claimed_mu: f64,
    /// Repetitions in either world.
    pub repeats: u32,
    /// Probability with which the bound is wrong, at most.
    pub failure: f64,
}

/// What repetitions show of a release.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReleaseBound {
    /// One over the noise multiplier of the ledger.
    pub claimed_mu: f64,
    /// At least this: the difference of the means over the standard deviation, from below.
    pub mu: f64,
    /// Repetitions in either world.
    pub repeats: u32,
}

impl ReleaseBound {
    /// Whether the release tells more than the ledger says.
    pub fn refuted(&self) -> bool {
        self.mu > self.claimed_mu * (1.0 + 1e-6)
    }
}

impl TwoSamples {
    /// Repetitions that find a release with half of the noise, in nineteen of twenty audits, where
    /// the bound is wrong with probability `failure`; at most `most`.
    ///
    /// The statistic has a standard deviation of about `√(2/n)`, and is to be as far above the claim as
    /// the claim is above 0.
    pub fn repeats_for(claimed_mu: f64, failure: f64, most: u32) -> u32 {
        let quantile = |rate: f64| dp_accounting::normal_quantile(1.0 - rate);
        let apart = (quantile(failure) + quantile(0.05)) / claimed_mu.max(1e-3);
        // A little for the estimate of the spread.
        let n = 2.0 * apart * apart * (1.0 + claimed_mu * claimed_mu) + 20.0;
        n.ceil().min(f64::from(most)) as u32
    }

    /// Attacks: `released` is what the attacker makes of one release, larger the more it looks like the
    /// record's being there.
    ///
    /// # Errors
    /// Those of a release.
    pub fn attack(self, mut released: impl FnMut(bool) -> Result<f64>) -> Result<ReleaseBound> {
        let mut world = |present: bool| (0..self.repeats).map(|_| released(present)).collect::<Result<Vec<f64>>>();
        let (absent, present) = (world(false)?, world(true)?);
        let mu = lower_bound(&present, &absent, self.failure);
        Ok(ReleaseBound { claimed_mu: self.claimed_mu, mu, repeats: self.repeats })
    }
}
