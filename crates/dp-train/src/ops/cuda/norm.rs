//! GroupNorm and LayerNorm.

use candle_core::cuda::cudarc::driver::{CudaView, DeviceRepr};
use candle_core::{CudaDevice, Result, Tensor};

use super::launch::{by_value, launch};
use super::rows::Parts;
use super::view::{Destination, Real, Source, destination, dtype, on_device, scratch, source};
use crate::ops::element::{for_float, same};
use crate::ops::norm::NormGeometry;

/// Partial sums that a group is summed in, at most.
const LANES: usize = 32;

/// The kernels' `NormShape`: a cell.
#[repr(C)]
#[derive(Clone, Copy)]
struct DeviceShape {
    positions: u64,
    channels: u64,
    groups: u64,
}

#[expect(unsafe_code, reason = "says that a structure may be passed to a kernel")]
// SAFETY: plain numbers in the kernels' order and layout.
unsafe impl DeviceRepr for DeviceShape {}
by_value!(DeviceShape);

impl From<NormGeometry> for DeviceShape {
    fn from(geometry: NormGeometry) -> Self {
        let NormGeometry { positions, channels, groups, .. } = geometry;
        let [positions, channels, groups] = [positions, channels, groups].map(|size| size as u64);
        Self { positions, channels, groups }
    }
}

/// Groups of all cells of so many records, and the partial sums each is taken in.
fn groups_and_lanes(geometry: NormGeometry, values: usize) -> (usize, usize) {
    let n_cells = values / geometry.cell().max(1);
    (n_cells * geometry.groups, (geometry.cell() / geometry.groups).clamp(1, LANES))
}

pub(in crate::ops) fn norm_statistics(
    dst: Destination<'_>,
    x: Source<'_>,
    geometry: NormGeometry,
    epsilon: f64,
) -> Result<()> {
    for_float!(dtype(dst.0), "norm-statistics", T => {
        let device = dst.0.device.clone();
        let shape = DeviceShape::from(geometry);
        let mut statistics = destination::<T>(dst)?;
        let x = source::<T>(x)?;
        geometry.check(x.len() / geometry.width().max(1), x.len(), statistics.len())?;
        let (groups, lanes) = groups_and_lanes(geometry, x.len());
        let mut parts = Parts::new(&device, lanes, groups)?;
        // The means, then the deviations from them: a mean far from 0 must not cancel the variance.
        for centred in [0_u32, 1] {
            launch!(
                T, &device, "norm_parts", groups * lanes;
                shape, groups, lanes, x.slice(..), centred, statistics.slice(..), parts.values.as_view_mut()
            )?;
            launch!(
                T, &device, "norm_statistics", groups;
                shape, lanes, parts.values.as_view(), centred, epsilon, statistics.slice_mut(..)
            )?;
        }
        Ok(())
    })
}

pub(in crate::ops) fn norm_forward(
    dst: Destination<'_>,
    x: Source<'_>,
    statistics: Source<'_>,
    geometry: NormGeometry,
    scale: &Tensor,
    shift: &Tensor,
) -> Result<()> {
    let (scale, scale_l) = scale.storage_and_layout();
    let (shift, shift_l) = shift.storage_and_layout();
    for_float!(dtype(dst.0), "norm-forward", T => {
        let device = dst.0.device.clone();
        let (x, statistics) = (source::<T>(x)?, source::<T>(statistics)?);
        let scale = source::<T>((on_device(&scale)?, scale_l))?;
        let shift = source::<T>((on_device(&shift)?, shift_l))?;
        let dst = destination::<T>(dst)?;
        geometry.check(dst.len() / geometry.width().max(1), x.len(), statistics.len())?;
        same("normalised values", dst.len(), x.len())?;
        same("scales of a normalisation", geometry.channels, scale.len())?;
        same("shifts of a normalisation", geometry.channels, shift.len())?;
        let n = dst.len();
        launch!(T, &device, "norm_forward", n; DeviceShape::from(geometry), dst, x, statistics, scale, shift)
    })
}

pub(in crate::ops) fn norm_parameter_gradients(
    dst: Destination<'_>,
    d: Source<'_>,
    x: Source<'_>,
    geometry: NormGeometry,
    statistics: &Tensor,
) -> Result<()> {
    let (statistics, statistics_l) = statistics.storage_and_layout();
    for_float!(dtype(dst.0), "norm-parameter-gradients", T => {
        let device = dst.0.device.clone();
        let (d, x) = (source::<T>(d)?, source::<T>(x)?);
        let statistics = source::<T>((on_device(&statistics)?, statistics_l))?;
        let dst = destination::<T>(dst)?;
        let batch = dst.len() / (2 * geometry.channels).max(1);
        geometry.check(batch, x.len(), statistics.len())?;
        same("gradients of normalised values", x.len(), d.len())?;
        let rows = geometry.cells * geometry.positions;
        let n = batch * geometry.channels;
        launch!(T, &device, "norm_parameter_gradients", n; DeviceShape::from(geometry), rows, dst, d, x, statistics)
    })
}

/// What the gradient of the input is made of, besides the gradient of the output.
struct Factors<'a, T> {
    x: CudaView<'a, T>,
    statistics: CudaView<'a, T>,
    scale: CudaView<'a, T>,
}

pub(in crate::ops) fn norm_backward(
    dst: Destination<'_>,
    x: Source<'_>,
    statistics: Source<'_>,
    geometry: NormGeometry,
    scale: &Tensor,
) -> Result<()> {
    let (scale, scale_l) = scale.storage_and_layout();
    for_float!(dtype(dst.0), "norm-backward", T => {
        let device = dst.0.device.clone();
        let (x, statistics) = (source::<T>(x)?, source::<T>(statistics)?);
        let scale = source::<T>((on_device(&scale)?, scale_l))?;
        let gradient = destination::<T>(dst)?;
        geometry.check(gradient.len() / geometry.width().max(1), x.len(), statistics.len())?;
        same("gradients of normalised values", x.len(), gradient.len())?;
        same("scales of a normalisation", geometry.channels, scale.len())?;
        let factors = Factors { x, statistics, scale };
        let means = backward_means(&device, geometry, gradient.slice(..), &factors)?;
        let Factors { x, statistics, scale } = factors;
        let (n, shape) = (gradient.len(), DeviceShape::from(geometry));
        launch!(T, &device, "norm_backward", n; shape, gradient, x, statistics, scale, means.as_view())
    })
}

/// For each group of a cell, the means of `e` and `e x̂`.
fn backward_means<T: Real>(
    device: &CudaDevice,
    geometry: NormGeometry,
    gradient: CudaView<'_, T>,
    factors: &Factors<'_, T>,
) -> Result<candle_core::cuda::cudarc::driver::CudaSlice<T>> {
    let (groups, lanes) = groups_and_lanes(geometry, gradient.len());
    let shape = DeviceShape::from(geometry);
    let mut parts = Parts::new(device, 2 * lanes, groups)?;
    let Factors { x, statistics, scale } = factors;
    launch!(
        T, device, "norm_backward_parts", groups * lanes;
        shape, groups, lanes, gradient, x.slice(..), statistics.slice(..), scale.slice(..), parts.values.as_view_mut()
    )?;
    let mut means = scratch::<T>(device, 2 * groups)?;
    launch!(
        T, device, "norm_backward_means", groups;
        shape, lanes, parts.values.as_view(), means.as_view_mut()
    )?;
    Ok(means)
}
