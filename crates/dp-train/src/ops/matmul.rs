//! Matrix products into an existing tensor.

use candle_core::{CpuStorage, Error, InplaceOp3, Layout, Result};
use gemm::Parallelism;

use super::element::{Element, destination, dtype, for_float, rows_and_columns, same, source};
use super::on_cuda::on_cuda;

/// A matrix as a product reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// As it is stored.
    Plain,
    /// With rows and columns exchanged.
    Transposed,
}

/// A matrix in a slice: element `(i, j)` is `values[i · row_stride + j · column_stride]`. Rows may overlap.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, T: Element> Matrix<'a, T> {
    fn new(tensor: (&'a CpuStorage, &Layout), operand: Operand) -> Result<Self> {
        let (rows, columns) = rows_and_columns(tensor.1)?;
        let matrix = Self::strided(source::<T>(tensor)?, rows, columns, columns)?;
        Ok(match operand {
            Operand::Plain => matrix,
            Operand::Transposed => matrix.transposed(),
        })
    }

    /// `rows` rows of `columns` adjacent values, each `row_stride` values after the one before.
    pub(super) fn strided(values: &'a [T], rows: usize, columns: usize, row_stride: usize) -> Result<Self> {
        let needed = if rows * columns == 0 { 0 } else { (rows - 1) * row_stride + columns };
        if needed > values.len() {
            return Err(Error::Msg(format!("values of a matrix: expected at least {needed}, got {}", values.len())));
        }
        Ok(Self { values, rows, columns, row_stride, column_stride: 1 })
    }

    /// Rows and columns exchanged.
    pub(super) fn transposed(self) -> Self {
        let Self { values, rows, columns, row_stride, column_stride } = self;
        Self { values, rows: columns, columns: rows, row_stride: column_stride, column_stride: row_stride }
    }
}

/// `dst = lhs · rhs` on one thread, or `dst += lhs · rhs` to `accumulate`; row `i` of `dst` starts at `i · dst_stride`.
pub(super) fn product<T: Element>(
    dst: &mut [T],
    dst_stride: usize,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    accumulate: bool,
) -> Result<()> {
    let (m, n) = (lhs.rows, rhs.columns);
    same("inner dimension of a matrix product", lhs.columns, rhs.rows)?;
    if m * n == 0 {
        return Ok(());
    }
    if dst_stride < n || (m - 1) * dst_stride + n > dst.len() {
        let got = format!("{} values in rows {dst_stride} apart", dst.len());
        return Err(Error::Msg(format!("result of a matrix product: expected [{m}, {n}], got {got}")));
    }
    #[expect(unsafe_code, reason = "gemm takes pointers")]
    // SAFETY: the sources are slices that were checked to hold their shapes when the matrices were made, the destination was
    // checked just above and its rows do not overlap; it is borrowed mutably, so it overlaps neither source.
    unsafe {
        gemm::gemm(
            m,
            n,
            lhs.columns,
            dst.as_mut_ptr(),
            1,
            dst_stride.cast_signed(),
            accumulate,
            lhs.values.as_ptr(),
            lhs.column_stride.cast_signed(),
            lhs.row_stride.cast_signed(),
            rhs.values.as_ptr(),
            rhs.column_stride.cast_signed(),
            rhs.row_stride.cast_signed(),
            T::ONE,
            T::ONE,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
    Ok(())
}

/// `dst = lhs · rhs`, or `dst += lhs · rhs`.
pub(crate) struct MatMul {
    /// How the left source is read.
    pub(crate) lhs: Operand,
    /// How the right source is read.
    pub(crate) rhs: Operand,
    /// Add to the destination instead of overwriting it.
    pub(crate) accumulate: bool,
}

impl InplaceOp3 for MatMul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn cpu_fwd(
        &self,
        dst: &mut CpuStorage,
        dst_l: &Layout,
        lhs: &CpuStorage,
        lhs_l: &Layout,
        rhs: &CpuStorage,
        rhs_l: &Layout,
    ) -> Result<()> {
        let (lhs, rhs) = ((lhs, lhs_l), (rhs, rhs_l));
        for_float!(dtype(dst), "matmul", T => {
            let lhs = Matrix::new(lhs, self.lhs)?;
            let rhs = Matrix::new(rhs, self.rhs)?;
            let dst = destination::<T>(dst, dst_l)?;
            same("elements of a matrix product", lhs.rows * rhs.columns, dst.len())?;
            product(dst, rhs.columns, lhs, rhs, self.accumulate)
        })
    }

    on_cuda!(|self, dst, lhs, rhs| cuda::matmul(self, dst, lhs, rhs));
}
