//! Rényi differential privacy: composition by addition at each order, then conversion to (ε, δ).

mod allocation;
mod cache;
mod conversion;
mod fixed_size;
mod laplace;
mod mechanisms;
mod orders;
mod pair;
mod quadrature;
mod repeat_and_select;
mod sampled_gaussian;

pub use conversion::Conversion;
pub use orders::Orders;
pub(crate) use sampled_gaussian::sampled_gaussian_rdp;

use crate::composition::Composition;
use crate::limits::{self, OverComposition};
use crate::{
    Accountant, AccountingError, Certainty, Delta, DeltaBound, DpEvent, Epsilon, EpsilonBound, NeighbouringRelation,
};
use mechanisms::{Divergences, RdpCurve};

/// Accountant by Rényi differential privacy, an upper bound for every kind of event.
///
/// Keeps the events, not their divergences, so that the order can be optimised continuously for
/// each question.
///
/// **Source.** Mironov 2017; Mironov, Talwar & Zhang 2019 for the sampled Gaussian; Canonne, Kamath
/// & Steinke 2020 for the improved conversion.
///
/// **Example**
/// ```
/// use dp_accounting::{Accountant, Conversion, Delta, DpEvent, NeighbouringRelation, NoiseMultiplier, Orders, RdpAccountant, SamplingRate};
/// // Xu et al. 2021, Adult: the moments accountant, ε = 3.1.
/// let step = DpEvent::gaussian(NoiseMultiplier::new(1.0)?).poisson_sampled(SamplingRate::new(256.0 / 36_178.0)?);
/// let mut accountant = RdpAccountant::new(NeighbouringRelation::AddRemove)
///     .with_orders(Orders::moments_accountant())
///     .with_conversion(Conversion::Classic);
/// accountant.compose(&step, 2_826)?;
/// assert!((accountant.epsilon(Delta::new(1e-6)?)?.epsilon.get() - 3.100).abs() < 5e-4);
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RdpAccountant {
    composition: Composition,
    orders: Orders,
    conversion: Conversion,
    divergences: Divergences,
}

impl RdpAccountant {
    /// An accountant that has seen nothing: adaptive orders, improved conversion.
    pub fn new(relation: NeighbouringRelation) -> Self {
        Self {
            composition: Composition::new(relation),
            orders: Orders::Adaptive,
            conversion: Conversion::Improved,
            divergences: Divergences::Best,
        }
    }

    pub(crate) fn from_composition(composition: Composition) -> Self {
        Self { composition, orders: Orders::Adaptive, conversion: Conversion::Improved, divergences: Divergences::Best }
    }

    /// Uses other orders.
    #[must_use]
    pub fn with_orders(mut self, orders: Orders) -> Self {
        self.orders = orders;
        self
    }

    /// Uses another conversion.
    #[must_use]
    pub const fn with_conversion(mut self, conversion: Conversion) -> Self {
        self.conversion = conversion;
        self
    }

    /// Replaces divergences whose quadrature has no proven error by coarser ones that are proven.
    pub(crate) const fn with_proven_divergences(mut self) -> Self {
        self.divergences = Divergences::Proven;
        self
    }

    fn curve(&self) -> RdpCurve {
        RdpCurve::new(&self.composition, self.divergences)
    }

    /// Minimises over the orders, and looks at those at which alone something is known, where a bound
    /// jumps.
    fn search(&self, objective: impl Fn(f64) -> (f64, f64)) -> orders::Best {
        let mut best = self.orders.minimise(&objective, orders::PLAUSIBLE_RANGE);
        if self.orders == Orders::Adaptive {
            self.composition.known_orders().into_iter().for_each(|order| best.improve(order, objective(order).0));
        }
        best
    }

    /// Rényi divergence of everything composed, at one order.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless the order is finite and greater than 1.
    pub fn rdp(&self, order: f64) -> Result<f64, AccountingError> {
        if order > 1.0 && order.is_finite() {
            Ok(self.curve().at(order))
        } else {
            Err(AccountingError::invalid("order", order, "a finite number above 1"))
        }
    }
}

impl OverComposition for RdpAccountant {
    fn composition(&self) -> &Composition {
        &self.composition
    }

    fn with_composition(&self, composition: Composition) -> Self {
        Self { composition, ..self.clone() }
    }
}

/// An estimate, though none was found too small, where a quadrature allows for an error that is not
/// proven: of batches of fixed size, and of sampled Laplace noise.
fn certainty(curve: &RdpCurve) -> Certainty {
    if curve.is_proven() { Certainty::Bound } else { Certainty::Estimate }
}

impl Accountant for RdpAccountant {
    fn name(&self) -> String {
        match self.orders {
            Orders::Adaptive => format!("RDP, {} conversion", self.conversion),
            Orders::Fixed(ref orders) => format!("RDP, {} conversion, {} fixed orders", self.conversion, orders.len()),
        }
    }

    fn relation(&self) -> NeighbouringRelation {
        self.composition.relation()
    }

    fn compose(&mut self, event: &DpEvent, count: u64) -> Result<(), AccountingError> {
        self.composition.add(event, count)
    }

    fn epsilon(&self, delta: Delta) -> Result<EpsilonBound, AccountingError> {
        if let Some(bound) = limits::epsilon(self, delta)? {
            return Ok(bound);
        }
        let curve = self.curve();
        let best = match &self.orders {
            Orders::Fixed(list) => {
                orders::least_of(list, |order| curve.at(order), |order, rdp| self.conversion.epsilon(order, rdp, delta))
            }
            Orders::Adaptive => self.search(|order| {
                let rdp = curve.at(order);
                (self.conversion.epsilon(order, rdp, delta), self.conversion.least_epsilon(order, rdp))
            }),
        };
        let (order, epsilon) = (best.is_finite().then_some(best.order), best.value.max(0.0));
        let (epsilon, certainty) = (Epsilon::new(epsilon)?, certainty(&curve));
        limits::at_most_pure(&self.composition, EpsilonBound { epsilon, lower: None, certainty, order, method: None })
    }

    fn delta(&self, epsilon: Epsilon) -> Result<DeltaBound, AccountingError> {
        if let Some(bound) = limits::delta(self, epsilon)? {
            return Ok(bound);
        }
        let curve = self.curve();
        let best = self.search(|order| {
            let rdp = curve.at(order);
            // Once the least ε of an order is above this one, no higher order brings δ below 1.
            let is_hopeless = self.conversion.least_epsilon(order, rdp) >= epsilon.get();
            let rest = if is_hopeless { 0.0 } else { f64::NEG_INFINITY };
            (self.conversion.log_delta(order, rdp, epsilon), rest)
        });
        let (order, delta) = (best.is_finite().then_some(best.order), libm::exp(best.value.min(0.0)));
        Ok(DeltaBound { delta, lower: None, certainty: certainty(&curve), order, method: None })
    }
}
