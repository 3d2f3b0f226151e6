//! Matrix products into an existing tensor.

use candle_core::{CpuStorage, InplaceOp3, Layout, Result};
use gemm::Parallelism;

use super::element::{Element, destination, dtype, for_float, rows_and_columns, same, source};

/// A matrix as a product reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// As it is stored.
    Plain,
    /// With rows and columns exchanged.
    Transposed,
}

/// A row-major matrix, perhaps read as its transpose.
struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, T: Element> Matrix<'a, T> {
    fn new(tensor: (&'a CpuStorage, &Layout), operand: Operand) -> Result<Self> {
        let (rows, columns) = rows_and_columns(tensor.1)?;
        let values = source::<T>(tensor)?;
        Ok(match operand {
            Operand::Plain => Self { values, rows, columns, row_stride: columns, column_stride: 1 },
            Operand::Transposed => Self { values, rows: columns, columns: rows, row_stride: 1, column_stride: columns },
        })
    }
}

/// `dst = keep · dst + lhs · rhs` on one thread; `dst` is row-major `[lhs.rows, rhs.columns]`.
fn product<T: Element>(dst: &mut [T], lhs: &Matrix<T>, rhs: &Matrix<T>, keep: bool) -> Result<()> {
    same("inner dimension of a matrix product", lhs.columns, rhs.rows)?;
    same("elements of a matrix product", lhs.rows * rhs.columns, dst.len())?;
    #[expect(unsafe_code, reason = "gemm takes pointers")]
    // SAFETY: the three matrices are slices whose lengths were checked against their shapes (sources by the tensor's
    // contiguous layout, the destination just above), the strides are those of these shapes, and `dst` is borrowed mutably,
    // so it overlaps neither source.
    unsafe {
        gemm::gemm(
            lhs.rows,
            rhs.columns,
            lhs.columns,
            dst.as_mut_ptr(),
            1,
            rhs.columns.cast_signed(),
            keep,
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
            product::<T>(destination(dst, dst_l)?, &lhs, &rhs, self.accumulate)
        })
    }
}
