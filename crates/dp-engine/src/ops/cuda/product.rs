//! Matrix products by cuBLAS.

use std::ffi::c_void;

use candle_core::cuda::WrapErr;
use candle_core::cuda::cudarc::cublas::result::{gemm_ex, gemm_strided_batched_ex};
use candle_core::cuda::cudarc::cublas::sys::{cublasGemmAlgo_t, cublasOperation_t};
use candle_core::cuda::cudarc::driver::{CudaView, CudaViewMut, DevicePtr, DevicePtrMut};
use candle_core::{CudaDevice, Error, Result};

use super::arithmetic::passes_in_tf32;
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

    /// Values from the first of `n_records` records to the last.
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

/// Values from the first matrix to the last, with these strides.
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

/// Returns an error unless the matrices, with these strides, lie within `len` values.
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

/// cuBLAS's choice, which follows from the sizes.
const ALGORITHM: cublasGemmAlgo_t = cublasGemmAlgo_t::CUBLAS_GEMM_DFALT;

/// The purpose of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A record's activations, or the gradient of its input: what it computes and with what
    /// precision is the model's choice, and norms and sums see the outcome.
    Pass,
    /// A gradient of parameters: in the precision of its number type, so that norms bound sums.
    Gradient,
}

/// `dst = lhs · rhs` for each of `n_records` records, or `dst += lhs · rhs` to `accumulate`.
///
/// In the precision of `T`, as [`arithmetic`](super::arithmetic) proves; on a device that was
/// opened with TF32, products of passes keep fewer digits of their factors.
pub(super) fn products<T: Real>(
    device: &CudaDevice,
    purpose: Purpose,
    n_records: usize,
    mut dst: Products<'_, T>,
    lhs: &Matrices<'_, T>,
    rhs: &Matrices<'_, T>,
    accumulate: bool,
) -> Result<()> {
    let ((m, k), (rhs_rows, n)) = (lhs.shape(), rhs.shape());
    same("inner dimension of a matrix product", k, rhs_rows)?;
    if n_records * m * n == 0 {
        return Ok(());
    }
    lhs.check(n_records)?;
    rhs.check(n_records)?;
    holds(dst.values.len(), n_records, (m, n), dst.row_stride, dst.record_stride)?;
    // cuBLAS stores matrices by columns, so that ours are transposed to it: dstᵀ = rhsᵀ · lhsᵀ.
    let (a, b) = (rhs, lhs);
    let (m, n, k) = (int(n)?, int(m)?, int(k)?);
    let (lda, ldb, ldc) = (int(a.row_stride.max(1))?, int(b.row_stride.max(1))?, int(dst.row_stride)?);
    let [stride_a, stride_b, stride_c] =
        [a.record_stride, b.record_stride, dst.record_stride].map(|stride| stride.cast_signed() as i64);
    let batch = int(n_records)?;
    let compute = if purpose == Purpose::Pass && passes_in_tf32(device) { T::COMPUTE_FAST } else { T::COMPUTE };
    let (alpha, beta) = (T::ONE, if accumulate { T::ONE } else { T::ZERO });
    let blas = device.cublas_handle();
    let stream = device.cuda_stream();
    let (to, _writes) = dst.values.device_ptr_mut(&stream);
    let (of_a, _reads_a) = a.values.device_ptr(&stream);
    let (of_b, _reads_b) = b.values.device_ptr(&stream);
    let (of_a, of_b, to) = (of_a as *const c_void, of_b as *const c_void, to as *mut c_void);
    let (alpha, beta) = ((&raw const alpha).cast::<c_void>(), (&raw const beta).cast::<c_void>());
    let (handle, (op_a, op_b)) = (*blas.handle(), (a.operation(), b.operation()));
    #[expect(unsafe_code, reason = "cuBLAS takes pointers")]
    // SAFETY: all matrices were checked to lie within their views, whose number type is that of the
    // product.
    unsafe {
        if n_records == 1 {
            gemm_ex(
                handle,
                op_a,
                op_b,
                m,
                n,
                k,
                alpha,
                of_a,
                T::DATA,
                lda,
                of_b,
                T::DATA,
                ldb,
                beta,
                to,
                T::DATA,
                ldc,
                compute,
                ALGORITHM,
            )
        } else {
            gemm_strided_batched_ex(
                handle,
                op_a,
                op_b,
                m,
                n,
                k,
                alpha,
                of_a,
                T::DATA,
                lda,
                stride_a,
                of_b,
                T::DATA,
                ldb,
                stride_b,
                beta,
                to,
                T::DATA,
                ldc,
                stride_c,
                batch,
                compute,
                ALGORITHM,
            )
        }
    }
    .w()
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
            Operand::Transposed => products(&device, Purpose::Gradient, 1, to, &lhs, &rhs, accumulate),
        }
    })
}

/// A tensor of one or two dimensions as a product reads it.
fn matrix<T: Real>((tensor, operand): (Source<'_>, Operand)) -> Result<Matrices<'_, T>> {
    let (rows, columns) = rows_and_columns(tensor.1)?;
    Ok(Matrices { operand, ..Matrices::one(source::<T>(tensor)?, rows, columns) })
}
