//! Rows of a table, picked by ids.

use candle_core::Result;

use super::launch::launch;
use super::rows::Parts;
use super::view::{Destination, Source, destination, dtype, scratch, source};
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

/// Ids are linked to the next place of the same row, so that one thread sums a row's gradients in
/// the order of the batch.
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
        let weights = device.clone_htod(weights)?;
        let mut next = scratch::<u64>(&device, n_ids)?;
        let mut linked = device.alloc_zeros::<u32>(n_ids)?;
        launch!(
            T, &device, "embedding_links", n_ids;
            positions, vocabulary, ids.slice(..), weights.as_view(), next.as_view_mut(), linked.as_view_mut()
        )?;
        launch!(
            T, &device, "embedding_sum", n_ids * channels;
            n_ids, positions, vocabulary, channels, ids, d, weights.as_view(), next.as_view(), linked.as_view(), dst
        )
    })
}
