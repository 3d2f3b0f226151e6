//! Convolution of images with channels last, and the products of its gradients.

mod form;
mod gram;
mod patches;
mod shape;
mod sliding;
mod taps;
pub(super) mod unpack;

use candle_core::{Result, Tensor};

pub(crate) use form::{PerSampleForm, WeightOrder};
pub(crate) use gram::conv_gram_sq_norms;
pub(crate) use shape::ConvShape;
pub(crate) use unpack::unpack_weight;

use super::element::{Element, cpu, destination, dtype, for_float, same, source};
use super::in_place::{Operands, ternary};
use super::matmul::{Matrix, product};
use super::rows::fill_with_row;
use super::workspace::Workspace;
use crate::vector_math::vectorise;

/// `dst = conv(images, weight) + bias`.
pub(crate) fn conv_forward(
    dst: &Tensor,
    images: &Tensor,
    weight: &Tensor,
    shape: &ConvShape,
    bias: Option<&Tensor>,
    workspace: &mut Workspace,
) -> Result<()> {
    ternary("conv-forward", dst, images, weight, |operands| match operands {
        Operands::Cpu(dst, [images, weight]) => for_float!(dtype(dst.0), "conv-forward", T => {
            let out = destination::<T>(dst)?;
            let (images, weight) = (source::<T>(images)?, source::<T>(weight)?);
            same("values of a convolution's weight", shape.weights(), weight.len())?;
            check_images(shape, images.len(), out.len())?;
            let bias = bias.map(Tensor::storage_and_layout);
            let bias = bias.as_ref().map(|(bias, bias_l)| source::<T>((cpu(bias)?, bias_l))).transpose()?;
            same("values of a convolution's bias", shape.filters, bias.map_or(shape.filters, <[T]>::len))?;
            if sliding::pays(shape) {
                sliding::forward(shape, images, (weight, bias), out, workspace)
            } else {
                forward(shape, images, (weight, bias), out, workspace)
            }
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [images, weight]) => {
            crate::ops::cuda::conv_forward(dst, images, weight, shape, bias, workspace.expected)
        }
    })
}

fn forward<T: Element>(
    shape: &ConvShape,
    images: &[T],
    (weight, bias): (&[T], Option<&[T]>),
    out: &mut [T],
    workspace: &mut Workspace,
) -> Result<()> {
    let (at_once, patch, filters) = (shape.images_at_once(), shape.patch(), shape.group_filters());
    let out_chunks = out.chunks_mut(at_once * shape.outputs());
    for (images, out) in images.chunks(at_once * shape.inputs()).zip(out_chunks) {
        let n_rows = out.len() / shape.filters;
        // Here and not for the whole batch at once, so that it is still in the cache when the
        // products are added.
        if let Some(bias) = bias {
            fill_with_row(bias, out);
        }
        let [rows] = workspace.pieces([n_rows * patch]);
        for (group, weight) in weight.chunks_exact(filters * patch).enumerate() {
            let rows = patches::matrix(shape, group, images, rows)?;
            let weight = Matrix::strided(weight, filters, patch, patch)?;
            product(&mut out[group * filters..], shape.filters, rows, weight.transposed(), bias.is_some())?;
        }
    }
    Ok(())
}

/// Gradient with respect to the images (destination) from that of the output and the weight.
pub(crate) fn conv_input_gradient(
    dst: &Tensor,
    gradients: &Tensor,
    weight: &Tensor,
    shape: &ConvShape,
    workspace: &mut Workspace,
) -> Result<()> {
    ternary("conv-input-gradient", dst, gradients, weight, |operands| match operands {
        Operands::Cpu(dst, [gradients, weight]) => for_float!(dtype(dst.0), "conv-input-gradient", T => {
            let out = destination::<T>(dst)?;
            let (gradients, weight) = (source::<T>(gradients)?, source::<T>(weight)?);
            same("values of a convolution's weight", shape.weights(), weight.len())?;
            check_images(shape, out.len(), gradients.len())?;
            if sliding::pays_backward(shape) {
                sliding::input_gradient(shape, gradients, weight, out, workspace)
            } else {
                input_gradient(shape, gradients, weight, out, workspace)
            }
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [gradients, weight]) => {
            crate::ops::cuda::conv_input_gradient(dst, gradients, weight, shape, workspace.expected)
        }
    })
}

fn input_gradient<T: Element>(
    shape: &ConvShape,
    gradients: &[T],
    weight: &[T],
    out: &mut [T],
    workspace: &mut Workspace,
) -> Result<()> {
    let (at_once, patch, filters) = (shape.images_at_once(), shape.patch(), shape.group_filters());
    let out_chunks = out.chunks_mut(at_once * shape.inputs());
    for (gradients, out) in gradients.chunks(at_once * shape.outputs()).zip(out_chunks) {
        out.fill(T::ZERO);
        let n_rows = gradients.len() / shape.filters;
        let [rows] = workspace.pieces([n_rows * patch]);
        for (group, weight) in weight.chunks_exact(filters * patch).enumerate() {
            let gradients = Matrix::strided(&gradients[group * filters..], n_rows, filters, shape.filters)?;
            product(rows, patch, gradients, Matrix::strided(weight, filters, patch, patch)?, false)?;
            patches::scatter(shape, group, rows, out);
        }
    }
    Ok(())
}

/// `dst = Σ_i ∂(d_i · conv(image_i, weight)) / ∂weight`, or added to it.
///
/// `order` is the order of the destination's values. If the norms came from Gram matrices, a CUDA
/// device, whose order of additions differs from the CPU's, adds in `f64` and rounds once.
#[cfg_attr(not(feature = "cuda"), expect(unused_variables, reason = "the CPU adds in one way"))]
pub(crate) fn conv_weight_sum(
    dst: &Tensor,
    images: &Tensor,
    gradients: &Tensor,
    shape: &ConvShape,
    (order, form): (WeightOrder, PerSampleForm),
    accumulate: bool,
    workspace: &mut Workspace,
) -> Result<()> {
    ternary("conv-weight-sum", dst, images, gradients, |operands| match operands {
        Operands::Cpu(dst, [images, gradients]) => for_float!(dtype(dst.0), "conv-weight-sum", T => {
            let sum = destination::<T>(dst)?;
            let (images, gradients) = (source::<T>(images)?, source::<T>(gradients)?);
            same("values of a convolution's weight", shape.weights(), sum.len())?;
            check_images(shape, images.len(), gradients.len())?;
            weight_gradient(shape, images, gradients, (sum, order), accumulate, workspace)
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [images, gradients]) => match form {
            PerSampleForm::Materialised => {
                crate::ops::cuda::conv_weight_sum(dst, images, gradients, shape, order, accumulate)
            }
            PerSampleForm::Gram => {
                crate::ops::cuda::conv_weight_sum_in_double(dst, images, gradients, shape, order, accumulate)
            }
        },
    })
}

fn weight_gradient<T: Element>(
    shape: &ConvShape,
    images: &[T],
    gradients: &[T],
    (sum, order): (&mut [T], WeightOrder),
    accumulate: bool,
    workspace: &mut Workspace,
) -> Result<()> {
    if sliding::pays(shape) {
        return sliding::weight_gradient(shape, images, gradients, (sum, order), accumulate, workspace);
    }
    let (at_once, patch, filters) = (shape.images_at_once(), shape.patch(), shape.group_filters());
    let chunks = images.chunks(at_once * shape.inputs()).zip(gradients.chunks(at_once * shape.outputs()));
    for (i, (images, gradients)) in chunks.enumerate() {
        let n_rows = gradients.len() / shape.filters;
        let [rows] = workspace.pieces([n_rows * patch]);
        for (group, sum) in sum.chunks_exact_mut(filters * patch).enumerate() {
            let rows = patches::matrix(shape, group, images, rows)?;
            let gradients = Matrix::strided(&gradients[group * filters..], n_rows, filters, shape.filters)?;
            let keep = accumulate || i > 0;
            match order {
                WeightOrder::FiltersFirst => product(sum, patch, gradients.transposed(), rows, keep)?,
                WeightOrder::PatchFirst => product(sum, filters, rows.transposed(), gradients, keep)?,
            }
        }
    }
    Ok(())
}

/// The gradient of every record (destination, `[batch, weights]` or, with a bias, `[batch,
/// weights + filters]`) from images and the gradient of the output.
///
/// `order` is the order of the weights in a row; the values of the bias follow them.
pub(crate) fn conv_gradients(
    dst: &Tensor,
    images: &Tensor,
    gradients: &Tensor,
    shape: &ConvShape,
    order: WeightOrder,
    workspace: &mut Workspace,
) -> Result<()> {
    ternary("conv-gradients", dst, images, gradients, |operands| match operands {
        Operands::Cpu(dst, [images, gradients]) => for_float!(dtype(dst.0), "conv-gradients", T => {
            let rows = destination::<T>(dst)?;
            let (images, gradients) = (source::<T>(images)?, source::<T>(gradients)?);
            check_images(shape, images.len(), gradients.len())?;
            let n_records = images.len() / shape.inputs();
            let width = rows.len() / n_records.max(1);
            same("values of all records' gradients", n_records * width, rows.len())?;
            let pairs = images.chunks_exact(shape.inputs()).zip(gradients.chunks_exact(shape.outputs()));
            for ((image, gradient), row) in pairs.zip(rows.chunks_exact_mut(width.max(1))) {
                record_gradient(shape, image, gradient, (row, order), workspace)?;
            }
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [images, gradients]) => {
            crate::ops::cuda::conv_gradients(dst, images, gradients, shape, order, workspace.expected)
        }
    })
}

/// One record's gradient, with that of the bias where the row has room for it.
fn record_gradient<T: Element>(
    shape: &ConvShape,
    image: &[T],
    gradient: &[T],
    (row, order): (&mut [T], WeightOrder),
    workspace: &mut Workspace,
) -> Result<()> {
    let (weight, bias) = row.split_at_mut(shape.weights());
    weight_gradient(shape, image, gradient, (weight, order), false, workspace)?;
    if !bias.is_empty() {
        same("values of a bias", shape.filters, bias.len())?;
        sum_positions(gradient, bias);
    }
    Ok(())
}

/// `sums[j] = Σ_t values[t, j]`.
fn sum_positions<T: Element>(values: &[T], sums: &mut [T]) {
    sums.fill(T::ZERO);
    vectorise(
        #[inline(always)]
        || {
            for row in values.chunks_exact(sums.len().max(1)) {
                for (sum, &value) in sums.iter_mut().zip(row) {
                    *sum += value;
                }
            }
        },
    );
}

/// An error if inputs and outputs hold different numbers of images.
pub(super) fn check_images(shape: &ConvShape, inputs: usize, outputs: usize) -> Result<()> {
    let n_images = inputs / shape.inputs().max(1);
    same("values of a convolution's input images", n_images * shape.inputs(), inputs)?;
    same("values of a convolution's output images", n_images * shape.outputs(), outputs)
}
