//! From channels last to channels first, and back.

use candle_core::{CpuStorage, InplaceOp2, Layout, Result};

use super::element::{Element, destination, dtype, for_float, same, source};

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
}

/// In tiles, so that a cache line of either side is used up while it is there.
fn swap<T: Element>(record: &[T], rows: usize, columns: usize, out: &mut [T]) {
    const TILE: usize = 16;
    for first_row in (0..rows).step_by(TILE) {
        let n = TILE.min(rows - first_row);
        for column in 0..columns {
            let line = &mut out[column * rows + first_row..][..n];
            for (i, value) in line.iter_mut().enumerate() {
                *value = record[(first_row + i) * columns + column];
            }
        }
    }
}
