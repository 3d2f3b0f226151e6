//! Random studies.

use rand::{Rng, RngCore};

/// A source of normal numbers.
pub(crate) struct Draws<'a> {
    rng: &'a mut dyn RngCore,
    spare: Option<f64>,
}

impl<'a> Draws<'a> {
    pub(crate) fn new(rng: &'a mut impl Rng) -> Self {
        Self { rng, spare: None }
    }

    /// A standard normal number (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        // In (0, 1]: the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.rng.random::<f64>()).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.rng.random::<f64>();
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// Normal numbers with this mean and standard deviation.
    pub(crate) fn normals(&mut self, n: usize, mean: f64, deviation: f64) -> Vec<f64> {
        (0..n).map(|_| mean + deviation * self.normal()).collect()
    }

    /// Runs of groups whose costs have these means and vary with this deviation: half of it is
    /// shared by the groups of a run.
    pub(crate) fn costs(&mut self, n_runs: usize, means: &[f64], deviation: f64) -> Vec<Vec<Option<f64>>> {
        let part = deviation / std::f64::consts::SQRT_2;
        (0..n_runs)
            .map(|_| {
                let shared = part * self.normal();
                means.iter().map(|mean| Some(mean + shared + part * self.normal())).collect()
            })
            .collect()
    }

    /// How many of `n` records a rate of `rate` takes.
    pub(crate) fn binomial(&mut self, n: usize, rate: f64) -> usize {
        (0..n).filter(|_| self.rng.random::<f64>() < rate).count()
    }

    /// The same by the distances between the rarer ones, which are geometric: fewer draws where
    /// there are many records.
    pub(crate) fn binomial_of_many(&mut self, n: usize, rate: f64) -> usize {
        if rate > 0.5 {
            return n - self.binomial_of_many(n, 1.0 - rate);
        }
        if rate <= 0.0 {
            return 0;
        }
        let per_record = (-rate).ln_1p();
        let (mut taken, mut last) = (0, 0.0);
        loop {
            // In (0, 1]: the logarithm is finite.
            last += ((1.0 - self.rng.random::<f64>()).ln() / per_record).floor() + 1.0;
            if last > n as f64 {
                return taken;
            }
            taken += 1;
        }
    }
}
