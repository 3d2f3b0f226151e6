//! How much of a trained weight is noise: from the known noise of the steps, at no ε.
//!
//! The noise of every step is public. What training makes of it depends on the loss's curvature, which
//! is private, so that it is taken to be what released numbers say: that of a model whose features
//! do not depend on each other, with residuals of about half the variance that the classes' shares
//! allow. Where features depend on each other, a weight has more noise than that; a constant factor stands for it.

use crate::conditioning::BlockTransform;

/// What is said is larger by this than the noise of features that do not depend on each other. With it, 95 % of the
/// points of eight fits each are within their bands on Adult and Dutch; docs/benchmarks/curves.py measures this.
const OF_DEPENDENCE: f64 = 2.0;
/// The same of whitened blocks, most of whose directions have less curvature than the mean.
const OF_WHITENED: f64 = 3.2;

/// Standard deviations of the noise of a model's weights.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightNoise<'a>(pub(crate) Kind<'a>);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind<'a> {
    /// Of each output's weights, independent of each other.
    Weights(Vec<Vec<f64>>),
    /// Blocks of whitened columns, each with the noise of a whitened weight of each output.
    Blocks(Vec<(&'a BlockTransform, Vec<f64>)>),
}

impl WeightNoise<'_> {
    /// That of `Σ c w` for weights of an output, given by their columns, and factors.
    pub fn std(&self, output: usize, terms: &[(usize, f64)]) -> f64 {
        match &self.0 {
            Kind::Weights(stds) => {
                let square = |&(column, factor): &(usize, f64)| (factor * stds[output][column]).powi(2);
                OF_DEPENDENCE * terms.iter().map(square).sum::<f64>().sqrt()
            }
            Kind::Blocks(blocks) => {
                let of = |(block, stds): &(&BlockTransform, Vec<f64>)| stds[output] * block.whitened_norm(terms);
                OF_WHITENED * blocks.iter().map(|block| of(block).powi(2)).sum::<f64>().sqrt()
            }
        }
    }
}

/// The noise of one weight, from step to step, with unit noise in each step's mean gradient.
#[derive(Debug, Clone, Copy, Default)]
struct Covariance {
    now: f64,
    before: f64,
    both: f64,
    /// Of the sum of weights with the weight, with the one before, and with itself.
    sum: [f64; 3],
}

impl Covariance {
    /// The next weight is `a·now + b·before + s·noise`.
    fn step(&mut self, [a, b]: [f64; 2], s: f64) {
        let now = a * a * self.now + 2.0 * a * b * self.both + b * b * self.before + s * s;
        let both = a * self.now + b * self.both;
        let [with_now, with_before, of_sum] = self.sum;
        *self = Self { now, before: self.now, both, sum: [a * with_now + b * with_before, with_now, of_sum] };
    }

    fn add_to_sum(&mut self) {
        let [with_now, with_before, of_sum] = self.sum;
        self.sum = [with_now + self.now, with_before + self.both, of_sum + 2.0 * with_now + self.now];
    }
}

/// Of the mean of the later half of the steps, each from where momentum led, and shrunk: see
/// [`descend`](crate::descent::descend).
pub(crate) fn of_averaged(curvature: f64, shrink: f64, [rate, momentum]: [f64; 2], steps: u64) -> f64 {
    let kept = (1.0 - rate * curvature) / (1.0 + rate * shrink);
    let mut covariance = Covariance::default();
    for step in 1..=steps {
        covariance.step([kept * (1.0 + momentum), -kept * momentum], rate / (1.0 + rate * shrink));
        if 2 * step > steps {
            covariance.add_to_sum();
        }
    }
    covariance.sum[2].sqrt() / (steps - steps / 2) as f64
}

/// Of the last of steps with momentum at these rates.
pub(crate) fn of_last(curvature: f64, rates: impl Iterator<Item = f64>, momentum: f64) -> f64 {
    let mut covariance = Covariance::default();
    for rate in rates {
        covariance.step([1.0 + momentum - rate * curvature, -momentum], rate);
    }
    covariance.now.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two steps of rate ½ without momentum and curvature: the first weight is ½ e₁, the second
    /// ½ (e₁ + e₂), and the mean of the later half is the second.
    #[test]
    fn two_steps_by_hand() {
        let half = 0.5_f64.sqrt();
        assert!((of_averaged(0.0, 0.0, [0.5, 0.0], 2) - half).abs() < 1e-15);
        assert!((of_last(0.0, [0.5, 0.5].into_iter(), 0.0) - half).abs() < 1e-15);
        // With momentum ½ the second is ½ (1.5 e₁ + e₂).
        assert!((of_last(0.0, [0.5, 0.5].into_iter(), 0.5) - 0.5 * 3.25_f64.sqrt()).abs() < 1e-15);
    }

    /// Four steps, of which the last two are averaged, beside the sum of what each noise adds.
    #[test]
    fn means_of_steps_beside_their_responses() {
        let (curvature, shrink, rate, momentum, steps) = (0.3, 0.1, 0.7, 0.6, 4);
        let response = |of: u64| {
            let (mut now, mut before, mut sum) = (0.0, 0.0, 0.0);
            for step in 1..=steps {
                let ahead = now + momentum * (now - before);
                let noise = if step == of { 1.0 } else { 0.0 };
                before = now;
                now = (ahead - rate * (curvature * ahead + noise)) / (1.0 + rate * shrink);
                if 2 * step > steps {
                    sum += now;
                }
            }
            sum / 2.0
        };
        let expected: f64 = (1..=steps).map(|of| f64::powi(response(of), 2)).sum();
        let found = of_averaged(curvature, shrink, [rate, momentum], steps);
        assert!((found - expected.sqrt()).abs() < 1e-12, "{found}");
    }
}
