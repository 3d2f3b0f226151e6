//! A clipped sum of many parameters, which ranks divide between them.

use std::ops::Range;

use candle_core::Tensor;

use super::clipped_sum::{ThreadSum, add};
use crate::collective::{Collective, Exchange, Exchanged, shares};
use crate::error::{EngineError, Result};
use crate::grid::Grid;
use crate::noise::BLOCK;
use crate::ops::{self, Summand};

/// The division of the parameters among ranks, and the terms that other ranks sent for the
/// parameters of this one.
///
/// Adjacent parameters are divided together, as a segment, and each rank has a range of every
/// segment. A rank gives nothing, a vector or integers for a range; all are rounded to the same grid
/// and added in integers, so that the sum is the same in every form.
#[derive(Default)]
pub(super) struct Division {
    /// This rank's number.
    rank: usize,
    /// Empty if the sum is not divided.
    segments: Vec<Segment>,
    /// Memory of segments of the past.
    spare: Vec<Exchanged>,
}

struct Segment {
    /// The range of each rank.
    ranges: Vec<Range<usize>>,
    state: State,
}

enum State {
    OnItsWay(Exchange),
    Here(Exchanged),
}

/// The form of what a rank gives for a range, the first word of it: values of the number type, or
/// multiples of the grid. A rank that has nothing gives no word.
const VALUES: u64 = 1;
const INTEGERS: u64 = 2;

impl Division {
    /// The sum is a whole one again.
    pub(super) fn end(&mut self) {
        for segment in self.segments.drain(..) {
            if let State::Here(exchanged) = segment.state {
                self.spare.push(exchanged);
            }
        }
    }

    /// The parameters that are not divided yet: all before the first segment, or `len`.
    pub(super) fn undivided(&self, len: usize) -> usize {
        let starts = self.segments.iter().filter_map(|segment| segment.ranges.first());
        starts.map(|range| range.start).min().unwrap_or(len)
    }

    /// This rank's range of each segment.
    pub(super) fn own(&self) -> impl Iterator<Item = Range<usize>> {
        self.segments.iter().map(|segment| segment.ranges[self.rank].clone())
    }

    /// Begins to give every rank what this one has of its range of these parameters, on the CPU. The
    /// parameters begin at a multiple of [`BLOCK`].
    pub(super) fn begin(
        &mut self,
        parameters: Range<usize>,
        parts: &mut [ThreadSum],
        grid: Grid,
        ranks: &dyn Collective,
    ) -> Result<()> {
        let of_rank = |range: Range<usize>| parameters.start + range.start..parameters.start + range.end;
        let ranges: Vec<_> = shares(ranks.size(), parameters.len(), BLOCK).into_iter().map(of_rank).collect();
        let Exchanged { mut words, received, mut lengths } = self.spare.pop().unwrap_or_default();
        words.clear();
        lengths.clear();
        for (rank, range) in ranges.iter().enumerate() {
            let start = words.len();
            if rank != ranks.rank() && !range.is_empty() {
                give(parts, range, grid, &mut words)?;
            }
            lengths.push(words.len() - start);
        }
        let state = State::OnItsWay(ranks.exchange(Exchanged { words, received, lengths })?);
        self.rank = ranks.rank();
        self.segments.push(Segment { ranges, state });
        Ok(())
    }

    /// Waits for what the others give.
    pub(super) fn finish(&mut self) -> Result<()> {
        for segment in std::mem::take(&mut self.segments) {
            let Segment { ranges, state } = segment;
            let exchanged = match state {
                State::OnItsWay(exchange) => exchange()?,
                State::Here(exchanged) => exchanged,
            };
            self.segments.push(Segment { ranges, state: State::Here(exchanged) });
        }
        Ok(())
    }

    /// The terms that the other ranks sent for this rank's range of a segment.
    pub(super) fn received(&self, segment: usize) -> Result<Vec<Summand<'_>>> {
        let Some(State::Here(Exchanged { received, lengths, .. })) =
            self.segments.get(segment).map(|segment| &segment.state)
        else {
            return Ok(Vec::new());
        };
        let mut rest = &received[..];
        let mut summands = Vec::with_capacity(lengths.len());
        for &length in lengths {
            let (message, after) = rest.split_at(length);
            rest = after;
            match message {
                [] => {}
                [VALUES, values @ ..] => summands.push(Summand::Words(values)),
                [INTEGERS, steps @ ..] => summands.push(Summand::Integers(bytemuck::cast_slice(steps))),
                // It is not shown: from another place of the run it is a sum without noise.
                _ => return Err(EngineError::Ranks("a rank gave a sum in an unknown form".to_owned())),
            }
        }
        Ok(summands)
    }

    /// Completes a gradient on every rank; whether each one's ranges are finite.
    pub(super) fn complete(&mut self, gradient: &Tensor, is_finite: bool, ranks: &dyn Collective) -> Result<bool> {
        if self.segments.is_empty() {
            return Ok(is_finite);
        }
        let part = |range: &Range<usize>| gradient.narrow(0, range.start, range.len());
        let Exchanged { mut words, mut received, lengths } = self.spare.pop().unwrap_or_default();
        words.clear();
        words.push(u64::from(is_finite));
        for range in self.own() {
            ops::append_words(&part(&range)?, &mut words)?;
        }
        let given = ranks.gather_words(&mut words, &mut received)?;
        let (mut rest, mut all_finite) = (&received[..], true);
        for (rank, length) in given.into_iter().enumerate() {
            let (message, after) = rest.split_at(length);
            rest = after;
            let Some((is_finite, mut values)) = message.split_first() else {
                return Err(EngineError::Ranks(format!("rank {rank} gave nothing of the gradient")));
            };
            all_finite &= *is_finite == 1;
            if rank == self.rank {
                continue;
            }
            for segment in &self.segments {
                values = ops::take_words(&part(&segment.ranges[rank])?, values)?;
            }
        }
        self.spare.push(Exchanged { words, received, lengths });
        Ok(all_finite)
    }

    /// Gathers the integers of all ranks' ranges of a segment; `own` are this rank's.
    pub(super) fn gather(
        &self,
        segment: usize,
        own: &[i64],
        ranks: &dyn Collective,
    ) -> Result<Vec<(Range<usize>, Vec<i64>)>> {
        let all = ranks.gather(bytemuck::cast_slice(own).to_vec())?;
        let ranges = self.segments[segment].ranges.iter().cloned();
        Ok(ranges.zip(all.iter().map(|part| bytemuck::pod_collect_to_vec(part))).collect())
    }
}

/// Appends what a rank's threads have of a range.
fn give(parts: &mut [ThreadSum], range: &Range<usize>, grid: Grid, to: &mut Vec<u64>) -> Result<()> {
    let mut vectors = parts.iter().flat_map(ThreadSum::waiting);
    let (first, second) = (vectors.next(), vectors.next());
    let counts = parts.iter().any(|part| part.integers().is_some());
    match (first, second, counts) {
        (None, _, false) => return Ok(()),
        (Some(vector), None, false) => {
            to.push(VALUES);
            return Ok(ops::append_words(&vector.range(range)?, to)?);
        }
        _ => {}
    }
    to.push(INTEGERS);
    let start = to.len();
    to.resize(start + range.len(), 0);
    let sum: &mut [i64] = bytemuck::cast_slice_mut(&mut to[start..]);
    for part in parts {
        if let Some(steps) = part.integers() {
            add(sum, &steps[range.clone()]);
        }
        let mut is_finite = true;
        for vector in part.waiting() {
            is_finite &= ops::add_to_integers(&vector.range(range)?, sum, grid.step())?;
        }
        part.note(is_finite);
    }
    Ok(())
}
