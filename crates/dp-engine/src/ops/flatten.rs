//! From channels last to channels first, and back.

use candle_core::{Result, Tensor};

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, destination, dtype, for_float, same, source};
use super::in_place::{Operands, binary};

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
                swap(record, rows, columns, out);
            }
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::swap_axes(dst, src, rows, columns),
    })
}

/// In square tiles, so that a cache line of either side is used up while it is there.
fn swap<T: Element>(record: &[T], rows: usize, columns: usize, out: &mut [T]) {
    for row in (0..rows).step_by(TILE) {
        for column in (0..columns).step_by(TILE) {
            if row + TILE <= rows && column + TILE <= columns {
                swap_tile(&record[row * columns + column..], columns, &mut out[column * rows + row..], rows);
                continue;
            }
            for i in row..rows.min(row + TILE) {
                for j in column..columns.min(column + TILE) {
                    out[j * rows + i] = record[i * columns + j];
                }
            }
        }
    }
}

const TILE: usize = 16;

/// A whole tile; its lines lie `stride` values apart.
fn swap_tile<T: Element>(record: &[T], stride: usize, out: &mut [T], out_stride: usize) {
    let mut tile = [[T::ZERO; TILE]; TILE];
    for (i, line) in tile.iter_mut().enumerate() {
        if let Some(values) = record[i * stride..].first_chunk() {
            *line = *values;
        }
    }
    for j in 0..TILE {
        if let Some(line) = out[j * out_stride..].first_chunk_mut() {
            *line = std::array::from_fn::<T, TILE, _>(|i| tile[i][j]);
        }
    }
}
