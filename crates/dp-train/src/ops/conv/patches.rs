//! Patches as the rows of a matrix ("im2row"), and back.

use super::ConvShape;
use crate::ops::element::Element;
use crate::vector_math::vectorise;

/// Copies the patches of one group into rows, `[positions, patch]` per image; outside of the image there are zeros.
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
