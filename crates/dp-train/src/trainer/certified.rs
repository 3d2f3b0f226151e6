//! The clipped sum of a certified step: piece by piece, in integers.

use std::ops::Range;

use candle_core::{Device, Tensor};
use dp_clipping::AdvanceScale;
use dp_engine::collective::Collective;
#[cfg(feature = "cuda")]
use dp_engine::noise::NoiseSource;
use dp_engine::noise::StepNoise;
#[cfg(feature = "audit")]
use dp_engine::ops::Summand;
use dp_engine::ops::{self, FromIntegers};
use dp_engine::{ClippedSum, Grid, Reduction, hook, kept_bytes, rounding_of_piece, sensitivity};

use super::gradient::{Pass, Weighting};
use super::{StepSum, Trainer};
use crate::error::{Result, TrainError};

/// Records of all threads at once on the CPU where each is computed once: small ones cost no more than
/// a pass over the weights, and what a whole micro-batch needs leaves the cache.
const IN_CACHE: usize = 256;

impl Trainer<'_> {
    /// Losses, norms, scales and the clipped sum of a batch. Enters the ledger before anything is
    /// used.
    ///
    /// A record's term depends on the record, the parameters and its scale; its piece depends on
    /// the draw. Chunks, the micro-batch and threads decide only when and where the term is
    /// computed.
    pub(super) fn certified_sum(&mut self, rows: &[usize], wants_groups: bool) -> Result<(Pass, Weighting)> {
        // Each of several ranks processes its own records.
        let (share, n_drawn) = (self.share_of(rows), rows.len());
        let rows = &rows[share.clone()];
        let n_ranks = self.execution.ranks.size();
        if hook::holds(|other| other.skips_step(rows.len(), n_ranks)) {
            let pass = self.pass_of(rows);
            let weighting = self.weighting(&pass)?;
            self.begin_sum(weighting.bound)?;
            return Ok((pass, weighting));
        }
        let pieces = self.batching.blocks.pieces(rows);
        let chunks = chunks_of(&pieces, self.records_at_once());
        let mut pass = self.pass_of(rows);
        let ranks = self.execution.ranks.clone();
        let reduction = self.clipped()?.reduction(&*ranks)?;
        // All ranks choose the same, whatever their share of the batch.
        let is_worth_it = chunks.len() > 1
            || reduction != Reduction::Alone
            || pieces.iter().any(|piece| piece.len() > self.engine.stretch());
        let in_advance = self.scales_in_advance().filter(|_| is_worth_it && !wants_groups);
        let bound = if let Some(in_advance) = &in_advance {
            Some(self.summing_pass(rows, &pieces, in_advance, &mut pass)?)
        } else {
            for pieces in &chunks {
                self.differentiate_chunk(rows, pieces, &mut pass)?;
            }
            None
        };
        let blanked = pass.blanked.clone();
        let whole = match (reduction, &in_advance) {
            (Reduction::OneMessage, Some(_)) => self.whole_with_sum(&pass, share.clone(), n_drawn)?,
            (_, Some(_)) => {
                self.clipped()?.share(&*ranks)?;
                self.whole(pass, n_drawn)?
            }
            (_, None) => self.whole(pass, n_drawn)?,
        };
        let weighting = self.weighting(&whole)?;
        // Before anything of the step is used: what cannot be recorded is not released.
        self.enter(1)?;
        // The scales of all records are compared, so that all ranks find the same.
        let are_the_method_s =
            |in_advance: &Vec<AdvanceScale>| whole.scales(0..n_drawn, in_advance).eq(weighting.scales.iter().copied());
        let stands = bound == Some(weighting.bound) && in_advance.as_ref().is_some_and(are_the_method_s);
        if !stands {
            self.begin_sum(weighting.bound)?;
            // The layers hold the factors of the whole batch if it is one chunk.
            let are_kept = chunks.len() == 1 && in_advance.is_none();
            let groups = wants_groups.then(|| &whole.groups[share.clone()]);
            self.sum_chunks(rows, &chunks, are_kept, &weighting.scales[share], &blanked, groups)?;
            self.clipped()?.share(&*ranks)?;
        }
        Ok((whole, weighting))
    }

    /// Computes losses and norms of adjacent pieces, and appends them to `pass`. The layers then
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

    /// Losses, norms and the sum, each record computed once. Returns the bound of the sum, which
    /// stands only if bound and scales turn out to be the method's.
    fn summing_pass(
        &mut self,
        rows: &[usize],
        pieces: &[Range<usize>],
        in_advance: &[AdvanceScale],
        pass: &mut Pass,
    ) -> Result<f64> {
        let bound = in_advance.iter().map(|scale| scale.rule.bound(scale.threshold)).fold(0.0, f64::max);
        self.begin_sum(bound)?;
        let at_once = self.records_at_once();
        let at_once = if self.execution.device.is_cuda() { at_once } else { at_once.min(IN_CACHE) };
        let of_thread = (at_once / self.engine.threads().count()).max(1);
        let groups = &pass.groups;
        let scale = |position: usize, norm: f64| in_advance[groups[position]].scale(norm);
        let StepSum::Clipped(sum) = &mut self.buffers.sum else { return Err(not_certified()) };
        let overlapping = overlapping(sum, &*self.execution.ranks)?;
        let found =
            self.engine.differentiate_and_add(self.records, (rows, pieces), of_thread, &scale, sum, overlapping)?;
        (pass.losses, pass.norms, pass.blanked) = (found.losses, found.norms, found.blanked);
        Ok(bound)
    }

    /// The sum with scales that the whole batch had a say in; with groups, also each one's mean
    /// gradient before clipping. With `are_kept` there is one chunk, whose factors the layers hold.
    fn sum_chunks(
        &mut self,
        rows: &[usize],
        chunks: &[&[Range<usize>]],
        are_kept: bool,
        scales: &[f64],
        blanked: &[usize],
        groups: Option<&[usize]>,
    ) -> Result<()> {
        if groups.is_some() {
            self.begin_groups()?;
        }
        for (i, pieces) in chunks.iter().enumerate() {
            let (range, pieces) = relative(pieces);
            let blanked: Vec<usize> = blanked.iter().filter(|i| range.contains(i)).map(|i| i - range.start).collect();
            if !are_kept {
                self.engine.differentiate_pieces(self.records, &rows[range.clone()], &blanked, &pieces)?;
            }
            self.add_pieces(&scales[range.clone()], &pieces, i + 1 == chunks.len())?;
            if let Some(groups) = groups {
                self.add_groups(&groups[range], &blanked)?;
            }
        }
        Ok(())
    }

    fn begin_sum(&mut self, bound: f64) -> Result<()> {
        let grid = Grid::for_gradients(bound, self.plan.facts().n_records);
        self.clipped()?.begin(grid);
        Ok(())
    }

    /// Adds the pieces of a chunk; after the last the sum must be shared.
    fn add_pieces(&mut self, scales: &[f64], pieces: &[Range<usize>], is_last: bool) -> Result<()> {
        let StepSum::Clipped(sum) = &mut self.buffers.sum else { return Err(not_certified()) };
        let overlapping = overlapping(sum, &*self.execution.ranks)?.filter(|_| is_last);
        Ok(self.engine.add_pieces(scales, pieces, sum, overlapping)?)
    }

    pub(super) fn clipped(&mut self) -> Result<&mut ClippedSum> {
        match &mut self.buffers.sum {
            StepSum::Clipped(sum) => Ok(sum),
            StepSum::Plain(_) => Err(not_certified()),
        }
    }

    /// Records in memory at once: the micro-batch, or fewer if the gradients that layers keep would
    /// take too much.
    fn records_at_once(&self) -> usize {
        let kept = self.engine.kept_values() * self.records.dtype().size_in_bytes();
        self.batching.micro_batch.min(kept_bytes(&self.execution.device) / kept.max(1)).max(1)
    }

    /// By how much the sum of a step changes at most when one record is blanked: the method's
    /// bound, and what the rounding of the one piece that changes adds. A function of public
    /// numbers; the noise is in proportion to it.
    pub(super) fn sensitivity(&self, bound: f64) -> f64 {
        let unit = match self.records.dtype() {
            candle_core::DType::F64 => f64::EPSILON / 2.0,
            _ => f64::from(f32::EPSILON) / 2.0,
        };
        let of_piece = rounding_of_piece(self.batching.blocks.longest(), &self.engine.chained_terms(), unit);
        let grid = Grid::for_gradients(bound, self.plan.facts().n_records);
        let of_all = sensitivity(bound, of_piece, grid.step(), self.engine.model().parameters().len());
        self.by_group.as_ref().map_or(of_all, |by_group| by_group.sensitivity(bound, of_all))
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
        if hook::holds(|other| other.makes_noise()) {
            return self.privatise_by_hook(std);
        }
        #[cfg(feature = "audit")]
        let (std, added) = self.watched_sum(std)?;
        let noise = StepNoise::draw(&mut self.streams.noise, std);
        let normaliser = self.plan.expected_batch_size();
        let step = self.counts.steps;
        let StepSum::Clipped(sum) = &mut self.buffers.sum else { return Err(not_certified()) };
        let ranks = &*self.execution.ranks;
        let (grid, threads) = (sum.grid().step(), self.engine.threads());
        let from = |start| FromIntegers { grid, start, noise: &noise, normaliser, threads };
        let on_host = |gradient: &Tensor, sum: &mut ClippedSum| -> Result<bool> {
            let mut finite = sum.is_finite();
            for (number, range) in sum.ranges()?.into_iter().enumerate().filter(|(_, range)| !range.is_empty()) {
                let share = gradient.narrow(0, range.start, range.len())?;
                #[cfg_attr(not(feature = "audit"), expect(unused_mut, reason = "an audit adds to them"))]
                let mut summands = sum.summands(number, &range)?;
                #[cfg(feature = "audit")]
                summands.extend(added.get(range.clone()).map(Summand::Integers));
                finite &= ops::from_integers(&share, &summands, &from(range.start))?;
            }
            Ok(sum.complete(gradient, finite, ranks)?)
        };
        let finite = match self.execution.device {
            Device::Cpu => on_host(&sum.gradient()?.flat().clone(), sum)?,
            #[cfg(feature = "cuda")]
            _ if self.execution.noise == NoiseSource::Device
                && matches!(sum.reduction(ranks)?, Reduction::Alone | Reduction::OnDevices) =>
            {
                let (gradient, integers) = sum.on_device()?;
                ops::from_device_integers(gradient.flat(), integers, &from(0))? && sum.is_finite()
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
        if !finite {
            return Err(TrainError::Diverged { step });
        }
        #[cfg(feature = "audit")]
        self.show_noisy_sum()?;
        Ok(())
    }
}

fn not_certified() -> TrainError {
    TrainError::mismatch("sum of a certified step", "a clipped sum", "another")
}

/// The ranks, if they exchange late layers of this sum while they sum early ones.
fn overlapping<'a>(sum: &ClippedSum, ranks: &'a dyn Collective) -> Result<Option<&'a dyn Collective>> {
    Ok((sum.reduction(ranks)? == Reduction::Divided { overlaps: true }).then_some(ranks))
}

/// Chunks of adjacent pieces, each of at most `at_once` records, or of one piece.
fn chunks_of(pieces: &[Range<usize>], at_once: usize) -> Vec<&[Range<usize>]> {
    let (mut chunks, mut start) = (Vec::new(), 0);
    for (i, piece) in pieces.iter().enumerate() {
        if i > start && piece.end - pieces[start].start > at_once {
            chunks.push(&pieces[start..i]);
            start = i;
        }
    }
    // An empty batch is a chunk without a piece.
    chunks.push(&pieces[start..]);
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
        assert_eq!(chunks_of(&pieces, 9), [&pieces[..2], &pieces[2..3], &pieces[3..]]);
        assert_eq!(chunks_of(&pieces, 1), [&pieces[..1], &pieces[1..2], &pieces[2..3], &pieces[3..]]);
        assert_eq!(chunks_of(&pieces, 100), [&pieces[..]]);
        assert_eq!(chunks_of(&[], 5), [&pieces[..0]]);
        assert_eq!(relative(&pieces[1..3]), (5..20, vec![0..4, 4..15]));
    }
}
