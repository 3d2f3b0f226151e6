//! The price of releasing the best of a random number of runs.

use super::mechanisms::RdpCurve;
use super::orders::{Best, Orders, PLAUSIBLE_RANGE};
use crate::TrialCount;
use crate::rdp::Conversion;

/// Rényi divergence of a search, with what does not depend on the order worked out beforehand.
///
/// The bound at one order holds at every lower one, since divergences grow with the order; the
/// bound itself need not.
///
/// **Source.** Papernot & Steinke 2022, Theorem 2 (truncated negative binomial) and Theorem 6
/// (Poisson).
pub(super) struct RepeatAndSelect {
    bound: Bound,
    /// The order with the smallest bound, and that bound.
    least: Best,
}

/// The theorems' bound.
struct Bound {
    one_run: RdpCurve,
    log_mean: f64,
    surcharge: Surcharge,
}

enum Surcharge {
    /// `(1+η) min over λ̂ of (1 - 1/λ̂) ε̂ + ln(1/γ)/λ̂`, the same at every order.
    Constant(f64),
    /// `E[K]·δ̂` with δ̂ the δ of one run at `ε̂ = ln(1 + 1/(λ-1))`.
    Poisson { mean: f64 },
}

/// `α - 1` of the orders at which one run is looked at: a search with many trials of next to no
/// privacy loss asks for very large ones.
const RANGE: (f64, f64) = (PLAUSIBLE_RANGE.0, 1e15);

impl RepeatAndSelect {
    pub(super) fn new(one_run: RdpCurve, trials: TrialCount) -> Self {
        let surcharge = match trials.as_negative_binomial() {
            Some((shape, gamma)) => {
                let log_gamma = libm::log(gamma);
                let best = Orders::Adaptive.minimise(
                    |order| {
                        let rdp = one_run.at(order);
                        ((1.0 - 1.0 / order) * rdp - log_gamma / order, (1.0 - 1.0 / order) * rdp)
                    },
                    RANGE,
                );
                // λ̂ = 1 costs ln(1/γ) and is always allowed.
                Surcharge::Constant((1.0 + shape) * best.value.min(-log_gamma))
            }
            None => Surcharge::Poisson { mean: trials.mean() },
        };
        // A mean below one (Poisson) gets no discount.
        let bound = Bound { one_run, log_mean: trials.log_mean().max(0.0), surcharge };
        let least = Orders::Adaptive.minimise(|order| (bound.at(order), bound.one_run.at(order)), RANGE);
        Self { bound, least }
    }

    /// Whether what is known of one run is proven.
    pub(super) fn is_proven(&self) -> bool {
        self.bound.one_run.is_proven()
    }

    pub(super) fn at(&self, order: f64) -> f64 {
        let here = self.bound.at(order);
        if order <= self.least.order { here.min(self.least.value) } else { here }
    }
}

impl Bound {
    fn at(&self, order: f64) -> f64 {
        let surcharge = match self.surcharge {
            Surcharge::Constant(surcharge) => surcharge,
            Surcharge::Poisson { mean } => {
                let epsilon = libm::log1p(1.0 / (order - 1.0));
                let best = Orders::Adaptive.minimise(
                    |order| {
                        let least = Conversion::Improved.least_epsilon(order, self.one_run.at(order));
                        let rest = if least >= epsilon { 0.0 } else { f64::NEG_INFINITY };
                        ((order - 1.0) * (least - epsilon), rest)
                    },
                    RANGE,
                );
                mean * libm::exp(best.value.min(0.0))
            }
        };
        (self.one_run.at(order) + surcharge + self.log_mean / (order - 1.0)) * (1.0 + 16.0 * f64::EPSILON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::composition::Composition;
    use crate::rdp::mechanisms::Divergences;
    use crate::{DpEvent, NeighbouringRelation, Rho};

    fn search(rho: f64, trials: TrialCount) -> RepeatAndSelect {
        let mut one = Composition::new(NeighbouringRelation::AddRemove);
        one.add(&DpEvent::ZeroConcentrated { rho: Rho::new(rho).unwrap() }, 1).unwrap();
        RepeatAndSelect::new(RdpCurve::new(&one, Divergences::Best), trials)
    }

    #[test]
    fn the_bound_of_a_higher_order_holds_at_lower_ones() {
        // With ρ = 0.01, γ = 0.01 and a logarithmic number of trials the smallest bound, 0.7795, is
        // that of order 18.5.
        let search = search(0.01, TrialCount::negative_binomial(0.0, 0.01).unwrap());
        let mut previous = 0.0;
        for i in 0..200 {
            let order = 1.0 + 1.1_f64.powi(i - 60);
            let rdp = search.at(order);
            assert!(rdp >= previous * (1.0 - 1e-9), "{order}: {rdp} after {previous}");
            previous = rdp;
        }
    }
}
