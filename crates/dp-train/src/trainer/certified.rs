//! The clipped sum of a certified step: piece by piece, in integers.

use std::ops::Range;

use candle_core::{Device, Tensor};
use dp_clipping::AdvanceScale;

use super::gradient::{Pass, Weighting};
use super::{StepSum, Trainer};
#[cfg(feature = "audit")]
use crate::audit::{Fault, planted};
use crate::cuda_device::kept_bytes;
use crate::engine::{ClippedSum, Grid, rounding_of_piece, sensitivity};
use crate::error::{Result, TrainError};
#[cfg(feature = "cuda")]
use crate::noise::NoiseSource;
use crate::noise::StepNoise;
use crate::ops::{self, FromIntegers};

/// Records of a chunk on the CPU where each is computed once: small ones cost no more than a pass
/// over the weights, and what a whole micro-batch needs leaves the cache: 1,024 records at once
/// took 1.3 times as long as 256 on the Esipova CNN.
const IN_CACHE: usize = 256;

impl Trainer<'_> {
    /// Losses, norms, scales and the clipped sum of a batch. Enters the ledger before anything is
    /// used.
    ///
    /// What a record adds depends on itself, the parameters and its scale; its piece on the draw.
    /// Chunks, the micro-batch and threads decide only when and where it is computed.
    pub(super) fn certified_sum(&mut self, rows: &[usize], wants_groups: bool) -> Result<(Pass, Weighting)> {
        // Of several ranks, each looks at its own records.
        let (share, n_drawn) = (self.share_of(rows), rows.len());
        let rows = &rows[share.clone()];
        #[cfg(feature = "audit")]
        if planted(Fault::SkippedPart) && rows.is_empty() && self.execution.ranks.size() > 1 {
            let pass = self.pass_of(rows);
            let weighting = self.weighting(&pass)?;
            self.begin_sum(weighting.bound)?;
            return Ok((pass, weighting));
        }
        let pieces = self.blocks.pieces(rows);
        let chunks = chunks_of(&pieces, self.records_at_once());
        let mut pass = self.pass_of(rows);
        let in_advance = self.scales_in_advance().filter(|_| chunks.len() > 1 && !wants_groups);
        let summed = if let Some(in_advance) = &in_advance {
            Some(self.summing_pass(rows, &pieces, in_advance, &mut pass)?)
        } else {
            for chunk in &chunks {
                self.differentiate_chunk(rows, &pieces[chunk.clone()], &mut pass)?;
            }
            None
        };
        let blanked = pass.blanked.clone();
        let whole = self.whole(pass, n_drawn)?;
        let weighting = self.weighting(&whole)?;
        // Before anything of the step is used: what cannot be recorded is not released.
        self.ledger.record(self.plan.step_event(), 1)?;
        let scales = &weighting.scales[share.clone()];
        let stands = summed.is_some_and(|(bound, in_advance)| bound == weighting.bound && in_advance == scales);
        if !stands {
            self.begin_sum(weighting.bound)?;
            let groups = wants_groups.then(|| &whole.groups[share]);
            self.sum_chunks(rows, &pieces, &chunks, scales, &blanked, groups)?;
        }
        self.add_other_ranks()?;
        Ok((whole, weighting))
    }

    /// Losses and norms of adjacent pieces, appended to those of the pieces before. The layers then
    /// hold the factors of the chunk, in which a record whose gradient is not finite is blanked.
    fn differentiate_chunk(&mut self, rows: &[usize], pieces: &[Range<usize>], pass: &mut Pass) -> Result<()> {
        let (range, pieces) = relative(pieces);
        let chunk = &rows[range.clone()];
        let norms = self.engine.differentiate_pieces(self.records, chunk, &[], &pieces)?;
        pass.losses.extend(self.engine.losses()?);
        let blanked: Vec<usize> = (0..norms.len()).filter(|&i| !norms[i].is_finite()).collect();
        if !blanked.is_empty() {
            // The others' norms and what they add are the same, bit for bit.
            self.engine.differentiate_pieces(self.records, chunk, &blanked, &pieces)?;
        }
        pass.blanked.extend(blanked.iter().map(|i| range.start + i));
        pass.norms.extend(norms);
        Ok(())
    }

    /// Losses, norms and the sum, chunk by chunk, each computed once. Returns the bound and the
    /// scales of the sum: it stands only if they turn out to be the method's.
    fn summing_pass(
        &mut self,
        rows: &[usize],
        pieces: &[Range<usize>],
        in_advance: &[AdvanceScale],
        pass: &mut Pass,
    ) -> Result<(f64, Vec<f64>)> {
        let bound = in_advance.iter().map(|scale| scale.rule.bound(scale.threshold)).fold(0.0, f64::max);
        self.begin_sum(bound)?;
        let at_once = self.records_at_once();
        let at_once = if self.execution.device.is_cuda() { at_once } else { at_once.min(IN_CACHE) };
        let mut scales = Vec::with_capacity(rows.len());
        for chunk in chunks_of(pieces, at_once) {
            let pieces = &pieces[chunk];
            self.differentiate_chunk(rows, pieces, pass)?;
            let (range, pieces) = relative(pieces);
            let records = pass.norms[range.clone()].iter().zip(&pass.groups[range.clone()]);
            scales.extend(records.map(|(&norm, &group)| in_advance[group].scale(norm)));
            self.add_pieces(&scales[range], &pieces)?;
        }
        Ok((bound, scales))
    }

    /// The sum with scales that the whole batch had a say in; with groups, also each one's mean
    /// gradient before clipping.
    fn sum_chunks(
        &mut self,
        rows: &[usize],
        pieces: &[Range<usize>],
        chunks: &[Range<usize>],
        scales: &[f64],
        blanked: &[usize],
        groups: Option<&[usize]>,
    ) -> Result<()> {
        if groups.is_some() {
            self.begin_groups()?;
        }
        for chunk in chunks {
            let (range, pieces) = relative(&pieces[chunk.clone()]);
            let blanked: Vec<usize> = blanked.iter().filter(|i| range.contains(i)).map(|i| i - range.start).collect();
            // The factors are still there if the batch is one chunk.
            if chunks.len() > 1 {
                self.engine.differentiate_pieces(self.records, &rows[range.clone()], &blanked, &pieces)?;
            }
            self.add_pieces(&scales[range.clone()], &pieces)?;
            if let Some(groups) = groups {
                self.add_groups(&groups[range], &blanked)?;
            }
        }
        Ok(())
    }

    /// The sum of all ranks, in the place of this one's.
    fn add_other_ranks(&mut self) -> Result<()> {
        let ranks = self.execution.ranks.clone();
        if ranks.size() == 1 { Ok(()) } else { self.clipped()?.share(&*ranks) }
    }

    fn begin_sum(&mut self, bound: f64) -> Result<()> {
        let grid = Grid::new(bound, self.plan.facts().n_records);
        self.clipped()?.begin(grid);
        Ok(())
    }

    fn add_pieces(&mut self, scales: &[f64], pieces: &[Range<usize>]) -> Result<()> {
        let StepSum::Clipped(sum) = &mut self.sum else { return Err(not_certified()) };
        self.engine.add_pieces(scales, pieces, sum)
    }

    fn clipped(&mut self) -> Result<&mut ClippedSum> {
        match &mut self.sum {
            StepSum::Clipped(sum) => Ok(sum),
            StepSum::Plain(_) => Err(not_certified()),
        }
    }

    /// Records in memory at once: those of the micro-batch, and fewer where the gradients that
    /// layers keep would take too much.
    fn records_at_once(&self) -> usize {
        let kept = self.engine.model().kept_values() * self.records.dtype().size_in_bytes();
        self.execution.micro_batch.min(kept_bytes(&self.execution.device) / kept.max(1)).max(1)
    }

    /// By how much the sum of a step changes at most when one record is blanked: the method's
    /// bound, and what the rounding of the one piece that changes adds. A function of public
    /// numbers; the noise is in proportion to it.
    pub(super) fn sensitivity(&self, bound: f64) -> f64 {
        let model = self.engine.model();
        let unit = match self.records.dtype() {
            candle_core::DType::F64 => f64::EPSILON / 2.0,
            _ => f64::from(f32::EPSILON) / 2.0,
        };
        let of_piece = rounding_of_piece(self.blocks.longest(), &model.chained_terms(), unit);
        let grid = Grid::new(bound, self.plan.facts().n_records);
        sensitivity(bound, of_piece, grid.step(), model.parameters().len())
    }

    /// From the sum to the gradient: noise for its sensitivity, and division by the public expected
    /// batch size.
    pub(super) fn privatise_certified(&mut self, bound: f64) -> Result<()> {
        let privacy = self.plan.config().privacy.as_ref().ok_or_else(not_certified)?;
        let std = privacy.noise_multiplier.get() * self.sensitivity(bound);
        if !(std.is_finite() && std > 0.0) {
            return Err(TrainError::invalid("noise_std", std, "a finite number above 0"));
        }
        #[cfg(feature = "audit")]
        if planted(Fault::RankNoise) || planted(Fault::RankStream) {
            return self.privatise_with_fault(std);
        }
        let noise = StepNoise::draw(&mut self.streams.noise, std);
        let normaliser = self.plan.expected_batch_size();
        let step = self.counts.steps;
        let StepSum::Clipped(sum) = &mut self.sum else { return Err(not_certified()) };
        let ranks = &*self.execution.ranks;
        let range = sum.range()?;
        let (grid, threads) = (sum.grid().step(), self.engine.threads());
        let how = FromIntegers { grid, start: range.start, noise, normaliser, threads };
        let on_host = |gradient: &Tensor, sum: &mut ClippedSum| -> Result<bool> {
            let share = gradient.narrow(0, range.start, range.len())?;
            let finite = ops::from_integers(&share, &sum.summands()?, &how)? && sum.is_finite();
            sum.complete(gradient, finite, ranks)
        };
        let finite = match self.execution.device {
            Device::Cpu => on_host(&sum.gradient()?.flat().clone(), sum)?,
            #[cfg(feature = "cuda")]
            _ if self.execution.noise == NoiseSource::Device && (ranks.size() == 1 || ranks.sums_on_devices()) => {
                let (gradient, integers) = sum.on_device()?;
                ops::from_device_integers(gradient.flat(), integers, &how)? && sum.is_finite()
            }
            _ => {
                sum.on_host()?;
                let gradient = sum.gradient()?.flat().clone();
                let made = Tensor::zeros(gradient.elem_count(), gradient.dtype(), &Device::Cpu)?;
                let finite = on_host(&made, sum)?;
                gradient.slice_set(&made.to_device(gradient.device())?, 0, 0)?;
                finite
            }
        };
        if finite { Ok(()) } else { Err(TrainError::Diverged { step }) }
    }
}

fn not_certified() -> TrainError {
    TrainError::mismatch("sum of a certified step", "a clipped sum", "another")
}

/// Chunks of adjacent pieces, of at most so many records each, or of one piece: ranges of pieces.
fn chunks_of(pieces: &[Range<usize>], at_once: usize) -> Vec<Range<usize>> {
    let mut chunks: Vec<Range<usize>> = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        match chunks.last_mut() {
            Some(chunk) if piece.end - pieces[chunk.start].start <= at_once => chunk.end = i + 1,
            _ => chunks.push(i..i + 1),
        }
    }
    // An empty batch is a chunk without a piece.
    if chunks.is_empty() {
        chunks.push(0..0);
    }
    chunks
}

/// The positions that adjacent pieces hold, and the pieces from there.
fn relative(pieces: &[Range<usize>]) -> (Range<usize>, Vec<Range<usize>>) {
    let start = pieces.first().map_or(0, |piece| piece.start);
    let end = pieces.last().map_or(0, |piece| piece.end);
    (start..end, pieces.iter().map(|piece| piece.start - start..piece.end - start).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_whole_pieces() {
        let pieces = [0..5, 5..9, 9..20, 20..21];
        assert_eq!(chunks_of(&pieces, 9), [0..2, 2..3, 3..4]);
        assert_eq!(chunks_of(&pieces, 1), [0..1, 1..2, 2..3, 3..4]);
        assert_eq!(chunks_of(&pieces, 100), vec![0..4; 1]);
        assert_eq!(chunks_of(&[], 5), vec![0..0; 1]);
        assert_eq!(relative(&pieces[1..3]), (5..20, vec![0..4, 4..15]));
    }
}
