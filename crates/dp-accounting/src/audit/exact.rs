//! Privacy profiles that have a formula: Gaussians on the whole data, however many, and one
//! Poisson-sampled Gaussian.

use super::ball::Ball;
use super::normal::survival;

/// Which of two neighbouring data sets is the numerator of the privacy loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// With the record against without it.
    Remove,
    /// Without the record against with it.
    Add,
}

/// `δ(ε)` of Gaussians on the whole data, `μ² = Σ T/σ²`: of `N(μ, 1)` against `N(0, 1)`, the
/// probabilities of the set where the likelihood ratio exceeds `e^ε`, which is a half-line.
pub(super) fn gaussian_delta(squared_mu: &Ball, epsilon: &Ball) -> Ball {
    let mu = squared_mu.sqrt();
    let threshold = epsilon.clone() / mu.clone() + mu.clone() * Ball::exact(0.5);
    survival(&(threshold.clone() - mu)) - epsilon.exp() * survival(&threshold)
}

/// `δ(ε)` of one Poisson-sampled Gaussian. For `ε = 0` and above.
pub(super) fn sampled_gaussian_delta(q: &Ball, sigma: f64, direction: Direction, epsilon: &Ball) -> Ball {
    let (q, sigma, one) = (q.clone(), Ball::exact(sigma), Ball::exact(1.0));
    let ratio = match direction {
        Direction::Remove => epsilon.exp(),
        Direction::Add => (-epsilon.clone()).exp(),
    };
    // w = 1 - q + q·e^((2z - 1)/2σ²) equals this ratio at z.
    let rest = one.clone() - q.clone();
    let likelihood = (ratio - rest.clone()) / q.clone();
    if !likelihood.is_certainly_positive() {
        // w never falls so far, or so little farther that 200 bits do not tell.
        return Ball::exact(0.0);
    }
    let z = sigma.clone() * likelihood.ln() + Ball::exact(0.5) / sigma.clone();
    let present = z.clone() - one / sigma;
    match direction {
        Direction::Remove => {
            let absent = survival(&z);
            rest * absent.clone() + q * survival(&present) - epsilon.exp() * absent
        }
        Direction::Add => {
            let absent = survival(&-z);
            absent.clone() - epsilon.exp() * (rest * absent + q * survival(&-present))
        }
    }
}

/// Single steps that are not among the random settings: Laplace noise and batches of fixed size.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Accountant, Delta, DpEvent, Epsilon, NeighbouringRelation, NoiseMultiplier, PldAccountant, SamplingRate,
    };

    /// Numbers in [0, 1).
    struct Uniform(f64);

    impl Uniform {
        fn next(&mut self) -> f64 {
            self.0 = (self.0 * 997.0 + 0.123) % 1.0;
            self.0
        }

        fn scale(&mut self, low: f64, high: f64) -> f64 {
            (low.ln() + (high / low).ln() * self.next()).exp()
        }
    }

    /// δ of Laplace noise on the whole data: `1 - e^((ε - t)/2)` up to the largest loss `t`.
    fn laplace_delta(largest: &Ball, epsilon: &Ball) -> Ball {
        let excess = epsilon.clone() - largest.clone();
        if excess.is_negative() { Ball::exact(1.0) - (excess * Ball::exact(0.5)).exp() } else { Ball::exact(0.0) }
    }

    /// A Poisson-sampled pair's profile, from the one without sampling (Balle, Barthe & Gaboardi
    /// 2018, Theorem 2 and its mirror image).
    fn sampled_laplace_delta(q: f64, scale: f64, direction: Direction, epsilon: &Ball) -> Ball {
        let (one, largest) = (Ball::exact(1.0), Ball::exact(1.0) / Ball::exact(scale));
        let (q, gamma) = (Ball::exact(q), epsilon.exp());
        let (share, inner) = match direction {
            Direction::Remove => (q.clone(), one.clone() + (gamma - one) / q),
            Direction::Add => {
                let share = one.clone() - gamma.clone() * (one - q.clone());
                if !share.is_certainly_positive() {
                    return Ball::exact(0.0);
                }
                (share.clone(), gamma * q / share)
            }
        };
        share * laplace_delta(&largest, &inner.ln())
    }

    /// Both ends of both brackets against the larger direction.
    fn judge(event: &DpEvent, relation: NeighbouringRelation, delta: f64, truth: impl Fn(&Ball) -> Vec<Ball>) {
        let mut accountant = PldAccountant::new(relation);
        accountant.compose(event, 1).unwrap();
        let bound = accountant.epsilon(Delta::new(delta).unwrap()).unwrap();
        let (lower, upper) = (bound.lower.unwrap().get(), bound.epsilon.get());
        let (asked, at) = (Ball::exact(delta), |epsilon: f64| truth(&Ball::exact(epsilon)));
        assert!(upper - lower <= 2e-3 * upper + 1e-9, "{event}, δ {delta:?}: [{lower:?}, {upper:?}]");
        assert!(!at(upper).iter().any(|truth| asked.is_certainly_below(truth)), "{event}, δ {delta:?}: ε > {upper:?}");
        let below = |epsilon: f64| at(epsilon).iter().all(|truth| truth.is_certainly_below(&asked));
        assert!(lower == 0.0 || !below(lower), "{event}, δ {delta:?}: ε < {lower:?}");
        let epsilon = 0.7 * upper;
        let bound = accountant.delta(Epsilon::new(epsilon).unwrap()).unwrap();
        let (lower, upper) = (Ball::exact(bound.lower.unwrap()), Ball::exact(bound.delta));
        let exceeds = at(epsilon).iter().any(|truth| upper.is_certainly_below(truth));
        let misses = at(epsilon).iter().all(|truth| truth.is_certainly_below(&lower));
        assert!(!exceeds && !misses, "{event}: δ({epsilon:?}) is not in {bound:?}");
    }

    #[test]
    fn brackets_of_one_step_of_laplace_noise_hold() {
        let mut random = Uniform(0.41);
        for i in 0..40 {
            let (q, scale) = (if i % 4 == 0 { 1.0 } else { random.scale(1e-3, 0.99) }, random.scale(0.1, 20.0));
            // Below the total variation, so that ε is above 0.
            let delta = q * (1.0 - (-0.5 / scale).exp()) * random.scale(1e-9, 0.9);
            let event = DpEvent::laplace(NoiseMultiplier::new(scale).unwrap());
            let event = event.poisson_sampled(SamplingRate::new(q).unwrap());
            judge(&event, NeighbouringRelation::AddRemove, delta, |epsilon| {
                [Direction::Remove, Direction::Add].map(|d| sampled_laplace_delta(q, scale, d, epsilon)).to_vec()
            });
        }
    }

    #[test]
    fn brackets_of_one_batch_of_fixed_size_hold() {
        let mut random = Uniform(0.77);
        for _ in 0..40 {
            let n = random.scale(10.0, 1e6) as u64;
            let batch = (random.scale(1e-4, 1.0) * n as f64).ceil() as u64;
            let (sigma, delta) = (random.scale(0.05, 50.0), random.scale(1e-200, 1e-3));
            let event = DpEvent::gaussian(NoiseMultiplier::new(sigma).unwrap()).fixed_size_sampled(n, batch).unwrap();
            let q = batch as f64 / n as f64;
            // Replacing a record moves the sum by twice its bound.
            judge(&event, NeighbouringRelation::ReplaceOne, delta, |epsilon| {
                vec![if q < 1.0 {
                    sampled_gaussian_delta(&Ball::exact(q), 0.5 * sigma, Direction::Remove, epsilon)
                } else {
                    gaussian_delta(&(Ball::exact(4.0) / (Ball::exact(sigma) * Ball::exact(sigma))), epsilon)
                }]
            });
        }
    }
}
