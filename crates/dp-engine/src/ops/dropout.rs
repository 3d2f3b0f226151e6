//! Dropout, its mask made anew wherever it is needed.

use candle_core::{Result, Tensor};

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, destination, dtype, for_float, rows_and_columns, same, source};
use super::in_place::{Operands, binary};
use crate::dropout::DropoutKey;
use crate::vector_math::vectorise;

/// A unit whose random word is below it is dropped: with probability ⌈2³² p⌉ / 2³², which is p to
/// 2.4e-10.
pub(super) fn threshold(probability: f64) -> u32 {
    (probability * 4_294_967_296.0).ceil() as u32
}

/// Units whose random numbers are made at a time: they stay in the first-level cache.
const UNITS: usize = 1024;

/// `dst[i, j] = src[i, j] / (1 − p)` where unit `j` of record `i` is kept, else 0: forward on
/// activations, backward on gradients.
///
/// The mask is computed from counters and never stored.
///
/// - `layer`: which of the model's dropout layers this is.
/// - `records`: number of each row's record in its data set.
/// - `probability`: `p`, the probability to be dropped, in [0, 1).
pub(crate) fn dropout(
    dst: &Tensor,
    src: &Tensor,
    key: DropoutKey,
    layer: u32,
    records: &[usize],
    probability: f64,
) -> Result<()> {
    binary("dropout", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "dropout", T => {
            let (rows, columns) = rows_and_columns(dst.1)?;
            same("record numbers of a batch", rows, records.len())?;
            let dst = destination::<T>(dst)?;
            let src = source::<T>(src)?;
            same("elements to drop from", dst.len(), src.len())?;
            let threshold = threshold(probability);
            let scale = T::from_double(1.0 / (1.0 - probability));
            let mut words = [0; UNITS];
            for (i, &record) in records.iter().enumerate() {
                let range = i * columns..(i + 1) * columns;
                let units = dst[range.clone()].chunks_mut(UNITS).zip(src[range].chunks(UNITS));
                for (block, (dst, src)) in units.enumerate() {
                    let words = &mut words[..dst.len().next_multiple_of(4)];
                    key.fill(layer, record as u64, (block * UNITS / 4) as u32, words);
                    vectorise(#[inline(always)] || {
                        for ((out, &v), &word) in dst.iter_mut().zip(src).zip(words.iter()) {
                            *out = if word < threshold { T::ZERO } else { v * scale };
                        }
                    });
                }
            }
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::dropout(dst, src, key, layer, records, probability),
    })
}
