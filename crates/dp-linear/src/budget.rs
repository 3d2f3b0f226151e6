//! One (ε, δ) split between Gaussian releases on all records.

use dp_accounting::{Delta, Epsilon, NoiseMultiplier, analytic_gaussian_noise_multiplier};

use crate::error::{LinearError, Result};

/// The budget of a composition of Gaussian releases without sampling.
///
/// Such releases compose exactly: with noise multipliers `σ_j` they are together as one Gaussian
/// release with `μ² = Σ 1/σ_j²`. So ε and δ fix `μ²`, and each release takes a share of it.
///
/// **Source.** Dong, Roth and Su 2022 (composition); Balle and Wang 2018, Theorem 8 (ε and δ of μ).
///
/// **Example**
/// ```
/// use dp_accounting::{Delta, Epsilon};
/// use dp_linear::GaussianBudget;
/// let budget = GaussianBudget::new(Epsilon::new(1.0)?, Delta::new(1e-5)?)?;
/// assert!((budget.mu() - 1.0 / 3.730_63).abs() < 1e-6);
/// // A quarter of μ² takes twice the noise; 25 releases within it take five times as much again.
/// assert!((budget.noise_multiplier(0.25, 1)?.get() - 2.0 * 3.730_63).abs() < 1e-4);
/// assert!((budget.noise_multiplier(0.25, 25)?.get() - 10.0 * 3.730_63).abs() < 1e-4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianBudget {
    sigma: f64,
}

impl GaussianBudget {
    /// Everything that ε and δ allow.
    ///
    /// # Errors
    /// [`LinearError::Accounting`] for an infinite ε.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Result<Self> {
        Ok(Self { sigma: analytic_gaussian_noise_multiplier(epsilon, delta)?.get() })
    }

    /// `μ` of all releases together.
    pub fn mu(&self) -> f64 {
        self.sigma.recip()
    }

    /// The noise multiplier of each of `count` releases that together take this share of `μ²`.
    ///
    /// **Guarantee.** Rounded up by more than the rounding of the split: releases whose shares add
    /// up to 1 stay within ε.
    ///
    /// # Errors
    /// [`LinearError::InvalidParameter`] unless the share is above 0 and at most 1, and the count at
    /// least 1.
    pub fn noise_multiplier(&self, share: f64, count: u64) -> Result<NoiseMultiplier> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(LinearError::invalid("share", share, "a number in (0, 1]"));
        }
        if count == 0 {
            return Err(LinearError::invalid("count", count, "at least 1"));
        }
        Ok(NoiseMultiplier::new(self.sigma * (count as f64 / share).sqrt() * (1.0 + 1e-12))?)
    }
}

#[cfg(test)]
mod tests {
    use dp_accounting::{Accountant, DpEvent, GdpAccountant, NeighbouringRelation, PldAccountant};

    use super::*;

    /// The closed form and the PLD, which knows nothing of it.
    #[test]
    fn shares_add_up_to_the_whole() {
        for (epsilon, delta) in [(0.1, 1e-6), (1.0, 1e-5), (8.0, 1e-5)] {
            let (epsilon, delta) = (Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap());
            let budget = GaussianBudget::new(epsilon, delta).unwrap();
            let mut gdp = GdpAccountant::new(NeighbouringRelation::ZeroOut);
            let mut pld = PldAccountant::new(NeighbouringRelation::ZeroOut);
            for (share, count) in [(0.015, 1), (0.095, 1), (0.004, 1), (0.886, 60)] {
                let event = DpEvent::gaussian(budget.noise_multiplier(share, count).unwrap());
                gdp.compose(&event, count).unwrap();
                pld.compose(&event, count).unwrap();
            }
            let spent = gdp.epsilon(delta).unwrap().epsilon.get();
            assert!(spent <= epsilon.get() && spent > epsilon.get() * (1.0 - 1e-9), "{spent}");
            let bracket = pld.epsilon(delta).unwrap();
            let lower = bracket.lower.unwrap().get();
            // The closed form is rounded to the nearest, and the bracket is as narrow.
            assert!(
                lower <= spent * (1.0 + 1e-11) && spent <= bracket.epsilon.get() * (1.0 + 1e-11),
                "{lower} {spent}"
            );
            assert!(bracket.epsilon.get() - lower < 1e-2 * spent);
        }
    }

    #[test]
    fn shares_out_of_range_are_refused() {
        let budget = GaussianBudget::new(Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
        insta::assert_snapshot!(budget.noise_multiplier(0.0, 1).unwrap_err(), @"share = 0: expected a number in (0, 1]");
        insta::assert_snapshot!(budget.noise_multiplier(1.5, 1).unwrap_err(), @"share = 1.5: expected a number in (0, 1]");
        insta::assert_snapshot!(budget.noise_multiplier(0.5, 0).unwrap_err(), @"count = 0: expected at least 1");
    }
}
