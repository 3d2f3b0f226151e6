//! The event for a user with several records.

use crate::{AccountingError, Delta, DpEvent, Epsilon, MixtureOfGaussians, NoiseMultiplier, Rho, SamplingRate};

impl DpEvent {
    /// This event as it is for a user, or any group that comes and goes together, with `records`
    /// records at most.
    ///
    /// **Guarantee.** Of neighbours that differ in one such user, under the relation of the
    /// accountant: their records contribute `records` times the bound at most, and in a Poisson
    /// batch a binomial number of them. Mechanisms known by ε, δ or ρ alone grow by the general
    /// rules for groups (Vadhan 2017, Lemma 2.2; Bun & Steinke 2016,
    /// Proposition 1.9).
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless `records` is in [1, 255],
    /// [`AccountingError::NotRepresentable`] for what has no known analysis: batches of fixed size,
    /// local reports, searches.
    ///
    /// **Example**
    /// ```
    /// use dp_accounting::{DpEvent, NoiseMultiplier};
    /// let one = DpEvent::gaussian(NoiseMultiplier::new(6.0)?);
    /// assert_eq!(one.for_user(3)?, DpEvent::gaussian(NoiseMultiplier::new(2.0)?));
    /// # Ok::<(), dp_accounting::AccountingError>(())
    /// ```
    pub fn for_user(&self, records: u32) -> Result<Self, AccountingError> {
        if !(1..=255).contains(&records) {
            return Err(AccountingError::invalid("records", records, "1 to 255"));
        }
        self.check_levels()?;
        if records == 1 {
            return Ok(self.clone());
        }
        let k = f64::from(records);
        let less = |sigma: NoiseMultiplier| NoiseMultiplier::new(sigma.get() / k);
        Ok(match self {
            Self::NonPrivate => Self::NonPrivate,
            Self::Gaussian { noise_multiplier } => Self::gaussian(less(*noise_multiplier)?),
            Self::Laplace { noise_multiplier } => Self::laplace(less(*noise_multiplier)?),
            Self::JointGaussian { noise_multipliers } => {
                Self::joint_gaussian(noise_multipliers.iter().map(|sigma| less(*sigma)).collect::<Result<Vec<_>, _>>()?)
            }
            Self::ZeroConcentrated { rho } => Self::ZeroConcentrated { rho: Rho::new(rho.get() * k * k)? },
            Self::EpsilonDelta { epsilon, delta } => {
                // δ·(1 + e^ε + … + e^((k-1)ε)).
                let sum: f64 = (0..records).map(|i| libm::exp(f64::from(i) * epsilon.get())).sum();
                let delta = if delta.get() == 0.0 { 0.0 } else { (delta.get() * sum * (1.0 + 1e-12)).min(1.0) };
                Self::EpsilonDelta { epsilon: Epsilon::new(epsilon.get() * k)?, delta: Delta::new(delta)? }
            }
            Self::TreeAggregation(tree) => Self::TreeAggregation(tree.with_noise(less)?),
            Self::DiscreteLaplace { scale, sensitivity } => {
                Self::DiscreteLaplace { scale: *scale, sensitivity: sensitivity.saturating_mul(records) }
            }
            Self::DiscreteGaussian { sigma, sensitivity } => {
                Self::DiscreteGaussian { sigma: *sigma, sensitivity: sensitivity.saturating_mul(records) }
            }
            Self::PoissonSampled { sampling_rate, event } => sampled(*sampling_rate, event, records)?
                .ok_or_else(|| self.has_no_group_analysis("Poisson-sampled Gaussians have one"))?,
            // The user's records must be in the same part, or their steps would overlap: that is
            // for the caller to say.
            Self::BandedMatrixFactorisation(_) => {
                return Err(self.has_no_group_analysis("compose the rounds of a user whose records share a part"));
            }
            Self::Composed(events) => {
                Self::Composed(events.iter().map(|event| event.for_user(records)).collect::<Result<_, _>>()?)
            }
            Self::SelfComposed { event, count } => event.for_user(records)?.repeated(*count),
            Self::OneOf(events) if events.len() == 1 => Self::OneOf(vec![events[0].for_user(records)?]),
            _ => return Err(self.has_no_group_analysis("sums with noise and Poisson-sampled Gaussians have one")),
        })
    }

    pub(crate) fn has_no_group_analysis(&self, possible: &'static str) -> AccountingError {
        AccountingError::NotRepresentable { accountant: "user-level", event: self.to_string(), possible }
    }
}

/// A Poisson-sampled Gaussian for a user; `None` for other queries.
fn sampled(rate: SamplingRate, inner: &DpEvent, records: u32) -> Result<Option<DpEvent>, AccountingError> {
    if rate.get() >= 1.0 {
        return inner.for_user(records).map(Some);
    }
    Ok(match inner {
        DpEvent::NonPrivate => Some(DpEvent::NonPrivate),
        DpEvent::Gaussian { noise_multiplier } => {
            Some(DpEvent::MixtureOfGaussians(MixtureOfGaussians::of_user(*noise_multiplier, rate, records)?))
        }
        DpEvent::JointGaussian { noise_multipliers } if !noise_multipliers.is_empty() => {
            let precision: f64 = noise_multipliers.iter().map(|sigma| sigma.get().powi(-2)).sum();
            // Rounded towards less noise.
            let sigma = NoiseMultiplier::new(precision.sqrt().recip() * (1.0 - 4.0 * f64::EPSILON))?;
            Some(DpEvent::MixtureOfGaussians(MixtureOfGaussians::of_user(sigma, rate, records)?))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_by_hand() {
        let two = |event: DpEvent| event.for_user(2).unwrap();
        let sigma = |value: f64| NoiseMultiplier::new(value).unwrap();
        let pure =
            DpEvent::EpsilonDelta { epsilon: Epsilon::new(2.0_f64.ln()).unwrap(), delta: Delta::new(0.01).unwrap() };
        let DpEvent::EpsilonDelta { epsilon, delta } = two(pure) else { panic!("another kind of event") };
        // ε = 2 ln 2, δ = 0.01·(1 + 2).
        assert!((epsilon.get() - 4.0_f64.ln()).abs() < 1e-15 && (delta.get() - 0.03).abs() < 1e-12);
        assert_eq!(
            two(DpEvent::ZeroConcentrated { rho: Rho::new(0.5).unwrap() }),
            DpEvent::ZeroConcentrated { rho: Rho::new(2.0).unwrap() }
        );
        let step = DpEvent::gaussian(sigma(1.0)).poisson_sampled(SamplingRate::new(0.5).unwrap());
        let user = two(step);
        let DpEvent::MixtureOfGaussians(mixture) = &user else { panic!("another kind of event") };
        assert!(mixture.probabilities().iter().zip([0.25, 0.5, 0.25]).all(|(a, b)| (a - b).abs() < 1e-14));
        let fixed = DpEvent::gaussian(sigma(1.0)).fixed_size_sampled(10, 2).unwrap();
        insta::assert_snapshot!(fixed.for_user(2).unwrap_err(), @"the user-level accountant cannot represent fixed-size-sampled (2 of 10) Gaussian (noise multiplier 1): sums with noise and Poisson-sampled Gaussians have one");
    }
}
