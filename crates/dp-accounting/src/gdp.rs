//! The central-limit estimate by Gaussian differential privacy.

use crate::composition::{Composition, Mechanism};
use crate::gaussian::{gaussian_delta, gaussian_epsilon_at_most};
use crate::limits::{self, OverComposition};
use crate::{
    Accountant, AccountingError, Certainty, Delta, DeltaBound, DpEvent, Epsilon, EpsilonBound, NeighbouringRelation,
};

/// Accountant by Gaussian differential privacy: exact for Gaussians on the whole data, a
/// central-limit *estimate* for Poisson-sampled ones.
///
/// **Guarantee.** None when anything is sampled: the estimate is usually too small, and says so by
/// [`Certainty::Estimate`].
///
/// **Source.** Bu, Dong, Long & Su 2020, Corollary 4: `μ = q √(T (e^(1/σ²) - 1))`; Dong, Roth & Su
/// 2022 for full batches, `μ = √T/σ`.
///
/// **Example**
/// ```
/// use dp_accounting::{Accountant, Certainty, Delta, DpEvent, GdpAccountant, NeighbouringRelation, NoiseMultiplier, SamplingRate};
/// let step = DpEvent::gaussian(NoiseMultiplier::new(1.0)?).poisson_sampled(SamplingRate::new(256.0 / 36_178.0)?);
/// let mut accountant = GdpAccountant::new(NeighbouringRelation::AddRemove);
/// accountant.compose(&step, 2_826)?;
/// let estimate = accountant.epsilon(Delta::new(1e-6)?)?;
/// // The true value is 2.413.
/// assert!((estimate.epsilon.get() - 2.2199).abs() < 1e-3);
/// assert_eq!(estimate.certainty, Certainty::Estimate);
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GdpAccountant {
    composition: Composition,
}

impl GdpAccountant {
    /// An accountant that has seen nothing.
    pub fn new(relation: NeighbouringRelation) -> Self {
        Self { composition: Composition::new(relation) }
    }

    /// `μ` of everything composed, a bound on its rounding, and whether it is exact but for that.
    fn mu(&self) -> (f64, f64, Certainty) {
        let mut certainty = Certainty::Bound;
        let squared: f64 = self
            .composition
            .sorted_parts()
            .iter()
            .map(|(mechanism, count)| {
                let one = match *mechanism {
                    Mechanism::Gaussian { sigma } => (sigma * sigma).recip().max(f64::MIN_POSITIVE),
                    Mechanism::SampledGaussian { q, sigma } => {
                        certainty = Certainty::Estimate;
                        q * q * libm::expm1((sigma * sigma).recip())
                    }
                    // Nothing else gets past `compose`.
                    _ => f64::INFINITY,
                };
                one * *count as f64
            })
            .sum();
        let rounding = f64::EPSILON * (self.composition.parts().len() as f64 + 8.0);
        (squared.sqrt(), rounding, certainty)
    }
}

impl OverComposition for GdpAccountant {
    fn composition(&self) -> &Composition {
        &self.composition
    }

    fn with_composition(&self, composition: Composition) -> Self {
        Self { composition }
    }
}

impl Accountant for GdpAccountant {
    fn name(&self) -> String {
        "GDP".to_owned()
    }

    fn relation(&self) -> NeighbouringRelation {
        self.composition.relation()
    }

    fn compose(&mut self, event: &DpEvent, count: u64) -> Result<(), AccountingError> {
        let mut addition = Composition::new(self.composition.relation());
        addition.add(event, count)?;
        let representable = |mechanism: &Mechanism| {
            matches!(mechanism, Mechanism::Gaussian { .. } | Mechanism::SampledGaussian { .. } | Mechanism::NonPrivate)
        };
        if addition.parts().iter().all(|(mechanism, _)| representable(mechanism)) {
            self.composition.merge(addition)
        } else {
            Err(AccountingError::NotRepresentable {
                accountant: "GDP",
                event: event.to_string(),
                possible: "it knows Gaussians, Poisson-sampled or on the whole data; use RDP or PLD",
            })
        }
    }

    fn epsilon(&self, delta: Delta) -> Result<EpsilonBound, AccountingError> {
        if let Some(bound) = limits::epsilon(self, delta)? {
            return Ok(bound);
        }
        let (mu, rounding, certainty) = self.mu();
        let epsilon = Epsilon::new(gaussian_epsilon_at_most(mu, rounding, delta.get()))?;
        let bound = EpsilonBound { epsilon, lower: None, certainty, order: None, method: None };
        limits::at_most_pure(&self.composition, bound)
    }

    fn delta(&self, epsilon: Epsilon) -> Result<DeltaBound, AccountingError> {
        if let Some(bound) = limits::delta(self, epsilon)? {
            return Ok(bound);
        }
        let (mu, rounding, certainty) = self.mu();
        let delta = match (mu, epsilon.is_finite()) {
            _ if self.composition.is_non_private() => 1.0,
            (_, false) | (0.0, true) => 0.0,
            (mu, true) if !mu.is_finite() => 1.0,
            (mu, true) => gaussian_delta(mu, rounding, epsilon.get()).1,
        };
        Ok(DeltaBound { delta, lower: None, certainty, order: None, method: None })
    }
}
