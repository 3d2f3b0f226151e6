//! Operations on the rows of a matrix: one row is one record.

use candle_core::{Result, Tensor};
use dp_clipping::kernels::{self, Gradients, KernelExecution};

use super::cancellation::LARGEST_INPUT;
#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, destination, dtype, for_float, rows_and_columns, same, source};
use super::in_place::{Operands, binary, ternary};
use crate::vector_math::vectorise;

/// Adds the squared norm of a linear layer's per-sample gradient: `dst[i] += (‖x_i‖² + 1) ‖d_i‖²`.
///
/// The gradient of record `i` is the outer product `d_i x_iᵀ` for the weight and `d_i` for the
/// bias, so its norm needs neither ("ghost norm"; Goodfellow 2015). Sums are in `f64`: a plain
/// `f32` sum is off by 1e-4. An input that is not finite or is beyond 2⁴⁰ gives ∞: such a record
/// must be dropped, not summed.
pub(crate) fn linear_sq_norms(dst: &Tensor, x: &Tensor, d: &Tensor) -> Result<()> {
    ternary("linear-sq-norms", dst, x, d, |operands| match operands {
        Operands::Cpu(dst, [x, d]) => {
            let dtype = dtype(x.0);
            let norms = destination::<f64>(dst)?;
            for_float!(dtype, "linear-sq-norms", T => {
                let ((x_rows, inputs), (d_rows, outputs)) = (rows_and_columns(x.1)?, rows_and_columns(d.1)?);
                same("rows of a linear layer's input", norms.len(), x_rows)?;
                same("rows of a linear layer's output gradient", norms.len(), d_rows)?;
                let (x, d) = (sq_norms_of_rows(source::<T>(x)?, inputs)?, sq_norms_of_rows(source::<T>(d)?, outputs)?);
                for ((norm, x), d) in norms.iter_mut().zip(x).zip(d) {
                    // NaN fails the comparison.
                    *norm += if x <= LARGEST_INPUT * LARGEST_INPUT { (x + 1.0) * d } else { f64::INFINITY };
                }
                Ok(())
            })
        }
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [x, d]) => cuda::linear_sq_norms(dst, x, d),
    })
}

/// Adds the squared norm of each row: `dst[i] += ‖src[i, :]‖²`, in `f64`.
pub(crate) fn row_sq_norms(dst: &Tensor, src: &Tensor) -> Result<()> {
    binary("row-sq-norms", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => {
            let norms = destination::<f64>(dst)?;
            for_float!(dtype(src.0), "row-sq-norms", T => {
                let (rows, columns) = rows_and_columns(src.1)?;
                same("rows of a matrix", norms.len(), rows)?;
                for (norm, row) in norms.iter_mut().zip(sq_norms_of_rows(source::<T>(src)?, columns)?) {
                    *norm += row;
                }
                Ok(())
            })
        }
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::row_sq_norms(dst, src),
    })
}

/// `dst[j] = Σ_i weights[i] · src[i, j]`, accumulated in `f64`. A row of weight 0 is not read.
pub(crate) fn sum_rows(dst: &Tensor, src: &Tensor, weights: &[f64]) -> Result<()> {
    binary("sum-rows", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "sum-rows", T => {
            let (_, columns) = rows_and_columns(src.1)?;
            let rows = Gradients::from_slice(source::<T>(src)?, columns).map_err(candle_core::Error::wrap)?;
            kernels::scale_and_sum(&rows, weights, destination::<T>(dst)?, &KernelExecution::default())
                .map_err(candle_core::Error::wrap)
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::sum_rows(dst, src, weights),
    })
}

/// Squared norm of each row of `columns` values, on one thread.
fn sq_norms_of_rows<T: kernels::GradientFloat>(values: &[T], columns: usize) -> Result<Vec<f64>> {
    /// Up to here a plain loop is faster than the kernels' many streams.
    const SHORT: usize = 128;
    if columns <= SHORT && size_of::<T>() == size_of::<f32>() {
        // A square of an `f32` neither overflows nor vanishes in `f64`.
        return Ok(short_sq_norms(values, columns));
    }
    let rows = Gradients::from_slice(values, columns).map_err(candle_core::Error::wrap)?;
    Ok(kernels::norms(&rows, &KernelExecution::default()).into_iter().map(|norm| norm * norm).collect())
}

fn short_sq_norms<T: kernels::GradientFloat>(values: &[T], columns: usize) -> Vec<f64> {
    let square = |&value: &T| {
        let value: f64 = value.into();
        value * value
    };
    if columns == 1 {
        return values.iter().map(square).collect();
    }
    let mut sq_norms = vec![0.0; values.len() / columns.max(1)];
    vectorise(
        #[inline(always)]
        || {
            for (sq_norm, row) in sq_norms.iter_mut().zip(values.chunks_exact(columns.max(1))) {
                let (blocks, rest) = row.as_chunks::<8>();
                let mut sums = [0.0_f64; 8];
                for block in blocks {
                    for (sum, value) in sums.iter_mut().zip(block) {
                        *sum += square(value);
                    }
                }
                let [a, b, c, d, e, f, g, h] = sums;
                *sq_norm = ((a + e) + (c + g)) + ((b + f) + (d + h)) + rest.iter().map(square).sum::<f64>();
            }
        },
    );
    sq_norms
}

/// `dst[i, :] = weights[i] · src[i, :]`; a weight of 0 gives 0 even where the row is infinite or
/// not a number.
///
/// Products below the normal range are rounded as all others. To flush them to 0 would raise a sum
/// of terms that cancel; their error of at most 2⁻¹⁵⁰ matters only beside inputs larger than are
/// let through (2⁴⁰).
pub(crate) fn scale_rows(dst: &Tensor, src: &Tensor, weights: &[f64]) -> Result<()> {
    binary("scale-rows", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "scale-rows", T => {
            let (rows, columns) = rows_and_columns(dst.1)?;
            same("weights of rows", rows, weights.len())?;
            let dst = destination::<T>(dst)?;
            let src = source::<T>(src)?;
            same("elements to scale", dst.len(), src.len())?;
            vectorise(#[inline(always)] || write_scaled(dst, src, weights, columns));
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::scale_rows(dst, src, weights),
    })
}

#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn write_scaled<T: Element>(dst: &mut [T], src: &[T], weights: &[f64], columns: usize) {
    for (i, &weight) in weights.iter().enumerate() {
        let range = i * columns..(i + 1) * columns;
        if weight == 0.0 {
            dst[range].fill(T::ZERO);
            continue;
        }
        let weight = T::from_double(weight);
        for (out, &v) in dst[range.clone()].iter_mut().zip(&src[range]) {
            *out = weight * v;
        }
    }
}

/// `dst[j] = Σ_i src[i, j]`, or adds it to `dst`.
pub(crate) fn column_sum(dst: &Tensor, src: &Tensor, accumulate: bool) -> Result<()> {
    binary("column-sum", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "column-sum", T => {
            let (_, columns) = rows_and_columns(src.1)?;
            let dst = destination::<T>(dst)?;
            same("columns to sum", dst.len(), columns)?;
            let src = source::<T>(src)?;
            if !accumulate {
                dst.fill(T::ZERO);
            }
            vectorise(#[inline(always)] || {
                for row in src.chunks_exact(columns.max(1)) {
                    for (sum, &v) in dst.iter_mut().zip(row) {
                        *sum += v;
                    }
                }
            });
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::column_sum(dst, src, accumulate),
    })
}

/// Columns summed over all rows before the next ones: their totals stay in the first-level cache.
const COLUMNS: usize = 2048;

/// `dst[j] = Σ_i weights[i] · src[i, first_column + j]`, or adds it to `dst`; a row of weight 0 is
/// not read.
///
/// As many columns are summed as `dst` has values.
pub(crate) fn weighted_column_sum(
    dst: &Tensor,
    src: &Tensor,
    weights: &[f64],
    first_column: usize,
    accumulate: bool,
) -> Result<()> {
    binary("weighted-column-sum", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "weighted-column-sum", T => {
            let (rows, columns) = rows_and_columns(src.1)?;
            same("weights of rows", rows, weights.len())?;
            let dst = destination::<T>(dst)?;
            let last = first_column + dst.len();
            if last > columns {
                return Err(candle_core::Error::Msg(format!("columns to sum: expected at most {columns}, got {last}")));
            }
            let src = source::<T>(src)?;
            if !accumulate {
                dst.fill(T::ZERO);
            }
            vectorise(#[inline(always)] || {
                for (block, sums) in dst.chunks_mut(COLUMNS).enumerate() {
                    let first = first_column + block * COLUMNS;
                    for (row, &weight) in src.chunks_exact(columns.max(1)).zip(weights) {
                        if weight == 0.0 {
                            continue;
                        }
                        let weight = T::from_double(weight);
                        for (sum, &v) in sums.iter_mut().zip(&row[first..]) {
                            *sum += weight * v;
                        }
                    }
                }
            });
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::weighted_column_sum(dst, src, weights, first_column, accumulate),
    })
}

/// `dst[i, :] = src`: the same row everywhere.
pub(crate) fn repeat_row(dst: &Tensor, row: &Tensor) -> Result<()> {
    binary("repeat-row", dst, row, |operands| match operands {
        Operands::Cpu(dst, [row]) => for_float!(dtype(dst.0), "repeat-row", T => {
            let (_, columns) = rows_and_columns(dst.1)?;
            let row = source::<T>(row)?;
            same("columns of a repeated row", columns, row.len())?;
            fill_with_row(row, destination::<T>(dst)?);
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [row]) => cuda::repeat_row(dst, row),
    })
}

/// The same row everywhere, doubling what is there: copies of a few values each would cost more in
/// calls than in copying.
pub(super) fn fill_with_row<T: Copy>(row: &[T], out: &mut [T]) {
    let mut done = row.len().min(out.len());
    out[..done].copy_from_slice(&row[..done]);
    while 0 < done && done < out.len() {
        let n = done.min(out.len() - done);
        out.copy_within(..n, done);
        done += n;
    }
}
