//! From channels last to channels first, and back.

use candle_core::{CpuStorage, InplaceOp2, Layout, Result};

use super::element::{Element, destination, dtype, for_float, same, source};
use super::on_cuda::on_cuda;

/// Exchanges the two axes of every record: `[rows, columns]` (source) becomes `[columns, rows]` (destination).
pub(crate) struct SwapAxes {
    /// Rows of a record of the source.
    pub(crate) rows: usize,
    /// Columns of a record of the source.
    pub(crate) columns: usize,
}

impl InplaceOp2 for SwapAxes {
    fn name(&self) -> &'static str {
        "swap-axes"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, src: &CpuStorage, src_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "swap-axes", T => {
            let out = destination::<T>(dst, dst_l)?;
            let records = source::<T>((src, src_l))?;
            let len = self.rows * self.columns;
            same("values of records", records.len(), out.len())?;
            same("values of records", records.len() / len.max(1) * len, records.len())?;
            for (record, out) in records.chunks_exact(len.max(1)).zip(out.chunks_exact_mut(len.max(1))) {
                swap(record, self.rows, self.columns, out);
            }
            Ok(())
        })
    }

    on_cuda!(|self, dst, src| cuda::swap_axes(self, dst, src));
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
