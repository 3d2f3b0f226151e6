//! Sums over records that are exact, so that neither order, threads nor parts of the records change
//! a bit.
//!
//! Every value is rounded towards zero to a multiple of a public step, so small that every partial
//! sum is an integer below 2⁵³ steps: `f64` then adds integers. Rounding towards zero makes no
//! vector longer, so a bound on a record's contribution stays one.

use std::ops::Range;

use dp_clipping::noise::StepNoise;
use dp_train::ranks::Collective;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::rows::{BLOCK, RowSource, SparseRow};

/// A grid for sums of values of at most `largest` over `n_records`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Grid {
    step: f64,
    per_unit: f64,
}

impl Grid {
    pub(crate) fn new(largest: f64, n_records: usize) -> Self {
        // A power of two, so that multiplying and dividing by it is exact.
        let needed = (largest * n_records.max(1) as f64).log2().ceil() as i32 + 1;
        let step = 2f64.powi(needed - f64::MANTISSA_DIGITS.cast_signed());
        Self { step, per_unit: step.recip() }
    }

    /// A grid of whole numbers, for counts.
    pub(crate) const fn unit() -> Self {
        Self { step: 1.0, per_unit: 1.0 }
    }

    /// A value in steps, towards zero; 0 if it is not finite, or too large for any sum.
    ///
    /// By way of an integer: `trunc` is a call on processors that are not asked for more than the
    /// baseline.
    pub(crate) fn place(self, value: f64) -> f64 {
        const LARGEST: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
        let steps = value * self.per_unit;
        if steps.abs() < LARGEST { (steps as i64) as f64 } else { 0.0 }
    }

    /// Adds noise of this standard deviation to a sum in steps, and returns it in its own unit.
    pub(crate) fn release(self, mut sum: Vec<f64>, std: f64, rng: &mut ChaCha20Rng) -> Vec<f64> {
        StepNoise::draw(rng, std / self.step).add_f64(0, &mut sum);
        for value in &mut sum {
            *value *= self.step;
        }
        sum
    }
}

/// Adds up what `add` makes of each row, `[size]`: exact if `add` adds values in steps of one grid.
/// Of several ranks each takes its share, and all have the sum.
///
/// # Errors
/// If a rank is gone.
pub(crate) fn sum_rows<S: Send>(
    rows: &impl RowSource,
    size: usize,
    scratch: impl Fn() -> S + Sync,
    add: impl Fn(&mut S, usize, SparseRow<'_>, &mut [f64]) + Sync,
) -> crate::Result<Vec<f64>> {
    let share = rows.share();
    let blocks: Vec<Range<usize>> =
        share.clone().step_by(BLOCK).map(|start| start..(start + BLOCK).min(share.end)).collect();
    let threads = rayon::current_num_threads().max(1);
    let sum = blocks
        .par_chunks(blocks.len().div_ceil(threads).max(1))
        .map(|blocks| {
            let (mut sum, mut scratch) = (vec![0.0; size], scratch());
            for block in blocks {
                rows.visit(block.clone(), &mut |index, row| {
                    if !row.is_blank() {
                        add(&mut scratch, index, row, &mut sum);
                    }
                });
            }
            sum
        })
        .reduce(
            || vec![0.0; size],
            |mut a, b| {
                for (a, b) in a.iter_mut().zip(b) {
                    *a += b;
                }
                a
            },
        );
    of_ranks(sum, rows.ranks())
}

/// The sum of what all ranks have: whole numbers below 2⁵³.
///
/// # Errors
/// If a rank is gone.
pub(crate) fn of_ranks(sum: Vec<f64>, ranks: &dyn Collective) -> crate::Result<Vec<f64>> {
    if ranks.size() == 1 {
        return Ok(sum);
    }
    let mut steps: Vec<i64> = sum.into_iter().map(|value| value as i64).collect();
    ranks.sum(&mut steps)?;
    Ok(steps.into_iter().map(|steps| steps as f64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::rows::SparseBlock;

    #[test]
    fn a_grid_leaves_room_for_every_sum() {
        for (largest, n) in [(1.0, 1), (13.7, 36_178), (0.01, 10_000_000)] {
            let grid = Grid::new(largest, n);
            assert!(grid.place(largest) * n as f64 <= 2f64.powi(53), "{largest} {n}");
            assert!(grid.place(largest) * n as f64 >= 2f64.powi(51), "{largest} {n}");
        }
        let grid = Grid::new(1.0, 8);
        assert_eq!((grid.place(f64::NAN), grid.place(f64::INFINITY)), (0.0, 0.0));
        assert!(grid.place(-0.3) * grid.step > -0.3);
    }

    #[test]
    fn sums_are_the_same_for_any_number_of_threads() {
        let mut block = SparseBlock::default();
        block.clear();
        for i in 0..30_000_u32 {
            let value = ((i * 7919) % 10_007) as f32 / 10_007.0;
            block.push_row(0, |push| {
                push(0, value);
                push(1, 1.0 - value);
            });
        }
        let rows = (block, 2);
        let grid = Grid::new(1.0, 30_000);
        let sum = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                sum_rows(
                    &rows,
                    2,
                    || (),
                    |(), _, row, sum| {
                        for (column, value) in row.features() {
                            sum[column] += grid.place(value);
                        }
                    },
                )
                .unwrap()
            })
        };
        assert_eq!(sum(1), sum(2));
        assert_eq!(sum(1), sum(3));
    }
}
