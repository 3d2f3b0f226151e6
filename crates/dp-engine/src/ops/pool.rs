//! Pooling of images with channels last.

use std::ops::Range;

use candle_core::{Device, Error, Result, Tensor};

#[cfg(feature = "cuda")]
use super::cuda::{self, DeviceWinners};
use super::element::{Element, destination, dtype, for_float, same, source};
use super::in_place::{Operands, binary};
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
    /// Height and width of a window, at most the padded image's.
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

    /// The pixels of the window of output pixel `(y, x)` that are inside of the image: rows and
    /// columns.
    fn window(&self, y: usize, x: usize) -> (Range<usize>, Range<usize>) {
        let range = |position: usize, kernel: usize, size: usize| {
            let end = (position * self.stride + kernel).saturating_sub(self.padding).min(size);
            (position * self.stride).saturating_sub(self.padding)..end
        };
        (range(y, self.kernel[0], self.height), range(x, self.kernel[1], self.width))
    }

    /// Rows of windows that row `row` of the image is in.
    fn window_rows_over(&self, row: usize) -> Range<usize> {
        self.windows_over(row, self.kernel[0], self.out_height())
    }

    /// Columns of windows that column `column` of the image is in.
    fn window_columns_over(&self, column: usize) -> Range<usize> {
        self.windows_over(column, self.kernel[1], self.out_width())
    }

    /// Which of `n_windows` windows along an axis, each of `kernel` pixels, a pixel is in.
    fn windows_over(&self, position: usize, kernel: usize, n_windows: usize) -> Range<usize> {
        let padded = position + self.padding;
        let end = (padded / self.stride + 1).min(n_windows);
        (padded + 1).saturating_sub(kernel).div_ceil(self.stride)..end
    }

    /// Returns an error if inputs and outputs hold different numbers of images.
    pub(super) fn check(&self, inputs: usize, outputs: usize) -> Result<()> {
        let n_images = inputs / self.inputs().max(1);
        same("values of a pooling's input images", n_images * self.inputs(), inputs)?;
        same("values of a pooling's output images", n_images * self.outputs(), outputs)
    }
}

/// The pixel of its image that each value of a batch's pooled output came from. The backward pass
/// needs nothing else of the images.
#[derive(Default)]
pub(crate) struct Winners {
    pixels: Vec<u32>,
    #[cfg(feature = "cuda")]
    on_device: Option<DeviceWinners>,
}

impl Winners {
    /// Makes room for the pixels of `n` values. Earlier ones are lost.
    #[cfg_attr(
        not(feature = "cuda"),
        expect(clippy::unnecessary_wraps, unused_variables, reason = "there is no device")
    )]
    pub(crate) fn make_room(&mut self, n: usize, device: &Device) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let Device::Cuda(device) = device {
            if self.on_device.as_ref().is_none_or(|winners| winners.len() < n) {
                // A little more than asked for, as batches vary in size.
                self.on_device = Some(DeviceWinners::new(device, n + n / 4)?);
            }
            return Ok(());
        }
        self.pixels.resize(n, 0);
        Ok(())
    }
}

fn no_winners() -> Error {
    Error::Msg("max pooling's backward pass for records that had no forward pass".into())
}

/// The largest value of each window. A window with NaN gives NaN.
///
/// `winners` notes which they were, at `range` of the batch's values.
pub(crate) fn max_pool(
    dst: &Tensor,
    src: &Tensor,
    shape: &PoolShape,
    winners: &mut Winners,
    range: &Range<usize>,
) -> Result<()> {
    binary("max-pool", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "max-pool", T => {
            let out = destination::<T>(dst)?;
            let images = source::<T>(src)?;
            shape.check(images.len(), out.len())?;
            let winners = winners.pixels.get_mut(range.clone()).ok_or_else(no_winners)?;
            same("windows whose largest pixel is noted", out.len(), winners.len())?;
            vectorise(#[inline(always)] || pool_images(shape, images, out, winners));
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => {
            let winners = winners.on_device.as_mut().ok_or_else(no_winners)?;
            cuda::max_pool(dst, src, shape, winners, range)
        }
    })
}

#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn pool_images<T: Element>(shape: &PoolShape, images: &[T], out: &mut [T], winners: &mut [u32]) {
    let (channels, out_width) = (shape.channels, shape.out_width());
    let outputs = out.chunks_exact_mut(shape.outputs()).zip(winners.chunks_exact_mut(shape.outputs()));
    for (image, (out, winners)) in images.chunks_exact(shape.inputs()).zip(outputs) {
        let windows = out.chunks_exact_mut(channels).zip(winners.chunks_exact_mut(channels));
        for (i, (largest, winner)) in windows.enumerate() {
            let (rows, columns) = shape.window(i / out_width, i % out_width);
            let first = rows.start * shape.width + columns.start;
            largest.copy_from_slice(&image[first * channels..][..channels]);
            winner.fill(first as u32);
            for row in rows {
                for column in columns.clone() {
                    let pixel = row * shape.width + column;
                    keep_larger(&image[pixel * channels..][..channels], pixel as u32, largest, winner);
                }
            }
        }
    }
}

/// Keeps, for each channel, the larger of a pixel's value and the largest before it, and the number
/// of its pixel. The first of several equal values stays, and so does the first of several NaN.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
#[inline(always)]
fn keep_larger<T: Element>(values: &[T], pixel: u32, largest: &mut [T], winner: &mut [u32]) {
    for ((&value, largest), winner) in values.iter().zip(largest).zip(winner) {
        let before = *largest;
        let stays = before >= value || before != before;
        *winner = if stays { *winner } else { pixel };
        *largest = if stays { before } else { value };
    }
}

/// Gradient of [`max_pool`] with respect to the images (destination), from that of the output. It
/// goes to the window's first largest pixel, as in PyTorch.
///
/// `winners` holds the pixels that the forward pass chose, at `range` of the batch's values.
pub(crate) fn max_pool_backward(
    dst: &Tensor,
    gradients: &Tensor,
    shape: &PoolShape,
    winners: &Winners,
    range: &Range<usize>,
) -> Result<()> {
    binary("max-pool-backward", dst, gradients, |operands| match operands {
        Operands::Cpu(dst, [gradients]) => for_float!(dtype(dst.0), "max-pool-backward", T => {
            let out = destination::<T>(dst)?;
            let gradients = source::<T>(gradients)?;
            shape.check(out.len(), gradients.len())?;
            let winners = winners.pixels.get(range.clone()).ok_or_else(no_winners)?;
            same("windows whose largest pixel is noted", gradients.len(), winners.len())?;
            vectorise(#[inline(always)] || unpool_gradients(shape, gradients, winners, out));
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [gradients]) => {
            let winners = winners.on_device.as_ref().ok_or_else(no_winners)?;
            cuda::max_pool_backward(dst, gradients, shape, winners, range)
        }
    })
}

#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn unpool_gradients<T: Element>(shape: &PoolShape, gradients: &[T], winners: &[u32], out: &mut [T]) {
    let (channels, width, out_width) = (shape.channels, shape.width, shape.out_width());
    let outputs = gradients.chunks_exact(shape.outputs()).zip(winners.chunks_exact(shape.outputs()));
    for (out, (gradients, winners)) in out.chunks_exact_mut(shape.inputs()).zip(outputs) {
        // Pixel by pixel and not window by window: the image is written once and not cleared
        // before.
        for (row, pixels) in out.chunks_exact_mut(width * channels).enumerate() {
            let window_rows = shape.window_rows_over(row);
            for (column, sums) in pixels.chunks_exact_mut(channels).enumerate() {
                let pixel = (row * width + column) as u32;
                let window_columns = shape.window_columns_over(column);
                sums.fill(T::ZERO);
                for window_row in window_rows.clone() {
                    for window_column in window_columns.clone() {
                        let start = (window_row * out_width + window_column) * channels;
                        let of_window = gradients[start..][..channels].iter().zip(&winners[start..][..channels]);
                        for (sum, (&gradient, &winner)) in sums.iter_mut().zip(of_window) {
                            *sum += if winner == pixel { gradient } else { T::ZERO };
                        }
                    }
                }
            }
        }
    }
}

/// The mean of each window; pixels outside of the image count as zeros, as PyTorch counts them by
/// default.
pub(crate) fn average_pool(dst: &Tensor, src: &Tensor, shape: &PoolShape) -> Result<()> {
    binary("average-pool", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "average-pool", T => {
            let out = destination::<T>(dst)?;
            let images = source::<T>(src)?;
            shape.check(images.len(), out.len())?;
            let share = T::from_double(1.0 / shape.kernel.iter().product::<usize>() as f64);
            let channels = shape.channels;
            vectorise(#[inline(always)] || {
                let images = images.chunks_exact(shape.inputs()).zip(out.chunks_exact_mut(shape.outputs()));
                for (image, out) in images {
                    out.fill(T::ZERO);
                    for (i, out) in out.chunks_exact_mut(channels).enumerate() {
                        let (rows, columns) = shape.window(i / shape.out_width(), i % shape.out_width());
                        for row in rows {
                            for column in columns.clone() {
                                let pixel = &image[(row * shape.width + column) * channels..][..channels];
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
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::average_pool(dst, src, shape),
    })
}

/// Gradient of [`average_pool`] with respect to the images (destination), from that of the output.
pub(crate) fn average_pool_backward(dst: &Tensor, src: &Tensor, shape: &PoolShape) -> Result<()> {
    binary("average-pool-backward", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "average-pool-backward", T => {
            let out = destination::<T>(dst)?;
            let gradients = source::<T>(src)?;
            shape.check(out.len(), gradients.len())?;
            let share = T::from_double(1.0 / shape.kernel.iter().product::<usize>() as f64);
            let channels = shape.channels;
            vectorise(#[inline(always)] || {
                let images = out.chunks_exact_mut(shape.inputs()).zip(gradients.chunks_exact(shape.outputs()));
                for (out, gradients) in images {
                    out.fill(T::ZERO);
                    for (i, gradient) in gradients.chunks_exact(channels).enumerate() {
                        let (rows, columns) = shape.window(i / shape.out_width(), i % shape.out_width());
                        for row in rows {
                            for column in columns.clone() {
                                let pixel = &mut out[(row * shape.width + column) * channels..][..channels];
                                for (out, &value) in pixel.iter_mut().zip(gradient) {
                                    *out += share * value;
                                }
                            }
                        }
                    }
                }
            });
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::average_pool_backward(dst, src, shape),
    })
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    /// A window has a pixel exactly where the pixel says to be in the window: overlapping windows,
    /// padding, gaps between windows.
    #[test]
    fn windows_and_pixels_agree() {
        for (kernel, stride, padding) in
            [([3, 3], 2, 0), ([3, 2], 1, 1), ([2, 2], 3, 0), ([5, 3], 2, 1), ([7, 9], 1, 0)]
        {
            let shape = PoolShape { height: 7, width: 9, channels: 1, kernel, stride, padding };
            for (y, x) in (0..shape.out_height()).flat_map(|y| (0..shape.out_width()).map(move |x| (y, x))) {
                let (rows, columns) = shape.window(y, x);
                for row in 0..shape.height {
                    assert_eq!(rows.contains(&row), shape.window_rows_over(row).contains(&y), "{shape:?}, row {row}");
                }
                for column in 0..shape.width {
                    let there = shape.window_columns_over(column).contains(&x);
                    assert_eq!(columns.contains(&column), there, "{shape:?}, column {column}");
                }
            }
        }
    }

    /// A row of four pixels, windows of 3 at stride 1: `[1, 5, 2]` and `[5, 2, 5]`. Of the two 5 of
    /// the second window the first gets the gradient. NaN wins and gets the gradient, so that it is
    /// not hidden.
    #[test]
    fn the_first_of_the_largest_gets_the_gradient() {
        let shape = PoolShape { height: 1, width: 4, channels: 1, kernel: [1, 3], stride: 1, padding: 0 };
        let gradients = Tensor::new(&[[10.0_f32, 100.0]], &Device::Cpu).unwrap();
        let pool = |images: [f32; 4]| {
            let images = Tensor::new(&[images], &Device::Cpu).unwrap();
            let (out, back) = (gradients.zeros_like().unwrap(), images.zeros_like().unwrap());
            let mut winners = Winners::default();
            winners.make_room(2, &Device::Cpu).unwrap();
            max_pool(&out, &images, &shape, &mut winners, &(0..2)).unwrap();
            max_pool_backward(&back, &gradients, &shape, &winners, &(0..2)).unwrap();
            (out.to_vec2::<f32>().unwrap().remove(0), back.to_vec2::<f32>().unwrap().remove(0))
        };
        assert_eq!(pool([1.0, 5.0, 2.0, 5.0]), (vec![5.0, 5.0], vec![0.0, 110.0, 0.0, 0.0]));
        assert_eq!(pool([1.0, 2.0, 3.0, f32::INFINITY]), (vec![3.0, f32::INFINITY], vec![0.0, 0.0, 10.0, 100.0]));
        let (out, back) = pool([1.0, 2.0, f32::NAN, 3.0]);
        assert!(out.iter().all(|v| v.is_nan()));
        assert_eq!(back, [0.0, 0.0, 110.0, 0.0]);
    }
}
