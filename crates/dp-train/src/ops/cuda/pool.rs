//! Pooling of images.

use candle_core::Result;
use candle_core::cuda::cudarc::driver::DeviceRepr;

use super::launch::{by_value, launch};
use super::view::{Destination, Real, Source, destination, dtype, source};
use crate::ops::element::{for_float, same};
use crate::ops::pool::PoolShape;

/// The kernels' `PoolShape`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DeviceShape {
    height: u64,
    width: u64,
    channels: u64,
    kernel: [u64; 2],
    stride: u64,
    padding: u64,
    out_height: u64,
    out_width: u64,
}

#[expect(unsafe_code, reason = "says that a structure may be passed to a kernel")]
// SAFETY: plain numbers in the kernels' order and layout.
unsafe impl DeviceRepr for DeviceShape {}
by_value!(DeviceShape);

impl From<&PoolShape> for DeviceShape {
    fn from(shape: &PoolShape) -> Self {
        let &PoolShape { height, width, channels, kernel, stride, padding } = shape;
        let [height, width, channels, stride, padding, out_height, out_width] =
            [height, width, channels, stride, padding, shape.out_height(), shape.out_width()].map(|size| size as u64);
        Self { height, width, channels, kernel: kernel.map(|size| size as u64), stride, padding, out_height, out_width }
    }
}

/// What a value of a window counts in its mean.
fn share<T: Real>(shape: &PoolShape) -> T {
    T::from_f64(1.0 / shape.kernel.iter().product::<usize>() as f64)
}

pub(in crate::ops) fn max_pool(dst: Destination<'_>, images: Source<'_>, shape: &PoolShape) -> Result<()> {
    for_float!(dtype(dst.0), "max-pool", T => {
        let device = dst.0.device.clone();
        let (out, images) = (destination::<T>(dst)?, source::<T>(images)?);
        shape.check(images.len(), out.len())?;
        launch!(T, &device, "max_pool", out.len(); DeviceShape::from(shape), out, images)
    })
}

pub(in crate::ops) fn max_pool_backward(
    dst: Destination<'_>,
    gradients: Source<'_>,
    images: Source<'_>,
    shape: &PoolShape,
) -> Result<()> {
    for_float!(dtype(dst.0), "max-pool-backward", T => {
        let device = dst.0.device.clone();
        let out = destination::<T>(dst)?;
        let (gradients, images) = (source::<T>(gradients)?, source::<T>(images)?);
        shape.check(images.len(), gradients.len())?;
        same("values of a pooling's input gradient", images.len(), out.len())?;
        launch!(T, &device, "max_pool_backward", out.len(); DeviceShape::from(shape), out, gradients, images)
    })
}

pub(in crate::ops) fn average_pool(dst: Destination<'_>, images: Source<'_>, shape: &PoolShape) -> Result<()> {
    for_float!(dtype(dst.0), "average-pool", T => {
        let device = dst.0.device.clone();
        let (out, images) = (destination::<T>(dst)?, source::<T>(images)?);
        shape.check(images.len(), out.len())?;
        launch!(T, &device, "average_pool", out.len(); DeviceShape::from(shape), share::<T>(shape), out, images)
    })
}

pub(in crate::ops) fn average_pool_backward(
    dst: Destination<'_>,
    gradients: Source<'_>,
    shape: &PoolShape,
) -> Result<()> {
    for_float!(dtype(dst.0), "average-pool-backward", T => {
        let device = dst.0.device.clone();
        let (out, gradients) = (destination::<T>(dst)?, source::<T>(gradients)?);
        shape.check(out.len(), gradients.len())?;
        let (n, share) = (out.len(), share::<T>(shape));
        launch!(T, &device, "average_pool_backward", n; DeviceShape::from(shape), share, out, gradients)
    })
}
