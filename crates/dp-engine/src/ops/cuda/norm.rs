//! GroupNorm and LayerNorm.

use std::ops::Range;

use candle_core::cuda::cudarc::driver::DeviceRepr;
use candle_core::{Result, Tensor};

use super::divisor::{Divisor, size};
use super::launch::{by_value, launch};
use super::rows::{self, Parts, values_of};
use super::view::{Destination, Source, destination, dtype, on_device, scratch, source};
use crate::ops::element::{for_float, same};
use crate::ops::norm::NormGeometry;

/// Partial sums that a group is summed in, at most.
const LANES: usize = 32;

/// The kernels' `NormShape`: a cell.
#[repr(C)]
#[derive(Clone, Copy)]
struct DeviceShape {
    positions: Divisor,
    channels: Divisor,
    groups: Divisor,
    /// Channels of a group.
    width: Divisor,
}

#[expect(unsafe_code, reason = "says that a structure may be passed to a kernel")]
// SAFETY: plain numbers in the kernels' order and layout.
unsafe impl DeviceRepr for DeviceShape {}
by_value!(DeviceShape);

impl DeviceShape {
    fn new(geometry: NormGeometry) -> Result<Self> {
        let NormGeometry { positions, channels, groups, .. } = geometry;
        Ok(Self {
            positions: Divisor::new(positions)?,
            channels: Divisor::new(channels)?,
            groups: Divisor::new(groups)?,
            width: Divisor::new(channels / groups)?,
        })
    }
}

/// The ranges of some records, few enough for one launch to number their values.
struct RecordRanges {
    records: Range<usize>,
    values: Range<usize>,
    statistics: Range<usize>,
    /// Groups of all cells of the records.
    groups: usize,
}

/// All records of a batch, some at a time.
fn launches(geometry: NormGeometry, values: usize) -> Result<impl Iterator<Item = RecordRanges>> {
    let width = geometry.width();
    Ok(rows::launches(values / width.max(1), width)?.map(move |records| RecordRanges {
        values: values_of(&records, width),
        statistics: values_of(&records, geometry.statistics()),
        groups: records.len() * geometry.cells * geometry.groups,
        records,
    }))
}

/// Partial sums that each group is taken in.
fn lanes(geometry: NormGeometry) -> usize {
    (geometry.cell() / geometry.groups).clamp(1, LANES)
}

pub(in crate::ops) fn norm_statistics(
    dst: Destination<'_>,
    x: Source<'_>,
    geometry: NormGeometry,
    epsilon: f64,
) -> Result<()> {
    for_float!(dtype(dst.0), "norm-statistics", T => {
        let device = dst.0.device.clone();
        let (shape, lanes) = (DeviceShape::new(geometry)?, lanes(geometry));
        let mut statistics = destination::<T>(dst)?;
        let x = source::<T>(x)?;
        geometry.check(x.len() / geometry.width().max(1), x.len(), statistics.len())?;
        for part in launches(geometry, x.len())? {
            let groups = part.groups;
            let mut parts = Parts::new(&device, lanes, groups)?;
            let (x, mut statistics) = (x.slice(part.values), statistics.slice_mut(part.statistics));
            // The means, then the deviations from them: a mean far from 0 must not cancel the
            // variance.
            for centred in [0_u32, 1] {
                launch!(
                    T, &device, "norm_parts", groups * lanes;
                    shape, groups, Divisor::new(lanes)?, x.slice(..), centred, statistics.as_view(),
                    parts.values.as_view_mut()
                )?;
                launch!(
                    T, &device, "norm_statistics", groups;
                    shape, lanes, parts.values.as_view(), centred, epsilon, statistics.slice_mut(..)
                )?;
            }
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
        let mut dst = destination::<T>(dst)?;
        geometry.check(dst.len() / geometry.width().max(1), x.len(), statistics.len())?;
        same("normalised values", dst.len(), x.len())?;
        same("scales of a normalisation", geometry.channels, scale.len())?;
        same("shifts of a normalisation", geometry.channels, shift.len())?;
        let shape = DeviceShape::new(geometry)?;
        for part in launches(geometry, x.len())? {
            let (n, x, dst) = (part.values.len(), x.slice(part.values.clone()), dst.slice_mut(part.values));
            let statistics = statistics.slice(part.statistics);
            launch!(T, &device, "norm_forward", n; shape, dst, x, statistics, scale.slice(..), shift.slice(..))?;
        }
        Ok(())
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
        let mut dst = destination::<T>(dst)?;
        let batch = dst.len() / (2 * geometry.channels).max(1);
        geometry.check(batch, x.len(), statistics.len())?;
        same("gradients of normalised values", x.len(), d.len())?;
        let (shape, rows) = (DeviceShape::new(geometry)?, size(geometry.cells * geometry.positions)?);
        for part in launches(geometry, x.len())? {
            let dst = dst.slice_mut(values_of(&part.records, 2 * geometry.channels));
            let (d, x) = (d.slice(part.values.clone()), x.slice(part.values));
            let n = part.records.len() * geometry.channels;
            let statistics = statistics.slice(part.statistics);
            launch!(T, &device, "norm_parameter_gradients", n; shape, rows, dst, d, x, statistics)?;
        }
        Ok(())
    })
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
        let mut gradient = destination::<T>(dst)?;
        geometry.check(gradient.len() / geometry.width().max(1), x.len(), statistics.len())?;
        same("gradients of normalised values", x.len(), gradient.len())?;
        same("scales of a normalisation", geometry.channels, scale.len())?;
        let (shape, lanes) = (DeviceShape::new(geometry)?, lanes(geometry));
        for part in launches(geometry, x.len())? {
            let (groups, n) = (part.groups, part.values.len());
            let (x, mut gradient) = (x.slice(part.values.clone()), gradient.slice_mut(part.values));
            let statistics = statistics.slice(part.statistics);
            // For each group of a cell, the means of `e` and `e x̂`.
            let mut parts = Parts::new(&device, 2 * lanes, groups)?;
            launch!(
                T, &device, "norm_backward_parts", groups * lanes;
                shape, groups, Divisor::new(lanes)?, gradient.as_view(), x.slice(..), statistics.slice(..),
                scale.slice(..), parts.values.as_view_mut()
            )?;
            let mut means = scratch::<T>(&device, 2 * groups)?;
            launch!(
                T, &device, "norm_backward_means", groups;
                shape, lanes, parts.values.as_view(), means.as_view_mut()
            )?;
            launch!(
                T, &device, "norm_backward", n;
                shape, gradient, x, statistics, scale.slice(..), means.as_view()
            )?;
        }
        Ok(())
    })
}
