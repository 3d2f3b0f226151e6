//! Matrix products in the precision of their number type: demanded of cuBLAS, and proven before a
//! device is used.
//!
//! Variables of the environment make cuBLAS round factors to fewer digits, whatever its handle is
//! told. Norms, which are summed in `f64`, would then not bound the sums.

use candle_core::cuda::WrapErr;
use candle_core::cuda::cudarc::cublas::sys::{self, cublasMath_t};
use candle_core::cuda::cudarc::cublas::{CudaBlas, Gemm};
use candle_core::{CudaDevice, Error, Result};

use super::product::{Matrices, Products, products};
use super::upload::upload;
use super::view::Real;

/// Rows, columns and inner dimension of the products that are checked.
const SIZE: usize = 128;
/// Products of a batched call that is checked.
const BATCH: usize = 2;

/// Asks cuBLAS for the arithmetic of the number type in every phase of a product.
pub(super) fn demand(device: &CudaDevice) -> Result<()> {
    set_math_mode(device, cublasMath_t::CUBLAS_PEDANTIC_MATH)
}

fn set_math_mode(device: &CudaDevice, mode: cublasMath_t) -> Result<()> {
    let blas = device.cublas_handle();
    #[expect(unsafe_code, reason = "cudarc has no safe way to set the math mode")]
    // SAFETY: the handle is open, and no product runs on a device that is being opened.
    unsafe {
        sys::cublasSetMathMode(*blas.handle(), mode).result().w()
    }
}

/// An error unless products that the number types hold exactly come out exactly.
pub(super) fn prove(device: &CudaDevice) -> Result<()> {
    is_exact::<f32>(device, 23, "f32")?;
    is_exact::<f64>(device, 52, "f64")
}

/// Products with two factors of so many binary digits in each row, all others 0 or ±1: sums have
/// one digit more, which the number type holds. TF32 keeps 11 of them, a pair of halves at most 22.
fn is_exact<T: Real>(device: &CudaDevice, digits: i32, name: &str) -> Result<()>
where
    CudaBlas: Gemm<T>,
{
    let wide = |row: usize, k: usize| {
        // Odd, so that the last digit counts.
        let odd = 2_f64.powi(digits - 1) + 2.0 * ((row * 7_919 + k * 104_729) % 65_521) as f64 + 1.0;
        if k == row || k == (row + 1) % SIZE { odd } else { 0.0 }
    };
    let sign = |row: usize, k: usize| if (row * 31 + k * k).is_multiple_of(3) { -1.0 } else { 1.0 };
    let upload = |value: &dyn Fn(usize, usize) -> f64| {
        let values = (0..BATCH * SIZE * SIZE).map(|i| T::from_f64(value(i / SIZE % SIZE, i % SIZE)));
        upload(device, &values.collect::<Vec<T>>())
    };
    let (wide_rows, sign_rows) = (upload(&wide)?, upload(&sign)?);
    // Each side of a product in turn, one product alone and several at once.
    for wide_first in [true, false] {
        let (first, second) = if wide_first { (&wide_rows, &sign_rows) } else { (&sign_rows, &wide_rows) };
        let lhs = Matrices::one(first.as_view(), SIZE, SIZE).per_record(SIZE * SIZE);
        let rhs = Matrices::one(second.as_view(), SIZE, SIZE).per_record(SIZE * SIZE).transposed();
        for n in [1, BATCH] {
            let mut products_of = device.alloc_zeros::<T>(n * SIZE * SIZE)?;
            let to = Products { values: products_of.as_view_mut(), row_stride: SIZE, record_stride: SIZE * SIZE };
            products(device, n, to, &lhs, &rhs, false)?;
            for (place, got) in device.clone_dtoh(&products_of)?.into_iter().enumerate() {
                let (i, j) = (place / SIZE % SIZE, place % SIZE);
                let (row, other) = if wide_first { (i, j) } else { (j, i) };
                let expected: f64 = [row, (row + 1) % SIZE].map(|k| wide(row, k) * sign(other, k)).iter().sum();
                if got.to_f64() != expected {
                    return Err(inexact(name, got.to_f64(), expected));
                }
            }
        }
    }
    Ok(())
}

fn inexact(name: &str, got: f64, expected: f64) -> Error {
    Error::Msg(format!(
        "matrix products of the device in {name}: expected {expected}, got {got}: cuBLAS rounds factors to fewer \
         digits, with which norms would not bound sums. Unset NVIDIA_TF32_OVERRIDE and the variables whose names begin \
         with CUBLAS_EMULATE and CUBLAS_EMULATION"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cuda::testing::device;

    #[test]
    fn a_device_that_rounds_factors_is_refused() {
        let Some(device) = device() else { return };
        let device = device.as_cuda_device().unwrap();
        prove(device).unwrap();
        set_math_mode(device, cublasMath_t::CUBLAS_TF32_TENSOR_OP_MATH).unwrap();
        let error = prove(device).unwrap_err().to_string();
        assert!(error.starts_with("matrix products of the device in f32: expected "), "{error}");
        assert!(error.contains("NVIDIA_TF32_OVERRIDE"), "{error}");
        demand(device).unwrap();
        prove(device).unwrap();
    }
}
