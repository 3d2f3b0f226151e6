//! Rows of a table, picked by ids.

use candle_core::cuda::cudarc::driver::CudaSlice;
use candle_core::{CudaDevice, Error, Result};

use super::launch::launch;
use super::rows::Parts;
#[cfg(test)]
use super::upload::upload;
use super::upload::weights_on_device;
use super::view::{Destination, Real, Source, destination, dtype, scratch, source};
use crate::ops::element::{Element, for_float, rows_and_columns, same};

/// Partial sums that an id's channels are summed in, at most.
const LANES: usize = 32;

pub(in crate::ops) fn embedding_forward(dst: Destination<'_>, ids: Source<'_>, table: Source<'_>) -> Result<()> {
    for_float!(dtype(dst.0), "embedding-forward", T => {
        let device = dst.0.device.clone();
        let (vocabulary, channels) = rows_and_columns(table.1)?;
        let (ids, table) = (source::<T>(ids)?, source::<T>(table)?);
        let dst = destination::<T>(dst)?;
        same("values of an embedding", ids.len() * channels, dst.len())?;
        launch!(T, &device, "embedding_forward", dst.len(); vocabulary, channels, dst, ids, table)
    })
}

pub(in crate::ops) fn embedding_sq_norms(
    dst: Destination<'_>,
    ids: Source<'_>,
    d: Source<'_>,
    vocabulary: usize,
) -> Result<()> {
    for_float!(dtype(ids.0), "embedding-sq-norms", T => {
        let device = dst.0.device.clone();
        let norms = destination::<f64>(dst)?;
        let (_, positions) = rows_and_columns(ids.1)?;
        let (ids, d) = (source::<T>(ids)?, source::<T>(d)?);
        let records = norms.len();
        same("ids of a batch", records * positions, ids.len())?;
        let channels = d.len() / ids.len().max(1);
        same("gradients of an embedding", ids.len() * channels, d.len())?;
        let lanes = channels.clamp(1, LANES);
        let mut parts = Parts::new(&device, positions * lanes, records)?;
        launch!(
            T, &device, "embedding_sq_norm_parts", ids.len() * lanes;
            records, positions, vocabulary, channels, lanes, ids, d, parts.values.as_view_mut()
        )?;
        launch!(T, &device, "add_total", records; parts.n_parts, parts.values.as_view(), norms)
    })
}

/// Places are sorted by their row of the table, so that one thread sums a row's gradients in the
/// order of the batch.
pub(in crate::ops) fn embedding_sum(
    dst: Destination<'_>,
    ids: Source<'_>,
    d: Source<'_>,
    weights: &[f64],
    accumulate: bool,
) -> Result<()> {
    for_float!(dtype(dst.0), "embedding-sum", T => {
        let device = dst.0.device.clone();
        let (vocabulary, channels) = rows_and_columns(dst.1)?;
        let (_, positions) = rows_and_columns(ids.1)?;
        let (ids, d) = (source::<T>(ids)?, source::<T>(d)?);
        let mut dst = destination::<T>(dst)?;
        same("ids of a batch", weights.len() * positions, ids.len())?;
        same("gradients of an embedding", ids.len() * channels, d.len())?;
        if !accumulate {
            launch!(T, &device, "fill", dst.len(); dst.slice_mut(..), T::ZERO)?;
        }
        let n_ids = ids.len();
        if n_ids > 1 << 32 || vocabulary > 1 << 31 {
            let expected = "expected at most 2^32 and 2^31";
            return Err(Error::Msg(format!("ids of a batch, and rows of a table: {expected}, got {n_ids} and {vocabulary}")));
        }
        let weights = weights_on_device(&device, weights)?;
        let n_keys = n_ids.next_power_of_two();
        let mut keys = scratch::<u64>(&device, n_keys)?;
        launch!(
            T, &device, "embedding_keys", n_keys;
            n_ids, positions, vocabulary, ids, weights.as_view(), keys.as_view_mut()
        )?;
        sort::<T>(&device, &mut keys)?;
        launch!(
            T, &device, "embedding_sum", n_ids * channels;
            n_ids, positions, channels, d, weights.as_view(), keys.as_view(), dst
        )
    })
}

/// Sorts keys, as many as a power of two, in a fixed order of comparisons.
fn sort<T: Real>(device: &CudaDevice, keys: &mut CudaSlice<u64>) -> Result<()> {
    let n = keys.len();
    for run in (1..=n.ilog2()).map(|bits| 1_usize << bits) {
        for distance in (0..run.ilog2()).rev().map(|bits| 1_usize << bits) {
            launch!(T, device, "sort_step", n / 2; run, distance, keys.as_view_mut())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cuda::testing::device;

    #[test]
    fn keys_are_sorted() {
        let Some(device) = device() else { return };
        let device = device.as_cuda_device().unwrap();
        for n in [1, 2, 4, 256, 2_048] {
            let mut values: Vec<u64> = (0..n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7).collect();
            let mut keys = upload(device, &values).unwrap();
            sort::<f32>(device, &mut keys).unwrap();
            values.sort_unstable();
            assert_eq!(device.clone_dtoh(&keys).unwrap(), values, "{n}");
        }
    }
}
