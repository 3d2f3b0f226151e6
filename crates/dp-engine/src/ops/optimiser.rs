//! The optimisers' updates of moments and parameters.

use candle_core::Tensor;

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, destination, dtype, for_float, same, source};
use super::in_place::{Operands, binary, ternary, unary};
use crate::error::TensorError;
use crate::threads::Threads;
use crate::vector_math::{map_in_place, vectorise};

/// Values below which one thread does it all: it takes longer to wake another one.
const FEW: usize = 1 << 17;

/// Calls `f` for every value and the one of the source in its place.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn update<T: Element>(threads: &Threads, dst: &mut [T], src: &[T], f: impl Fn(&mut T, T) + Sync) {
    let len = threads.part_len(dst.len(), 1, FEW);
    threads.each(dst.chunks_mut(len).zip(src.chunks(len)), |(dst, src)| {
        vectorise(
            #[inline(always)]
            || {
                for (v, &s) in dst.iter_mut().zip(src) {
                    f(v, s);
                }
            },
        );
    });
}

/// `dst *= factor`.
pub(crate) fn scale(out: &Tensor, factor: f64) -> candle_core::Result<()> {
    unary("scale", out, |operands| match operands {
        Operands::Cpu(out, []) => for_float!(dtype(out.0), "scale", T => {
            let factor = T::from_double(factor);
            map_in_place(destination::<T>(out)?, |v| v * factor);
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(out, []) => cuda::scale(out, factor),
    })
}

/// `dst = scale · dst + alpha · src`.
///
/// # Errors
/// [`TensorError`] if shapes or number types do not fit, or the device fails.
pub fn scale_add(dst: &Tensor, src: &Tensor, scale: f64, alpha: f64, threads: &Threads) -> Result<(), TensorError> {
    Ok(binary("scale-add", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "scale-add", T => {
            let (scale, alpha) = (T::from_double(scale), T::from_double(alpha));
            let (dst, src) = (destination::<T>(dst)?, source::<T>(src)?);
            same("elements to add", dst.len(), src.len())?;
            update(threads, dst, src, #[inline(always)] |v, s| *v = scale * *v + alpha * s);
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::scale_add(dst, src, scale, alpha),
    })?)
}

/// `dst = scale · dst + alpha · src²`.
pub(crate) fn scale_add_square(
    dst: &Tensor,
    src: &Tensor,
    scale: f64,
    alpha: f64,
    threads: &Threads,
) -> candle_core::Result<()> {
    binary("scale-add-square", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "scale-add-square", T => {
            let (scale, alpha) = (T::from_double(scale), T::from_double(alpha));
            let (dst, src) = (destination::<T>(dst)?, source::<T>(src)?);
            same("elements to square", dst.len(), src.len())?;
            update(threads, dst, src, #[inline(always)] |v, s| *v = scale * *v + alpha * (s * s));
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::scale_add_square(dst, src, scale, alpha),
    })
}

/// `dst −= rate · m / (√v / root + epsilon)` for the moments `m` and `v`.
///
/// - `rate`: learning rate over the first moment's bias correction.
/// - `root`: square root of the second moment's bias correction.
pub(crate) fn adam_update(
    dst: &Tensor,
    first: &Tensor,
    second: &Tensor,
    rate: f64,
    root: f64,
    epsilon: f64,
    threads: &Threads,
) -> candle_core::Result<()> {
    ternary("adam-update", dst, first, second, |operands| match operands {
        Operands::Cpu(dst, [first, second]) => for_float!(dtype(dst.0), "adam-update", T => {
            let parameters = destination::<T>(dst)?;
            let (m, v) = (source::<T>(first)?, source::<T>(second)?);
            same("elements of the first moment", parameters.len(), m.len())?;
            same("elements of the second moment", parameters.len(), v.len())?;
            let (rate, root, epsilon) = (T::from_double(rate), T::from_double(1.0 / root), T::from_double(epsilon));
            let len = threads.part_len(parameters.len(), 1, FEW);
            let parts = parameters.chunks_mut(len).zip(m.chunks(len)).zip(v.chunks(len));
            threads.each(parts, |((parameters, m), v)| {
                vectorise(#[inline(always)] || {
                    for ((p, &m), &v) in parameters.iter_mut().zip(m).zip(v) {
                        *p -= rate * m / (v.sqrt() * root + epsilon);
                    }
                });
            });
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [first, second]) => cuda::adam_update(dst, first, second, rate, root, epsilon),
    })
}
