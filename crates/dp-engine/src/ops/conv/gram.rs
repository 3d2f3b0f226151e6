//! Norms of a convolution's per-sample gradients from Gram matrices.

use candle_core::{Result, Tensor};

use super::{ConvShape, check_images, patches};
use crate::ops::cancellation::guarded_sq_norm;
#[cfg(feature = "cuda")]
use crate::ops::cuda;
use crate::ops::element::{Element, destination, dtype, for_float, same, source};
use crate::ops::in_place::{Operands, ternary};
use crate::ops::matmul::{Matrix, product};
use crate::ops::workspace::Workspace;

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
            let pairs = images.chunks_exact(shape.inputs()).zip(gradients.chunks_exact(shape.outputs()));
            for ((image, gradient), norm) in pairs.zip(norms) {
                for group in 0..shape.groups {
                    *norm += group_sq_norm(shape, group, image, gradient, bias, (workspace, wide))?;
                }
            }
            Ok(())
        })
    })
}

fn group_sq_norm<T: Element>(
    shape: &ConvShape,
    group: usize,
    image: &[T],
    gradient: &[T],
    bias: f64,
    (workspace, wide): (&mut Workspace, &mut Workspace),
) -> Result<f64> {
    let (n, patch, filters) = (shape.positions(), shape.patch(), shape.group_filters());
    let [rows] = workspace.pieces::<T, 1>([n * patch]);
    patches::gather(shape, group, image, rows);
    let [wide_rows, wide_gradient, row_gram, gradient_gram] =
        wide.pieces::<f64, 4>([n * patch, n * filters, n * n, n * n]);
    widen(wide_rows, n, |t| &rows[t * patch..(t + 1) * patch]);
    let first = group * filters;
    widen(wide_gradient, n, |t| &gradient[t * shape.filters + first..][..filters]);
    gram(row_gram, wide_rows, n)?;
    gram(gradient_gram, wide_gradient, n)?;
    let sum = row_gram.iter().zip(gradient_gram.iter()).map(|(a, b)| (a + bias) * b).sum::<f64>();
    let diagonal = row_gram.iter().zip(gradient_gram.iter()).step_by(n + 1);
    let (mut terms, mut largest) = (0.0, 0.0_f64);
    for (&a, &b) in diagonal {
        terms += ((a + bias) * b).sqrt();
        largest = largest.max(a);
    }
    Ok(guarded_sq_norm(sum, terms, largest.sqrt(), n, T::UNIT))
}

/// Rows of equal length in `f64`, column by column: `wide[j * n_rows + t] = row(t)[j]`.
fn widen<'a, T: Element>(wide: &mut [f64], n_rows: usize, row: impl Fn(usize) -> &'a [T]) {
    for t in 0..n_rows {
        let column = wide[t..].iter_mut().step_by(n_rows);
        for (wide, &value) in column.zip(row(t)) {
            *wide = value.to_double();
        }
    }
}

/// Products of all pairs of `n_rows` rows that [`widen`] wrote: by columns, [`product`] takes few
/// rows without a copy.
fn gram(dst: &mut [f64], rows: &[f64], n_rows: usize) -> Result<()> {
    let len = rows.len() / n_rows;
    let columns = if n_rows == 1 {
        Matrix::strided(rows, 1, len, len)?.transposed()
    } else {
        Matrix::strided(rows, len, n_rows, n_rows)?
    };
    Ok(product(dst, n_rows, columns.transposed(), columns, false)?)
}
