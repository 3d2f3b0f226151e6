//! Sums over records that are exact, so that neither order, threads nor parts of the records change
//! a bit.
//!
//! Every value is rounded towards zero to a multiple of a public step, so small that every partial
//! sum is an integer below 2⁵³ steps: `f64` then adds integers. Rounding towards zero makes no
//! vector longer, so a bound on a record's contribution stays one.

use std::ops::Range;

use dp_engine::collective::Collective;
use rayon::prelude::*;

use crate::error::Result;
use crate::rows::{BLOCK, RowSource, SparseRow};

/// Sums over rows, `[size]`: `add` adds a row's term. The sum is exact if all terms are multiples
/// of one grid. Each of several ranks adds its share, and all receive the sum.
///
/// # Errors
/// If a rank is gone.
pub fn sum_rows<S: Send>(
    rows: &impl RowSource,
    size: usize,
    scratch: impl Fn() -> S + Sync,
    add: impl Fn(&mut S, usize, SparseRow<'_>, &mut [f64]) + Sync,
) -> Result<Vec<f64>> {
    sum_several(rows, size, scratch, |scratch, first, rows, sum| {
        for (index, row) in (first..).zip(rows) {
            if !row.is_blank() {
                add(scratch, index, *row, sum);
            }
        }
    })
}

/// The same: `add` adds the terms of some rows at a time, and none of a blank one. It has the index of the
/// first.
pub(crate) fn sum_several<S: Send>(
    rows: &impl RowSource,
    size: usize,
    scratch: impl Fn() -> S + Sync,
    add: impl Fn(&mut S, usize, &[SparseRow<'_>], &mut [f64]) + Sync,
) -> Result<Vec<f64>> {
    let share = rows.share();
    let blocks: Vec<Range<usize>> =
        share.clone().step_by(BLOCK).map(|start| start..(start + BLOCK).min(share.end)).collect();
    let threads = rayon::current_num_threads().max(1);
    let sum = blocks
        .par_chunks(blocks.len().div_ceil(threads).max(1))
        .map(|blocks| {
            let (mut sum, mut scratch) = (vec![0.0; size], scratch());
            for block in blocks {
                rows.visit_several(block.clone(), &mut |first, rows| add(&mut scratch, first, rows, &mut sum));
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
pub fn of_ranks(sum: Vec<f64>, ranks: &dyn Collective) -> Result<Vec<f64>> {
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
    use crate::rows::SparseBlock;
    use dp_engine::Grid;

    #[test]
    fn sums_are_the_same_for_any_number_of_threads() {
        let mut block = SparseBlock::default();
        block.clear();
        for i in 0..30_000_u32 {
            let value = ((i * 7919) % 10_007) as f32 / 10_007.0;
            block.push_row(0, 1.0, |push| {
                push(0, value);
                push(1, 1.0 - value);
            });
        }
        let rows = (block, 2);
        let grid = Grid::for_values(1.0, 30_000);
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
