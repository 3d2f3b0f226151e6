//! A batch of several pieces in one pass, where the scales are known before the batch.

use dp_clipping::{AdvanceScale, Coupling};

use super::Trainer;
use super::gradient::Pass;
use crate::error::Result;

/// Records of a piece on the CPU. Each piece is computed once, so that small ones cost no more than a pass over the weights, and what a whole
/// micro-batch needs leaves the cache: 1,024 records at once took 1.3 times as long as 256 on the Esipova CNN.
const PIECE: usize = 256;

impl Trainer<'_> {
    /// The scale of each group's records, if no other record of the batch has a say in it: a constant threshold, or one that
    /// moves only between steps. Without a method there is none, and every record counts 1.
    pub(super) fn scales_in_advance(&self) -> Option<Vec<AdvanceScale>> {
        if self.plan.coupling() != Coupling::None {
            return None;
        }
        let Some(method) = &self.method else { return Some(Vec::new()) };
        (0..self.records.facts().n_groups).map(|group| method.scale_in_advance(group)).collect()
    }

    /// Losses, norms and the weighted sum, piece by piece, each computed once. Returns the scales of the sum too: it stands only
    /// if they turn out to be those of the method.
    pub(super) fn summing_pass(
        &mut self,
        rows: &[usize],
        groups: &[usize],
        in_advance: &[AdvanceScale],
    ) -> Result<(Pass, Vec<f64>)> {
        let mut pass = Pass { losses: Vec::with_capacity(rows.len()), norms: Vec::new(), blanked: Vec::new() };
        let mut scales = Vec::with_capacity(rows.len());
        let micro_batch = self.execution.micro_batch;
        let size = if self.execution.device.is_cuda() { micro_batch } else { micro_batch.min(PIECE) };
        self.sum.clear();
        for (piece, (rows, groups)) in rows.chunks(size).zip(groups.chunks(size)).enumerate() {
            if in_advance.is_empty() {
                self.engine.differentiate(self.records, rows, &[])?;
                pass.losses.extend(self.engine.losses()?);
                scales.extend(rows.iter().map(|_| 1.0));
            } else {
                let norms = self.engine.differentiate_for_norms(self.records, rows)?;
                pass.losses.extend(self.engine.losses()?);
                let blanked: Vec<usize> = (0..norms.len()).filter(|&i| !norms[i].is_finite()).collect();
                if !blanked.is_empty() {
                    self.engine.differentiate(self.records, rows, &blanked)?;
                }
                pass.blanked.extend(blanked.iter().map(|i| piece * size + i));
                scales.extend(norms.iter().zip(groups).map(|(&norm, &group)| in_advance[group].scale(norm)));
                pass.norms.extend(norms);
            }
            self.engine.add_weighted(&scales[piece * size..], &mut self.sum)?;
        }
        Ok((pass, scales))
    }
}
