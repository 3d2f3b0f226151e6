//! Pooling of images with channels last.

use std::ops::Range;

use candle_core::{CpuStorage, InplaceOp2, InplaceOp3, Layout, Result, WithDType};

use super::element::{Element, destination, dtype, for_float, same, source};
use super::on_cuda::on_cuda;
use crate::vector_math::vectorise;

/// Sizes of a pooling over windows, which may overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolShape {
    /// Rows of an input image.
    pub(crate) height: usize,
    /// Pixels in a row of an input image.
    pub(crate) width: usize,
    /// Channels.
    pub(crate) channels: usize,
    /// Height and width of a window, at most those of the padded image.
    pub(crate) kernel: [usize; 2],
    /// Pixels from one window to the next, in both directions; at least 1.
    pub(crate) stride: usize,
    /// Pixels outside of the image on every side, at most half of the window.
    pub(crate) padding: usize,
}

impl PoolShape {
    /// Rows of an output image.
    pub(crate) fn out_height(&self) -> usize {
        (self.height + 2 * self.padding - self.kernel[0]) / self.stride + 1
    }

    /// Pixels in a row of an output image.
    pub(crate) fn out_width(&self) -> usize {
        (self.width + 2 * self.padding - self.kernel[1]) / self.stride + 1
    }

    /// Values of an input image.
    pub(crate) fn inputs(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Values of an output image.
    pub(crate) fn outputs(&self) -> usize {
        self.out_height() * self.out_width() * self.channels
    }

    /// The pixels of the window of output pixel `(y, x)` that are inside of the image: rows and columns.
    fn window(&self, y: usize, x: usize) -> (Range<usize>, Range<usize>) {
        let range = |position: usize, kernel: usize, size: usize| {
            let end = (position * self.stride + kernel).saturating_sub(self.padding).min(size);
            (position * self.stride).saturating_sub(self.padding)..end
        };
        (range(y, self.kernel[0], self.height), range(x, self.kernel[1], self.width))
    }

    /// An error unless so many input and output values are those of the same number of images.
    pub(super) fn check(&self, inputs: usize, outputs: usize) -> Result<()> {
        let n_images = inputs / self.inputs().max(1);
        same("values of a pooling's input images", n_images * self.inputs(), inputs)?;
        same("values of a pooling's output images", n_images * self.outputs(), outputs)
    }
}

/// Channels that are compared side by side.
const LANES: usize = 16;

/// The largest value of each window. A window with NaN gives NaN.
pub(crate) struct MaxPool<'a>(pub(crate) &'a PoolShape);

impl InplaceOp2 for MaxPool<'_> {
    fn name(&self) -> &'static str {
        "max-pool"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, src: &CpuStorage, src_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "max-pool", T => {
            let out = destination::<T>(dst, dst_l)?;
            let images = source::<T>((src, src_l))?;
            self.0.check(images.len(), out.len())?;
            vectorise(#[inline(always)] || max_pool(self.0, images, out));
            Ok(())
        })
    }

    on_cuda!(|self, dst, src| cuda::max_pool(self, dst, src));
}

#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn max_pool<T: Element>(shape: &PoolShape, images: &[T], out: &mut [T]) {
    for (image, out) in images.chunks_exact(shape.inputs()).zip(out.chunks_exact_mut(shape.outputs())) {
        for (i, out) in out.chunks_exact_mut(shape.channels).enumerate() {
            let window = shape.window(i / shape.out_width(), i % shape.out_width());
            let (blocks, rest) = out.as_chunks_mut::<LANES>();
            for (block, out) in blocks.iter_mut().enumerate() {
                *out = largest(shape, image, &window, block * LANES);
            }
            let n = LANES * blocks.len();
            for (channel, out) in rest.iter_mut().enumerate() {
                [*out] = largest(shape, image, &window, n + channel);
            }
        }
    }
}

/// The largest values of a window, of `N` channels from `channel` on.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn largest<T: Element, const N: usize>(
    shape: &PoolShape,
    image: &[T],
    (rows, columns): &(Range<usize>, Range<usize>),
    channel: usize,
) -> [T; N] {
    let mut largest = lanes(shape, image, rows.start, columns.start, channel);
    for row in rows.clone() {
        for column in columns.clone() {
            let pixel: [T; N] = lanes(shape, image, row, column, channel);
            for (largest, value) in largest.iter_mut().zip(pixel) {
                *largest = larger(*largest, value);
            }
        }
    }
    largest
}

/// `N` channels of a pixel.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn lanes<T: Element, const N: usize>(
    shape: &PoolShape,
    image: &[T],
    row: usize,
    column: usize,
    channel: usize,
) -> [T; N] {
    let start = (row * shape.width + column) * shape.channels + channel;
    // Pixels of a window lie inside of the image.
    image[start..].first_chunk().copied().unwrap_or([T::ZERO; N])
}

/// The larger of two values, NaN if one is.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
#[inline(always)]
fn larger<T: Element>(a: T, b: T) -> T {
    if b > a || b != b { b } else { a }
}

/// Gradient of [`MaxPool`] with respect to the images (destination), from that of the output and the images. It goes to the
/// window's first largest pixel, as in PyTorch; finding it again is cheaper than having kept its place.
pub(crate) struct MaxPoolBackward<'a>(pub(crate) &'a PoolShape);

impl InplaceOp3 for MaxPoolBackward<'_> {
    fn name(&self) -> &'static str {
        "max-pool-backward"
    }

    fn cpu_fwd(
        &self,
        dst: &mut CpuStorage,
        dst_l: &Layout,
        gradients: &CpuStorage,
        gradients_l: &Layout,
        images: &CpuStorage,
        images_l: &Layout,
    ) -> Result<()> {
        let (gradients, images) = ((gradients, gradients_l), (images, images_l));
        for_float!(dtype(dst), "max-pool-backward", T => {
            let out = destination::<T>(dst, dst_l)?;
            let (gradients, images) = (source::<T>(gradients)?, source::<T>(images)?);
            self.0.check(images.len(), gradients.len())?;
            same("values of a pooling's input gradient", images.len(), out.len())?;
            vectorise(#[inline(always)] || max_pool_backward(self.0, gradients, images, out));
            Ok(())
        })
    }

    on_cuda!(|self, dst, gradients, images| cuda::max_pool_backward(self, dst, gradients, images));
}

#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn max_pool_backward<T: Element>(shape: &PoolShape, gradients: &[T], images: &[T], out: &mut [T]) {
    let images = images.chunks_exact(shape.inputs()).zip(out.chunks_exact_mut(shape.inputs()));
    for ((image, out), gradients) in images.zip(gradients.chunks_exact(shape.outputs())) {
        // One image at a time, so that it is still in the cache when something is added.
        out.fill(T::ZERO);
        for (i, gradient) in gradients.chunks_exact(shape.channels).enumerate() {
            let window = shape.window(i / shape.out_width(), i % shape.out_width());
            let (blocks, rest) = gradient.as_chunks::<LANES>();
            for (block, gradient) in blocks.iter().enumerate() {
                hand_back(shape, image, &window, block * LANES, *gradient, out);
            }
            let n = LANES * blocks.len();
            for (channel, &gradient) in rest.iter().enumerate() {
                hand_back(shape, image, &window, n + channel, [gradient], out);
            }
        }
    }
}

/// Adds each of `N` channels' gradient to the first pixel of the window that is the largest.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
#[inline(always)]
fn hand_back<T: Element, const N: usize>(
    shape: &PoolShape,
    image: &[T],
    window: &(Range<usize>, Range<usize>),
    channel: usize,
    gradient: [T; N],
    out: &mut [T],
) {
    let largest: [T; N] = largest(shape, image, window, channel);
    let mut left = gradient;
    for row in window.0.clone() {
        for column in window.1.clone() {
            let values: [T; N] = lanes(shape, image, row, column, channel);
            let start = (row * shape.width + column) * shape.channels + channel;
            let Some(sums) = out[start..].first_chunk_mut::<N>() else { continue };
            // Through a copy: written in place, the loop would be compiled to gathers and scatters.
            let mut totals = *sums;
            for lane in 0..N {
                // Where the largest is NaN, its pixel gets the gradient.
                let here = values[lane] == largest[lane] || values[lane] != values[lane];
                let share = if here { left[lane] } else { T::ZERO };
                totals[lane] += share;
                left[lane] = if here { T::ZERO } else { left[lane] };
            }
            *sums = totals;
        }
    }
}

/// The mean of each window; pixels outside of the image count as zeros, as PyTorch counts them by default.
pub(crate) struct AveragePool<'a>(pub(crate) &'a PoolShape);

impl InplaceOp2 for AveragePool<'_> {
    fn name(&self) -> &'static str {
        "average-pool"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, src: &CpuStorage, src_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "average-pool", T => {
            let out = destination::<T>(dst, dst_l)?;
            let images = source::<T>((src, src_l))?;
            self.0.check(images.len(), out.len())?;
            let share = T::from_f64(1.0 / self.0.kernel.iter().product::<usize>() as f64);
            let channels = self.0.channels;
            vectorise(#[inline(always)] || {
                let images = images.chunks_exact(self.0.inputs()).zip(out.chunks_exact_mut(self.0.outputs()));
                for (image, out) in images {
                    out.fill(T::ZERO);
                    for (i, out) in out.chunks_exact_mut(channels).enumerate() {
                        let (rows, columns) = self.0.window(i / self.0.out_width(), i % self.0.out_width());
                        for row in rows {
                            for column in columns.clone() {
                                let pixel = &image[(row * self.0.width + column) * channels..][..channels];
                                for (out, &value) in out.iter_mut().zip(pixel) {
                                    *out += value;
                                }
                            }
                        }
                        for out in out {
                            *out *= share;
                        }
                    }
                }
            });
            Ok(())
        })
    }

    on_cuda!(|self, dst, src| cuda::average_pool(self, dst, src));
}

/// Gradient of [`AveragePool`] with respect to the images (destination), from that of the output.
pub(crate) struct AveragePoolBackward<'a>(pub(crate) &'a PoolShape);

impl InplaceOp2 for AveragePoolBackward<'_> {
    fn name(&self) -> &'static str {
        "average-pool-backward"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, src: &CpuStorage, src_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "average-pool-backward", T => {
            let out = destination::<T>(dst, dst_l)?;
            let gradients = source::<T>((src, src_l))?;
            self.0.check(out.len(), gradients.len())?;
            let share = T::from_f64(1.0 / self.0.kernel.iter().product::<usize>() as f64);
            let channels = self.0.channels;
            vectorise(#[inline(always)] || {
                let images = out.chunks_exact_mut(self.0.inputs()).zip(gradients.chunks_exact(self.0.outputs()));
                for (out, gradients) in images {
                    out.fill(T::ZERO);
                    for (i, gradient) in gradients.chunks_exact(channels).enumerate() {
                        let (rows, columns) = self.0.window(i / self.0.out_width(), i % self.0.out_width());
                        for row in rows {
                            for column in columns.clone() {
                                let pixel = &mut out[(row * self.0.width + column) * channels..][..channels];
                                for (out, &value) in pixel.iter_mut().zip(gradient) {
                                    *out += share * value;
                                }
                            }
                        }
                    }
                }
            });
            Ok(())
        })
    }

    on_cuda!(|self, dst, src| cuda::average_pool_backward(self, dst, src));
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    /// A row of four pixels, windows of 3 at stride 1: `[1, 5, 2]` and `[5, 2, 5]`. Of the two 5 of the second window the first
    /// gets the gradient. NaN wins and gets the gradient, so that it is not hidden.
    #[test]
    fn the_first_of_the_largest_gets_the_gradient() {
        let shape = PoolShape { height: 1, width: 4, channels: 1, kernel: [1, 3], stride: 1, padding: 0 };
        let gradients = Tensor::new(&[[10.0_f32, 100.0]], &Device::Cpu).unwrap();
        let pool = |images: [f32; 4]| {
            let images = Tensor::new(&[images], &Device::Cpu).unwrap();
            let (out, back) = (gradients.zeros_like().unwrap(), images.zeros_like().unwrap());
            out.inplace_op2(&images, &MaxPool(&shape)).unwrap();
            back.inplace_op3(&gradients, &images, &MaxPoolBackward(&shape)).unwrap();
            (out.to_vec2::<f32>().unwrap().remove(0), back.to_vec2::<f32>().unwrap().remove(0))
        };
        assert_eq!(pool([1.0, 5.0, 2.0, 5.0]), (vec![5.0, 5.0], vec![0.0, 110.0, 0.0, 0.0]));
        assert_eq!(pool([1.0, 2.0, 3.0, f32::INFINITY]), (vec![3.0, f32::INFINITY], vec![0.0, 0.0, 10.0, 100.0]));
        let (out, back) = pool([1.0, 2.0, f32::NAN, 3.0]);
        assert!(out.iter().all(|v| v.is_nan()));
        assert_eq!(back, [0.0, 0.0, 110.0, 0.0]);
    }
}
