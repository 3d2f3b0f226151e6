//! Records of several positions.

use candle_core::cuda::cudarc::driver::{CudaView, CudaViewMut};
use candle_core::{CudaDevice, Result};

use super::fixed;
use super::launch::launch;
use super::product::{Matrices, Products};
use super::rows::Parts;
use super::view::{Destination, Real, Source, destination, dtype, source};
use crate::ops::element::{for_float, rows_and_columns, same};

/// Records whose products are formed at once, at most, and values of those products.
const RECORDS: usize = 256;
const VALUES: usize = 1 << 24;
/// Positions that one thread adds up.
const POSITIONS: usize = 32;

pub(in crate::ops) fn swap_axes(dst: Destination<'_>, src: Source<'_>, rows: usize, columns: usize) -> Result<()> {
    for_float!(dtype(dst.0), "swap-axes", T => {
        let device = dst.0.device.clone();
        let (dst, src) = (destination::<T>(dst)?, source::<T>(src)?);
        let len = rows * columns;
        same("values of records", src.len(), dst.len())?;
        same("values of records", src.len() / len.max(1) * len, src.len())?;
        launch!(T, &device, "swap_axes", dst.len(); rows, columns, dst, src)
    })
}

pub(in crate::ops) fn record_products(
    dst: Destination<'_>,
    lhs: Source<'_>,
    rhs: Source<'_>,
    positions: usize,
) -> Result<()> {
    for_float!(dtype(dst.0), "record-products", T => {
        let device = dst.0.device.clone();
        let ((lhs_rows, m), (rhs_rows, n)) = (rows_and_columns(lhs.1)?, rows_and_columns(rhs.1)?);
        same("rows of both factors", lhs_rows, rhs_rows)?;
        let records = lhs_rows / positions.max(1);
        let values = destination::<T>(dst)?;
        same("values of all records' products", records * m * n, values.len())?;
        let lhs = Matrices::one(source::<T>(lhs)?, positions, m).per_record(positions * m).transposed();
        let rhs = Matrices::one(source::<T>(rhs)?, positions, n).per_record(positions * n);
        let to = Products { values, row_stride: n, record_stride: m * n };
        fixed::record_products(&device, (records, fixed::at_once(VALUES, m * n).min(RECORDS)), to, &lhs, &rhs)
    })
}

pub(in crate::ops) fn sum_positions(dst: Destination<'_>, src: Source<'_>, positions: usize) -> Result<()> {
    for_float!(dtype(dst.0), "sum-positions", T => {
        let device = dst.0.device.clone();
        let (rows, columns) = rows_and_columns(src.1)?;
        let dst = destination::<T>(dst)?;
        same("sums over positions", rows / positions.max(1) * columns, dst.len())?;
        write_position_sums(&device, source::<T>(src)?, (positions, columns), dst, columns)
    })
}

/// Writes every record's sums over its positions, one for each column. The sums of a record begin
/// `stride` values after the sums of the record before.
pub(super) fn write_position_sums<T: Real>(
    device: &CudaDevice,
    src: CudaView<'_, T>,
    (positions, columns): (usize, usize),
    dst: CudaViewMut<'_, T>,
    stride: usize,
) -> Result<()> {
    let n = src.len() / positions.max(1);
    // By the positions alone: the sums of a record must not depend on the number of records.
    let lanes = positions.div_ceil(POSITIONS).max(1);
    let mut parts = Parts::new(device, lanes, n)?;
    launch!(
        T, device, "position_parts", n * lanes;
        n, positions, columns, lanes, src, parts.values.as_view_mut()
    )?;
    let parts = parts.folded::<T>(device, n)?;
    let n_parts = parts.n_parts;
    launch!(T, device, "write_position_totals", n; n_parts, parts.values.as_view(), columns, stride, dst)
}
