//! The interface of every accountant.

use serde::{Deserialize, Serialize};

use crate::{AccountingError, AttackBound, Delta, DpEvent, Epsilon, Mark, NeighbouringRelation};

/// How much a reported number can be trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Certainty {
    /// A proven upper bound.
    Bound,
    /// A proven upper bound of a coarser accountant, because the one that was asked could not
    /// answer.
    FallBack {
        /// Why.
        reason: String,
    },
    /// An approximation that may be too small. Not a guarantee.
    Estimate,
}

impl Certainty {
    /// The certainty of an answer that rests on both: the weaker one, of equals this one.
    #[must_use]
    pub fn weaker(self, other: Self) -> Self {
        let doubt = |certainty: &Self| match certainty {
            Self::Bound => 0,
            Self::FallBack { .. } => 1,
            Self::Estimate => 2,
        };
        if doubt(&other) > doubt(&self) { other } else { self }
    }
}

/// How an accountant that has several ways found its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// A formula, exact but for rounding.
    ClosedForm,
    /// The inversion integral of the privacy loss's moment-generating function, with bounded
    /// errors.
    ContourIntegral,
    /// Privacy loss distributions on a grid, with bounded errors.
    Grid,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ClosedForm => "closed form",
            Self::ContourIntegral => "contour integral",
            Self::Grid => "grid",
        })
    }
}

/// Answer to "which ε at this δ?".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EpsilonBound {
    /// The answer: an upper bound unless [`certainty`](Self::certainty) says that it is an
    /// estimate.
    pub epsilon: Epsilon,
    /// A proven lower bound on the smallest possible ε, where the accountant has one.
    pub lower: Option<Epsilon>,
    /// How much the answer can be trusted.
    pub certainty: Certainty,
    /// The Rényi order that gave the answer, for accountants that have one.
    pub order: Option<f64>,
    /// How the answer was found, for accountants that have several ways.
    pub method: Option<Method>,
}

/// Answer to "which δ at this ε?".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeltaBound {
    /// The answer, in [0, 1]: an upper bound unless [`certainty`](Self::certainty) says that it is
    /// an estimate.
    pub delta: f64,
    /// A proven lower bound on the smallest possible δ, where the accountant has one.
    pub lower: Option<f64>,
    /// How much the answer can be trusted.
    pub certainty: Certainty,
    /// The Rényi order that gave the answer, for accountants that have one.
    pub order: Option<f64>,
    /// How the answer was found, for accountants that have several ways.
    pub method: Option<Method>,
}

impl EpsilonBound {
    /// A bound without a lower one, an order and a method.
    pub const fn new(epsilon: Epsilon, certainty: Certainty) -> Self {
        Self { epsilon, lower: None, certainty, order: None, method: None }
    }
}

impl DeltaBound {
    /// A bound without a lower one, an order and a method.
    pub const fn new(delta: f64, certainty: Certainty) -> Self {
        Self { delta, lower: None, certainty, order: None, method: None }
    }

    /// Its mark, without conditions: nominal if it is an estimate, or 1, which promises nothing;
    /// else certified.
    pub fn mark(&self) -> Mark {
        match self.certainty {
            Certainty::Bound | Certainty::FallBack { .. } if self.delta < 1.0 => Mark::Certified,
            _ => Mark::Nominal,
        }
    }
}

/// Turns a composition of events into a guarantee.
///
/// **Guarantee.** What every implementation keeps: nothing composed is (0, 0); a non-private event
/// is ε = ∞; `count` equals a list; the answer grows with compositions and falls with noise; an
/// anomaly is an error or ∞, never a smaller number.
///
/// **Example**
/// ```
/// use dp_accounting::{Accountant, Delta, DpEvent, NeighbouringRelation, NoiseMultiplier, RdpAccountant, SamplingRate};
/// let step = DpEvent::gaussian(NoiseMultiplier::new(1.0)?).poisson_sampled(SamplingRate::new(0.01)?);
/// let mut accountant = RdpAccountant::new(NeighbouringRelation::AddRemove);
/// accountant.compose(&step, 1_000)?;
/// let bound = accountant.epsilon(Delta::new(1e-5)?)?;
/// assert!((bound.epsilon.get() - 2.1014).abs() < 1e-3);
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
pub trait Accountant {
    /// Name for tables, for example `RDP, improved conversion`.
    fn name(&self) -> String;

    /// The relation that the guarantee is about.
    fn relation(&self) -> NeighbouringRelation;

    /// Adds `count` times an event; on an error nothing was added.
    ///
    /// # Errors
    /// When there is no sound analysis of the event under the relation, or this accountant has
    /// none.
    fn compose(&mut self, event: &DpEvent, count: u64) -> Result<(), AccountingError>;

    /// ε at a given δ.
    ///
    /// # Errors
    /// When the numerics fail; what merely has no guarantee is ε = ∞.
    fn epsilon(&self, delta: Delta) -> Result<EpsilonBound, AccountingError>;

    /// δ at a given ε.
    ///
    /// # Errors
    /// When the numerics fail; what merely has no guarantee is δ = 1.
    fn delta(&self, epsilon: Epsilon) -> Result<DeltaBound, AccountingError>;

    /// δ at a given ε with the two neighbours exchanged: the same, unless the relation is one of
    /// order, as [`Remove`](NeighbouringRelation::Remove) and [`Add`](NeighbouringRelation::Add)
    /// are.
    ///
    /// # Errors
    /// As [`delta`](Self::delta).
    fn exchanged_delta(&self, epsilon: Epsilon) -> Result<DeltaBound, AccountingError> {
        self.delta(epsilon)
    }

    /// The smallest false-negative rate of any test with this false-positive rate, in (0, 1), where
    /// what was composed has a formula for it; [`TradeOff`](crate::TradeOff) searches otherwise.
    fn false_negative_rate_by_formula(&self, _false_positive_rate: f64) -> Option<AttackBound> {
        None
    }

    /// δ at any real ε, below 0 too: `max over events of P(event) - e^ε·Q(event)`, for every pair
    /// of neighbours.
    ///
    /// With δ' that of the neighbours exchanged, `δ(-ε) = 1 - e^-ε·(1 - δ'(ε))`.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for NaN; otherwise as [`delta`](Self::delta).
    fn privacy_profile(&self, epsilon: f64) -> Result<DeltaBound, AccountingError> {
        if epsilon.is_nan() {
            return Err(AccountingError::invalid("epsilon", epsilon, "a number"));
        }
        if epsilon >= 0.0 {
            return self.delta(Epsilon::new(epsilon)?);
        }
        let mirrored = self.exchanged_delta(Epsilon::new(-epsilon)?)?;
        // 1 - e^ε + e^ε·δ, a sum of positive terms.
        let at = |delta: f64| -libm::expm1(epsilon) + libm::exp(epsilon) * delta;
        let rounding = 8.0 * f64::EPSILON;
        Ok(DeltaBound {
            delta: (at(mirrored.delta) * (1.0 + rounding)).min(1.0),
            lower: mirrored.lower.map(|lower| at(lower) * (1.0 - rounding)),
            ..mirrored
        })
    }
}
