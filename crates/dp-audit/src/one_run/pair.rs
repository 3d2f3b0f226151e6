//! What a step of the mechanism tells of one canary, and how far apart the scores of those that were
//! in and of those that were not are to be.

/// Points of a quadrature.
const POINTS: u32 = 2_000;
/// Beyond so many standard deviations there is nothing.
const REACH: f64 = 9.0;

/// A step in which a record is drawn with a probability and then moves the released sum along its
/// direction, in units of the noise that is claimed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    /// Probability with which a record is drawn.
    pub(crate) rate: f64,
    /// How far it then moves the sum, over the standard deviation of the noise.
    pub(crate) shift: f64,
}

impl Pair {
    /// The logarithm of the likelihood ratio of a projection, in units of the noise: that of a record
    /// that is in against one that is not. Without sampling it is the projection itself, but for
    /// constants.
    pub(crate) fn score(self, projection: f64) -> f64 {
        let ratio = self.shift * projection - 0.5 * self.shift * self.shift;
        if self.rate >= 1.0 { ratio } else { (self.rate * libm::expm1(ratio)).ln_1p() }
    }

    /// The same for a record that moves the sum by this part of its bound.
    pub(crate) fn with_share(self, share: f64) -> Self {
        Self { shift: self.shift * share, ..self }
    }

    /// The difference of the mean scores of the two kinds over `steps` steps, over their common
    /// standard deviation, where the noise is `noise` times what is claimed.
    pub(crate) fn separation(self, noise: f64, steps: f64) -> f64 {
        let (from, to) = (-REACH * noise, self.shift + REACH * noise);
        let width = (to - from) / f64::from(POINTS);
        let (mut absent, mut present) = ([0.0; 3], [0.0; 3]);
        let density = |x: f64| (-0.5 * (x / noise).powi(2)).exp();
        for point in 0..POINTS {
            let x = from + width * (f64::from(point) + 0.5);
            let score = self.score(x);
            let without = density(x);
            let with = (1.0 - self.rate) * without + self.rate * density(x - self.shift);
            for (moments, weight) in [(&mut absent, without), (&mut present, with)] {
                moments[0] += weight;
                moments[1] += weight * score;
                moments[2] += weight * score * score;
            }
        }
        let of = |[mass, first, second]: [f64; 3]| (first / mass, second / mass - (first / mass).powi(2));
        let ((mean_absent, variance_absent), (mean_present, variance_present)) = (of(absent), of(present));
        (mean_present - mean_absent) * steps.sqrt() / (0.5 * (variance_absent + variance_present)).sqrt()
    }

    /// The noise, over what is claimed, at which the scores would be as far apart as they are: the
    /// separation falls with the noise. Infinite for no separation.
    pub(crate) fn noise_of(self, separation: f64, steps: f64) -> f64 {
        if separation <= 0.0 {
            return f64::INFINITY;
        }
        let (mut low, mut high) = (1e-3_f64, 1e3_f64);
        if self.separation(high, steps) >= separation {
            return f64::INFINITY;
        }
        for _ in 0..50 {
            let middle = (low * high).sqrt();
            if self.separation(middle, steps) >= separation { low = middle } else { high = middle }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without sampling: a shift of 0.1 over 100 steps is one standard deviation, and two with half the
    /// noise.
    #[test]
    fn a_full_batch_is_a_gaussian_pair() {
        let pair = Pair { rate: 1.0, shift: 0.1 };
        assert!((pair.separation(1.0, 100.0) - 1.0).abs() < 1e-6);
        assert!((pair.separation(0.5, 100.0) - 2.0).abs() < 1e-6);
        assert!((pair.noise_of(2.0, 100.0) - 0.5).abs() < 1e-6);
        assert!((pair.score(0.3) - (0.03 - 0.005)).abs() < 1e-15);
        assert!(pair.noise_of(0.0, 100.0).is_infinite());
    }

    /// With sampling and much noise the separation is that of the central limit, `q √(T (e^(1/σ²) − 1))`
    /// (Bu et al. 2020); the plain projection has `q √T / σ`, less where the noise is small.
    #[test]
    fn a_sampled_step_is_near_its_limit_and_above_the_plain_projection() {
        let (q, steps) = (0.01_f64, 1_000.0_f64);
        for sigma in [1.0, 2.0, 4.0] {
            let pair = Pair { rate: q, shift: 1.0 / sigma };
            let limit = q * (steps * f64::exp_m1(1.0 / (sigma * sigma))).sqrt();
            let found = pair.separation(1.0, steps);
            assert!((found / limit - 1.0).abs() < 0.03, "{sigma}: {found} {limit}");
            let plain = q * steps.sqrt() / sigma;
            assert!(found > plain, "{sigma}: {found} {plain}");
        }
        // A quarter of what there is would be lost at σ = 1: 1 − 1/√(e − 1) = 0.237.
        let pair = Pair { rate: q, shift: 1.0 };
        assert!(q * steps.sqrt() < 0.8 * pair.separation(1.0, steps));
        assert!((pair.score(0.7) - (1.0 + q * f64::exp_m1(0.2)).ln()).abs() < 1e-15);
    }
}
