//! Operations on the rows of a matrix: one row is one record.

use std::ops::Range;

use candle_core::cuda::cudarc::driver::{CudaSlice, CudaView, CudaViewMut};
use candle_core::{CudaDevice, Error, Result};

use super::divisor::{self, Divisor};
use super::launch::launch;
use super::upload::{upload, weights_on_device};
use super::view::{Destination, Real, Source, destination, dtype, scratch, source};
use crate::ops::element::{for_float, rows_and_columns, same};

/// Partial sums of `n` items, `[n_parts, n]`.
pub(super) struct Parts {
    pub(super) values: CudaSlice<f64>,
    pub(super) n_parts: usize,
}

impl Parts {
    pub(super) fn new(device: &CudaDevice, n_parts: usize, n: usize) -> Result<Self> {
        Ok(Self { values: scratch(device, n_parts * n)?, n_parts })
    }

    /// Reduces the partial sums to so few for each item that one thread can add them. Many threads
    /// add some of them each, until few are left.
    pub(super) fn folded<T: Real>(mut self, device: &CudaDevice, n: usize) -> Result<Self> {
        while self.n_parts > FOLDED {
            let n_parts = self.n_parts.div_ceil(FOLDED);
            let mut fewer = Self::new(device, n_parts, n)?;
            launch!(
                T, device, "fold_parts", n_parts * n;
                n, self.n_parts, n_parts, self.values.as_view(), fewer.values.as_view_mut()
            )?;
            self = fewer;
        }
        Ok(self)
    }
}

/// Partial sums that a row's squared norm is taken in.
const LANES: usize = 256;
/// Partial sums that a column is summed in, at most, and threads that are enough to keep a device
/// busy.
const COLUMN_PARTS: usize = 4_096;
const ENOUGH_THREADS: usize = 1 << 17;
/// Rows of a partial sum, at least.
const ROWS_OF_PART: usize = 8;
/// Partial sums that one thread adds up.
const FOLDED: usize = 16;

/// Ranges of rows, of `columns` values each, that one launch can number.
pub(super) fn launches(n_rows: usize, columns: usize) -> Result<impl Iterator<Item = Range<usize>>> {
    let at_once = divisor::at_once(columns)?;
    let n_rows = if columns == 0 { 0 } else { n_rows };
    Ok((0..n_rows).step_by(at_once).map(move |start| start..(start + at_once).min(n_rows)))
}

/// The range of the values of some rows with `columns` columns.
pub(super) fn values_of(rows: &Range<usize>, columns: usize) -> Range<usize> {
    rows.start * columns..rows.end * columns
}

/// The same row in all rows.
fn fill_with_row<T: Real>(device: &CudaDevice, mut dst: CudaViewMut<'_, T>, row: &CudaView<'_, T>) -> Result<()> {
    let columns = row.len();
    let n_rows = dst.len() / columns.max(1);
    same("values of repeated rows", n_rows * columns, dst.len())?;
    for rows in launches(n_rows, columns)? {
        let dst = dst.slice_mut(values_of(&rows, columns));
        launch!(T, device, "repeat_row", dst.len(); Divisor::new(columns)?, dst, row.slice(..))?;
    }
    Ok(())
}

/// Partial sums of each row's squared norm.
fn sq_norm_parts<T: Real>(device: &CudaDevice, values: CudaView<'_, T>, rows: usize, columns: usize) -> Result<Parts> {
    let lanes = columns.clamp(1, LANES);
    let mut parts = Parts::new(device, lanes, rows)?;
    launch!(T, device, "row_sq_norm_parts", rows * lanes; rows, columns, lanes, values, parts.values.as_view_mut())?;
    parts.folded::<T>(device, rows)
}

/// Adds each row's squared norm to `norms`.
pub(super) fn add_row_sq_norms<T: Real>(
    device: &CudaDevice,
    norms: CudaViewMut<'_, f64>,
    values: CudaView<'_, T>,
    columns: usize,
) -> Result<()> {
    let rows = norms.len();
    same("values of rows", rows * columns, values.len())?;
    let parts = sq_norm_parts(device, values, rows, columns)?;
    launch!(T, device, "add_total", rows; parts.n_parts, parts.values.as_view(), norms)
}

pub(in crate::ops) fn row_sq_norms(dst: Destination<'_>, src: Source<'_>) -> Result<()> {
    for_float!(dtype(src.0), "row-sq-norms", T => {
        let device = dst.0.device.clone();
        let norms = destination::<f64>(dst)?;
        let (rows, columns) = rows_and_columns(src.1)?;
        same("rows of a matrix", norms.len(), rows)?;
        add_row_sq_norms(&device, norms, source::<T>(src)?, columns)
    })
}

pub(in crate::ops) fn linear_sq_norms(dst: Destination<'_>, x: Source<'_>, d: Source<'_>) -> Result<()> {
    for_float!(dtype(x.0), "linear-sq-norms", T => {
        let device = dst.0.device.clone();
        let norms = destination::<f64>(dst)?;
        let ((x_rows, inputs), (d_rows, outputs)) = (rows_and_columns(x.1)?, rows_and_columns(d.1)?);
        same("rows of a linear layer's input", norms.len(), x_rows)?;
        same("rows of a linear layer's output gradient", norms.len(), d_rows)?;
        let x = sq_norm_parts(&device, source::<T>(x)?, x_rows, inputs)?;
        let d = sq_norm_parts(&device, source::<T>(d)?, d_rows, outputs)?;
        let (n, x_parts, d_parts) = (norms.len(), x.n_parts, d.n_parts);
        launch!(T, &device, "add_outer_sq_norm", n; x_parts, x.values.as_view(), d_parts, d.values.as_view(), norms)
    })
}

/// A matrix whose columns are summed: `columns` of them, from `first_column` on.
struct Columns<'a, T> {
    values: CudaView<'a, T>,
    rows: usize,
    row_stride: usize,
    first_column: usize,
}

/// The columns' sums, weighted by rows if there are weights, into `dst` or added to it.
fn sum_columns<T: Real>(
    device: &CudaDevice,
    dst: CudaViewMut<'_, T>,
    matrix: Columns<'_, T>,
    weights: Option<&[f64]>,
    accumulate: bool,
) -> Result<()> {
    let Columns { values, rows, row_stride, first_column } = matrix;
    let columns = dst.len();
    // With many columns one thread sums each: partial sums would take as much memory as the matrix.
    // With few rows a thread has some of them, which saves a launch for the sum of the parts.
    let n_parts = (ENOUGH_THREADS / columns.max(1)).min(rows.div_ceil(ROWS_OF_PART)).clamp(1, COLUMN_PARTS);
    let mut parts = Parts::new(device, n_parts, columns)?;
    // Without weights the kernel reads none, but it takes a pointer.
    let weighted = weights.is_some();
    let weights = weights_on_device(device, weights.unwrap_or(&[1.0]))?;
    launch!(
        T, device, "column_sum_parts", n_parts * columns;
        rows, row_stride, first_column, columns, n_parts, values, u32::from(weighted), weights.as_view(),
        parts.values.as_view_mut()
    )?;
    let parts = parts.folded::<T>(device, columns)?;
    let n_parts = parts.n_parts;
    launch!(T, device, "write_total", columns; n_parts, parts.values.as_view(), dst, u32::from(accumulate))
}

pub(in crate::ops) fn column_sum(dst: Destination<'_>, src: Source<'_>, accumulate: bool) -> Result<()> {
    for_float!(dtype(dst.0), "column-sum", T => {
        let device = dst.0.device.clone();
        let (rows, row_stride) = rows_and_columns(src.1)?;
        let dst = destination::<T>(dst)?;
        same("columns to sum", dst.len(), row_stride)?;
        let matrix = Columns { values: source::<T>(src)?, rows, row_stride, first_column: 0 };
        sum_columns(&device, dst, matrix, None, accumulate)
    })
}

pub(in crate::ops) fn sum_rows(dst: Destination<'_>, src: Source<'_>, weights: &[f64]) -> Result<()> {
    for_float!(dtype(dst.0), "sum-rows", T => {
        let device = dst.0.device.clone();
        let (rows, row_stride) = rows_and_columns(src.1)?;
        same("weights of rows", rows, weights.len())?;
        let dst = destination::<T>(dst)?;
        same("columns to sum", row_stride, dst.len())?;
        let matrix = Columns { values: source::<T>(src)?, rows, row_stride, first_column: 0 };
        sum_columns(&device, dst, matrix, Some(weights), false)
    })
}

pub(in crate::ops) fn weighted_column_sum(
    dst: Destination<'_>,
    src: Source<'_>,
    weights: &[f64],
    first_column: usize,
    accumulate: bool,
) -> Result<()> {
    for_float!(dtype(dst.0), "weighted-column-sum", T => {
        let device = dst.0.device.clone();
        let (rows, row_stride) = rows_and_columns(src.1)?;
        same("weights of rows", rows, weights.len())?;
        let dst = destination::<T>(dst)?;
        let last = first_column + dst.len();
        if last > row_stride {
            return Err(Error::Msg(format!("columns to sum: expected at most {row_stride}, got {last}")));
        }
        let matrix = Columns { values: source::<T>(src)?, rows, row_stride, first_column };
        sum_columns(&device, dst, matrix, Some(weights), accumulate)
    })
}

pub(in crate::ops) fn scale_rows(dst: Destination<'_>, src: Source<'_>, weights: &[f64]) -> Result<()> {
    for_float!(dtype(dst.0), "scale-rows", T => {
        let device = dst.0.device.clone();
        let (rows, columns) = rows_and_columns(dst.1)?;
        same("weights of rows", rows, weights.len())?;
        let (dst, src) = (destination::<T>(dst)?, source::<T>(src)?);
        same("elements to scale", dst.len(), src.len())?;
        let weights = weights_on_device(&device, weights)?;
        let mut dst = dst;
        for some in launches(rows, columns)? {
            let (range, weights) = (values_of(&some, columns), weights.slice(some));
            let (dst, src) = (dst.slice_mut(range.clone()), src.slice(range));
            launch!(T, &device, "scale_rows", dst.len(); Divisor::new(columns)?, dst, src, weights)?;
        }
        Ok(())
    })
}

pub(in crate::ops) fn repeat_row(dst: Destination<'_>, row: Source<'_>) -> Result<()> {
    for_float!(dtype(dst.0), "repeat-row", T => {
        let device = dst.0.device.clone();
        let (_, columns) = rows_and_columns(dst.1)?;
        let (dst, row) = (destination::<T>(dst)?, source::<T>(row)?);
        same("columns of a repeated row", columns, row.len())?;
        fill_with_row(&device, dst, &row)
    })
}

pub(in crate::ops) fn gather_rows(dst: Destination<'_>, table: Source<'_>, rows: &[usize]) -> Result<()> {
    for_float!(dtype(dst.0), "gather-rows", T => {
        let device = dst.0.device.clone();
        let (n_rows, columns) = rows_and_columns(dst.1)?;
        let (n_table, table_columns) = rows_and_columns(table.1)?;
        same("rows to gather", n_rows, rows.len())?;
        same("columns to gather", columns, table_columns)?;
        if let Some(row) = rows.iter().find(|&&row| row >= n_table) {
            return Err(Error::Msg(format!("row {row} of a table with {n_table} rows")));
        }
        let (dst, table) = (destination::<T>(dst)?, source::<T>(table)?);
        let rows = upload(&device, rows)?;
        let mut dst = dst;
        for some in launches(n_rows, columns)? {
            let (dst, rows) = (dst.slice_mut(values_of(&some, columns)), rows.slice(some));
            launch!(T, &device, "gather_rows", dst.len(); Divisor::new(columns)?, dst, table.slice(..), rows)?;
        }
        Ok(())
    })
}
