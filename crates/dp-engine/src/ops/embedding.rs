//! Rows of a table, picked by ids that come as a record's input values.

use candle_core::{Error, Result, Tensor};

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, Source, destination, dtype, for_float, rows_and_columns, same, source};
use super::in_place::{Operands, ternary};

/// The ids of a batch and the width of what they stand for.
struct Ids<'a, T> {
    values: &'a [T],
    /// Ids of a record.
    positions: usize,
    /// Rows of the table.
    vocabulary: usize,
}

impl<'a, T: Element> Ids<'a, T> {
    fn new(ids: Source<'a>, vocabulary: usize) -> Result<Self> {
        let (_, positions) = rows_and_columns(ids.1)?;
        Ok(Self { values: source::<T>(ids)?, positions, vocabulary })
    }

    /// The row of the table for id number `i` of the batch. `None` for a value that is not finite:
    /// such a record is left out like any other whose values are not.
    fn row(&self, i: usize) -> Result<Option<usize>> {
        let id = self.values[i].to_double();
        if !id.is_finite() {
            return Ok(None);
        }
        if id >= 0.0 && id < self.vocabulary as f64 && id.fract() == 0.0 {
            return Ok(Some(id as usize));
        }
        let (record, position) = (i / self.positions, i % self.positions);
        let expected = format!("a whole number in 0..{}", self.vocabulary);
        Err(Error::Msg(format!("id {id} at position {position} of record {record} of the batch: expected {expected}")))
    }
}

/// `sum = Σ d[i, :]` over the places `i` of one id.
fn add_places<T: Element>(sum: &mut [f64], same_row: &[(usize, usize)], d: &[T]) {
    let channels = sum.len();
    sum.fill(0.0);
    for &(_, i) in same_row {
        for (sum, d) in sum.iter_mut().zip(&d[i * channels..(i + 1) * channels]) {
            *sum += d.to_double();
        }
    }
}

/// `dst[i, t, :] = table[ids[i, t], :]`; not a number where the id is not finite.
pub(crate) fn embedding_forward(dst: &Tensor, ids: &Tensor, table: &Tensor) -> Result<()> {
    ternary("embedding-forward", dst, ids, table, |operands| match operands {
        Operands::Cpu(dst, [ids, table]) => for_float!(dtype(dst.0), "embedding-forward", T => {
            let (vocabulary, channels) = rows_and_columns(table.1)?;
            let ids = Ids::<T>::new(ids, vocabulary)?;
            let table = source::<T>(table)?;
            let dst = destination::<T>(dst)?;
            same("values of an embedding", ids.values.len() * channels, dst.len())?;
            for (i, out) in dst.chunks_exact_mut(channels).enumerate() {
                match ids.row(i)? {
                    Some(row) => out.copy_from_slice(&table[row * channels..(row + 1) * channels]),
                    None => out.fill(T::from_double(f64::NAN)),
                }
            }
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [ids, table]) => cuda::embedding_forward(dst, ids, table),
    })
}

/// Adds the squared norm of each record's gradient: `dst[i] += Σ_v ‖Σ_{t: ids[i, t] = v} d[i, t,
/// :]‖²`, with the sources `ids` and `d`.
///
/// This is the Gram matrix of `d` summed over pairs of equal ids, without the pairs.
pub(crate) fn embedding_sq_norms(dst: &Tensor, ids: &Tensor, d: &Tensor, vocabulary: usize) -> Result<()> {
    ternary("embedding-sq-norms", dst, ids, d, |operands| match operands {
        Operands::Cpu(dst, [ids, d]) => {
            let dtype = dtype(ids.0);
            let norms = destination::<f64>(dst)?;
            for_float!(dtype, "embedding-sq-norms", T => {
                let ids = Ids::<T>::new(ids, vocabulary)?;
                let d = source::<T>(d)?;
                same("ids of a batch", norms.len() * ids.positions, ids.values.len())?;
                let channels = d.len() / ids.values.len().max(1);
                same("gradients of an embedding", ids.values.len() * channels, d.len())?;
                let mut sum = vec![0.0; channels];
                let mut order: Vec<(usize, usize)> = Vec::with_capacity(ids.positions);
                for (record, norm) in norms.iter_mut().enumerate() {
                    order.clear();
                    for i in record * ids.positions..(record + 1) * ids.positions {
                        match ids.row(i)? {
                            Some(row) => order.push((row, i)),
                            None => *norm = f64::NAN,
                        }
                    }
                    order.sort_unstable();
                    for same_row in order.chunk_by(|a, b| a.0 == b.0) {
                        add_places(&mut sum, same_row, d);
                        *norm += sum.iter().map(|v| v * v).sum::<f64>();
                    }
                }
                Ok(())
            })
        }
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [ids, d]) => cuda::embedding_sq_norms(dst, ids, d, vocabulary),
    })
}

/// `dst[v, :] = Σ_i weights[i] Σ_{t: ids[i, t] = v} d[i, t, :]`, or adds it, with the sources `ids`
/// and `d`; a record of weight 0 is not read.
///
/// The places of an id in a record are added in `f64` and rounded once, so that what a record adds
/// is the gradient whose norm [`embedding_sq_norms`] takes, however its places cancel.
pub(crate) fn embedding_sum(dst: &Tensor, ids: &Tensor, d: &Tensor, weights: &[f64], accumulate: bool) -> Result<()> {
    ternary("embedding-sum", dst, ids, d, |operands| match operands {
        Operands::Cpu(dst, [ids, d]) => for_float!(dtype(dst.0), "embedding-sum", T => {
            let (vocabulary, channels) = rows_and_columns(dst.1)?;
            let ids = Ids::<T>::new(ids, vocabulary)?;
            let d = source::<T>(d)?;
            let dst = destination::<T>(dst)?;
            same("ids of a batch", weights.len() * ids.positions, ids.values.len())?;
            same("gradients of an embedding", ids.values.len() * channels, d.len())?;
            if !accumulate {
                dst.fill(T::ZERO);
            }
            let mut sum = vec![0.0; channels];
            let mut order: Vec<(usize, usize)> = Vec::with_capacity(ids.positions);
            for (record, &weight) in weights.iter().enumerate().filter(|&(_, &weight)| weight != 0.0) {
                order.clear();
                for i in record * ids.positions..(record + 1) * ids.positions {
                    if let Some(row) = ids.row(i)? {
                        order.push((row, i));
                    }
                }
                order.sort_unstable();
                for same_row in order.chunk_by(|a, b| a.0 == b.0) {
                    add_places(&mut sum, same_row, d);
                    let row = same_row[0].0;
                    for (out, &sum) in dst[row * channels..(row + 1) * channels].iter_mut().zip(&sum) {
                        *out += T::from_double(weight * sum);
                    }
                }
            }
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [ids, d]) => cuda::embedding_sum(dst, ids, d, weights, accumulate),
    })
}
