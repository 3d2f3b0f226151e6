//! Sums over records without rounding.
//!
//! A floating-point sum of many records rounds after every addition, and one record changes how all
//! the others round: by more than the record's bound, in principle. Here every value is first
//! rounded towards zero to a multiple of `2^-b`, with `b` so small that no sum or sum of products
//! needs more than 53 bits. Double precision then holds every partial result exactly, fused or not,
//! in any order and on any number of threads: sums are sums of integers, and a record changes them
//! by exactly its contribution.

use std::num::NonZeroUsize;

use dp_engine::ops::{self, Matrix};
use dp_engine::vector_math::vectorise;
use dp_engine::{Grid, Threads};

use super::triangular::dot;
use crate::error::Result;

/// Features of a tile of the Gram matrix.
const TILE: usize = 192;
/// Records whose products are taken at once, by each thread.
const AT_ONCE: usize = 512;

/// A row in units of the grid, towards zero; zeros if its norm on the grid exceeds 1 or it is
/// not finite.
///
/// Rounding towards zero makes no value larger, so a row of norm at most 1 stays one. It is
/// checked all the same, in exact arithmetic: the guarantee then does not hang on the caller.
pub(super) fn place_row(grid: Grid, row: &(impl Iterator<Item = f64> + Clone), out: &mut [f64]) {
    let per_unit = grid.per_unit();
    vectorise(
        #[inline(always)]
        || {
            for (out, value) in out.iter_mut().zip(row.clone()) {
                *out = (value * per_unit).trunc();
            }
        },
    );
    // An integer of at most 2^(2b), hence exact as long as the row may count.
    let square_norm = dot(out, out);
    if square_norm.is_nan() || square_norm > per_unit * per_unit {
        out.fill(0.0);
    }
}

/// `Σ x` in units of the grid, `[n_features]`. Every value is an exact integer.
pub(super) fn row_sum(grid: Grid, rows: &[f32], n_features: usize) -> Vec<f64> {
    let mut sum = vec![0.0; n_features];
    let mut placed = vec![0.0; n_features];
    for row in rows.chunks_exact(n_features) {
        place_row(grid, &row.iter().map(|&v| f64::from(v)), &mut placed);
        add(&mut sum, &placed);
    }
    sum
}

fn add(sum: &mut [f64], values: &[f64]) {
    vectorise(
        #[inline(always)]
        || {
            for (sum, value) in sum.iter_mut().zip(values) {
                *sum += value;
            }
        },
    );
}

/// `Σ x xᵀ` in units of the squared grid: the upper triangle with the diagonal, row by row.
/// Every value is an exact integer.
///
/// `rows` gives the values of records `start..end`, `[end − start, n_features]`.
pub(super) fn gram(
    grid: Grid,
    n_records: usize,
    n_features: usize,
    rows: impl Fn(std::ops::Range<usize>) -> Result<Vec<f32>> + Sync,
    threads: NonZeroUsize,
) -> Result<Vec<f64>> {
    let threads = Threads::new(threads)?;
    let share = n_records.div_ceil(threads.count()).max(1);
    let parts: Vec<_> = (0..n_records).step_by(share).map(|start| start..(start + share).min(n_records)).collect();
    let tiles = threads.each(parts.into_iter(), |part| gram_of_part(grid, part, n_features, &rows));
    let mut sum: Option<Vec<Vec<f64>>> = None;
    for tiles in tiles {
        let tiles = tiles?;
        match &mut sum {
            None => sum = Some(tiles),
            Some(sum) => {
                sum.iter_mut().zip(&tiles).for_each(|(sum, tile)| add(sum, tile));
            }
        }
    }
    let Some(tiles) = sum else { return Ok(vec![0.0; n_features * (n_features + 1) / 2]) };
    let mut triangle = Vec::with_capacity(n_features * (n_features + 1) / 2);
    let n_tiles = n_features.div_ceil(TILE);
    for i in 0..n_features {
        for j in i..n_features {
            let (a, b) = (i / TILE, j / TILE);
            // Tiles (a, a), (a, a + 1), …, one row of tiles after the other.
            let tile = &tiles[a * n_tiles + b - a * (a + 1) / 2];
            triangle.push(tile[(i % TILE) * width(b, n_features) + j % TILE]);
        }
    }
    Ok(triangle)
}

/// Tiles `(a, b)` with `a ≤ b` of the Gram matrix of some of the records.
fn gram_of_part(
    grid: Grid,
    part: std::ops::Range<usize>,
    n_features: usize,
    rows: &(impl Fn(std::ops::Range<usize>) -> Result<Vec<f32>> + Sync),
) -> Result<Vec<Vec<f64>>> {
    let n_tiles = n_features.div_ceil(TILE);
    let pairs: Vec<(usize, usize)> = (0..n_tiles).flat_map(|a| (a..n_tiles).map(move |b| (a, b))).collect();
    let mut sums: Vec<Vec<f64>> =
        pairs.iter().map(|&(a, b)| vec![0.0; width(a, n_features) * width(b, n_features)]).collect();
    let mut placed = vec![0.0; AT_ONCE.min(part.len()) * n_features];
    let mut start = part.start;
    while start < part.end {
        let end = (start + AT_ONCE).min(part.end);
        let (n_rows, values) = (end - start, rows(start..end)?);
        for (row, placed) in values.chunks_exact(n_features).zip(placed.chunks_exact_mut(n_features)) {
            place_row(grid, &row.iter().map(|&v| f64::from(v)), placed);
        }
        let strip = |tile: usize| Matrix::strided(&placed[tile * TILE..], n_rows, width(tile, n_features), n_features);
        for (sum, &(a, b)) in sums.iter_mut().zip(&pairs) {
            ops::product(sum, width(b, n_features), strip(a)?.transposed(), strip(b)?, true)?;
        }
        start = end;
    }
    Ok(sums)
}

/// Features of a tile: [`TILE`], or what is left for the last one.
fn width(tile: usize, n_features: usize) -> usize {
    TILE.min(n_features - tile * TILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(n: usize, d: usize) -> Vec<f32> {
        let mut rows: Vec<f32> = (0..n * d).map(|i| ((i * 7919 + i / d) % 509) as f32 / 254.0 - 1.0).collect();
        rows.chunks_exact_mut(d).for_each(crate::rows::scale_to_unit);
        rows
    }

    /// Against integers in 128 bits, for sizes that fill tiles and pieces and that do not; two
    /// threads give the same integers.
    #[test]
    fn sums_are_those_of_integers() {
        for (n, d) in [(1, 1), (7, 5), (AT_ONCE + 3, TILE + 1), (40, 2 * TILE + 17)] {
            let rows = rows(n, d);
            let grid = Grid::for_products(n).unwrap();
            let mut placed = vec![0.0; d];
            let mut integers: Vec<i128> = Vec::new();
            for row in rows.chunks_exact(d) {
                place_row(grid, &row.iter().map(|&v| f64::from(v)), &mut placed);
                integers.extend(placed.iter().map(|&v| v as i128));
            }
            let sum = row_sum(grid, &rows, d);
            for (j, &sum) in sum.iter().enumerate() {
                assert_eq!(sum as i128, (0..n).map(|i| integers[i * d + j]).sum::<i128>());
            }
            let of = |threads| {
                let part = |range: std::ops::Range<usize>| Ok(rows[range.start * d..range.end * d].to_vec());
                gram(grid, n, d, part, NonZeroUsize::new(threads).unwrap()).unwrap()
            };
            let gram = of(1);
            assert!(gram == of(2) && gram == of(3));
            let mut place = 0;
            for i in 0..d {
                for j in i..d {
                    if (i + j) % 13 == 0 || d < 10 {
                        let exact: i128 = (0..n).map(|r| integers[r * d + i] * integers[r * d + j]).sum();
                        assert_eq!(gram[place] as i128, exact, "{n} {d} {i} {j}");
                    }
                    place += 1;
                }
            }
        }
    }

    #[test]
    fn a_row_that_is_too_long_counts_as_nothing() {
        let grid = Grid::for_products(60_000).unwrap();
        let mut placed = vec![7.0; 2];
        for bad in [[1.0, 1e-3], [f64::NAN, 0.0], [f64::INFINITY, 0.0], [1e300, 1e300]] {
            place_row(grid, &bad.into_iter(), &mut placed);
            assert_eq!(placed, [0.0, 0.0], "{bad:?}");
        }
        place_row(grid, &[0.6, -0.8].into_iter(), &mut placed);
        assert_eq!(placed, [157_286.0, -209_715.0]);
    }
}
