//! Compositions whose privacy profile is a formula: Gaussians on the whole data, and one sampled
//! Gaussian.

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
            // Of which there is one, whatever was composed: a mechanism on the whole data has been
            // counted into μ.
            return (*count == 1.0).then_some(Self::Gaussian { mu });
        }
        if *count != 1.0 {
            return None;
        }
        let sampled = mechanism.as_sampled_gaussian().map(|(q, mu)| Self::Sampled { q, mu, directions });
        sampled.or(mechanism.as_fixed_size_gaussian().map(|(q, mu)| Self::FixedSize { q, mu }))
    }

    const fn mu(self) -> f64 {
        match self {
            Self::Gaussian { mu } | Self::Sampled { mu, .. } | Self::FixedSize { mu, .. } => mu,
        }
    }

    fn profile(self, mu: f64, epsilon: f64) -> Profile {
        match self {
            Self::Gaussian { .. } => gaussian_profile(mu, epsilon),
            Self::Sampled { q, directions: [true, true], .. } => sampled_gaussian_profile(q, mu, epsilon),
            Self::Sampled { q, directions: [false, _], .. } => absent_profile(q, mu, epsilon),
            Self::Sampled { q, .. } | Self::FixedSize { q, .. } => present_profile(q, mu, epsilon),
        }
    }

    /// The least and the largest μ that rounding allows: δ grows with it.
    fn range_of_mu(self) -> (f64, f64) {
        (self.mu() * (1.0 - MU_ERROR), self.mu() * (1.0 + MU_ERROR))
    }

    pub(super) fn epsilon(self, delta: f64) -> Bracket {
        let (least, largest) = self.range_of_mu();
        let start = largest * (0.5 * largest + (-2.0 * libm::log(delta)).sqrt());
        let (lower, upper) =
            invert(|epsilon| self.profile(least, epsilon), |epsilon| self.profile(largest, epsilon), delta, start);
        Bracket { lower, upper }
    }

    pub(super) fn delta(self, epsilon: f64) -> Bracket {
        let (least, largest) = self.range_of_mu();
        Bracket { lower: self.profile(least, epsilon).delta().0, upper: self.profile(largest, epsilon).delta().1 }
    }
}
