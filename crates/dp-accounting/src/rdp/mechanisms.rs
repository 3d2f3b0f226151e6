//! Rényi divergence of each mechanism, and of a composition as their sum.

use super::allocation::Allocation;
use super::laplace::{laplace_rdp, sampled_laplace_rdp};
use super::repeat_and_select::RepeatAndSelect;
use super::sampled_gaussian_rdp;
use crate::composition::{Composition, Mechanism};
use crate::pair::Pair;

/// Which divergences are taken where there are two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Divergences {
    /// The smallest; quadratures of panels, of fixed-size batches and of sampled Laplace noise,
    /// allow for an error that is not proven.
    Best,
    /// Only what is proven.
    Proven,
}

/// Rényi divergence of a composition as a function of the order.
pub(super) struct RdpCurve {
    /// `Σ 1/(2σ²)` of all full-batch Gaussians and `Σ ρ` of all zero-concentrated mechanisms: the
    /// slope in the order.
    rho: f64,
    /// How many were added up to the slope, for its rounding.
    n_slopes: f64,
    parts: Vec<(Term, f64)>,
}

enum Term {
    NonPrivate,
    SampledGaussian {
        q: f64,
        sigma: f64,
    },
    FixedSizeGaussian {
        q: f64,
        sigma: f64,
    },
    /// A proven bound on the same: both directions of Poisson sampling together.
    TwoHumps {
        q: f64,
        sigma: f64,
    },
    Laplace {
        scale: f64,
    },
    SampledLaplace {
        q: f64,
        scale: f64,
    },
    /// A proven bound on the same, by convexity.
    MixedLaplace {
        q: f64,
        scale: f64,
    },
    RandomisedResponse {
        epsilon: f64,
        n_outcomes: u32,
    },
    AtOrder {
        order: f64,
        divergence: f64,
    },
    Pair(Pair),
    Allocation(Allocation),
    OneOf(Vec<RdpCurve>),
    RepeatAndSelect(Box<RepeatAndSelect>),
}

impl RdpCurve {
    pub(super) fn new(composition: &Composition, divergences: Divergences) -> Self {
        let is_proven = divergences == Divergences::Proven;
        let mut curve = Self { rho: 0.0, n_slopes: 0.0, parts: Vec::new() };
        for (mechanism, count) in composition.sorted_parts() {
            let count = *count as f64;
            let part = match *mechanism {
                Mechanism::Gaussian { sigma } => {
                    curve.rho += count / (2.0 * sigma * sigma);
                    curve.n_slopes += 1.0;
                    continue;
                }
                Mechanism::ZeroConcentrated { rho } => {
                    curve.rho += count * rho;
                    curve.n_slopes += 1.0;
                    continue;
                }
                // Its divergence is infinite at every order; what is left without it is accounted
                // for apart (`limits`).
                Mechanism::NonPrivate | Mechanism::Failing { .. } => Term::NonPrivate,
                Mechanism::SampledGaussian { q, sigma } => Term::SampledGaussian { q, sigma },
                Mechanism::FixedSizeGaussian { q, sigma } if is_proven => Term::TwoHumps { q, sigma },
                Mechanism::FixedSizeGaussian { q, sigma } => Term::FixedSizeGaussian { q, sigma },
                Mechanism::Laplace { scale } => Term::Laplace { scale },
                Mechanism::SampledLaplace { q, scale } if is_proven => Term::MixedLaplace { q, scale },
                Mechanism::SampledLaplace { q, scale } => Term::SampledLaplace { q, scale },
                Mechanism::RandomisedResponse { epsilon, n_outcomes } => {
                    Term::RandomisedResponse { epsilon, n_outcomes }
                }
                Mechanism::RenyiAtOrder { order, divergence } => Term::AtOrder { order, divergence },
                Mechanism::RandomAllocation { sigma, steps } => Term::Allocation(Allocation::new(sigma, steps as f64)),
                Mechanism::Pair(ref pair) => Term::Pair(pair.clone()),
                Mechanism::OneOf { ref alternatives } => {
                    Term::OneOf(alternatives.iter().map(|one| Self::new(one, divergences)).collect())
                }
                Mechanism::RepeatAndSelect { ref inner, trials } => {
                    Term::RepeatAndSelect(Box::new(RepeatAndSelect::new(Self::new(inner, divergences), trials)))
                }
            };
            curve.parts.push((part, count));
        }
        curve
    }

    /// Whether it is a proven bound: quadratures of panels are not.
    pub(super) fn is_proven(&self) -> bool {
        self.parts.iter().all(|(part, _)| match part {
            Term::FixedSizeGaussian { .. } | Term::SampledLaplace { .. } => false,
            Term::OneOf(alternatives) => alternatives.iter().all(Self::is_proven),
            Term::RepeatAndSelect(search) => search.is_proven(),
            _ => true,
        })
    }

    /// Divergence at an order greater than 1.
    pub(super) fn at(&self, order: f64) -> f64 {
        let sum = self.rho * order + self.parts.iter().map(|(part, count)| count * part.at(order)).sum::<f64>();
        // All terms are positive.
        sum * (1.0 + f64::EPSILON * (self.parts.len() as f64 + self.n_slopes + 4.0))
    }
}

impl Term {
    fn at(&self, order: f64) -> f64 {
        match *self {
            Self::NonPrivate => f64::INFINITY,
            Self::SampledGaussian { q, sigma } => super::cache::cached(q, sigma, order, sampled_gaussian_rdp),
            Self::FixedSizeGaussian { q, sigma } => super::fixed_size::fixed_size_gaussian_rdp(q, sigma, order),
            Self::TwoHumps { q, sigma } => super::fixed_size::proven_fixed_size_gaussian_rdp(q, sigma, order),
            Self::Laplace { scale } => laplace_rdp(scale, order),
            Self::SampledLaplace { q, scale } => sampled_laplace_rdp(q, scale, order),
            Self::MixedLaplace { q, scale } => super::laplace::mixed_laplace_rdp(q, scale, order),
            Self::RandomisedResponse { epsilon, n_outcomes } => randomised_response_rdp(epsilon, n_outcomes, order),
            // A divergence grows with the order.
            Self::AtOrder { order: known, divergence } => {
                if order <= known {
                    divergence
                } else {
                    f64::INFINITY
                }
            }
            Self::Allocation(ref allocation) => allocation.at(order),
            Self::Pair(ref pair) => super::pair::pair_rdp(pair, order),
            // The divergence of outputs that say which alternative it was is at most the largest of
            // theirs.
            Self::OneOf(ref alternatives) => alternatives.iter().map(|curve| curve.at(order)).fold(0.0, f64::max),
            Self::RepeatAndSelect(ref search) => search.at(order),
        }
    }
}

/// Rényi divergence of randomised response between two records.
///
/// One outcome has ratio `e^ε`, one `e^-ε`, the other `n - 2` have ratio 1; the probabilities are
/// `e^ε/(e^ε + n - 1)` and `1/(e^ε + n - 1)`.
fn randomised_response_rdp(epsilon: f64, n_outcomes: u32, order: f64) -> f64 {
    let others = f64::from(n_outcomes - 1);
    // 1/(e^ε + n - 1) without overflow, then E[L^(α-1) - 1] over the two outcomes whose ratio is
    // not 1.
    let least = libm::exp(-epsilon) / (1.0 + others * libm::exp(-epsilon));
    let power = (order - 1.0) * epsilon;
    let log_moment = if power > 36.0 {
        power + epsilon + libm::log(least)
    } else {
        // e^ε(e^p - 1) - (1 - e^-p) = (1 - e^-p)(e^(ε+p) - 1).
        libm::log1p(least * -libm::expm1(-power) * libm::expm1(epsilon + power))
    };
    (log_moment * (1.0 + 1e-12) / (order - 1.0)).clamp(0.0, epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DpEvent, NeighbouringRelation, NoiseMultiplier};

    #[test]
    fn alternatives_cost_the_dearest_at_each_order() {
        let relation = NeighbouringRelation::AddRemove;
        let gaussian = |sigma| DpEvent::gaussian(NoiseMultiplier::new(sigma).unwrap());
        let laplace = DpEvent::laplace(NoiseMultiplier::new(1.0).unwrap());
        let curve = |event: &DpEvent| {
            let mut composition = Composition::new(relation);
            composition.add(event, 3).unwrap();
            RdpCurve::new(&composition, Divergences::Best)
        };
        let both = curve(&DpEvent::OneOf(vec![gaussian(2.0), laplace.clone()]));
        // Three Gaussians at order α: 3α/8; the curves cross, since Laplace noise never costs more
        // than its ε of 1.
        for (order, dearest) in [(2.0, curve(&laplace).at(2.0)), (40.0, 3.0 * 40.0 / 8.0)] {
            assert!((both.at(order) - dearest).abs() < 1e-12, "{order}: {} {dearest}", both.at(order));
        }
        assert!(curve(&laplace).at(2.0) > 0.75 && curve(&laplace).at(40.0) < 15.0);
    }

    #[test]
    fn randomised_response_by_hand() {
        // Two outcomes, ε = ln 3: probabilities 3/4 and 1/4; α = 2: (9/16)/(1/4) + (1/16)/(3/4) =
        // 7/3.
        let rdp = randomised_response_rdp(3.0_f64.ln(), 2, 2.0);
        assert!((rdp - (7.0_f64 / 3.0).ln()).abs() < 1e-11);
        assert!(randomised_response_rdp(2.0, 5, 1e9) <= 2.0);
    }
}
