//! Convolution: patches as rows of a matrix, and products with them, as many images at a time as
//! the working memory holds.

use candle_core::cuda::WrapErr;
use candle_core::cuda::cudarc::driver::{CudaSlice, CudaView, CudaViewMut, DeviceRepr};
use candle_core::{CudaDevice, Result, Tensor};

use super::divisor::{Divisor, size};
use super::fixed::{self, padded_products};
use super::launch::{by_value, launch};
use super::product::{Matrices, Products, Purpose};
use super::run;
use super::sequence::write_position_sums;
use super::view::{Destination, Real, Source, destination, dtype, on_device, scratch, source};
use crate::ops::conv::{ConvShape, WeightOrder, check_images, unpack};
use crate::ops::element::{for_float, same};

/// Working memory for patches, and for the gradients of records that are formed together.
pub(super) const WORK_BYTES: usize = 128 << 20;
/// Results of a product that occupy a device, and those that a product has in any case: a smaller one
/// takes as long.
const RESULTS: usize = 1 << 21;
const FEWEST_RESULTS: usize = 1 << 18;
/// Rows of a product with [`RESULTS`], and of one for a large batch.
const FEWEST_ROWS: usize = 1 << 12;
const MOST_ROWS: usize = 1 << 16;
const ROWS_OF_LARGE_BATCH: usize = 1 << 18;
/// Parts that a batch is worked off in, about: the last is filled up with zeros.
const PARTS: usize = 4;

/// The kernels' `ConvShape`: one group, with channels counted in units of adjacent values.
#[repr(C)]
#[derive(Clone, Copy)]
struct DeviceShape {
    height: u32,
    width: u32,
    pixel: u32,
    first: u32,
    padding: u32,
    patch: u32,
    row: u32,
    channels: Divisor,
    kernel: Divisor,
    stride: Divisor,
    out_height: Divisor,
    out_width: Divisor,
    image_height: Divisor,
    image_width: Divisor,
}

#[expect(unsafe_code, reason = "says that a structure may be passed to a kernel")]
// SAFETY: plain numbers in the kernels' order and layout.
unsafe impl DeviceRepr for DeviceShape {}
by_value!(DeviceShape);

impl DeviceShape {
    /// The shape of a group whose patches are the beginnings of rows of `row` values.
    fn new(shape: &ConvShape, group: usize, row: usize, unit: usize) -> Result<Self> {
        Ok(Self {
            height: size(shape.height)?,
            width: size(shape.width)?,
            pixel: size(shape.channels / unit)?,
            first: size(group * shape.depth() / unit)?,
            padding: size(shape.padding)?,
            patch: size(shape.patch() / unit)?,
            row: size(row / unit)?,
            channels: Divisor::new(shape.depth() / unit)?,
            kernel: Divisor::new(shape.kernel)?,
            stride: Divisor::new(shape.stride)?,
            out_height: Divisor::new(shape.out_height())?,
            out_width: Divisor::new(shape.out_width())?,
            image_height: Divisor::new(shape.height)?,
            image_width: Divisor::new(shape.width)?,
        })
    }
}

/// Rows with a bias have a multiple of this length, so that they are aligned for cuBLAS and for
/// runs.
const ALIGNED: usize = 4;

/// Records in a part of a batch of `expected` records: a power of two.
pub(super) fn part_of_batch(expected: usize) -> usize {
    expected.div_ceil(PARTS).next_power_of_two()
}

/// Images whose patches are multiplied at once: a function of the shape and of the expected size of a
/// batch, which is public.
fn images_at_once<T>(shape: &ConvShape, expected: Option<usize>) -> usize {
    let (filters, positions) = (shape.group_filters().max(1), shape.positions().max(1));
    let images = |n_rows: usize| n_rows.div_ceil(positions).next_power_of_two();
    let enough = images((RESULTS / filters).clamp(FEWEST_ROWS, MOST_ROWS));
    let fewest = images(FEWEST_RESULTS / filters).min(enough);
    let most = images(ROWS_OF_LARGE_BATCH).max(enough);
    let images = expected.map_or(enough, |expected| part_of_batch(expected).clamp(fewest, most));
    images.min(fixed::at_once(WORK_BYTES / size_of::<T>(), positions * shape.patch()))
}

/// Records whose gradients, of `width` values each, are formed at once: as [`images_at_once`], and
/// more where these are few results.
fn records_at_once<T>(shape: &ConvShape, width: usize, expected: Option<usize>) -> usize {
    let enough = RESULTS.div_ceil(width.max(1)).next_power_of_two();
    let records = expected.map_or(1, |expected| part_of_batch(expected).min(enough));
    let fits = |values| fixed::at_once(WORK_BYTES / size_of::<T>(), values);
    let records = records.max(images_at_once::<T>(shape, expected));
    records.min(fits(width)).min(fits(shape.positions() * shape.patch()))
}

/// The ranges of images that are worked on one after the other.
pub(super) fn chunks(n_images: usize, at_once: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..n_images).step_by(at_once).map(move |start| start..(start + at_once).min(n_images))
}

/// The patches of one group of some images, at the beginning of rows of `row` values, and rows of
/// zeros behind them.
pub(super) fn gather_patches<T: Real>(
    device: &CudaDevice,
    shape: &ConvShape,
    group: usize,
    images: CudaView<'_, T>,
    rows: &mut CudaSlice<T>,
    row: usize,
) -> Result<()> {
    let n_rows = images.len() / shape.inputs() * shape.positions();
    if n_rows * row < rows.len() {
        device.cuda_stream().memset_zeros(&mut rows.slice_mut(n_rows * row..)).w()?;
    }
    let unit = run::unit(device, shape.depth(), &[&images]);
    let (n_units, shape) = (n_rows * shape.patch() / unit, DeviceShape::new(shape, group, row, unit)?);
    size(n_units)?;
    let rows = rows.slice_mut(..n_rows * row);
    if unit > 1 {
        launch!(T, device, "gather_patches_in_runs", n_units; shape, images, rows)
    } else {
        launch!(T, device, "gather_patches", n_units; shape, images, rows)
    }
}

/// The reverse: every value of a group in the images is the sum of its places in the patches.
fn scatter_patches<T: Real>(
    device: &CudaDevice,
    shape: &ConvShape,
    group: usize,
    rows: CudaView<'_, T>,
    images: CudaViewMut<'_, T>,
) -> Result<()> {
    let unit = run::unit(device, shape.depth(), &[&images.as_view()]);
    let n_units = images.len() / shape.groups / unit;
    size(n_units)?;
    let shape = DeviceShape::new(shape, group, shape.patch(), unit)?;
    if unit > 1 {
        launch!(T, device, "scatter_patches_in_runs", n_units; shape, rows, images)
    } else {
        launch!(T, device, "scatter_patches", n_units; shape, rows, images)
    }
}

/// A convolution's images and the values at its output, image by image.
pub(super) struct Pair<'a, T> {
    pub(super) images: CudaView<'a, T>,
    pub(super) outputs: CudaView<'a, T>,
}

impl<T> Pair<'_, T> {
    pub(super) fn range(&self, shape: &ConvShape, range: &std::ops::Range<usize>) -> Pair<'_, T> {
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
    expected: Option<usize>,
) -> Result<()> {
    for_float!(dtype(dst.0), "conv-forward", T => {
        let device = dst.0.device.clone();
        let mut out = destination::<T>(dst)?;
        let (images, weight) = (source::<T>(images)?, source::<T>(weight)?);
        same("values of a convolution's weight", shape.weights(), weight.len())?;
        check_images(shape, images.len(), out.len())?;
        let (patch, filters, positions) = (shape.patch(), shape.group_filters(), shape.positions());
        let n_images = images.len() / shape.inputs();
        let at_once = images_at_once::<T>(shape, expected);
        let n_rows = at_once * positions;
        // A bias is one more weight, of an input that is always 1.
        let row = if bias.is_some() { (patch + 1).next_multiple_of(ALIGNED) } else { patch };
        let mut rows = scratch::<T>(&device, n_rows * row)?;
        let with_bias = match bias {
            Some(bias) => {
                let (bias, bias_l) = bias.storage_and_layout();
                let bias = source::<T>((on_device(&bias)?, bias_l))?;
                Some(append_bias(&device, shape, &weight, &bias, &mut rows, row)?)
            }
            None => None,
        };
        let weight = with_bias.as_ref().map_or(weight, CudaSlice::as_view);
        for range in chunks(n_images, at_once) {
            let images = images.slice(range.start * shape.inputs()..range.end * shape.inputs());
            for group in 0..shape.groups {
                gather_patches(&device, shape, group, images.slice(..), &mut rows, row)?;
                let values = out.slice_mut(range.start * shape.outputs() + group * filters..range.end * shape.outputs());
                let to = Products { values, row_stride: shape.filters, record_stride: 0 };
                let weight = weight.slice(group * filters * row..(group + 1) * filters * row);
                let weight = Matrices::one(weight, filters, row).transposed();
                let rows = Matrices::one(rows.as_view(), n_rows, row);
                padded_products(&device, Purpose::Pass, 1, to, &rows, &weight, false)?;
            }
        }
        Ok(())
    })
}

/// The weights with each filter's bias behind its own, and rows that end accordingly: in an input of
/// 1, and zeros.
fn append_bias<T: Real>(
    device: &CudaDevice,
    shape: &ConvShape,
    weight: &CudaView<'_, T>,
    bias: &CudaView<'_, T>,
    rows: &mut CudaSlice<T>,
    row: usize,
) -> Result<CudaSlice<T>> {
    same("values of a convolution's bias", shape.filters, bias.len())?;
    let (patch, columns) = (shape.patch(), row - shape.patch());
    let n = rows.len() / row * columns;
    size(n)?;
    launch!(T, device, "append_one", n; Divisor::new(columns)?, row, patch, rows.as_view_mut())?;
    let mut with_bias = scratch::<T>(device, shape.filters * row)?;
    let n = with_bias.len();
    size(n)?;
    launch!(
        T, device, "append_bias", n;
        Divisor::new(row)?, patch, weight.slice(..), bias.slice(..), with_bias.as_view_mut()
    )?;
    Ok(with_bias)
}

pub(in crate::ops) fn conv_input_gradient(
    dst: Destination<'_>,
    gradients: Source<'_>,
    weight: Source<'_>,
    shape: &ConvShape,
    expected: Option<usize>,
) -> Result<()> {
    for_float!(dtype(dst.0), "conv-input-gradient", T => {
        let device = dst.0.device.clone();
        let mut out = destination::<T>(dst)?;
        let (gradients, weight) = (source::<T>(gradients)?, source::<T>(weight)?);
        same("values of a convolution's weight", shape.weights(), weight.len())?;
        check_images(shape, out.len(), gradients.len())?;
        let (patch, filters, positions) = (shape.patch(), shape.group_filters(), shape.positions());
        let n_images = out.len() / shape.inputs();
        let at_once = images_at_once::<T>(shape, expected);
        let n_rows = at_once * positions;
        let mut rows = scratch::<T>(&device, n_rows * patch)?;
        for range in chunks(n_images, at_once) {
            let mut images = out.slice_mut(range.start * shape.inputs()..range.end * shape.inputs());
            for group in 0..shape.groups {
                let block = range.start * shape.outputs() + group * filters..range.end * shape.outputs();
                let gradients = Matrices::strided(gradients.slice(block), n_rows, filters, shape.filters);
                let weight = weight.slice(group * filters * patch..(group + 1) * filters * patch);
                let to = Products { values: rows.as_view_mut(), row_stride: patch, record_stride: 0 };
                padded_products(&device, Purpose::Pass, 1, to, &gradients, &Matrices::one(weight, filters, patch), false)?;
                scatter_patches(&device, shape, group, rows.as_view(), images.slice_mut(..))?;
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
        same("values of a convolution's weight", shape.weights(), sum.len())?;
        check_images(shape, all.images.len(), all.outputs.len())?;
        let (patch, filters, positions) = (shape.patch(), shape.group_filters(), shape.positions());
        let n_images = all.images.len() / shape.inputs();
        let at_once = images_at_once::<T>(shape, None);
        let mut rows = scratch::<T>(&device, at_once * positions * patch)?;
        for range in chunks(n_images, at_once) {
            let part = all.range(shape, &range);
            let n_rows = range.len() * positions;
            for group in 0..shape.groups {
                gather_patches(&device, shape, group, part.images.slice(..), &mut rows, patch)?;
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
) -> Result<()> {
    match order {
        WeightOrder::FiltersFirst => {
            let to = Products { values, row_stride: rows.columns, record_stride };
            padded_products(device, Purpose::Gradient, n_records, to, &gradients.transposed(), &rows, accumulate)
        }
        WeightOrder::PatchFirst => {
            let to = Products { values, row_stride: gradients.columns, record_stride };
            padded_products(device, Purpose::Gradient, n_records, to, &rows.transposed(), &gradients, accumulate)
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
    (width, expected): (usize, Option<usize>),
) -> Result<()> {
    let (patch, filters, positions) = (shape.patch(), shape.group_filters(), shape.positions());
    let n_images = all.images.len() / shape.inputs();
    let at_once = records_at_once::<T>(shape, width, expected);
    let mut rows = scratch::<T>(device, at_once * positions * patch)?;
    for range in chunks(n_images, at_once) {
        let part = all.range(shape, &range);
        for group in 0..shape.groups {
            gather_patches(device, shape, group, part.images.slice(..), &mut rows, patch)?;
            let rows = Matrices::one(rows.as_view(), positions, patch).per_record(positions * patch);
            let gradients = part.outputs.slice(group * filters..);
            let gradients = Matrices::strided(gradients, positions, filters, shape.filters).per_record(shape.outputs());
            let values = to.slice_mut(range.start * width + group * filters * patch..range.end * width);
            weight_products(device, at_once, (values, width), order, gradients, rows, false)?;
        }
    }
    if width > shape.weights() {
        same("values of a bias", shape.filters, width - shape.weights())?;
        let bias = to.slice_mut(shape.weights().min(to.len())..);
        write_position_sums(device, all.outputs.slice(..), (positions, shape.filters), bias, width)?;
    }
    Ok(())
}

pub(in crate::ops) fn conv_gradients(
    dst: Destination<'_>,
    images: Source<'_>,
    gradients: Source<'_>,
    shape: &ConvShape,
    order: WeightOrder,
    expected: Option<usize>,
) -> Result<()> {
    for_float!(dtype(dst.0), "conv-gradients", T => {
        let device = dst.0.device.clone();
        let rows = destination::<T>(dst)?;
        let all = Pair { images: source::<T>(images)?, outputs: source::<T>(gradients)? };
        check_images(shape, all.images.len(), all.outputs.len())?;
        let n_images = all.images.len() / shape.inputs();
        let width = rows.len() / n_images.max(1);
        same("values of all records' gradients", n_images * width, rows.len())?;
        record_gradients(&device, shape, order, &all, rows, (width, expected))
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
