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

use pulp::{Arch, MemMask, Simd, WithSimd};

use super::Matrix;
use crate::ops::transpose::transpose;

/// Columns of a product, at most: with more, `gemm` is as fast.
const COLUMNS: usize = 32;

/// Rows this many values apart, or a multiple of it, are in the same lines of the first cache and
/// drive each other out.
const ALIASED: usize = 512;

/// `dst = lhs · rhs` or `dst += lhs · rhs`, as `gemm`'s chains of fused additions give it bit for
/// bit, and true; or false, with nothing done, for other shapes and processors.
///
/// Row `i` of `dst` starts at `i · dst_stride`, and all rows must have room.
pub(in crate::ops) fn product(
    dst: &mut [f32],
    dst_stride: usize,
    lhs: Matrix<'_, f32>,
    rhs: Matrix<'_, f32>,
    accumulate: bool,
) -> bool {
    let (m, n, k) = (lhs.rows, rhs.columns, lhs.columns);
    let has_room = m > 0 && n > 0 && k > 0 && rhs.rows == k && (m - 1) * dst_stride + n <= dst.len();
    let arch = Arch::new();
    let is_aliased = lhs.column_stride == 1 && lhs.row_stride.is_multiple_of(ALIASED);
    if !has_room || n > COLUMNS || is_aliased || !matches!(arch, Arch::V3(_) | Arch::V4(_)) {
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
    lhs: Matrix<'a, f32>,
    rhs: Matrix<'a, f32>,
    accumulate: bool,
}

impl WithSimd for FewColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let lanes = S::F32_LANES;
        let mut first = 0;
        while first < self.rhs.columns {
            match self.rhs.columns - first {
                left if left >= 4 * lanes => self.block::<S, 4>(simd, &mut first, 4 * lanes),
                left if left > 3 * lanes => self.block::<S, 4>(simd, &mut first, left),
                left if left > 2 * lanes => self.block::<S, 3>(simd, &mut first, left),
                left if left > lanes => self.block::<S, 2>(simd, &mut first, left),
                left => self.block::<S, 1>(simd, &mut first, left),
            }
        }
    }
}

impl FewColumns<'_> {
    /// The next `width` columns, `V` vectors of them, of all rows.
    #[inline(always)]
    fn block<S: Simd, const V: usize>(&mut self, simd: S, first: &mut usize, width: usize) {
        let mut row = 0;
        self.tiles::<S, V, 24>(simd, &mut row, *first, width);
        self.tiles::<S, V, 12>(simd, &mut row, *first, width);
        self.tiles::<S, V, 8>(simd, &mut row, *first, width);
        self.tiles::<S, V, 6>(simd, &mut row, *first, width);
        self.tiles::<S, V, 4>(simd, &mut row, *first, width);
        self.tiles::<S, V, 3>(simd, &mut row, *first, width);
        self.tiles::<S, V, 2>(simd, &mut row, *first, width);
        self.tiles::<S, V, 1>(simd, &mut row, *first, width);
        *first += width;
    }

    /// Rows `R` at a time from `row` on, while there are as many, if three quarters of the registers
    /// hold their results; `row` is then the first that is left.
    #[inline(always)]
    fn tiles<S: Simd, const V: usize, const R: usize>(&mut self, simd: S, row: &mut usize, first: usize, width: usize) {
        if 4 * V * R > 3 * S::REGISTER_COUNT {
            return;
        }
        while *row + R <= self.lhs.rows {
            // SAFETY: these rows and columns exist.
            unsafe { self.tile::<S, V, R>(simd, *row, first, width) };
            *row += R;
        }
    }

    /// Rows `row..row + R` of columns `first..first + width`.
    ///
    /// # Safety
    /// They must be rows of `lhs` and columns of `rhs`, and more columns than `V − 1` vectors hold, if
    /// no more than `V` hold.
    #[inline(always)]
    unsafe fn tile<S: Simd, const V: usize, const R: usize>(
        &mut self,
        simd: S,
        row: usize,
        first: usize,
        width: usize,
    ) {
        let (lhs, rhs, lanes) = (self.lhs, self.rhs, S::F32_LANES);
        let all = MemMask::from(simd.mask_between_m32s(0, lanes as u32).mask());
        let some = MemMask::from(simd.mask_between_m32s(0, (width - (V - 1) * lanes) as u32).mask());
        let masks: [_; V] = std::array::from_fn(|v| if v + 1 < V { all } else { some });
        let mut sums = [[simd.splat_f32s(0.0); V]; R];
        for depth in 0..lhs.columns {
            // SAFETY: row `depth` of `rhs` has these columns, and only they are loaded; elements
            // `(row..row + R, depth)` of `lhs` exist, since its values hold its shape.
            unsafe {
                let values = rhs.values.as_ptr().add(depth * rhs.row_stride + first);
                let values: [_; V] = std::array::from_fn(|v| simd.mask_load_ptr_f32s(masks[v], values.add(v * lanes)));
                let factors = lhs.values.as_ptr().add(row * lhs.row_stride + depth * lhs.column_stride);
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
                // SAFETY: row `row + r` of the result has these columns, and only they are read and
                // written.
                unsafe {
                    let out = self.dst.as_mut_ptr().add((row + r) * self.dst_stride + first + v * lanes);
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
            for (row_stride, column_stride) in [(k, 1), (1, m), (k + 3, 1), (2, 1)] {
                let lhs = values((m - 1) * row_stride + (k - 1) * column_stride + 1, 37);
                let lhs = Matrix { values: &lhs, rows: m, columns: k, row_stride, column_stride };
                let (stride, stored) = (n + 2, values(k * n, 53));
                let by_row = Matrix { values: &stored, rows: k, columns: n, row_stride: n, column_stride: 1 };
                let by_column = Matrix { row_stride: 1, column_stride: k, ..by_row };
                for (rhs, accumulate) in [(by_row, false), (by_row, true), (by_column, true)] {
                    let before = values(m * stride, 29);
                    let mut expected = before.clone();
                    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                        let chain = (0..k).fold(0.0, |sum, d| lhs.at(i, d).mul_add(rhs.at(d, j), sum));
                        let out = &mut expected[i * stride + j];
                        *out = if accumulate { *out + chain } else { chain };
                    }
                    let mut got = before.clone();
                    assert!(product(&mut got, stride, lhs, rhs, accumulate));
                    assert!(got == expected, "{m} {n} {k}, strides {row_stride} {column_stride}");
                    if let (Some(v3), 1) = (V3::try_new(), rhs.column_stride) {
                        let mut got = before;
                        Simd::vectorize(v3, FewColumns { dst: &mut got, dst_stride: stride, lhs, rhs, accumulate });
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
        let rhs = |columns| Matrix { values: &rhs, rows: 4, columns, row_stride: columns, column_stride: 1 };
        assert!(!product(&mut [0.0; 66], 33, lhs, rhs(33), false));
        assert!(!product(&mut [0.0; 31], 16, lhs, rhs(16), false));
        assert!(product(&mut [0.0; 32], 16, lhs, rhs(16), false));
    }
}
