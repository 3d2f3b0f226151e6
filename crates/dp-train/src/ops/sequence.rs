//! Norms of per-sample gradients of layers with several positions.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use candle_core::{CpuStorage, InplaceOp3, Layout, Result};

use super::element::{Element, destination, dtype, for_float, rows_and_columns, same, source};
use crate::vector_math::vectorise;

/// Adds the squared norm of the gradient of a linear layer on a sequence, without forming it:
/// `dst[i] += Σ_{t,u} (⟨x_t, x_u⟩ + 1) ⟨d_t, d_u⟩` over the positions of record `i`, with the sources `x` and `d` of one row per record and
/// position.
///
/// Products and sums are in `f64`. Positions may cancel, and a sum in `f32` could then fall short of the norm by any factor; the
/// record would be scaled too little.
///
/// **Source.** Li 2022 (ghost clipping).
pub(crate) struct SequenceSqNorms {
    /// Positions of a record.
    pub(crate) positions: usize,
}

impl InplaceOp3 for SequenceSqNorms {
    fn name(&self) -> &'static str {
        "sequence-sq-norms"
    }

    fn cpu_fwd(
        &self,
        dst: &mut CpuStorage,
        dst_l: &Layout,
        x: &CpuStorage,
        x_l: &Layout,
        d: &CpuStorage,
        d_l: &Layout,
    ) -> Result<()> {
        let (x, d) = ((x, x_l), (d, d_l));
        let dtype = dtype(x.0);
        let norms = destination::<f64>(dst, dst_l)?;
        for_float!(dtype, "sequence-sq-norms", T => {
            let ((x_rows, inputs), (d_rows, outputs)) = (rows_and_columns(x.1)?, rows_and_columns(d.1)?);
            same("rows of a linear layer's input", norms.len() * self.positions, x_rows)?;
            same("rows of a linear layer's output gradient", x_rows, d_rows)?;
            let (x, d) = (source::<T>(x)?, source::<T>(d)?);
            let records = x.chunks_exact(self.positions * inputs).zip(d.chunks_exact(self.positions * outputs));
            vectorise(#[inline(always)] || {
                for (norm, (x, d)) in norms.iter_mut().zip(records.clone()) {
                    // A square is never negative; what rounding leaves of one may be.
                    *norm += sq_norm(x, d, inputs, outputs).max(0.0);
                }
            });
            Ok(())
        })
    }
}

#[inline(always)]
fn sq_norm<T: Element>(x: &[T], d: &[T], inputs: usize, outputs: usize) -> f64 {
    let (mut diagonal, mut above) = (0.0, 0.0);
    for (t, (x_t, d_t)) in x.chunks_exact(inputs).zip(d.chunks_exact(outputs)).enumerate() {
        diagonal += (dot(x_t, x_t) + 1.0) * dot(d_t, d_t);
        for (x_u, d_u) in x.chunks_exact(inputs).zip(d.chunks_exact(outputs)).skip(t + 1) {
            above += (dot(x_t, x_u) + 1.0) * dot(d_t, d_u);
        }
    }
    diagonal + 2.0 * above
}

/// Product in `f64`, in lanes so that it vectorises.
#[inline(always)]
fn dot<T: Element>(a: &[T], b: &[T]) -> f64 {
    const LANES: usize = 16;
    let mut lanes = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(a, b)| a.to_f64() * b.to_f64()).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a.to_f64() * b.to_f64();
        }
    }
    lanes.iter().sum::<f64>() + rest
}
