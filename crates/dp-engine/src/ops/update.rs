//! Whole-vector updates of parameters and gradients.

use candle_core::Tensor;

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, destination, dtype, for_float, same, source};
use super::in_place::{Operands, binary, unary};
use crate::error::TensorError;
use crate::vector_math::vectorise;

/// Sets every value.
///
/// # Errors
/// [`TensorError`] if shapes or number types do not fit, or the device fails.
pub fn fill(out: &Tensor, value: f64) -> Result<(), TensorError> {
    Ok(unary("fill", out, |operands| match operands {
        Operands::Cpu(out, []) => for_float!(dtype(out.0), "fill", T => {
            destination::<T>(out)?.fill(T::from_double(value));
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(out, []) => cuda::fill(out, value),
    })?)
}

/// `dst = src`.
pub(crate) fn copy(dst: &Tensor, src: &Tensor) -> candle_core::Result<()> {
    binary("copy", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "copy", T => {
            let dst = destination::<T>(dst)?;
            let src = source::<T>(src)?;
            same("elements to copy", dst.len(), src.len())?;
            dst.copy_from_slice(src);
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::copy(dst, src),
    })
}

/// `dst += alpha · src`.
pub(crate) fn axpy(dst: &Tensor, src: &Tensor, alpha: f64) -> candle_core::Result<()> {
    binary("axpy", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "axpy", T => {
            let dst = destination::<T>(dst)?;
            let src = source::<T>(src)?;
            same("elements to add", dst.len(), src.len())?;
            add_scaled(dst, T::from_double(alpha), src);
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::axpy(dst, src, alpha),
    })
}

/// `dst += alpha · values`, values that are in host memory in `f64`: nothing is copied to a tensor
/// first.
pub(crate) fn add_slice(out: &Tensor, alpha: f64, values: &[f64]) -> candle_core::Result<()> {
    unary("add-slice", out, |operands| match operands {
        Operands::Cpu(out, []) => for_float!(dtype(out.0), "add-slice", T => {
            let dst = destination::<T>(out)?;
            same("values to add", dst.len(), values.len())?;
            vectorise(#[inline(always)] || {
                for (v, &s) in dst.iter_mut().zip(values) {
                    *v += T::from_double(alpha * s);
                }
            });
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(out, []) => cuda::add_slice(out, alpha, values),
    })
}

/// `dst = origin + alpha · values`, both in host memory.
///
/// # Errors
/// [`TensorError`] if shapes or number types do not fit, or the device fails.
pub fn set_along<V: Copy + Into<f64>>(
    out: &Tensor,
    origin: &[f64],
    alpha: f64,
    values: &[V],
) -> Result<(), TensorError> {
    Ok(unary("set-along", out, |operands| match operands {
        Operands::Cpu(out, []) => for_float!(dtype(out.0), "set-along", T => {
            let dst = destination::<T>(out)?;
            same("values to start from", dst.len(), origin.len())?;
            same("values to add", dst.len(), values.len())?;
            vectorise(#[inline(always)] || {
                for (v, (&o, &s)) in dst.iter_mut().zip(origin.iter().zip(values)) {
                    *v = T::from_double(o + alpha * s.into());
                }
            });
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(out, []) => cuda::set_along(out, origin, alpha, values),
    })?)
}

fn add_scaled<T: Element>(dst: &mut [T], alpha: T, src: &[T]) {
    vectorise(
        #[inline(always)]
        || {
            for (v, &s) in dst.iter_mut().zip(src) {
                *v += alpha * s;
            }
        },
    );
}
