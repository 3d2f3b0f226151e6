//! Records of several positions.

use candle_core::cuda::cudarc::driver::CudaView;
use candle_core::{CudaDevice, Result};

use super::launch::launch;
use super::product::{Matrices, Products, products};
use super::rows::Parts;
use super::view::{Destination, Real, Source, destination, dtype, scratch, source};
use crate::ops::element::{for_float, rows_and_columns, same};
use crate::ops::flatten::SwapAxes;
use crate::ops::sequence::{RecordProducts, SequenceSqNorms, SumPositions};

pub(in crate::ops) fn swap_axes(op: &SwapAxes, dst: Destination<'_>, src: Source<'_>) -> Result<()> {
    for_float!(dtype(dst.0), "swap-axes", T => {
        let device = dst.0.device.clone();
        let (dst, src) = (destination::<T>(dst)?, source::<T>(src)?);
        let len = op.rows * op.columns;
        same("values of records", src.len(), dst.len())?;
        same("values of records", src.len() / len.max(1) * len, src.len())?;
        launch!(T, &device, "swap_axes", dst.len(); op.rows, op.columns, dst, src)
    })
}

/// In `f64`, as on the CPU: Gram matrices by cuBLAS, then the sum of their products.
pub(in crate::ops) fn sequence_sq_norms(
    op: &SequenceSqNorms,
    dst: Destination<'_>,
    x: Source<'_>,
    d: Source<'_>,
) -> Result<()> {
    for_float!(dtype(x.0), "sequence-sq-norms", T => {
        let device = dst.0.device.clone();
        let norms = destination::<f64>(dst)?;
        let ((x_rows, inputs), (d_rows, outputs)) = (rows_and_columns(x.1)?, rows_and_columns(d.1)?);
        same("rows of a linear layer's input", norms.len() * op.positions, x_rows)?;
        same("rows of a linear layer's output gradient", x_rows, d_rows)?;
        let (records, positions) = (norms.len(), op.positions);
        let x = gram(&device, source::<T>(x)?, (records, positions, inputs))?;
        let d = gram(&device, source::<T>(d)?, (records, positions, outputs))?;
        let mut parts = Parts::new(&device, positions, records)?;
        launch!(
            T, &device, "gram_product_parts", records * positions;
            records, positions, x.as_view(), d.as_view(), parts.values.as_view_mut()
        )?;
        launch!(T, &device, "add_total_of_square", records; positions, parts.values.as_view(), norms)
    })
}

/// `[records, positions, positions]`: products in `f64` between the positions of each record.
fn gram<T: Real>(
    device: &CudaDevice,
    rows: CudaView<'_, T>,
    (records, positions, columns): (usize, usize, usize),
) -> Result<candle_core::cuda::cudarc::driver::CudaSlice<f64>> {
    let mut wide = scratch::<f64>(device, rows.len())?;
    launch!(T, device, "widen", rows.len(); wide.as_view_mut(), rows)?;
    let mut gram = scratch::<f64>(device, records * positions * positions)?;
    let matrices = || Matrices::one(wide.as_view(), positions, columns).per_record(positions * columns);
    let to = Products { values: gram.as_view_mut(), row_stride: positions, record_stride: positions * positions };
    products(device, records, to, &matrices(), &matrices().transposed(), false)?;
    Ok(gram)
}

pub(in crate::ops) fn record_products(
    op: &RecordProducts,
    dst: Destination<'_>,
    lhs: Source<'_>,
    rhs: Source<'_>,
) -> Result<()> {
    for_float!(dtype(dst.0), "record-products", T => {
        let device = dst.0.device.clone();
        let ((lhs_rows, m), (rhs_rows, n)) = (rows_and_columns(lhs.1)?, rows_and_columns(rhs.1)?);
        same("rows of both factors", lhs_rows, rhs_rows)?;
        let records = lhs_rows / op.positions.max(1);
        let values = destination::<T>(dst)?;
        same("values of all records' products", records * m * n, values.len())?;
        let lhs = Matrices::one(source::<T>(lhs)?, op.positions, m).per_record(op.positions * m).transposed();
        let rhs = Matrices::one(source::<T>(rhs)?, op.positions, n).per_record(op.positions * n);
        let to = Products { values, row_stride: n, record_stride: m * n };
        products(&device, records, to, &lhs, &rhs, false)
    })
}

pub(in crate::ops) fn sum_positions(op: &SumPositions, dst: Destination<'_>, src: Source<'_>) -> Result<()> {
    for_float!(dtype(dst.0), "sum-positions", T => {
        let device = dst.0.device.clone();
        let (rows, columns) = rows_and_columns(src.1)?;
        let dst = destination::<T>(dst)?;
        same("sums over positions", rows / op.positions.max(1) * columns, dst.len())?;
        launch!(T, &device, "sum_positions", dst.len(); op.positions, columns, source::<T>(src)?, columns, dst)
    })
}
