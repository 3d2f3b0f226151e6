//! Privacy loss distributions: the tight ε, bracketed from both sides.

#![expect(clippy::cast_possible_wrap, reason = "grid indices are far below 2^63")]

mod base_loss;
mod bracket;
mod cells;
mod convolve;
mod discrete;
mod mechanism;

use bracket::{Bracket, Effort, Guess, Question, bracket};
use mechanism::PldMechanism;

use crate::composition::Composition;
use crate::gaussian::{gaussian_delta, gaussian_epsilon};
use crate::{
    Accountant, AccountingError, Certainty, Delta, DeltaBound, DpEvent, Epsilon, EpsilonBound, NeighbouringRelation,
    RdpAccountant,
};

/// Accountant by privacy loss distributions: a certified lower and upper bound on the best possible ε.
///
/// The loss of each mechanism is discretised twice, once so that it dominates the true one (connect-the-dots) and once so that the true one dominates it; sums
/// are taken by FFT under an exponential tilt, which keeps the relative error small at any δ. Truncation, aliasing and rounding are bounded and
/// charged to the bounds. The grid is refined until the bracket is as narrow as asked for.
///
/// **Guarantee.** `lower ≤ ε ≤ upper` for the composition of the dominating pairs of the mechanisms, the larger of the two directions of a relation. For
/// Poisson-sampled Gaussian and Laplace queries that is the exact ε.
///
/// **Edge cases.** When the width is not reached within the budget, or a mechanism has no privacy loss distribution (zero-concentrated,
/// repeat-and-select), the answer is the smaller of the upper bound so far and the RDP bound, marked [`Certainty::FallBack`].
///
/// **Source.** Doroshenko et al. 2022 for the upper discretisation; Zhu, Dong & Wang 2022 for dominating pairs.
///
/// **Example**
/// ```
/// use dp_accounting::{Accountant, Delta, DpEvent, NeighbouringRelation, NoiseMultiplier, PldAccountant, SamplingRate};
/// let step = DpEvent::gaussian(NoiseMultiplier::new(1.0)?).poisson_sampled(SamplingRate::new(256.0 / 36_178.0)?);
/// let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
/// accountant.compose(&step, 2_826)?;
/// let bound = accountant.epsilon(Delta::new(1e-6)?)?;
/// // RDP says 2.66; the true value is 2.41328.
/// assert!(bound.epsilon.get() < 2.4148 && bound.lower.unwrap().get() > 2.4120);
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PldAccountant {
    composition: Composition,
    effort: Effort,
}

impl PldAccountant {
    /// An accountant that has seen nothing; brackets are refined to a relative width of 1e-3, with grids of up to 2²¹ points.
    pub const fn new(relation: NeighbouringRelation) -> Self {
        Self { composition: Composition::new(relation), effort: Effort { relative_width: 1e-3, max_points: 1 << 21 } }
    }

    /// Refines until `(upper - lower)/upper` is at most this.
    ///
    /// # Errors
    /// [`AccountingError::OutOfRange`] unless the width lies in [1e-9, 1).
    pub fn with_relative_width(mut self, width: f64) -> Result<Self, AccountingError> {
        if !(1e-9..1.0).contains(&width) {
            return Err(AccountingError::OutOfRange {
                parameter: "relative width",
                value: width,
                accepted: "in [1e-9, 1)",
            });
        }
        self.effort.relative_width = width;
        Ok(self)
    }

    /// Bounds time and memory: no grid and no transform has more points. Beyond it the answer falls back.
    ///
    /// # Errors
    /// [`AccountingError::OutOfRange`] unless it lies in [64, 2²⁶].
    pub fn with_max_points(mut self, max_points: usize) -> Result<Self, AccountingError> {
        if !(64..=1 << 26).contains(&max_points) {
            return Err(AccountingError::OutOfRange {
                parameter: "largest number of grid points",
                value: max_points as f64,
                accepted: "in [64, 2^26]",
            });
        }
        self.effort.max_points = max_points;
        Ok(self)
    }

    fn certainty(&self, bracket: Bracket) -> Certainty {
        if bracket.is_narrow(self.effort.relative_width) {
            return Certainty::Bound;
        }
        Certainty::FallBack {
            reason: format!(
                "no bracket of relative width {} within {} grid points: the smaller of the RDP bound and the upper bound so far",
                self.effort.relative_width, self.effort.max_points
            ),
        }
    }

    fn rdp(&self) -> RdpAccountant {
        RdpAccountant::from_composition(self.composition.clone())
    }
}

impl Accountant for PldAccountant {
    fn name(&self) -> String {
        "PLD".to_owned()
    }

    fn relation(&self) -> NeighbouringRelation {
        self.composition.relation()
    }

    fn compose(&mut self, event: &DpEvent, count: u64) -> Result<(), AccountingError> {
        self.composition.add(event, count)
    }

    fn epsilon(&self, delta: Delta) -> Result<EpsilonBound, AccountingError> {
        let bound = |lower: f64, upper: f64, certainty: Certainty| {
            Ok(EpsilonBound {
                epsilon: Epsilon::new(upper)?,
                lower: Some(Epsilon::new(lower)?),
                certainty,
                order: None,
            })
        };
        if self.composition.parts().is_empty() {
            return bound(0.0, 0.0, Certainty::Bound);
        }
        if self.composition.is_non_private() {
            return bound(f64::INFINITY, f64::INFINITY, Certainty::Bound);
        }
        let by_rdp = self.rdp().epsilon(delta)?;
        let mechanisms = match PldMechanism::of(&self.composition) {
            Ok(mechanisms) => mechanisms,
            Err(obstacle) => return Ok(EpsilonBound { certainty: no_distribution(&obstacle), ..by_rdp }),
        };
        if let [(mechanism, _)] = mechanisms[..]
            && let Some(mu) = mechanism.as_gaussian()
        {
            let epsilon = gaussian_epsilon(mu, delta.get());
            return bound(epsilon * (1.0 - GAUSSIAN_ERROR), epsilon * (1.0 + GAUSSIAN_ERROR), Certainty::Bound);
        }
        let upper = by_rdp.epsilon.get();
        let guess = Guess { upper, epsilon: upper, log_delta: delta.get().ln() };
        let found = bracket(&mechanisms, Question::Epsilon { delta: delta.get() }, guess, self.effort);
        // The losses behind a smaller ε are rounding errors; it is left to RDP, which works with logarithms.
        let found = Bracket { upper: found.upper.max(upper.min(LEAST_EPSILON)), ..found };
        bound(found.lower, found.upper, self.certainty(found))
    }

    fn delta(&self, epsilon: Epsilon) -> Result<DeltaBound, AccountingError> {
        let bound = |lower: f64, upper: f64, certainty: Certainty| DeltaBound {
            delta: upper,
            lower: Some(lower),
            certainty,
            order: None,
        };
        if self.composition.parts().is_empty() {
            return Ok(bound(0.0, 0.0, Certainty::Bound));
        }
        if self.composition.is_non_private() {
            let delta = if epsilon.is_finite() { 1.0 } else { 0.0 };
            return Ok(bound(delta, delta, Certainty::Bound));
        }
        let by_rdp = self.rdp().delta(epsilon)?;
        if !epsilon.is_finite() {
            return Ok(bound(0.0, 0.0, Certainty::Bound));
        }
        let mechanisms = match PldMechanism::of(&self.composition) {
            Ok(mechanisms) => mechanisms,
            Err(obstacle) => return Ok(DeltaBound { certainty: no_distribution(&obstacle), ..by_rdp }),
        };
        if let [(mechanism, _)] = mechanisms[..]
            && let Some(mu) = mechanism.as_gaussian()
        {
            let delta = gaussian_delta(mu, epsilon.get());
            return Ok(bound(
                delta * (1.0 - GAUSSIAN_ERROR),
                (delta * (1.0 + GAUSSIAN_ERROR)).min(1.0),
                Certainty::Bound,
            ));
        }
        let guess =
            Guess { upper: by_rdp.delta, epsilon: epsilon.get().max(1e-3), log_delta: by_rdp.delta.ln().max(-700.0) };
        let found = bracket(&mechanisms, Question::Delta { epsilon: epsilon.get() }, guess, self.effort);
        Ok(bound(found.lower, found.upper, self.certainty(found)))
    }
}

/// Upper bounds on ε below this are not trusted to the grid.
const LEAST_EPSILON: f64 = 1e-12;

/// Relative error allowed for in the closed form of the Gaussian mechanism.
const GAUSSIAN_ERROR: f64 = 1e-11;

fn no_distribution(obstacle: &str) -> Certainty {
    Certainty::FallBack { reason: format!("{obstacle} has no privacy loss distribution: the RDP bound") }
}
