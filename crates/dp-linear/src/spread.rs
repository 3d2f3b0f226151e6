//! A number to predict: its mean and its spread, which are released first, and its residuals.
//!
//! Targets lie in `[-1, 1]`: a number's place in its declared range. Two sums are released, of the
//! targets and of their squares. The model then learns the target less its mean, in units of its
//! standard deviation, by least squares. A residual is shortened to a bound between 1 and 4 of these
//! units: of less noise where records are few, and hardly ever reached where they are many.
//!
//! **Why not the normal equations.** Of the noisy second moments `Σ x xᵀ` and `Σ x y` a solution has
//! the noise of both, for a target that is bounded by 1. Steps over all records have together the
//! noise of one sum `Σ x r` whose residuals `r` are bounded by a few standard deviations, and none in
//! the second moments.

use dp_accounting::NoiseMultiplier;
use dp_engine::Grid;

use crate::error::Result;
use crate::exact::sum_rows;
use crate::exact_sum::ExactSum;
use crate::rows::RowSource;
use crate::settings::Streams;

/// A variance is known from this many standard deviations of its noise on.
const LEAST: f64 = 2.0;
/// The standard deviation of a target of which none is known: half of that of equally likely targets.
const UNKNOWN: f64 = 0.25;
/// Bounds on a residual, in standard deviations of the target.
const LEAST_BOUND: f64 = 1.0;
const LARGEST_BOUND: f64 = 4.0;
/// The noise of a prediction, in standard deviations, that a residual of the least bound brings where
/// the bound begins to rise.
const NOISE_OF_LEAST_BOUND: f64 = 0.03;

/// Where the targets are, as it was released.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Spread {
    /// Their mean, in `[-1, 1]`.
    pub mean: f64,
    /// Their standard deviation, or a quarter where noise hides it.
    pub deviation: f64,
}

impl Spread {
    /// Releases the sums of the targets and of their squares, each by the weight of its record, and
    /// with weights also the sum of these. Returns the weight of all records too.
    ///
    /// **Guarantee.** A record adds `w·(y, y²)` or `w·(y, y², 1)` with `|y|` and `w` of at most 1: a
    /// vector of norm at most `√2` or `√3`, which is the sensitivity. With `records_per_unit` records
    /// the noise grows by that factor.
    ///
    /// # Errors
    /// [`LinearError::Train`](crate::LinearError::Train) if a rank is gone.
    pub fn fit(
        rows: &impl RowSource,
        noise_multiplier: NoiseMultiplier,
        records_per_unit: u64,
        streams: &impl Streams,
    ) -> Result<(Self, f64)> {
        let n_sums = if rows.is_weighted() { 3 } else { 2 };
        let grid = Grid::for_values(1.0, rows.len());
        let sums = sum_rows(
            rows,
            n_sums,
            || (),
            |(), _, row, sum| {
                let (weight, target) = (f64::from(row.weight), f64::from(row.target));
                for (sum, value) in sum.iter_mut().zip([target, target * target, 1.0]) {
                    *sum += grid.place(weight * value);
                }
            },
        )?;
        let sensitivity = (n_sums as f64).sqrt().next_up();
        let std = noise_multiplier.get() * sensitivity * records_per_unit as f64;
        let released = streams.release("label moments", 0, ExactSum::new(grid, sums, std));
        let n = rows.len() as f64;
        let total = released.get(2).map_or(n, |total| total.max(LEAST * std).min(n));
        let mean = (released[0] / total).clamp(-1.0, 1.0);
        let variance = released[1] / total - mean * mean;
        let deviation = if variance > LEAST * std / total { variance.sqrt().min(1.0) } else { UNKNOWN };
        Ok((Self { mean, deviation }, total))
    }

    /// Bound on a residual; `noise` is that of a prediction where it is 1, in standard deviations.
    pub(crate) fn bound(noise: f64) -> f64 {
        (NOISE_OF_LEAST_BOUND / noise.max(f64::MIN_POSITIVE)).clamp(LEAST_BOUND, LARGEST_BOUND)
    }

    /// A prediction, in standard deviations from the mean, less the target.
    pub(crate) fn residual(self, prediction: f64, target: f32) -> f64 {
        prediction - (f64::from(target) - self.mean) / self.deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::SparseBlock;

    struct Seeded;

    impl Streams for Seeded {
        fn stream(&self, _purpose: &str, step: u64) -> rand_chacha::ChaCha20Rng {
            rand_chacha::rand_core::SeedableRng::seed_from_u64(step)
        }
    }

    fn rows(targets: &[f32]) -> (SparseBlock, usize) {
        let mut block = SparseBlock::default();
        for &target in targets {
            block.push_number(target, 1.0, |feature| feature(0, 1.0));
        }
        (block, 1)
    }

    /// Targets -0.5 and 0.5 in turn about 0.25, those beyond the range at its end.
    #[test]
    fn mean_and_deviation_by_hand() {
        let targets: Vec<f32> = (0..1_000).map(|i| [-0.25, 0.75][i % 2]).collect();
        let little = NoiseMultiplier::new(1e-6).unwrap();
        let (spread, total) = Spread::fit(&rows(&targets), little, 1, &Seeded).unwrap();
        assert!((spread.mean - 0.25).abs() < 1e-6 && (spread.deviation - 0.5).abs() < 1e-6, "{spread:?}");
        assert_eq!(total, 1_000.0);
        assert!((spread.residual(0.0, 0.75) + 1.0).abs() < 1e-6);
        let (spread, _) = Spread::fit(&rows(&[7.0, f32::NAN, -7.0, f32::INFINITY]), little, 1, &Seeded).unwrap();
        assert!((spread.mean - 0.25).abs() < 1e-5, "{spread:?}");
    }

    /// Nothing can be told of a spread in so much noise: it is the public one.
    #[test]
    fn a_hidden_deviation_is_public() {
        let much = NoiseMultiplier::new(1e6).unwrap();
        let (spread, _) = Spread::fit(&rows(&[0.1; 50]), much, 1, &Seeded).unwrap();
        assert!(spread.deviation == UNKNOWN || spread.deviation == 1.0, "{spread:?}");
        assert!((-1.0..=1.0).contains(&spread.mean));
    }

    #[test]
    fn bounds_rise_where_noise_falls() {
        assert_eq!([0.5, 0.03, 0.015, 0.001, 0.0].map(Spread::bound), [1.0, 1.0, 2.0, 4.0, 4.0]);
    }
}
