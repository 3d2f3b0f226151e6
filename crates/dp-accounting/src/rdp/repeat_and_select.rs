//! The price of releasing the best of a random number of runs.

use super::mechanisms::RdpCurve;
use super::orders::{Orders, PLAUSIBLE_RANGE};
use crate::TrialCount;
use crate::rdp::Conversion;

/// Rényi divergence of a search, with what does not depend on the order worked out beforehand.
///
/// **Source.** Papernot & Steinke 2022, Theorem 2 (truncated negative binomial) and Theorem 6 (Poisson).
pub(super) struct RepeatAndSelect {
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

impl RepeatAndSelect {
    pub(super) fn new(one_run: RdpCurve, trials: TrialCount) -> Self {
        let surcharge = match trials.as_negative_binomial() {
            Some((shape, gamma)) => {
                let best = Orders::Adaptive.minimise(
                    |order| {
                        let rdp = one_run.at(order);
                        ((1.0 - 1.0 / order) * rdp - gamma.ln() / order, (1.0 - 1.0 / order) * rdp)
                    },
                    PLAUSIBLE_RANGE,
                );
                // λ̂ = 1 costs ln(1/γ) and is always allowed.
                Surcharge::Constant((1.0 + shape) * best.value.min(-gamma.ln()))
            }
            None => Surcharge::Poisson { mean: trials.mean() },
        };
        // A mean below one (Poisson) gets no discount.
        Self { one_run, log_mean: trials.mean().ln().max(0.0), surcharge }
    }

    pub(super) fn at(&self, order: f64) -> f64 {
        let surcharge = match self.surcharge {
            Surcharge::Constant(surcharge) => surcharge,
            Surcharge::Poisson { mean } => {
                let epsilon = libm::log1p(1.0 / (order - 1.0));
                let best = Orders::Adaptive.minimise(
                    |order| {
                        let least = Conversion::Improved.least_epsilon(order, self.one_run.at(order));
                        ((order - 1.0) * (least - epsilon), f64::NEG_INFINITY)
                    },
                    (1e-3, 1e6),
                );
                mean * best.value.min(0.0).exp()
            }
        };
        self.one_run.at(order) + surcharge + self.log_mean / (order - 1.0)
    }
}
