//! Matrix products in the precision of their number type: proven before a device is used.
//!
//! Variables of the environment make cuBLAS round factors to fewer digits, whatever its handle is
//! told. Norms, which are summed in `f64`, would then not bound the sums.

use std::sync::{Mutex, PoisonError};

use candle_core::cuda::DeviceId;
use candle_core::{CudaDevice, Error, Result};

use super::product::{Matrices, Products, Purpose, products};
use super::upload::upload;
use super::view::Real;

/// Rows, columns and inner dimension of the products that are checked.
const SIZE: usize = 128;
/// Products of a batched call that is checked.
const BATCH: usize = 2;

/// Devices whose passes are in TF32. None is ever closed.
static IN_TF32: Mutex<Vec<DeviceId>> = Mutex::new(Vec::new());

/// Lets the passes of records keep 11 digits of their factors in `f32`.
pub(super) fn allow_tf32(device: &CudaDevice) {
    IN_TF32.lock().unwrap_or_else(PoisonError::into_inner).push(device.id());
}

/// Whether they do.
pub(crate) fn passes_in_tf32(device: &CudaDevice) -> bool {
    IN_TF32.lock().unwrap_or_else(PoisonError::into_inner).contains(&device.id())
}

/// An error unless products for gradients come out exactly where the number types hold them.
pub(super) fn prove(device: &CudaDevice) -> Result<()> {
    is_exact::<f32>(device, Purpose::Gradient, 23, "f32")?;
    is_exact::<f64>(device, Purpose::Gradient, 52, "f64")
}

/// Checks products with two factors of `digits` binary digits in each row, all others 0 or ±1: sums
/// have one digit more, which the number type holds. TF32 keeps 11 of them, a pair of halves at
/// most 22.
fn is_exact<T: Real>(device: &CudaDevice, purpose: Purpose, digits: i32, name: &str) -> Result<()> {
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
            products(device, purpose, n, to, &lhs, &rhs, false)?;
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

    /// Products for gradients are exact with and without TF32; with TF32, products of passes are
    /// not.
    #[test]
    fn gradients_are_exact_whatever_passes_are() {
        let (Some(exact), Some(fast)) = (device(), device()) else { return };
        let (exact, fast) = (exact.as_cuda_device().unwrap(), fast.as_cuda_device().unwrap());
        allow_tf32(fast);
        assert!(passes_in_tf32(fast) && !passes_in_tf32(exact));
        for device in [exact, fast] {
            prove(device).unwrap();
            is_exact::<f64>(device, Purpose::Pass, 52, "f64").unwrap();
        }
        is_exact::<f32>(exact, Purpose::Pass, 23, "f32").unwrap();
        let error = is_exact::<f32>(fast, Purpose::Pass, 23, "f32").unwrap_err().to_string();
        assert!(error.starts_with("matrix products of the device in f32: expected "), "{error}");
        assert!(error.contains("NVIDIA_TF32_OVERRIDE"), "{error}");
    }
}
