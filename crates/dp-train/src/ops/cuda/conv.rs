//! Convolution: patches as rows of a matrix, and products with them, as many images at a time as
//! the working memory holds.

use candle_core::cuda::cudarc::cublas::{CudaBlas, Gemm};
use candle_core::cuda::cudarc::driver::{CudaView, CudaViewMut, DeviceRepr};
use candle_core::{CudaDevice, Result, Tensor};

use super::launch::{by_value, launch};
use super::product::{Matrices, Products, products};
use super::view::{Destination, Real, Source, destination, dtype, on_device, scratch, source};
use crate::ops::conv::{ConvShape, WeightOrder, check_images, unpack};
use crate::ops::element::{for_float, same};

/// Working memory for patches.
const WORK_BYTES: usize = 256 << 20;

/// The kernels' `ConvShape`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DeviceShape {
    height: u64,
    width: u64,
    channels: u64,
    filters: u64,
    kernel: u64,
    stride: u64,
    padding: u64,
    groups: u64,
    out_height: u64,
    out_width: u64,
}

#[expect(unsafe_code, reason = "says that a structure may be passed to a kernel")]
// SAFETY: plain numbers in the kernels' order and layout.
unsafe impl DeviceRepr for DeviceShape {}
by_value!(DeviceShape);

impl From<&ConvShape> for DeviceShape {
    fn from(shape: &ConvShape) -> Self {
        let &ConvShape { height, width, channels, filters, kernel, stride, padding, groups } = shape;
        let [height, width, channels, filters, kernel, stride, padding, groups, out_height, out_width] =
            [height, width, channels, filters, kernel, stride, padding, groups, shape.out_height(), shape.out_width()]
                .map(|size| size as u64);
        Self { height, width, channels, filters, kernel, stride, padding, groups, out_height, out_width }
    }
}

/// So many images that their values of `per_image` each fit the working memory, at least one.
fn images_at_once<T>(n_images: usize, per_image: usize) -> usize {
    (WORK_BYTES / (per_image * size_of::<T>()).max(1)).clamp(1, n_images.max(1))
}

/// The ranges of images that are worked on one after the other.
fn chunks(n_images: usize, at_once: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..n_images).step_by(at_once).map(move |start| start..(start + at_once).min(n_images))
}

/// The patches of one group of some images, `[images · positions, patch]`.
fn gather_patches<T: Real>(
    device: &CudaDevice,
    shape: &ConvShape,
    group: usize,
    images: CudaView<'_, T>,
    rows: CudaViewMut<'_, T>,
) -> Result<()> {
    let n = images.len() / shape.inputs() * shape.positions() * shape.patch();
    same("values of patches", n, rows.len())?;
    launch!(T, device, "gather_patches", n; DeviceShape::from(shape), group, images, rows)
}

/// A convolution's images and the values at its output, image by image.
struct Pair<'a, T> {
    images: CudaView<'a, T>,
    outputs: CudaView<'a, T>,
}

impl<T> Pair<'_, T> {
    fn range(&self, shape: &ConvShape, range: &std::ops::Range<usize>) -> Pair<'_, T> {
        Pair {
            images: self.images.slice(range.start * shape.inputs()..range.end * shape.inputs()),
            outputs: self.outputs.slice(range.start * shape.outputs()..range.end * shape.outputs()),
        }
    }
}

pub(in crate::ops) fn conv_forward(
    dst: Destination<'_>,
    images: Source<'_>,
    weight: Source<'_>,
    shape: &ConvShape,
    bias: Option<&Tensor>,
) -> Result<()> {
    for_float!(dtype(dst.0), "conv-forward", T => {
        let device = dst.0.device.clone();
        let mut out = destination::<T>(dst)?;
        let (images, weight) = (source::<T>(images)?, source::<T>(weight)?);
        let shape = shape;
        same("values of a convolution's weight", shape.weights(), weight.len())?;
        check_images(shape, images.len(), out.len())?;
        if let Some(bias) = bias {
            let (bias, bias_l) = bias.storage_and_layout();
            let bias = source::<T>((on_device(&bias)?, bias_l))?;
            same("values of a convolution's bias", shape.filters, bias.len())?;
            launch!(T, &device, "repeat_row", out.len(); shape.filters, out.slice_mut(..), bias)?;
        }
        let (patch, filters, positions) = (shape.patch(), shape.group_filters(), shape.positions());
        let n_images = images.len() / shape.inputs();
        let at_once = images_at_once::<T>(n_images, positions * patch);
        let mut rows = scratch::<T>(&device, at_once * positions * patch)?;
        for range in chunks(n_images, at_once) {
            let n_rows = range.len() * positions;
            let images = images.slice(range.start * shape.inputs()..range.end * shape.inputs());
            for group in 0..shape.groups {
                gather_patches(&device, shape, group, images.slice(..), rows.slice_mut(..n_rows * patch))?;
                let values = out.slice_mut(range.start * shape.outputs() + group * filters..);
                let to = Products { values, row_stride: shape.filters, record_stride: 0 };
                let weight = weight.slice(group * filters * patch..(group + 1) * filters * patch);
                let weight = Matrices::one(weight, filters, patch).transposed();
                products(&device, 1, to, &Matrices::one(rows.as_view(), n_rows, patch), &weight, bias.is_some())?;
            }
        }
        Ok(())
    })
}

pub(in crate::ops) fn conv_input_gradient(
    dst: Destination<'_>,
    gradients: Source<'_>,
    weight: Source<'_>,
    shape: &ConvShape,
) -> Result<()> {
    for_float!(dtype(dst.0), "conv-input-gradient", T => {
        let device = dst.0.device.clone();
        let mut out = destination::<T>(dst)?;
        let (gradients, weight) = (source::<T>(gradients)?, source::<T>(weight)?);
        let shape = shape;
        same("values of a convolution's weight", shape.weights(), weight.len())?;
        check_images(shape, out.len(), gradients.len())?;
        let (patch, filters, positions) = (shape.patch(), shape.group_filters(), shape.positions());
        let n_images = out.len() / shape.inputs();
        let at_once = images_at_once::<T>(n_images, positions * patch);
        let mut rows = scratch::<T>(&device, at_once * positions * patch)?;
        for range in chunks(n_images, at_once) {
            let n_rows = range.len() * positions;
            let mut images = out.slice_mut(range.start * shape.inputs()..range.end * shape.inputs());
            for group in 0..shape.groups {
                let gradients = gradients.slice(range.start * shape.outputs() + group * filters..);
                let gradients = Matrices::strided(gradients, n_rows, filters, shape.filters);
                let weight = weight.slice(group * filters * patch..(group + 1) * filters * patch);
                let to = Products { values: rows.as_view_mut(), row_stride: patch, record_stride: 0 };
                products(&device, 1, to, &gradients, &Matrices::one(weight, filters, patch), false)?;
                let n = range.len() * shape.inputs() / shape.groups;
                launch!(
                    T, &device, "scatter_patches", n;
                    DeviceShape::from(shape), group, rows.as_view(), images.slice_mut(..)
                )?;
            }
        }
        Ok(())
    })
}

pub(in crate::ops) fn conv_weight_sum(
    dst: Destination<'_>,
    images: Source<'_>,
    gradients: Source<'_>,
    shape: &ConvShape,
    order: WeightOrder,
    accumulate: bool,
) -> Result<()> {
    for_float!(dtype(dst.0), "conv-weight-sum", T => {
        let device = dst.0.device.clone();
        let mut sum = destination::<T>(dst)?;
        let all = Pair { images: source::<T>(images)?, outputs: source::<T>(gradients)? };
        let shape = shape;
        same("values of a convolution's weight", shape.weights(), sum.len())?;
        check_images(shape, all.images.len(), all.outputs.len())?;
        let (patch, filters, positions) = (shape.patch(), shape.group_filters(), shape.positions());
        let n_images = all.images.len() / shape.inputs();
        let at_once = images_at_once::<T>(n_images, positions * patch);
        let mut rows = scratch::<T>(&device, at_once * positions * patch)?;
        for range in chunks(n_images, at_once) {
            let part = all.range(shape, &range);
            let n_rows = range.len() * positions;
            for group in 0..shape.groups {
                gather_patches(&device, shape, group, part.images.slice(..), rows.slice_mut(..n_rows * patch))?;
                let rows = Matrices::one(rows.as_view(), n_rows, patch);
                let gradients = Matrices::strided(part.outputs.slice(group * filters..), n_rows, filters, shape.filters);
                let values = sum.slice_mut(group * filters * patch..(group + 1) * filters * patch);
                let keep = accumulate || range.start > 0;
                weight_products(&device, 1, (values, 0), order, gradients, rows, keep)?;
            }
        }
        Ok(())
    })
}

/// `gradientsᵀ · rows` or its transpose, by the order; record `r`'s product starts at `r` times the
/// stride.
fn weight_products<T: Real>(
    device: &CudaDevice,
    n_records: usize,
    (values, record_stride): (CudaViewMut<'_, T>, usize),
    order: WeightOrder,
    gradients: Matrices<'_, T>,
    rows: Matrices<'_, T>,
    accumulate: bool,
) -> Result<()>
where
    CudaBlas: Gemm<T>,
{
    match order {
        WeightOrder::FiltersFirst => {
            let to = Products { values, row_stride: rows.columns, record_stride };
            products(device, n_records, to, &gradients.transposed(), &rows, accumulate)
        }
        WeightOrder::PatchFirst => {
            let to = Products { values, row_stride: gradients.columns, record_stride };
            products(device, n_records, to, &rows.transposed(), &gradients, accumulate)
        }
    }
}

/// Every record's gradient of weight and, where `width` leaves room for it, bias: `[records,
/// width]`.
fn record_gradients<T: Real>(
    device: &CudaDevice,
    shape: &ConvShape,
    order: WeightOrder,
    all: &Pair<'_, T>,
    mut to: CudaViewMut<'_, T>,
    width: usize,
) -> Result<()>
where
    CudaBlas: Gemm<T>,
{
    let (patch, filters, positions) = (shape.patch(), shape.group_filters(), shape.positions());
    let n_images = all.images.len() / shape.inputs();
    let at_once = images_at_once::<T>(n_images, positions * patch);
    let mut rows = scratch::<T>(device, at_once * positions * patch)?;
    for range in chunks(n_images, at_once) {
        let part = all.range(shape, &range);
        for group in 0..shape.groups {
            let len = range.len() * positions * patch;
            gather_patches(device, shape, group, part.images.slice(..), rows.slice_mut(..len))?;
            let rows = Matrices::one(rows.as_view(), positions, patch).per_record(positions * patch);
            let gradients = part.outputs.slice(group * filters..);
            let gradients = Matrices::strided(gradients, positions, filters, shape.filters).per_record(shape.outputs());
            let values = to.slice_mut(range.start * width + group * filters * patch..);
            weight_products(device, range.len(), (values, width), order, gradients, rows, false)?;
        }
    }
    if width > shape.weights() {
        same("values of a bias", shape.filters, width - shape.weights())?;
        let bias = to.slice_mut(shape.weights().min(to.len())..);
        let n = n_images * shape.filters;
        launch!(T, device, "sum_positions", n; positions, shape.filters, all.outputs.slice(..), width, bias)?;
    }
    Ok(())
}

pub(in crate::ops) fn conv_gradients(
    dst: Destination<'_>,
    images: Source<'_>,
    gradients: Source<'_>,
    shape: &ConvShape,
    order: WeightOrder,
) -> Result<()> {
    for_float!(dtype(dst.0), "conv-gradients", T => {
        let device = dst.0.device.clone();
        let rows = destination::<T>(dst)?;
        let all = Pair { images: source::<T>(images)?, outputs: source::<T>(gradients)? };
        check_images(shape, all.images.len(), all.outputs.len())?;
        let n_images = all.images.len() / shape.inputs();
        let width = rows.len() / n_images.max(1);
        same("values of all records' gradients", n_images * width, rows.len())?;
        record_gradients(&device, shape, order, &all, rows, width)
    })
}

pub(in crate::ops) fn unpack_weight(
    dst: Destination<'_>,
    sum: Source<'_>,
    shape: &ConvShape,
    order: WeightOrder,
    accumulate: bool,
) -> Result<()> {
    for_float!(dtype(dst.0), "unpack-weight", T => {
        let device = dst.0.device.clone();
        let (weight, sum) = (destination::<T>(dst)?, source::<T>(sum)?);
        unpack::check(shape, weight.len(), sum.len())?;
        let filters_first = u32::from(order == WeightOrder::FiltersFirst);
        launch!(
            T, &device, "unpack_weight", weight.len();
            shape.patch(), shape.group_filters(), filters_first, weight, sum, u32::from(accumulate)
        )
    })
}
