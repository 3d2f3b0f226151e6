//! Products with few columns.
//!
//! `gemm` works on six results at a time for every vector of columns, which leaves the units for
//! multiplications waiting where there are only one or two vectors. As many results as the
//! registers hold keep them busy. Nothing is packed: a factor of the left matrix goes to all lanes
//! straight from where it lies.

#![expect(unsafe_code, reason = "loads and stores by pointer: a check of each factor would cost more than its product")]
#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use std::ops::Range;

use pulp::{Arch, MemMask, Simd, WithSimd};

use super::aliased::are_aliased;
use super::{Matrix, Stack};
use crate::ops::transpose::transpose;

/// Columns of a product, at most: with more, `gemm` is as fast.
const COLUMNS: usize = 32;

/// Rows at once that the first cache has room for where they are aliased.
const ALIASED_ROWS: usize = 8;

/// `dst = lhs · rhs` or `dst += lhs · rhs` for each matrix of a stack, as `gemm`'s chains of fused
/// additions give it bit for bit, and true; or false, with nothing done, for other shapes and
/// processors.
///
/// Row `i` of `dst` starts at `i · dst_stride`, and all rows must have room.
pub(in crate::ops) fn product(
    dst: &mut [f32],
    dst_stride: usize,
    lhs: Stack<'_, f32>,
    rhs: Matrix<'_, f32>,
    accumulate: bool,
) -> bool {
    let (m, n, k) = (lhs.height * lhs.first.rows, rhs.columns, lhs.first.columns);
    let has_room = m > 0 && n > 0 && k > 0 && rhs.rows == k && (m - 1) * dst_stride + n <= dst.len();
    let arch = Arch::new();
    if !has_room || n > COLUMNS || !matches!(arch, Arch::V3(_) | Arch::V4(_)) {
        return false;
    }
    let rows: Vec<f32>;
    let rhs = match (rhs.row_stride, rhs.column_stride) {
        (_, 1) => rhs,
        (1, stride) => {
            let mut by_row = vec![0.0; k * n];
            transpose(rhs.values, stride, n, k, &mut by_row);
            rows = by_row;
            Matrix { values: &rows, row_stride: n, column_stride: 1, ..rhs }
        }
        _ => return false,
    };
    arch.dispatch(FewColumns { dst, dst_stride, lhs, rhs, accumulate });
    true
}

/// A product with room for its result; neither matrix is empty, and the columns of `rhs` are
/// adjacent.
struct FewColumns<'a> {
    dst: &'a mut [f32],
    dst_stride: usize,
    lhs: Stack<'a, f32>,
    rhs: Matrix<'a, f32>,
    accumulate: bool,
}

/// The rows of a matrix of the stack that are still to be done, from `next` on, in these columns.
struct Rows {
    matrix: usize,
    next: usize,
    columns: Range<usize>,
}

impl WithSimd for FewColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let lanes = S::F32_LANES;
        let mut first = 0;
        while first < self.rhs.columns {
            match self.rhs.columns - first {
                left if left > lanes => self.block::<S, 2>(simd, &mut first, left.min(2 * lanes)),
                left => self.block::<S, 1>(simd, &mut first, left),
            }
        }
    }
}

impl FewColumns<'_> {
    /// Rows of `lhs` that the first cache has room for, if it is few.
    #[inline(always)]
    fn rows_at_once(&self) -> usize {
        let Matrix { row_stride, column_stride, .. } = self.lhs.first;
        if column_stride == 1 && are_aliased::<f32>(row_stride) { ALIASED_ROWS } else { usize::MAX }
    }

    /// The next `width` columns, `V` vectors of them, of all rows.
    #[inline(always)]
    fn block<S: Simd, const V: usize>(&mut self, simd: S, first: &mut usize, width: usize) {
        for matrix in 0..self.lhs.height {
            let mut rows = Rows { matrix, next: 0, columns: *first..*first + width };
            self.tiles::<S, V, 24>(simd, &mut rows);
            self.tiles::<S, V, 13>(simd, &mut rows);
            self.tiles::<S, V, 12>(simd, &mut rows);
            self.tiles::<S, V, 8>(simd, &mut rows);
            self.tiles::<S, V, 6>(simd, &mut rows);
            self.tiles::<S, V, 4>(simd, &mut rows);
            self.tiles::<S, V, 3>(simd, &mut rows);
            self.tiles::<S, V, 2>(simd, &mut rows);
            self.tiles::<S, V, 1>(simd, &mut rows);
        }
        *first += width;
    }

    /// The next rows, `R` at a time while there are as many, if registers hold their results, a row of
    /// `rhs` and two values more.
    #[inline(always)]
    fn tiles<S: Simd, const V: usize, const R: usize>(&mut self, simd: S, rows: &mut Rows) {
        if V * (R + 1) + 2 > S::REGISTER_COUNT || R > self.rows_at_once() {
            return;
        }
        while rows.next + R <= self.lhs.first.rows {
            // SAFETY: these rows and columns exist.
            unsafe { self.tile::<S, V, R>(simd, rows) };
            rows.next += R;
        }
    }

    /// The next `R` rows.
    ///
    /// # Safety
    /// They must be rows of a matrix of the stack, and columns of `rhs`: more than `V − 1` vectors hold,
    /// and no more than `V` hold.
    #[inline(always)]
    unsafe fn tile<S: Simd, const V: usize, const R: usize>(&mut self, simd: S, rows: &Rows) {
        let (lhs, rhs, lanes) = (self.lhs.first, self.rhs, S::F32_LANES);
        let (first, width) = (rows.columns.start, rows.columns.len());
        let (of_lhs, of_dst) = (
            rows.matrix * self.lhs.stride + rows.next * lhs.row_stride,
            (rows.matrix * lhs.rows + rows.next) * self.dst_stride + first,
        );
        let all = MemMask::from(simd.mask_between_m32s(0, lanes as u32).mask());
        let some = MemMask::from(simd.mask_between_m32s(0, (width - (V - 1) * lanes) as u32).mask());
        let masks: [_; V] = std::array::from_fn(|v| if v + 1 < V { all } else { some });
        let mut sums = [[simd.splat_f32s(0.0); V]; R];
        for depth in 0..lhs.columns {
            // SAFETY: row `depth` of `rhs` has these columns, and only they are loaded; elements `depth`
            // of these rows exist, since the values of the stack hold its matrices.
            unsafe {
                let values = rhs.values.as_ptr().add(depth * rhs.row_stride + first);
                let values: [_; V] = std::array::from_fn(|v| simd.mask_load_ptr_f32s(masks[v], values.add(v * lanes)));
                let factors = lhs.values.as_ptr().add(of_lhs + depth * lhs.column_stride);
                for (r, sums) in sums.iter_mut().enumerate() {
                    let factor = simd.splat_f32s(*factors.add(r * lhs.row_stride));
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum = simd.mul_add_f32s(factor, value, *sum);
                    }
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (v, sum) in sums.into_iter().enumerate() {
                // SAFETY: this row of the result has these columns, and only they are read and written.
                unsafe {
                    let out = self.dst.as_mut_ptr().add(of_dst + r * self.dst_stride + v * lanes);
                    let sum =
                        if self.accumulate { simd.add_f32s(simd.mask_load_ptr_f32s(masks[v], out), sum) } else { sum };
                    simd.mask_store_ptr_f32s(masks[v], out, sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pulp::x86::V3;

    use super::*;

    fn values(n: usize, step: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * step) % 101) as f32 * 0.02 - 1.0).collect()
    }

    /// Whatever the number of rows and columns, the strides and the instruction set.
    #[test]
    fn each_result_is_a_chain_of_fused_additions() {
        for (m, n, k) in [(2, 16, 5), (24, 16, 96), (50, 10, 33), (26, 32, 48), (9, 25, 3), (31, 31, 70), (7, 17, 510)]
        {
            for (row_stride, column_stride) in [(k, 1), (1, m), (k + 3, 1), (2, 1), (512, 1)] {
                let (height, n_rows) = (3, 3 * m);
                let values_of_stack = values((m + 1) * row_stride + (k - 1) * column_stride + 1, 37);
                let lhs = Matrix { values: &values_of_stack, rows: m, columns: k, row_stride, column_stride };
                let stack = Stack::new(lhs, height, row_stride).unwrap();
                let (stride, stored) = (n + 2, values(k * n, 53));
                let by_row = Matrix { values: &stored, rows: k, columns: n, row_stride: n, column_stride: 1 };
                let by_column = Matrix { row_stride: 1, column_stride: k, ..by_row };
                for (rhs, accumulate) in [(by_row, false), (by_row, true), (by_column, true)] {
                    let before = values(n_rows * stride, 29);
                    let mut expected = before.clone();
                    for (i, j) in (0..n_rows).flat_map(|i| (0..n).map(move |j| (i, j))) {
                        let factor = |d| values_of_stack[(i / m + i % m) * row_stride + d * column_stride];
                        let chain = (0..k).fold(0.0, |sum, d| rhs.at(d, j).mul_add(factor(d), sum));
                        let out = &mut expected[i * stride + j];
                        *out = if accumulate { *out + chain } else { chain };
                    }
                    let mut got = before.clone();
                    assert!(product(&mut got, stride, stack, rhs, accumulate));
                    assert!(got == expected, "{m} {n} {k}, strides {row_stride} {column_stride}");
                    if let (Some(v3), 1) = (V3::try_new(), rhs.column_stride) {
                        let mut got = before;
                        let few = FewColumns { dst: &mut got, dst_stride: stride, lhs: stack, rhs, accumulate };
                        Simd::vectorize(v3, few);
                        assert!(got == expected, "AVX2: {m} {n} {k}, strides {row_stride} {column_stride}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_has_no_room_or_too_many_columns_is_left_alone() {
        let (lhs, rhs) = (values(8, 1), values(4 * 33, 1));
        let lhs = Matrix { values: &lhs, rows: 2, columns: 4, row_stride: 4, column_stride: 1 };
        assert!(Stack::new(lhs, 2, 1).is_err());
        let lhs = Stack::new(lhs, 1, 0).unwrap();
        let rhs = |columns| Matrix { values: &rhs, rows: 4, columns, row_stride: columns, column_stride: 1 };
        assert!(!product(&mut [0.0; 66], 33, lhs, rhs(33), false));
        assert!(!product(&mut [0.0; 31], 16, lhs, rhs(16), false));
        assert!(product(&mut [0.0; 32], 16, lhs, rhs(16), false));
    }
}
