//! Dropout.

use candle_core::{Result, WithDType};

use super::launch::launch;
use super::upload::upload;
use super::view::{Destination, Source, destination, dtype, source};
use crate::dropout::DropoutKey;
use crate::ops::dropout::threshold;
use crate::ops::element::{for_float, rows_and_columns, same};

pub(in crate::ops) fn dropout(
    dst: Destination<'_>,
    src: Source<'_>,
    key: DropoutKey,
    layer: u32,
    records: &[usize],
    probability: f64,
) -> Result<()> {
    for_float!(dtype(dst.0), "dropout", T => {
        let device = dst.0.device.clone();
        let (rows, columns) = rows_and_columns(dst.1)?;
        same("record numbers of a batch", rows, records.len())?;
        let (dst, src) = (destination::<T>(dst)?, source::<T>(src)?);
        same("elements to drop from", dst.len(), src.len())?;
        let records = upload(&device, records)?;
        let scale = T::from_f64(1.0 / (1.0 - probability));
        launch!(
            T, &device, "dropout", rows * columns.div_ceil(4);
            columns, key.bits(), layer, records.as_view(), threshold(probability), scale, dst, src
        )
    })
}
