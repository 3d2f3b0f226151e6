//! From channels last to channels first, and back.

use candle_core::{Result, Tensor};

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{destination, dtype, for_float, same, source};
use super::in_place::{Operands, binary};
use super::transpose::transpose;

/// Exchanges the two axes of every record: `[rows, columns]` (source) becomes `[columns, rows]`
/// (destination).
pub(crate) fn swap_axes(dst: &Tensor, src: &Tensor, rows: usize, columns: usize) -> Result<()> {
    binary("swap-axes", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "swap-axes", T => {
            let out = destination::<T>(dst)?;
            let records = source::<T>(src)?;
            let len = rows * columns;
            same("values of records", records.len(), out.len())?;
            same("values of records", records.len() / len.max(1) * len, records.len())?;
            for (record, out) in records.chunks_exact(len.max(1)).zip(out.chunks_exact_mut(len.max(1))) {
                transpose(record, columns, rows, columns, out);
            }
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::swap_axes(dst, src, rows, columns),
    })
}
