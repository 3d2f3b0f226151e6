//! True privacy profiles, or bounds on them, by formula or by inversion.

use super::allocation::{COARSE, FINE, pair_delta};
use super::ball::Ball;
use super::check::Evidence;
use super::exact::{Direction, gaussian_delta, sampled_gaussian_delta};
use super::inversion::Inversion;
use super::settings::Steps;
use crate::NeighbouringRelation;

/// The true profile.
pub(super) enum Truth {
    Gaussian {
        squared_mu: Ball,
    },
    OneSampled {
        q: f64,
        sigma: f64,
    },
    Inverted(Inversion),
    /// `count` sampled Gaussians, in each of which, with probability `full`, another record makes
    /// room.
    Truncated {
        q: f64,
        sigma: f64,
        full: Ball,
        count: u64,
        /// Without that, where it is more than one step.
        inversion: Option<Inversion>,
    },
    /// One of these steps, drawn at random.
    Allocated {
        sigma: f64,
        steps: u64,
    },
}

/// The directions of a relation.
fn directions(relation: NeighbouringRelation) -> Vec<Direction> {
    let both = [Direction::Remove, Direction::Add].into_iter().zip(relation.directions());
    both.filter_map(|(direction, is_asked)| is_asked.then_some(direction)).collect()
}

impl Truth {
    pub(super) fn of(steps: &[Steps]) -> Option<Self> {
        let square = |sigma: f64| Ball::exact(sigma) * Ball::exact(sigma);
        match steps[..] {
            [Steps { q, sigma, count: 1 }] if q < 1.0 => Some(Self::OneSampled { q, sigma }),
            _ if steps.iter().all(|steps| steps.q >= 1.0) => {
                let one = |steps: &Steps| Ball::from_count(steps.count) / square(steps.sigma);
                let squared_mu = steps.iter().map(one).fold(Ball::exact(0.0), |sum, one| sum + one);
                Some(Self::Gaussian { squared_mu })
            }
            _ => Inversion::new(steps).map(Self::Inverted),
        }
    }

    pub(super) const fn evidence(&self) -> Evidence {
        match self {
            Self::Inverted(_) => Evidence::Inversion,
            Self::Truncated { count: 2.., .. } | Self::Allocated { steps: 3.., .. } => Evidence::Bounds,
            _ => Evidence::Formula,
        }
    }

    /// δ in the relation's directions at each ε; `None` where that takes too long.
    pub(super) fn deltas(&self, relation: NeighbouringRelation, epsilons: &[f64]) -> Option<Vec<Vec<Ball>>> {
        let directions = directions(relation);
        let each = |delta: &dyn Fn(Direction, &Ball) -> Ball| {
            let at = |epsilon: &f64| directions.iter().map(|d| delta(*d, &Ball::exact(*epsilon))).collect();
            Some(epsilons.iter().map(at).collect())
        };
        match self {
            Self::Gaussian { squared_mu } => each(&|_, epsilon| gaussian_delta(squared_mu, epsilon)),
            Self::OneSampled { q, sigma } => {
                each(&|direction, epsilon| sampled_gaussian_delta(&Ball::exact(*q), *sigma, direction, epsilon))
            }
            Self::Inverted(inversion) => inverted(inversion, &directions, epsilons),
            Self::Truncated { q, sigma, full, count: 1, .. } => {
                let q = Ball::exact(*q);
                let room = Ball::exact(1.0) - full.clone();
                // Whether there is room is independent of the record, and counts as public. A
                // record that makes room moves the sum as far as one that enters.
                each(&|direction, epsilon| {
                    room.clone() * sampled_gaussian_delta(&q, *sigma, direction, epsilon)
                        + full.clone() * sampled_gaussian_delta(&q, 0.5 * sigma, direction, epsilon)
                })
            }
            Self::Truncated { full, count, inversion, .. } => {
                let deltas = inverted(inversion.as_ref()?, &directions, epsilons)?;
                // Room in every step, or not.
                let room = (Ball::from_count(*count) * (Ball::exact(1.0) - full.clone()).ln()).exp();
                let enclosed = |delta: &Ball| {
                    let least = room.clone() * delta.clone();
                    least.hull(&(least.clone() + (Ball::exact(1.0) - room.clone())))
                };
                Some(deltas.iter().map(|deltas| deltas.iter().map(enclosed).collect()).collect())
            }
            Self::Allocated { sigma, steps: 0 | 1 } => {
                let mu = Ball::exact(1.0) / Ball::exact(*sigma);
                each(&|_, epsilon| gaussian_delta(&(mu.clone() * mu.clone()), epsilon))
            }
            Self::Allocated { sigma, steps: 2 } => {
                each(&|direction, epsilon| pair_delta(*sigma, direction, epsilon, FINE))
            }
            Self::Allocated { sigma, steps } => {
                // The mean of more ratios is less spread (a reversed martingale), and more than the
                // mean of one and of the others' means.
                let q = Ball::exact(1.0) / Ball::from_count(*steps);
                each(&|direction, epsilon| {
                    let least = sampled_gaussian_delta(&q, *sigma, direction, epsilon);
                    least.hull(&pair_delta(*sigma, direction, epsilon, COARSE))
                })
            }
        }
    }
}

fn inverted(inversion: &Inversion, directions: &[Direction], epsilons: &[f64]) -> Option<Vec<Vec<Ball>>> {
    let found: Vec<_> = directions.iter().map(|d| (*d, inversion.delta(*d, epsilons))).collect();
    // One direction is enough of a truth, with a bound on the other, which often has no loss as
    // large as ε.
    if found.iter().all(|(_, deltas)| deltas.is_none()) {
        return None;
    }
    let columns: Vec<Vec<Ball>> = found
        .into_iter()
        .map(|(direction, deltas)| deltas.unwrap_or_else(|| inversion.at_most(direction, epsilons)))
        .collect();
    Some((0..epsilons.len()).map(|i| columns.iter().map(|deltas| deltas[i].clone()).collect()).collect())
}
