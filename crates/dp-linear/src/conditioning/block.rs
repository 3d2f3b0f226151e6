//! Blocks of columns of a table, each centred and whitened by what is released about it.

use std::num::NonZeroUsize;
use std::ops::Range;

use dp_accounting::NoiseMultiplier;
use dp_engine::Grid;
use dp_engine::vector_math::vectorise;
use rayon::prelude::*;

use super::fit::{AT_ONCE, RIDGE, regularised_factor};
use super::gram::{gram, place_row};
use super::triangular::Lower;
use super::whitening::Whitening;
use crate::error::{LinearError, Result};
use crate::exact::{of_ranks, sum_rows};
use crate::exact_sum::ExactSum;
use crate::rows::{RowSource, SparseRow, scale, scale_to_unit, square_of};
use crate::settings::Streams;

/// A block of more columns than this is whitened by the diagonal of its covariance alone: the noise
/// of a whole one grows with the root of their number, and its cost with the square.
pub const MOST_WHITENED: usize = 2_048;
/// Taken from every norm for its rounding in single precision.
const MARGIN: f64 = 1.0 / (1_u64 << 20) as f64;
/// A column's mean is known from this many standard deviations of its noise on.
const LEAST_MEAN: f64 = 2.0;
/// A released mean may be longer than any row; a radius is no smaller than this all the same.
const LEAST_RADIUS: f64 = 0.05;

/// Columns that are whitened together. Everything about them is public.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnBlock {
    /// For people: in the purpose of its releases.
    pub name: String,
    /// Positions of its columns, in ascending order.
    pub columns: Vec<usize>,
    /// Largest norm that a row can have in them.
    pub norm: f64,
}

impl ColumnBlock {
    /// Whether the whole covariance is released, or its diagonal alone.
    pub fn is_whole(&self) -> bool {
        self.columns.len() <= MOST_WHITENED
    }
}

/// `u ↦ W (u/ν − m)/r` for the values `u` of a row in a block, with the released mean `m`, the
/// radius `r` that follows from it and a factor `W` of the inverse of the released covariance.
///
/// **Guarantee.** With `x = u/ν` two sums over records are released, each with Gaussian noise: of
/// `w x`, and of `w v vᵀ`, or of its diagonal, with `v = (x − m)/r` shortened to norm 1. A record's
/// part in each has norm at most 1, the noise beside the diagonal is that of
/// [`Conditioning`](super::Conditioning), and a unit of several records has as many times the noise.
/// What is too long by the rounding of its values counts as a blanked record. Sums are exact.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BlockTransform {
    columns: Vec<usize>,
    /// Position of each column of the table in the block.
    places: Vec<u32>,
    norm: f64,
    mean: Vec<f64>,
    radius: f64,
    factor: Factor,
    /// The largest square of a length that counts in the mean of them.
    longest: f64,
    /// A mean that is not above this cannot be told from 0.
    least_mean: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Factor {
    Whole { factor: Lower, whitening: Whitening },
    Diagonal(Vec<f64>),
}

/// What is public of a release about a block.
#[derive(Clone, Copy)]
pub(crate) struct BlockNoise {
    pub(crate) mean: NoiseMultiplier,
    pub(crate) covariance: NoiseMultiplier,
    pub(crate) records_per_unit: f64,
}

impl BlockTransform {
    /// Releases mean and covariance; `total` is the weight of all records.
    pub(crate) fn fit(
        rows: &impl RowSource,
        total: f64,
        block: &ColumnBlock,
        noise: BlockNoise,
        index: u64,
        streams: &impl Streams,
    ) -> Result<Self> {
        let size = block.columns.len();
        if size == 0 {
            return Err(LinearError::invalid("columns of a block", 0, "at least 1"));
        }
        let mut places = vec![u32::MAX; rows.width()];
        for (place, &column) in block.columns.iter().enumerate() {
            places[column] = place as u32;
        }
        let mut fitted = Self {
            columns: block.columns.clone(),
            places,
            norm: block.norm,
            mean: vec![0.0; size],
            radius: 1.0,
            factor: Factor::Diagonal(Vec::new()),
            longest: 0.0,
            least_mean: LEAST_MEAN * noise.mean.get() * noise.records_per_unit / total,
        };
        let grid = Grid::for_products(rows.len())?;
        let units = noise.records_per_unit;
        let sum = sum_rows(
            rows,
            size,
            || (vec![0.0; size], vec![0.0; size]),
            |(values, placed), _, row, sum| {
                fitted.gather(row, values);
                let weight = f64::from(row.weight) * (1.0 - MARGIN);
                place_row(grid, &values.iter().map(|value| value * weight), placed);
                sum.iter_mut().zip(&*placed).for_each(|(sum, value)| *sum += value);
            },
        )?;
        let sum = streams.release("mean", index, ExactSum::new(grid, sum, noise.mean.get() * units));
        fitted.mean = sum.iter().map(|value| value / total).collect();
        let square: f64 = fitted.mean.iter().map(|value| value * value).sum();
        fitted.radius = (1.0 - square).max(LEAST_RADIUS * LEAST_RADIUS).sqrt();

        let std = noise.covariance.get() * units;
        if block.is_whole() {
            let share = rows.share();
            let part = |range: Range<usize>| {
                let range = share.start + range.start..share.start + range.end;
                let mut out = vec![0.0; range.len() * size];
                let mut outs = out.chunks_exact_mut(size);
                rows.visit(range, &mut |_, row| {
                    if let Some(out) = outs.next()
                        && !row.is_blank()
                    {
                        fitted.shortened(row, out);
                    }
                });
                Ok(out)
            };
            let threads = NonZeroUsize::new(rayon::current_num_threads()).unwrap_or(NonZeroUsize::MIN);
            let triangle = of_ranks(gram(grid, share.len(), size, part, threads)?, rows.ranks())?;
            let sum = ExactSum::symmetric(grid.squared(), triangle, size, std);
            let mut triangle = streams.release("covariance", index, sum);
            for value in &mut triangle {
                *value /= total;
            }
            let edge = std::f64::consts::SQRT_2 * std * (size as f64).sqrt() / total;
            let factor = regularised_factor(&triangle, size, RIDGE * edge)?;
            fitted.factor = Factor::Whole { whitening: Whitening::new(factor.inverse()), factor };
            fitted.longest = (RIDGE * edge).recip();
        } else {
            let grid = Grid::for_values(1.0, rows.len());
            let sum = sum_rows(
                rows,
                size,
                || vec![0.0; size],
                |values: &mut Vec<f32>, _, row, sum| {
                    values.fill(0.0);
                    fitted.shortened(row, values);
                    for (sum, &value) in sum.iter_mut().zip(&*values) {
                        *sum += grid.place(f64::from(value).powi(2));
                    }
                },
            )?;
            let released = streams.release("covariance", index, ExactSum::new(grid, sum, std));
            let ridge = RIDGE * std / total;
            let factors = released.iter().map(|sum| ((sum / total).max(0.0) + ridge).sqrt().recip());
            fitted.factor = Factor::Diagonal(factors.collect());
            fitted.longest = ridge.recip();
        }
        Ok(fitted)
    }

    pub(crate) fn size(&self) -> usize {
        self.columns.len()
    }

    pub(crate) fn mean(&self) -> &[f64] {
        &self.mean
    }

    pub(crate) fn radius(&self) -> f64 {
        self.radius
    }

    /// `L` with `L Lᵀ` the released covariance with its ridge; `None` for a diagonal one.
    pub(crate) fn covariance_factor(&self) -> Option<&[f64]> {
        match &self.factor {
            Factor::Whole { factor, .. } => Some(&factor.values),
            Factor::Diagonal(_) => None,
        }
    }

    /// The largest square of a whitened row's length that counts in the mean of them.
    pub(crate) fn longest(&self) -> f64 {
        self.longest
    }

    /// `u/ν`.
    fn gather(&self, row: SparseRow<'_>, out: &mut [f64]) {
        out.fill(0.0);
        for (column, value) in row.features() {
            if let Some(out) = out.get_mut(self.places[column] as usize) {
                *out = value / self.norm;
            }
        }
    }

    /// `(u/ν − m)/r`.
    fn centre(&self, row: SparseRow<'_>, out: &mut [f32]) {
        let mut values = vec![0.0; out.len()];
        self.gather(row, &mut values);
        vectorise(
            #[inline(always)]
            || {
                for (out, (value, mean)) in out.iter_mut().zip(values.iter().zip(&self.mean)) {
                    *out = ((value - mean) / self.radius) as f32;
                }
            },
        );
    }

    /// The same, of norm 1 at most, times the root of the record's weight.
    fn shortened(&self, row: SparseRow<'_>, out: &mut [f32]) {
        self.centre(row, out);
        let square = square_of(out);
        if square.is_nan() || square > 1.0 - MARGIN {
            scale_to_unit(out);
        }
        if row.weight < 1.0 {
            scale(out, f64::from(row.weight).sqrt() * (1.0 - MARGIN));
        }
    }

    /// Whitened rows of this rank, `[share, size]`; rows of zeros for blank ones.
    pub(crate) fn apply(&self, rows: &impl RowSource) -> Result<Vec<f32>> {
        let (share, size) = (rows.share(), self.size());
        let mut out = vec![0.0; share.len() * size];
        let done = out.par_chunks_mut(AT_ONCE * size).enumerate().map(|(piece, out)| {
            let start = share.start + piece * AT_ONCE;
            let mut blank = vec![false; out.len() / size];
            let mut at = 0;
            rows.visit(start..start + blank.len(), &mut |_, row| {
                blank[at] = row.is_blank();
                self.centre(row, &mut out[at * size..(at + 1) * size]);
                at += 1;
            });
            match &self.factor {
                Factor::Whole { whitening, .. } => whitening.apply(out)?,
                Factor::Diagonal(factors) => {
                    for row in out.chunks_exact_mut(size) {
                        row.iter_mut().zip(factors).for_each(|(value, factor)| *value *= *factor as f32);
                    }
                }
            }
            for (row, blank) in out.chunks_exact_mut(size).zip(blank) {
                if blank || !row.iter().all(|value| value.is_finite()) {
                    row.fill(0.0);
                }
            }
            Ok(())
        });
        done.collect::<Result<()>>()?;
        Ok(out)
    }

    /// The norm of the change of whitened weights that `Σ c w` is for, with weights `w` on the table's
    /// columns and factors `c`: where whitened weights have independent noise of 1, that is its noise.
    pub(crate) fn whitened_norm(&self, terms: &[(usize, f64)]) -> f64 {
        let mut factors = vec![0.0; self.size()];
        for &(column, factor) in terms {
            if let Some(out) = factors.get_mut(self.places[column] as usize) {
                *out += factor / (self.radius * self.norm);
            }
        }
        let whitened = match &self.factor {
            Factor::Whole { whitening, .. } => whitening.inverse.times(&factors),
            Factor::Diagonal(diagonal) => factors.iter().zip(diagonal).map(|(a, b)| a * b).collect(),
        };
        whitened.iter().map(|value| value * value).sum::<f64>().sqrt()
    }

    /// Whether a column whose values are mostly 0, and never below, has a mean that cannot be told from
    /// the noise; `None` of a column that is not in this block.
    pub(crate) fn is_too_rare(&self, column: usize) -> Option<bool> {
        self.mean.get(self.places[column] as usize).map(|mean| *mean <= self.least_mean)
    }

    /// Released mean of a column, in units of the table; `None` of a column that is not in this block.
    pub(crate) fn mean_of(&self, column: usize) -> Option<f64> {
        self.mean.get(self.places[column] as usize).map(|mean| mean * self.norm)
    }

    /// Adds the weights on the table's columns that weights on whitened ones stand for, and returns
    /// what they add to the intercept.
    pub(crate) fn fold(&self, weights: &[f64], into: &mut [f64]) -> f64 {
        let mut raw = match &self.factor {
            Factor::Whole { whitening, .. } => whitening.inverse.transposed_times(weights),
            Factor::Diagonal(factors) => weights.iter().zip(factors).map(|(weight, factor)| weight * factor).collect(),
        };
        for weight in &mut raw {
            *weight /= self.radius;
        }
        for (&column, weight) in self.columns.iter().zip(&raw) {
            into[column] += weight / self.norm;
        }
        -raw.iter().zip(&self.mean).map(|(weight, mean)| weight * mean).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng as _;

    use super::*;
    use crate::rows::SparseBlock;

    struct Seeded;

    impl Streams for Seeded {
        fn stream(&self, purpose: &str, step: u64) -> ChaCha20Rng {
            ChaCha20Rng::seed_from_u64(purpose.len() as u64 + 1_000 * step)
        }
    }

    /// Rows with a constant in column 3, all of the largest norm in the block of the others but
    /// record 0, which is longer by far; record 1 has half a weight; one row may be blank.
    fn rows(n: usize, blank: Option<usize>) -> (SparseBlock, usize) {
        let mut block = SparseBlock::default();
        block.clear();
        for i in 0..n {
            let angle = i as f64 * 0.7;
            let row = [0.6 * angle.cos(), 0.6 * angle.sin(), 0.8];
            let length = if i == 0 { 40.0 } else { 0.5 };
            let weight = if i == 1 { 0.5 } else { 1.0 };
            block.push_row(0, weight, |push| {
                if blank != Some(i) {
                    row.iter().enumerate().for_each(|(column, value)| push(column, (value * length) as f32));
                    push(3, 0.3);
                }
            });
        }
        (block, 4)
    }

    fn fit(rows: &(SparseBlock, usize)) -> BlockTransform {
        let block = ColumnBlock { name: "x".into(), columns: vec![0, 1, 2], norm: 0.5 };
        let sigma = NoiseMultiplier::new(2.0).unwrap();
        let noise = BlockNoise { mean: sigma, covariance: sigma, records_per_unit: 1.0 };
        BlockTransform::fit(rows, rows.0.len() as f64, &block, noise, 0, &Seeded).unwrap()
    }

    /// Under one stream of noise two neighbours differ by the record alone: by its weight at most,
    /// and by nothing where the record is too long.
    #[test]
    fn a_record_moves_the_mean_by_its_weight_at_most() {
        let n = 50;
        let all = fit(&rows(n, None));
        for (blank, most) in [(0, 0.0), (1, 0.5), (2, 1.0), (n - 1, 1.0)] {
            let without = fit(&rows(n, Some(blank)));
            let square: f64 = all.mean.iter().zip(&without.mean).map(|(a, b)| ((a - b) * n as f64).powi(2)).sum();
            // Noise and sum are rounded together, to 1/256 of the noise's standard deviation.
            let rounding = 3.0 * 2.0 / 256.0;
            assert!(square.sqrt() <= most + rounding && square.sqrt() >= most - rounding, "{blank}: {square}");
        }
    }

    /// What enters the covariance has norm 1 at most, times the root of its weight, whatever the
    /// mean and the row are.
    #[test]
    fn a_record_enters_the_covariance_shortened() {
        let rows = rows(40, Some(7));
        let mut fitted = fit(&rows);
        for (mean, radius) in [(vec![0.0; 3], 1.0), (vec![0.4, -3.0, 1e6], 0.05), (vec![0.1, 0.2, 0.3], 1e-12)] {
            (fitted.mean, fitted.radius) = (mean, radius);
            let mut out = vec![0.0; 3];
            for index in 0..40 {
                let row = rows.0.row(index);
                fitted.shortened(row, &mut out);
                let square: f64 = out.iter().map(|&value| f64::from(value).powi(2)).sum();
                assert!(square <= f64::from(row.weight), "{index}: {square}");
            }
        }
    }

    /// Weights on whitened rows, folded, answer as on the table's columns.
    #[test]
    fn folded_weights_answer_alike() {
        let rows = rows(60, Some(3));
        let mut fitted = fit(&rows);
        for diagonal in [false, true] {
            if diagonal {
                fitted.factor = Factor::Diagonal(vec![0.5, 2.0, 3.0]);
            }
            let whitened = fitted.apply(&rows).unwrap();
            let weights = [0.3, -1.2, 0.7];
            let mut folded = vec![0.0; 4];
            let intercept = fitted.fold(&weights, &mut folded);
            for (index, whitened) in whitened.chunks_exact(3).enumerate() {
                let row = rows.0.row(index);
                let expected: f64 =
                    whitened.iter().zip(weights).map(|(&value, weight)| f64::from(value) * weight).sum();
                let got = intercept + row.features().map(|(column, value)| folded[column] * value).sum::<f64>();
                if row.is_blank() {
                    assert_eq!(whitened, [0.0; 3]);
                } else {
                    assert!((got - expected).abs() < 1e-4 * expected.abs().max(1.0), "{index}: {got} {expected}");
                }
            }
        }
    }
}
