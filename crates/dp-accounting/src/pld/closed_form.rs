//! Compositions whose privacy profile is a formula: Gaussians on the whole data, one sampled
//! Gaussian, and one Laplace mechanism.

use super::bracket::Bracket;
use super::mechanism::PldMechanism;
use crate::gaussian::{Profile, absent_profile, gaussian_profile, invert, present_profile, sampled_gaussian_profile};

/// Relative error of `μ`: of the root of a sum of precisions, or of the reciprocal of a noise
/// multiplier that is right to 4 ulp.
const MU_ERROR: f64 = 6.0 * f64::EPSILON;

/// A profile known up to rounding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ClosedForm {
    Gaussian {
        mu: f64,
    },
    /// Poisson batches: the larger of the directions that are asked for.
    Sampled {
        q: f64,
        mu: f64,
        directions: [bool; 2],
    },
    /// `δ(ε) = 1 - e^((ε - r)/2)` below `r`, the sensitivity over the scale.
    Laplace {
        rate: f64,
    },
    /// At `ε ≥ 0` both directions have the profile of "record present" under Poisson sampling.
    FixedSize {
        q: f64,
        mu: f64,
    },
}

impl ClosedForm {
    pub(super) fn of(mechanisms: &[(PldMechanism, f64)], directions: [bool; 2]) -> Option<Self> {
        let [(mechanism, count)] = mechanisms else { return None };
        if let Some(mu) = mechanism.as_gaussian() {
            // There is one at most: mechanisms on the whole data have been counted into μ.
            return (*count == 1.0).then_some(Self::Gaussian { mu });
        }
        if *count != 1.0 {
            return None;
        }
        if let Some(rate) = mechanism.as_laplace() {
            return Some(Self::Laplace { rate });
        }
        let sampled = mechanism.as_sampled_gaussian().map(|(q, mu)| Self::Sampled { q, mu, directions });
        sampled.or(mechanism.as_fixed_size_gaussian().map(|(q, mu)| Self::FixedSize { q, mu }))
    }

    /// The sensitivity over the noise.
    const fn mu(self) -> f64 {
        match self {
            Self::Gaussian { mu } | Self::Sampled { mu, .. } | Self::FixedSize { mu, .. } => mu,
            Self::Laplace { rate } => rate,
        }
    }

    fn profile(self, mu: f64, epsilon: f64) -> Profile {
        match self {
            Self::Gaussian { .. } => gaussian_profile(mu, epsilon),
            Self::Laplace { .. } => laplace_profile(mu, epsilon),
            Self::Sampled { q, directions: [true, true], .. } => sampled_gaussian_profile(q, mu, epsilon),
            Self::Sampled { q, directions: [false, _], .. } => absent_profile(q, mu, epsilon),
            Self::Sampled { q, .. } | Self::FixedSize { q, .. } => present_profile(q, mu, epsilon),
        }
    }

    /// The least and the largest μ that rounding allows: δ grows with it.
    fn range_of_mu(self) -> (f64, f64) {
        (self.mu() * (1.0 - MU_ERROR), self.mu() * (1.0 + MU_ERROR))
    }

    /// `pure` bounds ε at δ = 0.
    pub(super) fn epsilon(self, delta: f64, pure: f64) -> Bracket {
        let (least, largest) = self.range_of_mu();
        // From an ε whose power of e overflows nothing is found.
        let start = (largest * (0.5 * largest + (-2.0 * libm::log(delta)).sqrt())).min(pure);
        let (lower, upper) =
            invert(|epsilon| self.profile(least, epsilon), |epsilon| self.profile(largest, epsilon), delta, start);
        Bracket { lower: lower.min(pure), upper: upper.min(pure) }
    }

    /// The smallest false-negative rate of any test with this false-positive rate, in (0, 1), where
    /// it has a formula: for Laplace noise, `1 - e^r·α` below `e^-r/2`, `e^-r/(4α)` up
    /// to a half, and `e^-r·(1 - α)` beyond.
    ///
    /// **Source.** Dong, Roth & Su 2022, Lemma A.6.
    pub(super) fn false_negative_rate(self, alpha: f64) -> Option<Bracket> {
        let Self::Laplace { rate } = self else { return None };
        let error = 4.0 * f64::EPSILON * (rate + 2.0);
        let (fallen, risen) = (libm::exp(-rate), libm::exp(rate));
        Some(if alpha < 0.5 * fallen {
            let gained = risen * alpha;
            Bracket {
                lower: (1.0 - gained * (1.0 + error)).next_down(),
                upper: (1.0 - gained * (1.0 - error)).next_up(),
            }
        } else {
            let missed = if alpha <= 0.5 { 0.25 * fallen / alpha } else { fallen * (1.0 - alpha) };
            Bracket { lower: missed * (1.0 - error), upper: missed * (1.0 + error) }
        })
    }

    pub(super) fn delta(self, epsilon: f64) -> Bracket {
        let (least, largest) = self.range_of_mu();
        Bracket { lower: self.profile(least, epsilon).delta().0, upper: self.profile(largest, epsilon).delta().1 }
    }
}

/// `δ = 1 - e^((ε - r)/2)` for the ratio `r` of sensitivity and scale.
fn laplace_profile(rate: f64, epsilon: f64) -> Profile {
    let half = 0.5 * (epsilon - rate);
    let error = f64::EPSILON * (epsilon + rate);
    let (least, most) = (half - error, half + error);
    let log_of = |half: f64| if half < 0.0 { libm::log(-libm::expm1(half)) } else { f64::NEG_INFINITY };
    let rounding = |log: f64| 4.0 * f64::EPSILON * (1.0 + log.abs());
    let (log_lower, log_upper) = (log_of(most), log_of(least));
    Profile {
        log_lower: log_lower - if log_lower.is_finite() { rounding(log_lower) } else { 0.0 },
        log_upper: log_upper + if log_upper.is_finite() { rounding(log_upper) } else { 0.0 },
        rest_lower: libm::exp(least.min(0.0)) * (1.0 - 4.0 * f64::EPSILON),
        rest_upper: (libm::exp(most.min(0.0)) * (1.0 + 4.0 * f64::EPSILON)).min(1.0),
    }
}
