//! Results that are products of two contiguous vectors, summed in lanes.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use super::Matrix;
use crate::ops::element::Element;
use crate::vector_math::vectorise;

/// Partial sums of a result.
const LANES: usize = 16;
/// Rows and columns of a tile, each of whose values is loaded once for all of its results. The compiler
/// keeps the partial sums of no larger one in registers.
const ROWS: usize = 2;
const COLUMNS: usize = 2;

/// `dst = lhs · rhs`, or `dst += lhs · rhs` to `accumulate`, where rows of `lhs` and columns of `rhs`
/// are contiguous. Row `i` of `dst` starts at `i · dst_stride`, and all rows have room.
pub(super) fn dots<T: Element>(
    dst: &mut [T],
    dst_stride: usize,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    accumulate: bool,
) {
    vectorise(
        #[inline(always)]
        || {
            let mut row = 0;
            while row + ROWS <= lhs.rows {
                rows::<T, ROWS>(&mut dst[row * dst_stride..], dst_stride, lhs.rows(row..row + ROWS), rhs, accumulate);
                row += ROWS;
            }
            for row in row..lhs.rows {
                rows::<T, 1>(&mut dst[row * dst_stride..], dst_stride, lhs.rows(row..row + 1), rhs, accumulate);
            }
        },
    );
}

/// `R` rows.
#[inline(always)]
fn rows<T: Element, const R: usize>(
    dst: &mut [T],
    dst_stride: usize,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    accumulate: bool,
) {
    let k = lhs.columns;
    let row = |i: usize| &lhs.values[i * lhs.row_stride..][..k];
    let column = |j: usize| &rhs.values[j * rhs.column_stride..][..k];
    let mut put = |place: usize, value: T| dst[place] = if accumulate { dst[place] + value } else { value };
    let rows: [&[T]; R] = std::array::from_fn(row);
    let mut first = 0;
    while first + COLUMNS <= rhs.columns {
        let results = products(rows, std::array::from_fn::<_, COLUMNS, _>(|j| column(first + j)));
        for (i, results) in results.into_iter().enumerate() {
            results.into_iter().enumerate().for_each(|(j, value)| put(i * dst_stride + first + j, value));
        }
        first += COLUMNS;
    }
    for j in first..rhs.columns {
        let results = products(rows, [column(j)]);
        results.into_iter().enumerate().for_each(|(i, [value])| put(i * dst_stride + j, value));
    }
}

/// Product of two vectors of the same length.
#[inline(always)]
pub(super) fn dot<T: Element>(a: &[T], b: &[T]) -> T {
    let [[product]] = products([a], [b]);
    product
}

/// Products of `R` vectors with `N` others, all of the same length.
#[inline(always)]
fn products<T: Element, const R: usize, const N: usize>(a: [&[T]; R], b: [&[T]; N]) -> [[T; N]; R] {
    let (mut sums, len) = ([[[T::ZERO; LANES]; N]; R], a[0].len());
    let (a_blocks, b_blocks) = (a.map(blocks), b.map(blocks));
    for place in 0..len / LANES {
        let a: [&[T; LANES]; R] = std::array::from_fn(|i| &a_blocks[i][place]);
        let b: [&[T; LANES]; N] = std::array::from_fn(|j| &b_blocks[j][place]);
        add_products(&mut sums, a, b);
    }
    if !len.is_multiple_of(LANES) {
        let (a, b) = (a.map(rest), b.map(rest));
        add_products(&mut sums, a.each_ref(), b.each_ref());
    }
    let mut results = [[T::ZERO; N]; R];
    for (results, sums) in results.iter_mut().zip(sums) {
        for (result, lanes) in results.iter_mut().zip(sums) {
            *result = sum(lanes);
        }
    }
    results
}

#[inline(always)]
fn blocks<T>(values: &[T]) -> &[[T; LANES]] {
    values.as_chunks::<LANES>().0
}

/// What follows the last whole block, and zeros.
#[inline(always)]
fn rest<T: Element>(values: &[T]) -> [T; LANES] {
    let mut block = [T::ZERO; LANES];
    let (_, rest) = values.as_chunks::<LANES>();
    block[..rest.len()].copy_from_slice(rest);
    block
}

#[inline(always)]
fn add_products<T: Element, const R: usize, const N: usize>(
    sums: &mut [[[T; LANES]; N]; R],
    a: [&[T; LANES]; R],
    b: [&[T; LANES]; N],
) {
    for (sums, a) in sums.iter_mut().zip(a) {
        for (lanes, b) in sums.iter_mut().zip(b) {
            for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
                *lane += a * b;
            }
        }
    }
}

/// The sum of the lanes, by halves.
#[inline(always)]
fn sum<T: Element>(mut lanes: [T; LANES]) -> T {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            let other = lanes[i + width];
            lanes[i] += other;
        }
    }
    lanes[0]
}
