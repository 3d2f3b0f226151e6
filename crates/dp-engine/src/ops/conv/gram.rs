//! Norms of a convolution's per-sample gradients from Gram matrices.

use candle_core::{Result, Tensor};

use super::{ConvShape, check_images, patches};
use crate::ops::cancellation::guarded_sq_norm;
#[cfg(feature = "cuda")]
use crate::ops::cuda;
use crate::ops::double_dot::double_dot;
use crate::ops::element::{Element, destination, dtype, for_float, same, source};
use crate::ops::in_place::{Operands, ternary};
use crate::ops::workspace::Workspace;
use crate::vector_math::vectorise;

/// Adds the squared norm of every record's gradient to `dst`, `[batch]` in `f64`, and not less than
/// [`guarded_sq_norm`] says: with patches `x_t` and output gradients `d_t` at position
/// `t`, `‖Σ_t d_t x_tᵀ‖² = Σ_{t,u} ⟨x_t, x_u⟩ ⟨d_t, d_u⟩`. A bias is one more input, always 1.
///
/// The terms have both signs. Where they nearly cancel, a norm from `f32` products could be far too
/// small, and a record would be clipped too little: products and sums are in `f64`, in which a
/// product of two `f32` is exact.
///
/// The second workspace is for the matrices in `f64`.
pub(crate) fn conv_gram_sq_norms(
    dst: &Tensor,
    images: &Tensor,
    gradients: &Tensor,
    shape: &ConvShape,
    bias: bool,
    workspaces: (&mut Workspace, &mut Workspace),
) -> Result<()> {
    ternary("conv-gram-sq-norms", dst, images, gradients, |operands| {
        let (dst, [images, gradients]) = match operands {
            Operands::Cpu(dst, sources) => (dst, sources),
            #[cfg(feature = "cuda")]
            Operands::Cuda(dst, [images, gradients]) => {
                return cuda::conv_gram_sq_norms(dst, images, gradients, shape, bias, workspaces.0.expected);
            }
        };
        let dtype = dtype(images.0);
        let norms = destination::<f64>(dst)?;
        for_float!(dtype, "conv-gram-sq-norms", T => {
            let (images, gradients) = (source::<T>(images)?, source::<T>(gradients)?);
            check_images(shape, images.len(), gradients.len())?;
            same("norms of a batch", images.len() / shape.inputs(), norms.len())?;
            let (workspace, wide) = workspaces;
            let bias = f64::from(u8::from(bias));
            let pixels = shape.shares_pixels().then(|| pixels_of_taps(shape));
            let pairs = images.chunks_exact(shape.inputs()).zip(gradients.chunks_exact(shape.outputs()));
            for ((image, gradient), norm) in pairs.zip(norms) {
                for group in 0..shape.groups {
                    let gram = match &pixels {
                        Some(pixels) => patch_gram_of_pixels(shape, group, image, pixels, wide),
                        None => patch_gram(shape, group, image, workspace, wide),
                    };
                    *norm += sq_norm(shape, group, gram, gradient, bias);
                }
            }
            Ok(())
        })
    })
}

impl ConvShape {
    /// Whether products of pixels are fewer than products of patches, which have pixels in common.
    fn shares_pixels(&self) -> bool {
        self.height * self.width < self.kernel * self.positions()
    }
}

/// The squared norm from the products of all patches `t <= u`, at `t * positions + u`.
fn sq_norm<T: Element>(shape: &ConvShape, group: usize, patch_gram: &[f64], gradient: &[T], bias: f64) -> f64 {
    let (n, filters) = (shape.positions(), shape.group_filters());
    let row = |t: usize| &gradient[t * shape.filters + group * filters..][..filters];
    let (mut sum, mut terms, mut largest) = (0.0, 0.0, 0.0_f64);
    vectorise(
        #[inline(always)]
        || {
            for t in 0..n {
                let a = patch_gram[t * n + t];
                let square = (a + bias) * double_dot(row(t), row(t));
                sum += square;
                terms += square.sqrt();
                largest = largest.max(a);
                for u in t + 1..n {
                    sum += 2.0 * ((patch_gram[t * n + u] + bias) * double_dot(row(t), row(u)));
                }
            }
        },
    );
    guarded_sq_norm(sum, terms, largest.sqrt(), n, T::UNIT)
}

/// Products of all patches.
fn patch_gram<'a, T: Element>(
    shape: &ConvShape,
    group: usize,
    image: &[T],
    workspace: &mut Workspace,
    wide: &'a mut Workspace,
) -> &'a [f64] {
    let (n, patch) = (shape.positions(), shape.patch());
    let [rows] = workspace.pieces::<T, 1>([n * patch]);
    patches::gather(shape, group, image, rows);
    let [gram] = wide.pieces::<f64, 1>([n * n]);
    vectorise(
        #[inline(always)]
        || {
            for t in 0..n {
                for u in t..n {
                    gram[t * n + u] = double_dot(&rows[t * patch..][..patch], &rows[u * patch..][..patch]);
                }
            }
        },
    );
    gram
}

/// The same from the products of all pixels: that of two patches is the sum, over the taps of the
/// kernel, of the products of the pixels that a tap sees in either.
fn patch_gram_of_pixels<'a, T: Element>(
    shape: &ConvShape,
    group: usize,
    image: &[T],
    pixels: &[usize],
    wide: &'a mut Workspace,
) -> &'a [f64] {
    let (n, n_pixels, depth) = (shape.positions(), shape.height * shape.width, shape.depth());
    // The padding is a pixel, too, whose products are 0.
    let width = n_pixels + 1;
    let [gram, pixel_gram] = wide.pieces::<f64, 2>([n * n, width * width]);
    let channels = |pixel: usize| &image[pixel * shape.channels + group * depth..][..depth];
    gram.fill(0.0);
    pixel_gram.fill(0.0);
    vectorise(
        #[inline(always)]
        || {
            for i in 0..n_pixels {
                for j in i..n_pixels {
                    let product = double_dot(channels(i), channels(j));
                    pixel_gram[i * width + j] = product;
                    pixel_gram[j * width + i] = product;
                }
            }
        },
    );
    for of_tap in pixels.chunks_exact(n) {
        for (t, &pixel) in of_tap.iter().enumerate() {
            let products = &pixel_gram[pixel * width..][..width];
            for (sum, &other) in gram[t * n + t..(t + 1) * n].iter_mut().zip(&of_tap[t..]) {
                *sum += products[other];
            }
        }
    }
    gram
}

/// The pixel that each tap of the kernel sees at each position, `[taps, positions]`; that after the
/// last one is the padding.
fn pixels_of_taps(shape: &ConvShape) -> Vec<usize> {
    let &ConvShape { height, width, kernel, .. } = shape;
    let seen = |tap: usize, position: usize| {
        let row = shape.inside(position / shape.out_width(), tap / kernel, height);
        let column = shape.inside(position % shape.out_width(), tap % kernel, width);
        row.zip(column).map_or(height * width, |(row, column)| row * width + column)
    };
    (0..kernel * kernel).flat_map(|tap| (0..shape.positions()).map(move |position| seen(tap, position))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the stride, the padding, the groups and the number of channels.
    #[test]
    fn products_of_patches_follow_from_those_of_pixels() {
        for [height, width, kernel, stride, padding, groups, depth] in [
            [4, 4, 3, 1, 1, 1, 19],
            [1, 1, 1, 1, 0, 1, 40],
            [2, 2, 3, 1, 1, 2, 16],
            [5, 3, 2, 1, 0, 1, 7],
            [6, 5, 5, 2, 2, 3, 1],
            [3, 4, 3, 3, 1, 1, 33],
        ] {
            let (channels, filters) = (groups * depth, groups);
            let shape = ConvShape { height, width, channels, filters, kernel, stride, padding, groups };
            let image: Vec<f32> = (0..shape.inputs()).map(|i| ((i * 37) % 101) as f32 * 0.07 - 3.0).collect();
            let (mut workspace, mut wide, mut other) = Default::default();
            let pixels = pixels_of_taps(&shape);
            for group in 0..groups {
                let of_patches = patch_gram(&shape, group, &image, &mut workspace, &mut wide);
                let of_pixels = patch_gram_of_pixels(&shape, group, &image, &pixels, &mut other);
                let n = shape.positions();
                for (t, u) in (0..n).flat_map(|t| (t..n).map(move |u| (t, u))) {
                    let (a, b) = (of_patches[t * n + u], of_pixels[t * n + u]);
                    assert!((a - b).abs() < 1e-11 * (1.0 + a.abs()), "{shape:?}, {t} {u}: {a} {b}");
                }
            }
        }
    }
}
