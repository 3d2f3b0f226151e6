//! Normalisation over groups of a record's values, as GroupNorm and LayerNorm need it.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use candle_core::{Result, Tensor};

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, cpu, destination, dtype, for_float, same, source};
use super::in_place::{Operands, binary, ternary};
use crate::vector_math::vectorise;

/// The division of a record into values that are normalised together and values that are scaled
/// together.
///
/// A record is `cells` independent parts of `positions` rows of `channels` values; within a cell,
/// each of `groups` equal runs of channels is normalised over all positions. Scale and shift belong
/// to channels. GroupNorm has one cell that holds all positions; LayerNorm has a cell of one
/// position and one group for each position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NormGeometry {
    /// Cells of a record.
    pub(crate) cells: usize,
    /// Positions of a cell.
    pub(crate) positions: usize,
    /// Channels of a position.
    pub(crate) channels: usize,
    /// Groups of a cell; divides the channels.
    pub(crate) groups: usize,
}

impl NormGeometry {
    /// Values of a record.
    pub(crate) fn width(self) -> usize {
        self.cells * self.cell()
    }

    /// Means and inverse standard deviations of a record.
    pub(crate) fn statistics(self) -> usize {
        self.cells * 2 * self.groups
    }

    /// Values of a cell.
    pub(super) fn cell(self) -> usize {
        self.positions * self.channels
    }

    /// Values that are normalised together.
    fn group(self) -> f64 {
        (self.cell() / self.groups) as f64
    }

    /// Returns an error unless values and statistics have the lengths of `batch` records.
    pub(super) fn check(self, batch: usize, values: usize, statistics: usize) -> Result<()> {
        same("values to normalise", batch * self.width(), values)?;
        same("statistics of a normalisation", batch * self.statistics(), statistics)
    }
}

/// `dst` = for each cell, the groups' means, then their `1 / √(variance + ε)`; `[batch, 2 · groups
/// · cells]`.
///
/// Two passes, so that a mean far from 0 does not cancel the variance.
pub(crate) fn norm_statistics(dst: &Tensor, x: &Tensor, geometry: NormGeometry, epsilon: f64) -> Result<()> {
    binary("norm-statistics", dst, x, |operands| match operands {
        Operands::Cpu(dst, [x]) => for_float!(dtype(dst.0), "norm-statistics", T => {
            let statistics = destination::<T>(dst)?;
            let x = source::<T>(x)?;
            geometry.check(x.len() / geometry.width().max(1), x.len(), statistics.len())?;
            let mut scratch = Scratch::new(geometry.channels);
            vectorise(#[inline(always)] || {
                for (statistics, cell) in statistics.chunks_exact_mut(2 * geometry.groups).zip(x.chunks_exact(geometry.cell())) {
                    measure(statistics, cell, geometry, epsilon, &mut scratch);
                }
            });
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [x]) => cuda::norm_statistics(dst, x, geometry, epsilon),
    })
}

/// Vectors over channels that live for one operation.
struct Scratch<T> {
    mean: Vec<T>,
    inverse: Vec<T>,
    sum: Vec<T>,
    product: Vec<T>,
}

impl<T: Element> Scratch<T> {
    fn new(channels: usize) -> Self {
        let zeros = || vec![T::ZERO; channels];
        Self { mean: zeros(), inverse: zeros(), sum: zeros(), product: zeros() }
    }

    /// Spreads a cell's statistics over its channels.
    #[inline(always)]
    fn load(&mut self, statistics: &[T], geometry: NormGeometry) {
        let (means, inverses) = statistics.split_at(geometry.groups);
        spread(&mut self.mean, means);
        spread(&mut self.inverse, inverses);
    }
}

#[inline(always)]
fn spread<T: Element>(channels: &mut [T], groups: &[T]) {
    let width = channels.len() / groups.len();
    for (channels, &group) in channels.chunks_exact_mut(width).zip(groups) {
        channels.fill(group);
    }
}

#[inline(always)]
fn measure<T: Element>(
    statistics: &mut [T],
    cell: &[T],
    geometry: NormGeometry,
    epsilon: f64,
    scratch: &mut Scratch<T>,
) {
    let width = geometry.channels / geometry.groups;
    let (means, inverses) = statistics.split_at_mut(geometry.groups);
    let Scratch { mean, sum, .. } = scratch;
    sum.fill(T::ZERO);
    for row in cell.chunks_exact(geometry.channels) {
        for (sum, &v) in sum.iter_mut().zip(row) {
            *sum += v;
        }
    }
    for (mean, sums) in means.iter_mut().zip(sum.chunks_exact(width)) {
        *mean = T::from_double(total(sums) / geometry.group());
    }
    spread(mean, means);
    sum.fill(T::ZERO);
    for row in cell.chunks_exact(geometry.channels) {
        for ((sum, &v), &mean) in sum.iter_mut().zip(row).zip(mean.iter()) {
            let rest = v - mean;
            *sum += rest * rest;
        }
    }
    for (inverse, sums) in inverses.iter_mut().zip(sum.chunks_exact(width)) {
        *inverse = T::from_double(1.0 / (total(sums) / geometry.group() + epsilon).sqrt());
    }
}

/// Sum in `f64`, in lanes so that it vectorises.
#[inline(always)]
fn total<T: Element>(values: &[T]) -> f64 {
    const LANES: usize = 8;
    let mut lanes = [0.0; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().map(|v| v.to_double()).sum();
    for chunk in chunks {
        for (lane, v) in lanes.iter_mut().zip(chunk) {
            *lane += v.to_double();
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// `dst = (x − mean) · inverse · scale + shift`, with the sources `x` and the statistics.
pub(crate) fn norm_forward(
    dst: &Tensor,
    x: &Tensor,
    statistics: &Tensor,
    geometry: NormGeometry,
    scale: &Tensor,
    shift: &Tensor,
) -> Result<()> {
    ternary("norm-forward", dst, x, statistics, |operands| match operands {
        Operands::Cpu(dst, [x, statistics]) => {
            let (scale, scale_l) = scale.storage_and_layout();
            let (shift, shift_l) = shift.storage_and_layout();
            for_float!(dtype(dst.0), "norm-forward", T => {
                let (x, statistics) = (source::<T>(x)?, source::<T>(statistics)?);
                let (scale, shift) = (source::<T>((cpu(&scale)?, scale_l))?, source::<T>((cpu(&shift)?, shift_l))?);
                let dst = destination::<T>(dst)?;
                geometry.check(dst.len() / geometry.width().max(1), x.len(), statistics.len())?;
                same("normalised values", dst.len(), x.len())?;
                same("scales of a normalisation", geometry.channels, scale.len())?;
                same("shifts of a normalisation", geometry.channels, shift.len())?;
                let mut scratch = Scratch::new(geometry.channels);
                vectorise(#[inline(always)] || {
                    let cells = dst.chunks_exact_mut(geometry.cell()).zip(x.chunks_exact(geometry.cell()));
                    for ((out, x), statistics) in cells.zip(statistics.chunks_exact(2 * geometry.groups)) {
                        scratch.load(statistics, geometry);
                        let Scratch { mean, inverse, product, .. } = &mut scratch;
                        for ((factor, &scale), &inverse) in product.iter_mut().zip(scale).zip(inverse.iter()) {
                            *factor = scale * inverse;
                        }
                        for (out, x) in out.chunks_exact_mut(geometry.channels).zip(x.chunks_exact(geometry.channels)) {
                            for ((((out, &x), &mean), &factor), &shift) in
                                out.iter_mut().zip(x).zip(mean.iter()).zip(product.iter()).zip(shift)
                            {
                                *out = (x - mean) * factor + shift;
                            }
                        }
                    }
                });
                Ok(())
            })
        }
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [x, statistics]) => cuda::norm_forward(dst, x, statistics, geometry, scale, shift),
    })
}

/// Per-sample gradients of scale and shift: `dst[i] = (Σ d x̂ , Σ d)` over the record's positions,
/// `[batch, 2 · channels]`, with the sources `d` (gradient of the output) and `x`.
///
/// The statistics come from [`norm_statistics`].
pub(crate) fn norm_parameter_gradients(
    dst: &Tensor,
    d: &Tensor,
    x: &Tensor,
    geometry: NormGeometry,
    statistics: &Tensor,
) -> Result<()> {
    ternary("norm-parameter-gradients", dst, d, x, |operands| match operands {
        Operands::Cpu(dst, [d, x]) => {
            let (statistics, statistics_l) = statistics.storage_and_layout();
            for_float!(dtype(dst.0), "norm-parameter-gradients", T => {
                let (d, x) = (source::<T>(d)?, source::<T>(x)?);
                let statistics = source::<T>((cpu(&statistics)?, statistics_l))?;
                let dst = destination::<T>(dst)?;
                let batch = dst.len() / (2 * geometry.channels).max(1);
                geometry.check(batch, x.len(), statistics.len())?;
                same("gradients of normalised values", x.len(), d.len())?;
                let mut scratch = Scratch::new(geometry.channels);
                vectorise(#[inline(always)] || {
                    let records = d.chunks_exact(geometry.width()).zip(x.chunks_exact(geometry.width()));
                    let records = records.zip(statistics.chunks_exact(geometry.statistics()));
                    for (dst, ((d, x), statistics)) in dst.chunks_exact_mut(2 * geometry.channels).zip(records) {
                        let cells = d.chunks_exact(geometry.cell()).zip(x.chunks_exact(geometry.cell()));
                        let (scale, shift) = dst.split_at_mut(geometry.channels);
                        scale.fill(T::ZERO);
                        shift.fill(T::ZERO);
                        for ((d, x), statistics) in cells.zip(statistics.chunks_exact(2 * geometry.groups)) {
                            scratch.load(statistics, geometry);
                            add_sums(scale, shift, d, x, &scratch.mean, &scratch.inverse);
                        }
                    }
                });
                Ok(())
            })
        }
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [d, x]) => cuda::norm_parameter_gradients(dst, d, x, geometry, statistics),
    })
}

/// Adds a cell's `Σ d x̂` and `Σ d` over its positions.
#[inline(always)]
fn add_sums<T: Element>(products: &mut [T], sums: &mut [T], d: &[T], x: &[T], mean: &[T], inverse: &[T]) {
    let channels = mean.len();
    for (d, x) in d.chunks_exact(channels).zip(x.chunks_exact(channels)) {
        let statistics = mean.iter().zip(inverse);
        for ((((product, sum), &d), &x), (&mean, &inverse)) in
            products.iter_mut().zip(sums.iter_mut()).zip(d).zip(x).zip(statistics)
        {
            *product += d * ((x - mean) * inverse);
            *sum += d;
        }
    }
}

/// Turns the gradient of the output (destination) into that of the input, with the sources `x` and
/// the statistics: `inverse · (e − mean(e) − x̂ · mean(e x̂))` with `e = d · scale` and means over
/// each group of a cell.
pub(crate) fn norm_backward(
    dst: &Tensor,
    x: &Tensor,
    statistics: &Tensor,
    geometry: NormGeometry,
    scale: &Tensor,
) -> Result<()> {
    ternary("norm-backward", dst, x, statistics, |operands| match operands {
        Operands::Cpu(dst, [x, statistics]) => {
            let (scale, scale_l) = scale.storage_and_layout();
            for_float!(dtype(dst.0), "norm-backward", T => {
                let (x, statistics) = (source::<T>(x)?, source::<T>(statistics)?);
                let scale = source::<T>((cpu(&scale)?, scale_l))?;
                let gradient = destination::<T>(dst)?;
                geometry.check(gradient.len() / geometry.width().max(1), x.len(), statistics.len())?;
                same("gradients of normalised values", x.len(), gradient.len())?;
                same("scales of a normalisation", geometry.channels, scale.len())?;
                let mut scratch = Scratch::new(geometry.channels);
                vectorise(#[inline(always)] || {
                    let cells = gradient.chunks_exact_mut(geometry.cell()).zip(x.chunks_exact(geometry.cell()));
                    for ((gradient, x), statistics) in cells.zip(statistics.chunks_exact(2 * geometry.groups)) {
                        scratch.load(statistics, geometry);
                        input_gradient(gradient, x, scale, geometry, &mut scratch);
                    }
                });
                Ok(())
            })
        }
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [x, statistics]) => cuda::norm_backward(dst, x, statistics, geometry, scale),
    })
}

#[inline(always)]
fn input_gradient<T: Element>(
    gradient: &mut [T],
    x: &[T],
    scale: &[T],
    geometry: NormGeometry,
    scratch: &mut Scratch<T>,
) {
    let Scratch { mean, inverse, sum, product } = scratch;
    sum.fill(T::ZERO);
    product.fill(T::ZERO);
    add_sums(product, sum, gradient, x, mean, inverse);
    // From sums over positions of d and d x̂ to means over the group of e and e x̂.
    for ((sum, product), &scale) in sum.iter_mut().zip(product.iter_mut()).zip(scale) {
        *sum *= scale;
        *product *= scale;
    }
    let width = geometry.channels / geometry.groups;
    for sums in [&mut *sum, &mut *product] {
        for group in sums.chunks_exact_mut(width) {
            let mean = T::from_double(total(group) / geometry.group());
            group.fill(mean);
        }
    }
    let channels = geometry.channels;
    for (gradient, x) in gradient.chunks_exact_mut(channels).zip(x.chunks_exact(channels)) {
        let statistics = mean.iter().zip(inverse.iter());
        let means = sum.iter().zip(product.iter());
        for ((((d, &x), &scale), (&mean, &inverse)), (&e, &ex)) in
            gradient.iter_mut().zip(x).zip(scale).zip(statistics).zip(means)
        {
            let normalised = (x - mean) * inverse;
            *d = inverse * (*d * scale - e - normalised * ex);
        }
    }
}
