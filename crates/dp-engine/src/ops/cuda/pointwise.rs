//! Operations that treat every value alone: updates, optimisers, activations.

use candle_core::cuda::cudarc::driver::{CudaView, CudaViewMut};
use candle_core::{CudaDevice, Error, Result, WithDType};

use super::launch::launch;
use super::upload::{upload, upload_into};
use super::view::{Destination, Real, Source, destination, dtype, source};
use crate::ops::activation::Activation;
use crate::ops::element::{for_float, same};

/// Device, destination and source of an operation on vectors of the same length.
fn pair<'a, T: Real>(
    what: &'static str,
    dst: Destination<'a>,
    src: Source<'a>,
) -> Result<(CudaDevice, CudaViewMut<'a, T>, CudaView<'a, T>)> {
    let device = dst.0.device.clone();
    let (dst, src) = (destination::<T>(dst)?, source::<T>(src)?);
    same(what, dst.len(), src.len())?;
    Ok((device, dst, src))
}

pub(in crate::ops) fn fill(dst: Destination<'_>, value: f64) -> Result<()> {
    for_float!(dtype(dst.0), "fill", T => {
        let device = dst.0.device.clone();
        let dst = destination::<T>(dst)?;
        launch!(T, &device, "fill", dst.len(); dst, T::from_f64(value))
    })
}

pub(in crate::ops) fn copy(dst: Destination<'_>, src: Source<'_>) -> Result<()> {
    for_float!(dtype(dst.0), "copy", T => {
        let (device, mut dst, src) = pair::<T>("elements to copy", dst, src)?;
        device.memcpy_dtod(&src, &mut dst)
    })
}

pub(in crate::ops) fn axpy(dst: Destination<'_>, src: Source<'_>, alpha: f64) -> Result<()> {
    for_float!(dtype(dst.0), "axpy", T => {
        let (device, dst, src) = pair::<T>("elements to add", dst, src)?;
        launch!(T, &device, "axpy", dst.len(); dst, T::from_f64(alpha), src)
    })
}

pub(in crate::ops) fn add_slice(dst: Destination<'_>, alpha: f64, values: &[f64]) -> Result<()> {
    for_float!(dtype(dst.0), "add-slice", T => {
        let device = dst.0.device.clone();
        let dst = destination::<T>(dst)?;
        same("values to add", dst.len(), values.len())?;
        let values = upload(&device, values)?;
        launch!(T, &device, "add_slice", dst.len(); dst, alpha, values.as_view())
    })
}

/// Made on the host, where its operands are.
pub(in crate::ops) fn set_along<V: Copy + Into<f64>>(
    dst: Destination<'_>,
    origin: &[f64],
    alpha: f64,
    values: &[V],
) -> Result<()> {
    for_float!(dtype(dst.0), "set-along", T => {
        let device = dst.0.device.clone();
        let mut dst = destination::<T>(dst)?;
        same("values to start from", dst.len(), origin.len())?;
        same("values to add", dst.len(), values.len())?;
        let values = origin.iter().zip(values).map(|(&o, &s)| T::from_f64(o + alpha * s.into()));
        upload_into(&device, &values.collect::<Vec<T>>(), &mut dst)
    })
}

pub(in crate::ops) fn multiply(dst: Destination<'_>, src: Source<'_>) -> Result<()> {
    for_float!(dtype(dst.0), "multiply", T => {
        let (device, dst, src) = pair::<T>("elements to multiply", dst, src)?;
        launch!(T, &device, "multiply", dst.len(); dst, src)
    })
}

pub(in crate::ops) fn scale(dst: Destination<'_>, factor: f64) -> Result<()> {
    for_float!(dtype(dst.0), "scale", T => {
        let device = dst.0.device.clone();
        let dst = destination::<T>(dst)?;
        launch!(T, &device, "scale", dst.len(); dst, T::from_f64(factor))
    })
}

pub(in crate::ops) fn scale_add(dst: Destination<'_>, src: Source<'_>, scale: f64, alpha: f64) -> Result<()> {
    for_float!(dtype(dst.0), "scale-add", T => {
        let (device, dst, src) = pair::<T>("elements to add", dst, src)?;
        launch!(T, &device, "scale_add", dst.len(); dst, T::from_f64(scale), T::from_f64(alpha), src)
    })
}

pub(in crate::ops) fn scale_add_square(dst: Destination<'_>, src: Source<'_>, scale: f64, alpha: f64) -> Result<()> {
    for_float!(dtype(dst.0), "scale-add-square", T => {
        let (device, dst, src) = pair::<T>("elements to square", dst, src)?;
        launch!(T, &device, "scale_add_square", dst.len(); dst, T::from_f64(scale), T::from_f64(alpha), src)
    })
}

pub(in crate::ops) fn adam_update(
    dst: Destination<'_>,
    first: Source<'_>,
    second: Source<'_>,
    rate: f64,
    root: f64,
    epsilon: f64,
) -> Result<()> {
    for_float!(dtype(dst.0), "adam-update", T => {
        let (device, parameters, first) = pair::<T>("elements of the first moment", dst, first)?;
        let second = source::<T>(second)?;
        same("elements of the second moment", parameters.len(), second.len())?;
        let (rate, root, epsilon) = (T::from_f64(rate), T::from_f64(1.0 / root), T::from_f64(epsilon));
        launch!(T, &device, "adam_update", parameters.len(); parameters, first, second, rate, root, epsilon)
    })
}

/// The kernels' number of an activation.
fn kind(activation: Activation) -> u32 {
    match activation {
        Activation::Tanh => 0,
        Activation::Relu => 1,
        Activation::Sigmoid => 2,
        Activation::Gelu => 3,
        Activation::GeluTanh => 4,
    }
}

pub(in crate::ops) fn activate(dst: Destination<'_>, activation: Activation) -> Result<()> {
    for_float!(dtype(dst.0), "activation", T => {
        let device = dst.0.device.clone();
        let dst = destination::<T>(dst)?;
        launch!(T, &device, "activation_forward", dst.len(); dst, kind(activation))
    })
}

pub(in crate::ops) fn activation_backward(
    dst: Destination<'_>,
    output: Source<'_>,
    activation: Activation,
) -> Result<()> {
    if !activation.is_function_of_output() {
        return Err(Error::Msg(format!("the derivative of {activation:?} is not a function of its output")));
    }
    for_float!(dtype(dst.0), "activation-backward", T => {
        let (device, dst, output) = pair::<T>("length of the activation's output", dst, output)?;
        launch!(T, &device, "activation_backward", dst.len(); dst, output, kind(activation))
    })
}

pub(in crate::ops) fn activation_slope(dst: Destination<'_>, input: Source<'_>, activation: Activation) -> Result<()> {
    if activation.is_function_of_output() {
        return Err(Error::Msg(format!("the derivative of {activation:?} is taken from its output")));
    }
    for_float!(dtype(dst.0), "activation-slope", T => {
        let (device, dst, input) = pair::<T>("length of the activation's input", dst, input)?;
        launch!(T, &device, "activation_slope", dst.len(); dst, input, kind(activation))
    })
}
