//! Matrix products by cuBLAS.

use candle_core::cuda::WrapErr;
use candle_core::cuda::cudarc::cublas::sys::cublasOperation_t;
use candle_core::cuda::cudarc::cublas::{CudaBlas, Gemm, GemmConfig, StridedBatchedConfig};
use candle_core::cuda::cudarc::driver::{CudaView, CudaViewMut};
use candle_core::{CudaDevice, Error, Result};

use super::fixed::row_products;
use super::view::{Destination, Real, Source, destination, dtype, source};
use crate::ops::element::{for_float, rows_and_columns, same};
use crate::ops::matmul::Operand;

/// Matrices of the same shape, one per record: row `i` of record `r` is at `r · record_stride + i ·
/// row_stride`.
pub(super) struct Matrices<'a, T> {
    pub(super) values: CudaView<'a, T>,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_stride: usize,
    pub(super) record_stride: usize,
    pub(super) operand: Operand,
}

impl<'a, T> Matrices<'a, T> {
    /// One matrix.
    pub(super) fn one(values: CudaView<'a, T>, rows: usize, columns: usize) -> Self {
        Self::strided(values, rows, columns, columns)
    }

    /// One matrix whose rows are `row_stride` values apart.
    pub(super) fn strided(values: CudaView<'a, T>, rows: usize, columns: usize, row_stride: usize) -> Self {
        Self { values, rows, columns, row_stride, record_stride: 0, operand: Operand::Plain }
    }

    /// One matrix per record, `stride` values apart.
    pub(super) fn per_record(self, stride: usize) -> Self {
        Self { record_stride: stride, ..self }
    }

    /// Rows and columns exchanged.
    pub(super) fn transposed(self) -> Self {
        let operand = match self.operand {
            Operand::Plain => Operand::Transposed,
            Operand::Transposed => Operand::Plain,
        };
        Self { operand, ..self }
    }

    /// The same from value `first` on.
    pub(super) fn from(&self, first: usize) -> Self {
        Self { values: self.values.slice(first..), ..*self }
    }

    /// The same with other values, if there are any.
    pub(super) fn with<'b>(&'b self, values: Option<CudaView<'b, T>>) -> Matrices<'b, T> {
        Matrices { values: values.unwrap_or_else(|| self.values.slice(..)), ..*self }
    }

    /// Rows and columns as a product reads them.
    pub(super) fn shape(&self) -> (usize, usize) {
        match self.operand {
            Operand::Plain => (self.rows, self.columns),
            Operand::Transposed => (self.columns, self.rows),
        }
    }

    fn operation(&self) -> cublasOperation_t {
        match self.operand {
            Operand::Plain => cublasOperation_t::CUBLAS_OP_N,
            Operand::Transposed => cublasOperation_t::CUBLAS_OP_T,
        }
    }

    /// Values from the first of so many records to the last.
    pub(super) fn span(&self, n_records: usize) -> usize {
        span(n_records, (self.rows, self.columns), self.row_stride, self.record_stride)
    }

    fn check(&self, n_records: usize) -> Result<()> {
        holds(self.values.len(), n_records, (self.rows, self.columns), self.row_stride, self.record_stride)
    }
}

/// Where the products go: row `i` of record `r` at `r · record_stride + i · row_stride`.
pub(super) struct Products<'a, T> {
    pub(super) values: CudaViewMut<'a, T>,
    pub(super) row_stride: usize,
    pub(super) record_stride: usize,
}

/// Values from the first of so many matrices with such strides to the last.
pub(super) fn span(
    n_records: usize,
    (rows, columns): (usize, usize),
    row_stride: usize,
    record_stride: usize,
) -> usize {
    if n_records * rows * columns == 0 {
        return 0;
    }
    (n_records - 1) * record_stride + (rows - 1) * row_stride + columns
}

/// An error unless so many matrices with such strides lie within `len` values.
fn holds(
    len: usize,
    n_records: usize,
    (rows, columns): (usize, usize),
    row_stride: usize,
    record_stride: usize,
) -> Result<()> {
    let needed = span(n_records, (rows, columns), row_stride, record_stride);
    if row_stride < columns || needed > len {
        let expected = format!("{n_records} of [{rows}, {columns}], rows {row_stride} apart");
        return Err(Error::Msg(format!("matrices of a product: expected {expected}, got {len} values")));
    }
    Ok(())
}

/// `dst = lhs · rhs` for each of `n_records` records, or `dst += lhs · rhs` to `accumulate`.
///
/// In the precision of `T`, as [`arithmetic`](super::arithmetic) demands and proves.
pub(super) fn products<T: Real>(
    device: &CudaDevice,
    n_records: usize,
    mut dst: Products<'_, T>,
    lhs: &Matrices<'_, T>,
    rhs: &Matrices<'_, T>,
    accumulate: bool,
) -> Result<()>
where
    CudaBlas: Gemm<T>,
{
    let ((m, k), (rhs_rows, n)) = (lhs.shape(), rhs.shape());
    same("inner dimension of a matrix product", k, rhs_rows)?;
    if n_records * m * n == 0 {
        return Ok(());
    }
    lhs.check(n_records)?;
    rhs.check(n_records)?;
    holds(dst.values.len(), n_records, (m, n), dst.row_stride, dst.record_stride)?;
    // cuBLAS stores matrices by columns, so that ours are transposed to it: dstᵀ = rhsᵀ · lhsᵀ.
    let gemm = GemmConfig {
        transa: rhs.operation(),
        transb: lhs.operation(),
        m: int(n)?,
        n: int(m)?,
        k: int(k)?,
        alpha: T::ONE,
        lda: int(rhs.row_stride.max(1))?,
        ldb: int(lhs.row_stride.max(1))?,
        beta: if accumulate { T::ONE } else { T::ZERO },
        ldc: int(dst.row_stride)?,
    };
    let blas = device.cublas_handle();
    #[expect(unsafe_code, reason = "cuBLAS takes pointers")]
    // SAFETY: all matrices were checked to lie within their views, whose number type is that of the
    // product.
    unsafe {
        if n_records == 1 {
            return blas.gemm(gemm, &rhs.values, &lhs.values, &mut dst.values).w();
        }
        let config = StridedBatchedConfig {
            gemm,
            batch_size: int(n_records)?,
            stride_a: rhs.record_stride.cast_signed() as i64,
            stride_b: lhs.record_stride.cast_signed() as i64,
            stride_c: dst.record_stride.cast_signed() as i64,
        };
        blas.gemm_strided_batched(config, &rhs.values, &lhs.values, &mut dst.values).w()
    }
}

fn int(size: usize) -> Result<i32> {
    i32::try_from(size)
        .map_err(|_| Error::Msg(format!("size of a matrix product: expected at most {}, got {size}", i32::MAX)))
}

pub(in crate::ops) fn matmul(
    dst: Destination<'_>,
    lhs: (Source<'_>, Operand),
    rhs: (Source<'_>, Operand),
    accumulate: bool,
) -> Result<()> {
    for_float!(dtype(dst.0), "matmul", T => {
        let device = dst.0.device.clone();
        let (lhs, rhs) = (matrix::<T>(lhs)?, matrix::<T>(rhs)?);
        let values = destination::<T>(dst)?;
        let (m, n) = (lhs.shape().0, rhs.shape().1);
        same("elements of a matrix product", m * n, values.len())?;
        let to = Products { values, row_stride: n, record_stride: 0 };
        match lhs.operand {
            Operand::Plain => row_products(&device, to, &lhs, &rhs, accumulate),
            // A sum over the rows of both factors, all of which belong to it.
            Operand::Transposed => products(&device, 1, to, &lhs, &rhs, accumulate),
        }
    })
}

/// A tensor of one or two dimensions as a product reads it.
fn matrix<T: Real>((tensor, operand): (Source<'_>, Operand)) -> Result<Matrices<'_, T>> {
    let (rows, columns) = rows_and_columns(tensor.1)?;
    Ok(Matrices { operand, ..Matrices::one(source::<T>(tensor)?, rows, columns) })
}
