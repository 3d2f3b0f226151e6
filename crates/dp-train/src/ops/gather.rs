//! Copies the rows of a batch out of a data set.

use candle_core::{CpuStorage, Error, InplaceOp2, Layout, Result};

use super::element::{destination, dtype, for_float, rows_and_columns, same, source};
use super::on_cuda::on_cuda;

/// `dst[i, :] = src[rows[i], :]`.
pub(crate) struct GatherRows<'a> {
    /// One row number of the source per row of the destination.
    pub(crate) rows: &'a [usize],
}

impl InplaceOp2 for GatherRows<'_> {
    fn name(&self) -> &'static str {
        "gather-rows"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, table: &CpuStorage, table_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "gather-rows", T => {
            let (n_rows, width) = rows_and_columns(dst_l)?;
            let (n_table, table_width) = rows_and_columns(table_l)?;
            same("rows to gather", n_rows, self.rows.len())?;
            same("columns to gather", width, table_width)?;
            let table = source::<T>((table, table_l))?;
            for (out, &row) in destination::<T>(dst, dst_l)?.chunks_exact_mut(width.max(1)).zip(self.rows) {
                if row >= n_table {
                    return Err(Error::Msg(format!("row {row} of a table with {n_table} rows")));
                }
                out.copy_from_slice(&table[row * width..(row + 1) * width]);
            }
            Ok(())
        })
    }

    on_cuda!(|self, dst, table| cuda::gather_rows(self, dst, table));
}
