//! Mechanisms whose privacy loss distribution is known.

use super::allocation::Allocation;
use super::base_loss::BaseLoss;
use super::cells::{Anchor, Cells, LossGrid, cut};
use super::pair_cells;
use crate::composition::{Composition, Mechanism, root_of_precisions};
use crate::pair::Pair;

/// One (sampled) query whose loss can be cut at a grid.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PldMechanism {
    Query { base: BaseLoss, q: f64, sampling: Sampling },
    Pair(Pair),
    Allocation(Allocation),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    Poisson,
    FixedSize,
}

/// Losses of both directions of one mechanism, and the probability left out.
#[derive(Debug)]
pub(super) struct Cut {
    /// Record present against absent, then absent against present.
    pub(super) directions: [Cells; 2],
    /// The same for the lower bound, where it is not cut from the same cells.
    pub(super) lower: Option<[Cells; 2]>,
    pub(super) outside: f64,
}

impl Cut {
    pub(super) fn lower(&self, direction: usize) -> &Cells {
        &self.lower.as_ref().unwrap_or(&self.directions)[direction]
    }
}

impl PldMechanism {
    /// The mechanisms of a composition with their counts; the first that has no privacy loss
    /// distribution is returned as an error.
    ///
    /// All Gaussians on the whole data are one: they compose to `μ² = Σ 1/σ²` exactly.
    pub(super) fn of(composition: &Composition) -> Result<Vec<(Self, f64)>, String> {
        let mut gaussians = Vec::new();
        let mut mechanisms = Vec::new();
        for (mechanism, count) in composition.sorted_parts() {
            let count = *count as f64;
            let (base, q, sampling) = match *mechanism {
                Mechanism::Gaussian { sigma } => {
                    gaussians.push((sigma, count));
                    continue;
                }
                Mechanism::SampledGaussian { q, sigma } => {
                    (BaseLoss::Gaussian { mu: sigma.recip() }, q, Sampling::Poisson)
                }
                Mechanism::FixedSizeGaussian { q, sigma } => {
                    (BaseLoss::Gaussian { mu: sigma.recip() }, q, Sampling::FixedSize)
                }
                Mechanism::Laplace { scale } => (BaseLoss::Laplace { rate: scale.recip() }, 1.0, Sampling::Poisson),
                Mechanism::SampledLaplace { q, scale } => {
                    (BaseLoss::Laplace { rate: scale.recip() }, q, Sampling::Poisson)
                }
                Mechanism::RandomisedResponse { epsilon, n_outcomes } => {
                    (BaseLoss::RandomisedResponse { epsilon, n_outcomes }, 1.0, Sampling::Poisson)
                }
                Mechanism::Pair(ref pair) => {
                    mechanisms.push((Self::Pair(pair.clone()), count));
                    continue;
                }
                Mechanism::RandomAllocation { sigma, steps } => {
                    let allocation = Allocation::new(sigma, steps)
                        .ok_or("random allocation with so little noise or so many steps")?;
                    mechanisms.push((Self::Allocation(allocation), count));
                    continue;
                }
                Mechanism::ZeroConcentrated { .. } => return Err("a zero-concentrated mechanism".to_owned()),
                Mechanism::RenyiAtOrder { .. } => return Err("a divergence of one order".to_owned()),
                Mechanism::OneOf { .. } => return Err("alternatives of which each record meets one".to_owned()),
                Mechanism::RepeatAndSelect { .. } => return Err("a repeat-and-select search".to_owned()),
                Mechanism::Failing { .. } => return Err("a failure inside a search or an alternative".to_owned()),
                Mechanism::NonPrivate => return Err("a non-private release".to_owned()),
            };
            mechanisms.push((Self::Query { base, q, sampling }, count));
        }
        if !gaussians.is_empty() {
            let base = BaseLoss::Gaussian { mu: root_of_precisions(&gaussians) };
            mechanisms.push((Self::Query { base, q: 1.0, sampling: Sampling::Poisson }, 1.0));
        }
        Ok(mechanisms)
    }

    /// `μ` of a Gaussian on the whole data.
    pub(super) const fn as_gaussian(&self) -> Option<f64> {
        match *self {
            Self::Query { base: BaseLoss::Gaussian { mu }, q, .. } if q >= 1.0 => Some(mu),
            _ => None,
        }
    }

    /// Sensitivity over scale of Laplace noise on the whole data.
    pub(super) const fn as_laplace(&self) -> Option<f64> {
        match *self {
            Self::Query { base: BaseLoss::Laplace { rate }, q, .. } if q >= 1.0 => Some(rate),
            _ => None,
        }
    }

    /// Rate and `μ` of a Poisson-sampled Gaussian.
    pub(super) const fn as_sampled_gaussian(&self) -> Option<(f64, f64)> {
        match *self {
            Self::Query { base: BaseLoss::Gaussian { mu }, q, sampling: Sampling::Poisson } => Some((q, mu)),
            _ => None,
        }
    }

    /// Rate and `μ` of a Gaussian on batches of fixed size.
    pub(super) fn as_fixed_size_gaussian(&self) -> Option<(f64, f64)> {
        match *self {
            Self::Query { base: BaseLoss::Gaussian { mu }, q, sampling: Sampling::FixedSize } => Some((q, mu)),
            _ => None,
        }
    }

    /// Whether both directions have the same loss.
    pub(super) fn is_symmetric(&self) -> bool {
        match self {
            Self::Query { q, sampling, .. } => *q >= 1.0 || *sampling == Sampling::FixedSize,
            Self::Pair(pair) => pair.is_symmetric(),
            Self::Allocation(_) => false,
        }
    }

    /// Cells that [`cut`](Self::cut) would make.
    pub(super) fn n_cells(&self, log_tail: f64, interval: f64) -> f64 {
        match self {
            Self::Query { base, q, sampling } => sampling.grid(*base, *q, log_tail, interval).n_cells(),
            Self::Pair(pair) => pair_cells::n_cells(pair, log_tail, interval),
            Self::Allocation(allocation) => allocation.n_cells(log_tail, interval),
        }
    }

    /// An interval, no smaller, at which a first [`cut`](Self::cut) is not most of all work.
    pub(super) fn affordable(&self, log_tail: f64, interval: f64, points: f64) -> f64 {
        match self {
            Self::Allocation(allocation) => allocation.affordable(log_tail, interval, points),
            Self::Query { .. } | Self::Pair(_) => interval,
        }
    }

    /// Panels of a quadrature that any [`cut`](Self::cut) takes.
    pub(super) fn n_panels(&self, log_tail: f64) -> f64 {
        match self {
            Self::Query { base, .. } => base.n_panels(log_tail),
            Self::Pair(pair) => pair_cells::n_panels(pair, log_tail),
            Self::Allocation(_) => 0.0,
        }
    }

    /// Cost of a [`cut`](Self::cut), in points of a transform: a cell, with both directions and
    /// bounds, takes as long as two of them, and so does a panel.
    pub(super) fn work(&self, log_tail: f64, interval: f64) -> f64 {
        let sums = if let Self::Allocation(allocation) = self { allocation.work(log_tail, interval) } else { 0.0 };
        2.0 * (self.n_cells(log_tail, interval) + self.n_panels(log_tail)) + sums
    }

    pub(super) fn cut(&self, log_tail: f64, interval: f64) -> Cut {
        let (base, q, sampling) = match self {
            Self::Query { base, q, sampling } => (*base, *q, sampling),
            Self::Pair(pair) => return pair_cells::cut(pair, log_tail, interval),
            Self::Allocation(allocation) => return allocation.cut(log_tail, interval),
        };
        let both = cut(base, sampling.grid(base, q, log_tail, interval), log_tail);
        match sampling {
            Sampling::Poisson => Cut { directions: [both.remove, both.add], lower: None, outside: both.outside },
            Sampling::FixedSize => {
                let mirrored = mirrored_at_zero(&both.remove, &both.add);
                Cut { directions: [mirrored.clone(), mirrored], lower: None, outside: both.outside }
            }
        }
    }
}

impl Sampling {
    fn grid(self, base: BaseLoss, q: f64, log_tail: f64, interval: f64) -> LossGrid {
        let anchor = match self {
            Self::Poisson => Anchor::Infimum,
            Self::FixedSize => Anchor::Zero,
        };
        LossGrid::new(base, q, anchor, log_tail, interval)
    }
}

/// The pair of distributions that bounds sampling of fixed size: positive losses as in `remove`,
/// negative ones as in `add` (their mirror images), and the rest of the probability at 0. See
/// `rdp::fixed_size` for why.
fn mirrored_at_zero(remove: &Cells, add: &Cells) -> Cells {
    let join = |part: fn(&Cells) -> &[f64]| [part(add), part(remove)].concat();
    let (low, high, rounding) = (join(|c| &c.low), join(|c| &c.high), join(|c| &c.rounding));
    let elsewhere: f64 = low.iter().chain(&high).sum();
    let relative = remove.relative;
    Cells { offset: 0.0, first: add.first, low, high, rounding, relative, at_zero: (1.0 - elsewhere).max(0.0) }
}
