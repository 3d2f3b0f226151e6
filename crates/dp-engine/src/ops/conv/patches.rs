//! Patches as the rows of a matrix ("im2row"), and back.

use candle_core::Result;

use super::ConvShape;
use crate::ops::element::Element;
use crate::ops::matmul::Matrix;
use crate::vector_math::vectorise;

/// The patches of one group as a matrix `[images · positions, patch]`, made in `memory`, which has
/// exactly its size.
///
/// With one channel, what is contiguous of a patch is as short as the kernel is wide, but what one
/// tap of the kernel sees along a row of the image is long: the matrix is then stored by columns.
pub(super) fn matrix<'a, T: Element>(
    shape: &ConvShape,
    group: usize,
    images: &[T],
    memory: &'a mut [T],
) -> Result<Matrix<'a, T>> {
    let patch = shape.patch();
    let n_rows = memory.len() / patch.max(1);
    if shape.channels == 1 && shape.stride == 1 {
        gather_columns(shape, images, memory, n_rows);
        return Ok(Matrix::strided(memory, patch, n_rows, n_rows)?.transposed());
    }
    gather(shape, group, images, memory);
    Ok(Matrix::strided(memory, n_rows, patch, patch)?)
}

/// The patches of images of one channel, at stride 1, by columns: `[kernel · kernel, images ·
/// positions]`.
fn gather_columns<T: Element>(shape: &ConvShape, images: &[T], columns: &mut [T], n_rows: usize) {
    let &ConvShape { height, width, kernel, padding, .. } = shape;
    let out_width = shape.out_width();
    for (tap, column) in columns.chunks_exact_mut(n_rows.max(1)).enumerate() {
        let (ky, kx) = (tap / kernel, tap % kernel);
        // The positions along a row for which this tap is inside of the image, and its pixel at the
        // first of them.
        let first = padding.saturating_sub(kx).min(out_width);
        let end = (width + padding).saturating_sub(kx).clamp(first, out_width);
        let pixel = (first + kx).saturating_sub(padding);
        for (image, column) in images.chunks_exact(height * width).zip(column.chunks_exact_mut(shape.positions())) {
            for (y, row) in column.chunks_exact_mut(out_width).enumerate() {
                let Some(image_row) = shape.inside(y, ky, height) else {
                    row.fill(T::ZERO);
                    continue;
                };
                row[..first].fill(T::ZERO);
                if first < end {
                    row[first..end].copy_from_slice(&image[image_row * width + pixel..][..end - first]);
                }
                row[end..].fill(T::ZERO);
            }
        }
    }
}

/// Copies the patches of one group into rows, `[positions, patch]` per image; outside of the image
/// there are zeros.
pub(super) fn gather<T: Element>(shape: &ConvShape, group: usize, images: &[T], rows: &mut [T]) {
    vectorise(
        #[inline(always)]
        || {
            let per_image = rows.chunks_exact_mut((shape.positions() * shape.patch()).max(1));
            for (image, rows) in images.chunks_exact(shape.inputs().max(1)).zip(per_image) {
                for_each_run(shape, group, |run| match run {
                    Run::Inside { row, pixel, len } => rows[row..row + len].copy_from_slice(&image[pixel..pixel + len]),
                    Run::Outside { row, len } => rows[row..row + len].fill(T::ZERO),
                });
            }
        },
    );
}

/// Adds the rows of one group back to the pixels that their patches were made of.
pub(super) fn scatter<T: Element>(shape: &ConvShape, group: usize, rows: &[T], images: &mut [T]) {
    vectorise(
        #[inline(always)]
        || {
            let per_image = rows.chunks_exact((shape.positions() * shape.patch()).max(1));
            for (image, rows) in images.chunks_exact_mut(shape.inputs().max(1)).zip(per_image) {
                for_each_run(shape, group, |run| {
                    if let Run::Inside { row, pixel, len } = run {
                        for (pixel, &value) in image[pixel..pixel + len].iter_mut().zip(&rows[row..row + len]) {
                            *pixel += value;
                        }
                    }
                });
            }
        },
    );
}

/// Adjacent values of a patch that are adjacent in the image too, or all outside of it.
enum Run {
    Inside { row: usize, pixel: usize, len: usize },
    Outside { row: usize, len: usize },
}

#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn for_each_run(shape: &ConvShape, group: usize, mut visit: impl FnMut(Run)) {
    let &ConvShape { height, width, channels, kernel, stride, padding, groups, .. } = shape;
    let per_group = channels / groups;
    let kernel_row = kernel * per_group;
    let mut row = 0;
    for y in 0..shape.out_height() {
        for x in 0..shape.out_width() {
            // Pixels left and right of the image, and the first one inside.
            let left = padding.saturating_sub(x * stride).min(kernel);
            let first = (x * stride + left).saturating_sub(padding);
            let inside = (kernel - left).min(width.saturating_sub(first));
            let right = kernel - left - inside;
            for ky in 0..kernel {
                let Some(image_row) = shape.inside(y, ky, height).filter(|_| inside > 0) else {
                    visit(Run::Outside { row, len: kernel_row });
                    row += kernel_row;
                    continue;
                };
                if left > 0 {
                    visit(Run::Outside { row, len: left * per_group });
                    row += left * per_group;
                }
                let pixel = (image_row * width + first) * channels + group * per_group;
                if groups == 1 {
                    visit(Run::Inside { row, pixel, len: inside * channels });
                    row += inside * channels;
                } else {
                    for kx in 0..inside {
                        visit(Run::Inside { row, pixel: pixel + kx * channels, len: per_group });
                        row += per_group;
                    }
                }
                if right > 0 {
                    visit(Run::Outside { row, len: right * per_group });
                    row += right * per_group;
                }
            }
        }
    }
}
