//! Dropout, its mask made anew wherever it is needed.

use candle_core::{CpuStorage, InplaceOp2, Layout, Result, WithDType};

use super::element::{Element, destination, dtype, for_float, rows_and_columns, same, source};
use super::on_cuda::on_cuda;
use crate::dropout::DropoutKey;
use crate::vector_math::vectorise;

/// `dst[i, j] = src[i, j] / (1 − p)` where unit `j` of record `i` is kept, else 0: forward on activations, backward on gradients.
///
/// The mask is computed from counters and never stored.
pub(crate) struct Dropout<'a> {
    /// The step's key.
    pub(crate) key: DropoutKey,
    /// Which of the model's dropout layers this is.
    pub(crate) layer: u32,
    /// Number of each row's record in its data set.
    pub(crate) records: &'a [usize],
    /// `p`, the probability to be dropped, in [0, 1).
    pub(crate) probability: f64,
}

impl Dropout<'_> {
    /// A unit whose random word is below it is dropped: with probability ⌈2³² p⌉ / 2³², which is p to 2.4e-10.
    pub(super) fn threshold(&self) -> u32 {
        (self.probability * 4_294_967_296.0).ceil() as u32
    }
}

/// Units whose random numbers are made at a time: they stay in the first-level cache.
const UNITS: usize = 1024;

impl InplaceOp2 for Dropout<'_> {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, src: &CpuStorage, src_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "dropout", T => {
            let (rows, columns) = rows_and_columns(dst_l)?;
            same("record numbers of a batch", rows, self.records.len())?;
            let dst = destination::<T>(dst, dst_l)?;
            let src = source::<T>((src, src_l))?;
            same("elements to drop from", dst.len(), src.len())?;
            let threshold = self.threshold();
            let scale = T::from_f64(1.0 / (1.0 - self.probability));
            let mut words = [0; UNITS];
            for (i, &record) in self.records.iter().enumerate() {
                let range = i * columns..(i + 1) * columns;
                let units = dst[range.clone()].chunks_mut(UNITS).zip(src[range].chunks(UNITS));
                for (block, (dst, src)) in units.enumerate() {
                    let words = &mut words[..dst.len().next_multiple_of(4)];
                    self.key.fill(self.layer, record as u64, (block * UNITS / 4) as u32, words);
                    vectorise(#[inline(always)] || {
                        for ((out, &v), &word) in dst.iter_mut().zip(src).zip(words.iter()) {
                            *out = if word < threshold { T::ZERO } else { v * scale };
                        }
                    });
                }
            }
            Ok(())
        })
    }

    on_cuda!(|self, dst, src| cuda::dropout(self, dst, src));
}
