//! Products with a right factor whose columns lie a power of two apart.
//!
//! Of a right factor that is stored by columns `gemm` takes a few values of every column at a time.
//! Columns 2 KiB apart, or a multiple of it, share so few lines of the first cache that the rest of
//! each line is gone before it is needed. Copied in tiles, every line is read once.

use super::{Matrix, call};
use crate::ops::element::Element;
use crate::ops::transpose::transpose;

/// Columns that are copied at a time, at most: with the longest chain they stay in the second cache.
const STRIP: usize = 64;
/// Columns from which on a copy is worth it.
const MANY: usize = 16;

/// Whether lines this many values apart, or a multiple of it, share so few lines of the first cache that
/// it has room for some of them alone.
pub(super) fn are_aliased<T>(apart: usize) -> bool {
    (apart * size_of::<T>()).is_multiple_of(2048)
}

/// `dst = lhs · rhs` or `dst += lhs · rhs`, as one call of `gemm` gives it bit for bit, and true; or
/// false, with nothing done, for other right factors.
pub(super) fn product<T: Element>(
    dst: &mut [T],
    dst_stride: usize,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    accumulate: bool,
) -> bool {
    let (n, k, apart) = (rhs.columns, rhs.rows, rhs.column_stride);
    if rhs.row_stride != 1 || !are_aliased::<T>(apart) || n < MANY {
        return false;
    }
    let n_strips = n.div_ceil(STRIP);
    let mut by_row = vec![T::ZERO; k * n.div_ceil(n_strips)];
    for strip in 0..n_strips {
        // Nearly equal widths, so that none is 1.
        let (start, end) = (strip * n / n_strips, (strip + 1) * n / n_strips);
        let columns = end - start;
        let by_row = &mut by_row[..k * columns];
        transpose(&rhs.values[start * apart..], apart, columns, k, by_row);
        let rhs = Matrix { values: by_row, rows: k, columns, row_stride: columns, column_stride: 1 };
        call(&mut dst[start..], dst_stride, lhs, rhs, accumulate);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the columns' distance: the bits of `gemm` for a factor that is stored by rows.
    #[test]
    fn copied_columns_have_the_bits_of_others() {
        const M: usize = 20;
        for (n, k, apart, is_aliased) in [
            (16, 512, 512, true),
            (65, 100, 1024, true),
            (130, 512, 512, true),
            (15, 9, 512, false),
            (64, 9, 511, false),
        ] {
            let value = |i: usize| ((i * 37) % 101) as f32 * 0.11 - 5.0;
            let lhs: Vec<f32> = (0..M * k).map(value).collect();
            let by_column: Vec<f32> = (0..n * apart).map(|i| value(i + 3)).collect();
            let mut by_row = vec![0.0; k * n];
            transpose(&by_column, apart, n, k, &mut by_row);
            let lhs = Matrix::strided(&lhs, M, k, k).unwrap();
            let rhs = Matrix::strided(&by_column, n, k, apart).unwrap().transposed();
            for accumulate in [false, true] {
                let (mut expected, mut found) = (vec![0.3; M * (n + 2)], vec![0.3; M * (n + 2)]);
                call(&mut expected, n + 2, lhs, Matrix::strided(&by_row, k, n, n).unwrap(), accumulate);
                assert_eq!(product(&mut found, n + 2, lhs, rhs, accumulate), is_aliased, "{n} {k} {apart}");
                assert!(!is_aliased || found == expected, "{n} {k} {apart}");
            }
        }
    }
}
