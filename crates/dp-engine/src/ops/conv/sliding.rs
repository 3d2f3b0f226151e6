//! Convolution without patches, for stride 1.
//!
//! With channels last, the part of a patch that lies in one image row is contiguous, and that of
//! the next position begins one pixel later. One row of the kernel at the positions of a row is
//! therefore a matrix over the image itself whose rows overlap, and a row of a convolution's output is
//! one matrix product per row of the kernel. The weight's gradient takes all positions at once: where
//! an image row ends, a few rows of the matrix run on into the next one, belong to no position and
//! meet zeros. Patches cost their own size in memory traffic, `kernel²` times the image; where they do
//! not fit in the cache this costs more than those few rows.

use candle_core::Result;

use super::{ConvShape, WeightOrder};
use crate::ops::element::Element;
use crate::ops::matmul::{Matrix, Stack, product, product_of_stack};
use crate::ops::transpose::transpose;
use crate::ops::workspace::Workspace;
use crate::vector_math::vectorise;

/// Values of an image's patches above which they are not formed: a quarter of a second-level cache
/// of 1 MiB.
const LARGE_PATCHES: usize = 1 << 16;

/// Whether this way is open and expected to be faster for the forward pass and the weight's
/// gradient.
pub(super) fn pays(shape: &ConvShape) -> bool {
    shape.stride == 1 && shape.groups == 1 && shape.kernel > 1 && shape.positions() * shape.patch() > LARGE_PATCHES
}

/// The same for the input's gradient: with few channels its products would be too narrow.
pub(super) fn pays_backward(shape: &ConvShape) -> bool {
    const FEW_CHANNELS: usize = 16;
    pays(shape) && shape.channels >= FEW_CHANNELS
}

/// Height and width of the padded image.
fn padded(shape: &ConvShape) -> (usize, usize) {
    (shape.height + 2 * shape.padding, shape.width + 2 * shape.padding)
}

/// Rows of the overlapping matrix up to the last position.
fn wide_positions(shape: &ConvShape) -> usize {
    (shape.out_height() - 1) * padded(shape).1 + shape.out_width()
}

/// `out = conv(images, weight) + bias`.
pub(super) fn forward<T: Element>(
    shape: &ConvShape,
    images: &[T],
    (weight, bias): (&[T], Option<&[T]>),
    out: &mut [T],
    workspace: &mut Workspace,
) -> Result<()> {
    let (filters, width, patch) = (shape.filters, shape.out_width(), shape.patch());
    let [by_patch, margin] = workspace.pieces([shape.weights(), padded_len(shape)]);
    transpose(weight, patch, filters, patch, by_patch);
    for (image, out) in images.chunks_exact(shape.inputs()).zip(out.chunks_exact_mut(shape.outputs())) {
        let image = with_margin(shape, image, margin);
        for ky in 0..shape.kernel {
            let (pixels, kernel_row) = kernel_row(shape, image, ky, width)?;
            let weight = &by_patch[kernel_row.start * filters..kernel_row.end * filters];
            let weight = Matrix::strided(weight, kernel_row.len(), filters, filters)?;
            let rows = Stack::new(pixels, shape.out_height(), padded(shape).1 * shape.channels)?;
            product_of_stack(out, filters, rows, weight, ky > 0)?;
        }
        if let Some(bias) = bias {
            add_to_rows(bias, out);
        }
    }
    Ok(())
}

/// `sum = Σ_i dᵀ patches` over the images, or added to it.
pub(super) fn weight_gradient<T: Element>(
    shape: &ConvShape,
    images: &[T],
    output_gradients: &[T],
    (sum, order): (&mut [T], WeightOrder),
    accumulate: bool,
    workspace: &mut Workspace,
) -> Result<()> {
    let (n_rows, filters, patch) = (wide_positions(shape), shape.filters, shape.patch());
    let [wide, margin] = workspace.pieces([padded(shape).1 * shape.out_height() * filters, padded_len(shape)]);
    wide.fill(T::ZERO);
    let row_len = shape.out_width() * filters;
    let pairs = images.chunks_exact(shape.inputs()).zip(output_gradients.chunks_exact(shape.outputs()));
    for (i, (image, gradient)) in pairs.enumerate() {
        let image = with_margin(shape, image, margin);
        for (wide, row) in wide.chunks_exact_mut(padded(shape).1 * filters).zip(gradient.chunks_exact(row_len)) {
            wide[..row_len].copy_from_slice(row);
        }
        let gradient = Matrix::strided(wide, n_rows, filters, filters)?;
        for ky in 0..shape.kernel {
            let (pixels, kernel_row) = kernel_row(shape, image, ky, n_rows)?;
            let keep = accumulate || i > 0;
            match order {
                WeightOrder::FiltersFirst => {
                    product(&mut sum[kernel_row.start..], patch, gradient.transposed(), pixels, keep)?;
                }
                WeightOrder::PatchFirst => {
                    product(&mut sum[kernel_row.start * filters..], filters, pixels.transposed(), gradient, keep)?;
                }
            }
        }
    }
    Ok(())
}

/// Gradient with respect to the images: the convolution of the output's gradient, in a margin of
/// zeros, with the kernel turned by 180°.
pub(super) fn input_gradient<T: Element>(
    shape: &ConvShape,
    output_gradients: &[T],
    weight: &[T],
    out: &mut [T],
    workspace: &mut Workspace,
) -> Result<()> {
    let &ConvShape { height, width, channels, filters, kernel, padding, .. } = shape;
    let (out_height, out_width) = (shape.out_height(), shape.out_width());
    let margin = kernel - 1;
    let wide_width = out_width + 2 * margin;
    let [turned, framed] = workspace.pieces([shape.weights(), wide_width * (out_height + 2 * margin) * filters]);
    turn(shape, weight, turned);
    framed.fill(T::ZERO);
    let row_len = out_width * filters;
    for (gradient, image) in output_gradients.chunks_exact(shape.outputs()).zip(out.chunks_exact_mut(shape.inputs())) {
        for (y, row) in gradient.chunks_exact(row_len).enumerate() {
            framed[((y + margin) * wide_width + margin) * filters..][..row_len].copy_from_slice(row);
        }
        for (ky, weight) in turned.chunks_exact(kernel * filters * channels).enumerate() {
            let start = ((ky + padding) * wide_width + padding) * filters;
            let pixels = Matrix::strided(&framed[start..], width, kernel * filters, filters)?;
            let rows = Stack::new(pixels, height, wide_width * filters)?;
            let weight = Matrix::strided(weight, kernel * filters, channels, channels)?;
            product_of_stack(image, channels, rows, weight, ky > 0)?;
        }
    }
    Ok(())
}

/// The weight `[filters, kernel, kernel, channels]` as `[kernel, kernel, filters, channels]`, its
/// kernel turned by 180°.
fn turn<T: Element>(shape: &ConvShape, weight: &[T], turned: &mut [T]) {
    let taps = shape.kernel * shape.kernel;
    for (tap, filters) in turned.chunks_exact_mut(shape.filters * shape.channels).enumerate() {
        for (filter, out) in filters.chunks_exact_mut(shape.channels).enumerate() {
            let start = filter * shape.patch() + (taps - 1 - tap) * shape.channels;
            out.copy_from_slice(&weight[start..start + shape.channels]);
        }
    }
}

/// Row `ky` of the kernel at the first `n_rows` positions, as overlapping rows over the image, and
/// which values of a patch it is.
fn kernel_row<'a, T: Element>(
    shape: &ConvShape,
    image: &'a [T],
    ky: usize,
    n_rows: usize,
) -> Result<(Matrix<'a, T>, std::ops::Range<usize>)> {
    let len = shape.kernel * shape.channels;
    let pixels = Matrix::strided(&image[ky * padded(shape).1 * shape.channels..], n_rows, len, shape.channels)?;
    Ok((pixels, ky * len..(ky + 1) * len))
}

/// Adds a row to every row.
fn add_to_rows<T: Element>(row: &[T], rows: &mut [T]) {
    vectorise(
        #[inline(always)]
        || {
            for out in rows.chunks_exact_mut(row.len()) {
                for (out, &value) in out.iter_mut().zip(row) {
                    *out += value;
                }
            }
        },
    );
}

fn padded_len(shape: &ConvShape) -> usize {
    if shape.padding == 0 { 0 } else { padded(shape).0 * padded(shape).1 * shape.channels }
}

/// The image with its margin of zeros.
fn with_margin<'a, T: Element>(shape: &ConvShape, image: &'a [T], margin: &'a mut [T]) -> &'a [T] {
    let &ConvShape { width, channels, padding, .. } = shape;
    if padding == 0 {
        return image;
    }
    margin.fill(T::ZERO);
    let wide = padded(shape).1 * channels;
    for (y, row) in image.chunks_exact(width * channels).enumerate() {
        margin[(y + padding) * wide + padding * channels..][..width * channels].copy_from_slice(row);
    }
    margin
}
