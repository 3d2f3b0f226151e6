//! From Rényi divergence to (ε, δ).

use serde::{Deserialize, Serialize};

use crate::{Delta, Epsilon};

/// How a Rényi divergence becomes an (ε, δ).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Conversion {
    /// `ε = ρ + ln(1/δ)/(α-1)`, the moments accountant's (Abadi et al. 2016; Mironov 2017,
    /// Proposition 3).
    Classic,
    /// `ε = ρ + ln((α-1)/α) - (ln δ + ln α)/(α-1)`, never worse (Canonne, Kamath & Steinke 2020,
    /// Proposition 12).
    Improved,
}

impl Conversion {
    /// ε at one order; may be negative, which means that 0 holds.
    pub(crate) fn epsilon(self, order: f64, rdp: f64, delta: Delta) -> f64 {
        let least = self.least_epsilon(order, rdp);
        let rest = -libm::log(delta.get()) / (order - 1.0);
        // Half a dozen roundings, of numbers no larger than these.
        least + rest + 8.0 * f64::EPSILON * (rdp + rest + self.discount(order).abs())
    }

    /// The part of ε that no δ can remove; it grows with the order, so it says when higher orders
    /// cannot help.
    pub(crate) fn least_epsilon(self, order: f64, rdp: f64) -> f64 {
        rdp - self.discount(order)
    }

    /// The difference between the divergence and ε: `-ln(1 - 1/α) + ln(α)/(α-1)`, both positive.
    fn discount(self, order: f64) -> f64 {
        match self {
            Self::Classic => 0.0,
            Self::Improved => libm::log(order / (order - 1.0)) + libm::log(order) / (order - 1.0),
        }
    }

    /// `ln δ` at one order; may be positive, which means that nothing holds.
    pub(crate) fn log_delta(self, order: f64, rdp: f64, epsilon: Epsilon) -> f64 {
        let rounding = 8.0 * f64::EPSILON * (rdp + epsilon.get() + self.discount(order));
        (order - 1.0) * (self.least_epsilon(order, rdp) - epsilon.get() + rounding)
    }
}

impl std::fmt::Display for Conversion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Classic => "classic",
            Self::Improved => "improved",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_by_hand() {
        // α = 2, ρ = 1, δ = e⁻³: classic 1 + 3/1 = 4; improved 1 + ln(1/2) + 3 - ln 2 = 4 - 2 ln 2.
        let delta = Delta::new((-3.0_f64).exp()).unwrap();
        assert!((Conversion::Classic.epsilon(2.0, 1.0, delta) - 4.0).abs() < 1e-12);
        assert!((Conversion::Improved.epsilon(2.0, 1.0, delta) - (4.0 - 2.0 * 2.0_f64.ln())).abs() < 1e-12);
    }

    #[test]
    fn log_delta_inverts_epsilon() {
        for conversion in [Conversion::Classic, Conversion::Improved] {
            for order in [1.5, 2.0, 17.0] {
                let delta = Delta::new(1e-7).unwrap();
                let epsilon = Epsilon::new(conversion.epsilon(order, 0.3, delta)).unwrap();
                assert!((conversion.log_delta(order, 0.3, epsilon) - delta.get().ln()).abs() < 1e-9);
            }
        }
    }
}
