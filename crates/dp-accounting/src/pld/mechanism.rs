//! Mechanisms whose privacy loss distribution is known.

use super::base_loss::BaseLoss;
use super::cells::{Anchor, Cells, Grid, cut};
use crate::composition::{Composition, Mechanism};

/// One (sampled) query whose loss can be cut at a grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PldMechanism {
    base: BaseLoss,
    q: f64,
    sampling: Sampling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sampling {
    Poisson,
    FixedSize,
}

/// Losses of both directions of one mechanism, and the probability left out.
#[derive(Debug)]
pub(super) struct Cut {
    /// Record present against absent, then absent against present.
    pub(super) directions: [Cells; 2],
    pub(super) outside: f64,
}

impl PldMechanism {
    /// The mechanisms of a composition with their counts; the first that has no privacy loss distribution is returned as an error.
    ///
    /// All Gaussians on the whole data are one: they compose to `μ² = Σ 1/σ²` exactly.
    pub(super) fn of(composition: &Composition) -> Result<Vec<(Self, f64)>, String> {
        let mut gaussian = 0.0;
        let mut mechanisms = Vec::new();
        for (mechanism, count) in composition.parts() {
            let count = *count as f64;
            let (base, q, sampling) = match *mechanism {
                Mechanism::Gaussian { sigma } => {
                    gaussian += count / (sigma * sigma);
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
                Mechanism::ZeroConcentrated { .. } => return Err("a zero-concentrated mechanism".to_owned()),
                Mechanism::OneOf { .. } => return Err("alternatives of which each record meets one".to_owned()),
                Mechanism::RepeatAndSelect { .. } => return Err("a repeat-and-select search".to_owned()),
                Mechanism::NonPrivate => return Err("a non-private release".to_owned()),
            };
            mechanisms.push((Self { base, q, sampling }, count));
        }
        if gaussian > 0.0 {
            let base = BaseLoss::Gaussian { mu: f64::sqrt(gaussian) };
            mechanisms.push((Self { base, q: 1.0, sampling: Sampling::Poisson }, 1.0));
        }
        Ok(mechanisms)
    }

    /// `μ` of a Gaussian on the whole data.
    pub(super) fn as_gaussian(&self) -> Option<f64> {
        match self.base {
            BaseLoss::Gaussian { mu } if self.q >= 1.0 => Some(mu),
            _ => None,
        }
    }

    /// Rate and `μ` of a Poisson-sampled Gaussian.
    pub(super) fn as_sampled_gaussian(&self) -> Option<(f64, f64)> {
        match (self.base, self.sampling) {
            (BaseLoss::Gaussian { mu }, Sampling::Poisson) => Some((self.q, mu)),
            _ => None,
        }
    }

    /// Whether both directions have the same loss.
    pub(super) fn is_symmetric(&self) -> bool {
        self.q >= 1.0 || self.sampling == Sampling::FixedSize
    }

    fn grid(&self, log_tail: f64, interval: f64) -> Grid {
        let anchor = match self.sampling {
            Sampling::Poisson => Anchor::Infimum,
            Sampling::FixedSize => Anchor::Zero,
        };
        Grid::new(self.base, self.q, anchor, log_tail, interval)
    }

    /// Cells that [`cut`](Self::cut) would make.
    pub(super) fn n_cells(&self, log_tail: f64, interval: f64) -> f64 {
        self.grid(log_tail, interval).n_cells()
    }

    pub(super) fn cut(&self, log_tail: f64, interval: f64) -> Cut {
        let both = cut(self.base, self.grid(log_tail, interval), log_tail);
        match self.sampling {
            Sampling::Poisson => Cut { directions: [both.remove, both.add], outside: both.outside },
            Sampling::FixedSize => {
                let mirrored = mirrored_at_zero(&both.remove, &both.add);
                Cut { directions: [mirrored.clone(), mirrored], outside: both.outside }
            }
        }
    }
}

/// The pair of distributions that bounds sampling of fixed size: positive losses as in `remove`, negative ones as in `add` (their mirror
/// images), and the rest of the probability at 0. See `rdp::fixed_size` for why.
fn mirrored_at_zero(remove: &Cells, add: &Cells) -> Cells {
    let join = |part: fn(&Cells) -> &[f64]| [part(add), part(remove)].concat();
    let (low, high, rounding) = (join(|c| &c.low), join(|c| &c.high), join(|c| &c.rounding));
    let elsewhere: f64 = low.iter().chain(&high).sum();
    Cells { offset: 0.0, first: add.first, low, high, rounding, at_zero: (1.0 - elsewhere).max(0.0) }
}
