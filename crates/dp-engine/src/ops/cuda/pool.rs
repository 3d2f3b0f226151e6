//! Pooling of images.

use std::ops::Range;

use candle_core::cuda::cudarc::driver::{CudaSlice, CudaView, CudaViewMut, DeviceRepr};
use candle_core::{CudaDevice, Error, Result};

use super::divisor::{Divisor, size};
use super::launch::{by_value, launch};
use super::rows::{self, values_of};
use super::run;
use super::view::{Destination, Real, Source, destination, dtype, scratch, source};
use crate::ops::element::{for_float, same};
use crate::ops::pool::PoolShape;

/// The kernels' `PoolShape`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DeviceShape {
    kernel: [u32; 2],
    padding: u32,
    channels: Divisor,
    height: Divisor,
    width: Divisor,
    stride: Divisor,
    out_height: Divisor,
    out_width: Divisor,
}

#[expect(unsafe_code, reason = "says that a structure may be passed to a kernel")]
// SAFETY: plain numbers in the kernels' order and layout.
unsafe impl DeviceRepr for DeviceShape {}
by_value!(DeviceShape);

impl DeviceShape {
    /// With channels counted in units of adjacent values.
    fn new(shape: &PoolShape, unit: usize) -> Result<Self> {
        let &PoolShape { height, width, channels, kernel, stride, padding } = shape;
        Ok(Self {
            kernel: [size(kernel[0])?, size(kernel[1])?],
            padding: size(padding)?,
            channels: Divisor::new(channels / unit)?,
            height: Divisor::new(height)?,
            width: Divisor::new(width)?,
            stride: Divisor::new(stride)?,
            out_height: Divisor::new(shape.out_height())?,
            out_width: Divisor::new(shape.out_width())?,
        })
    }
}

/// The weight of a window's value in its mean.
fn share<T: Real>(shape: &PoolShape) -> T {
    T::from_f64(1.0 / shape.kernel.iter().product::<usize>() as f64)
}

/// The pixel of its window that each value of a batch's output came from, by the kernels'
/// `number_in_window`.
pub(crate) struct DeviceWinners {
    numbers: CudaSlice<u16>,
}

impl DeviceWinners {
    /// Makes room for the pixels of `len` values.
    pub(in crate::ops) fn new(device: &CudaDevice, len: usize) -> Result<Self> {
        Ok(Self { numbers: scratch(device, len.max(1))? })
    }

    /// How many there is room for.
    pub(in crate::ops) fn len(&self) -> usize {
        self.numbers.len()
    }

    fn check(&self, shape: &PoolShape, range: &Range<usize>, outputs: usize) -> Result<()> {
        let [height, width] = shape.kernel;
        if height * width > 1 << 16 {
            let got = format!("{height} x {width}");
            return Err(Error::Msg(format!("window of a max pooling: expected at most 65536 pixels, got {got}")));
        }
        same("windows whose largest pixel is noted", outputs, range.len())?;
        if range.end > self.numbers.len() {
            let len = self.numbers.len();
            return Err(Error::Msg(format!(
                "end of a max pooling's winners: expected at most {len}, got {}",
                range.end
            )));
        }
        Ok(())
    }
}

/// Ranges of images that one launch can number.
fn launches(shape: &PoolShape, n_images: usize) -> Result<impl Iterator<Item = Range<usize>>> {
    rows::launches(n_images, shape.inputs().max(shape.outputs()))
}

pub(in crate::ops) fn max_pool(
    dst: Destination<'_>,
    images: Source<'_>,
    shape: &PoolShape,
    winners: &mut DeviceWinners,
    range: &Range<usize>,
) -> Result<()> {
    for_float!(dtype(dst.0), "max-pool", T => {
        let device = dst.0.device.clone();
        let (mut out, images) = (destination::<T>(dst)?, source::<T>(images)?);
        shape.check(images.len(), out.len())?;
        winners.check(shape, range, out.len())?;
        let mut winners = winners.numbers.slice_mut(range.clone());
        let unit = run::unit(&device, shape.channels, &[&out.as_view(), &images]);
        let (device_shape, n_images) = (DeviceShape::new(shape, unit)?, out.len() / shape.outputs().max(1));
        for some in launches(shape, n_images)? {
            let outputs = values_of(&some, shape.outputs());
            let n_units = outputs.len() / unit;
            let (out, winners) = (out.slice_mut(outputs.clone()), winners.slice_mut(outputs));
            let images = images.slice(values_of(&some, shape.inputs()));
            if unit > 1 {
                launch!(T, &device, "max_pool_in_runs", n_units; device_shape, out, winners, images)?;
            } else {
                launch!(T, &device, "max_pool", n_units; device_shape, out, winners, images)?;
            }
        }
        Ok(())
    })
}

pub(in crate::ops) fn max_pool_backward(
    dst: Destination<'_>,
    gradients: Source<'_>,
    shape: &PoolShape,
    winners: &DeviceWinners,
    range: &Range<usize>,
) -> Result<()> {
    for_float!(dtype(dst.0), "max-pool-backward", T => {
        let device = dst.0.device.clone();
        let (out, gradients) = (destination::<T>(dst)?, source::<T>(gradients)?);
        shape.check(out.len(), gradients.len())?;
        winners.check(shape, range, gradients.len())?;
        let winners = winners.numbers.slice(range.clone());
        let unit = run::unit(&device, shape.channels, &[&out.as_view(), &gradients]);
        let device_shape = DeviceShape::new(shape, unit)?;
        over_images(shape, out, &gradients, |some, out, gradients| {
            let winners = winners.slice(values_of(some, shape.outputs()));
            let n_units = out.len() / unit;
            if unit > 1 {
                launch!(T, &device, "max_pool_backward_in_runs", n_units; device_shape, out, gradients, winners)
            } else {
                launch!(T, &device, "max_pool_backward", n_units; device_shape, out, gradients, winners)
            }
        })
    })
}

/// Calls `launch` with some images, their values and their outputs' values, until all are done.
fn over_images<T>(
    shape: &PoolShape,
    mut images: CudaViewMut<'_, T>,
    outputs: &CudaView<'_, T>,
    mut launch: impl FnMut(&Range<usize>, CudaViewMut<'_, T>, CudaView<'_, T>) -> Result<()>,
) -> Result<()> {
    for some in launches(shape, images.len() / shape.inputs().max(1))? {
        let of_images = images.slice_mut(values_of(&some, shape.inputs()));
        launch(&some, of_images, outputs.slice(values_of(&some, shape.outputs())))?;
    }
    Ok(())
}

pub(in crate::ops) fn average_pool(dst: Destination<'_>, images: Source<'_>, shape: &PoolShape) -> Result<()> {
    for_float!(dtype(dst.0), "average-pool", T => {
        let device = dst.0.device.clone();
        let (mut out, images) = (destination::<T>(dst)?, source::<T>(images)?);
        shape.check(images.len(), out.len())?;
        let (device_shape, share) = (DeviceShape::new(shape, 1)?, share::<T>(shape));
        for some in launches(shape, out.len() / shape.outputs().max(1))? {
            let out = out.slice_mut(values_of(&some, shape.outputs()));
            let images = images.slice(values_of(&some, shape.inputs()));
            launch!(T, &device, "average_pool", out.len(); device_shape, share, out, images)?;
        }
        Ok(())
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
        let (device_shape, share) = (DeviceShape::new(shape, 1)?, share::<T>(shape));
        over_images(shape, out, &gradients, |_, out, gradients| {
            launch!(T, &device, "average_pool_backward", out.len(); device_shape, share, out, gradients)
        })
    })
}
