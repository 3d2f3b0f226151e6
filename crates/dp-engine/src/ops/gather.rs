//! Copies the rows of a batch out of a data set.

use candle_core::{Error, Result, Tensor};

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{destination, dtype, for_float, rows_and_columns, same, source};
use super::in_place::{Operands, binary};

/// `dst[i, :] = src[rows[i], :]`.
pub(crate) fn gather_rows(dst: &Tensor, table: &Tensor, rows: &[usize]) -> Result<()> {
    binary("gather-rows", dst, table, |operands| match operands {
        Operands::Cpu(dst, [table]) => for_float!(dtype(dst.0), "gather-rows", T => {
            let (n_rows, width) = rows_and_columns(dst.1)?;
            let (n_table, table_width) = rows_and_columns(table.1)?;
            same("rows to gather", n_rows, rows.len())?;
            same("columns to gather", width, table_width)?;
            let table = source::<T>(table)?;
            for (out, &row) in destination::<T>(dst)?.chunks_exact_mut(width.max(1)).zip(rows) {
                if row >= n_table {
                    return Err(Error::Msg(format!("row {row} of a table with {n_table} rows")));
                }
                out.copy_from_slice(&table[row * width..(row + 1) * width]);
            }
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [table]) => cuda::gather_rows(dst, table, rows),
    })
}
