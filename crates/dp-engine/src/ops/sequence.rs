//! Norms of per-sample gradients of layers with several positions.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use candle_core::{Result, Tensor};

use super::cancellation::guarded_sq_norm;
#[cfg(feature = "cuda")]
use super::cuda;
use super::double_dot::double_dot;
use super::element::{Element, destination, dtype, for_float, rows_and_columns, same, source};
use super::in_place::{Operands, binary, ternary};
use super::matmul::{Matrix, product};
use crate::vector_math::vectorise;

/// Adds the squared norm of the gradient of a linear layer on a sequence, without forming it:
/// `dst[i] += Σ_{t,u} (⟨x_t, x_u⟩ + 1) ⟨d_t, d_u⟩` over the positions of record `i`, with the
/// sources `x` and `d` of one row per record and position; and not less than [`guarded_sq_norm`]
/// says.
///
/// Products and sums are in `f64`. Positions may cancel, and a sum in `f32` could then fall short
/// of the norm by any factor; the record would be scaled too little.
///
/// **Source.** Li 2022 (ghost clipping).
pub(crate) fn sequence_sq_norms(dst: &Tensor, x: &Tensor, d: &Tensor, positions: usize) -> Result<()> {
    ternary("sequence-sq-norms", dst, x, d, |operands| {
        let (dst, [x, d]) = operands.on_cpu("sequence-sq-norms")?;
        let dtype = dtype(x.0);
        let norms = destination::<f64>(dst)?;
        for_float!(dtype, "sequence-sq-norms", T => {
            let ((x_rows, inputs), (d_rows, outputs)) = (rows_and_columns(x.1)?, rows_and_columns(d.1)?);
            same("rows of a linear layer's input", norms.len() * positions, x_rows)?;
            same("rows of a linear layer's output gradient", x_rows, d_rows)?;
            let (x, d) = (source::<T>(x)?, source::<T>(d)?);
            let records = x.chunks_exact(positions * inputs).zip(d.chunks_exact(positions * outputs));
            vectorise(#[inline(always)] || {
                for (norm, (x, d)) in norms.iter_mut().zip(records.clone()) {
                    *norm += sq_norm(x, d, inputs, outputs);
                }
            });
            Ok(())
        })
    })
}

#[inline(always)]
fn sq_norm<T: Element>(x: &[T], d: &[T], inputs: usize, outputs: usize) -> f64 {
    let (mut diagonal, mut above, mut terms, mut largest) = (0.0, 0.0, 0.0, 0.0_f64);
    for (t, (x_t, d_t)) in x.chunks_exact(inputs).zip(d.chunks_exact(outputs)).enumerate() {
        let (x_sq, square) = (double_dot(x_t, x_t), (double_dot(x_t, x_t) + 1.0) * double_dot(d_t, d_t));
        diagonal += square;
        terms += square.sqrt();
        largest = largest.max(x_sq);
        for (x_u, d_u) in x.chunks_exact(inputs).zip(d.chunks_exact(outputs)).skip(t + 1) {
            above += (double_dot(x_t, x_u) + 1.0) * double_dot(d_t, d_u);
        }
    }
    guarded_sq_norm(diagonal + 2.0 * above, terms, largest.sqrt(), x.len() / inputs, T::UNIT)
}

/// `dst[i] = lhs[i]ᵀ · rhs[i]` for the positions of each record `i`, with sources of one row per
/// record and position.
pub(crate) fn record_products(dst: &Tensor, lhs: &Tensor, rhs: &Tensor, positions: usize) -> Result<()> {
    ternary("record-products", dst, lhs, rhs, |operands| match operands {
        Operands::Cpu(dst, [lhs, rhs]) => for_float!(dtype(dst.0), "record-products", T => {
            let ((lhs_rows, m), (rhs_rows, n)) = (rows_and_columns(lhs.1)?, rows_and_columns(rhs.1)?);
            same("rows of both factors", lhs_rows, rhs_rows)?;
            let dst = destination::<T>(dst)?;
            same("values of all records' products", lhs_rows / positions.max(1) * m * n, dst.len())?;
            let (lhs, rhs) = (source::<T>(lhs)?, source::<T>(rhs)?);
            let records = lhs.chunks_exact((positions * m).max(1)).zip(rhs.chunks_exact((positions * n).max(1)));
            for (dst, (lhs, rhs)) in dst.chunks_exact_mut((m * n).max(1)).zip(records) {
                let lhs = Matrix::strided(lhs, positions, m, m)?;
                product(dst, n, lhs.transposed(), Matrix::strided(rhs, positions, n, n)?, false)?;
            }
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [lhs, rhs]) => cuda::record_products(dst, lhs, rhs, positions),
    })
}

/// `dst[i] = Σ_t src[i, t]` over the positions of each record `i`, with a source of one row per
/// record and position.
pub(crate) fn sum_positions(dst: &Tensor, src: &Tensor, positions: usize) -> Result<()> {
    binary("sum-positions", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "sum-positions", T => {
            let (rows, columns) = rows_and_columns(src.1)?;
            let dst = destination::<T>(dst)?;
            same("sums over positions", rows / positions.max(1) * columns, dst.len())?;
            let src = source::<T>(src)?;
            dst.fill(T::ZERO);
            vectorise(#[inline(always)] || {
                let records = src.chunks_exact((positions * columns).max(1));
                for (sums, record) in dst.chunks_exact_mut(columns.max(1)).zip(records) {
                    for row in record.chunks_exact(columns) {
                        for (sum, &value) in sums.iter_mut().zip(row) {
                            *sum += value;
                        }
                    }
                }
            });
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::sum_positions(dst, src, positions),
    })
}
