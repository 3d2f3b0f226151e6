//! A clipped sum of many parameters, which ranks divide between them.

use std::ops::Range;

use candle_core::Tensor;

use super::clipped_sum::{CAPACITY, Grid, Part, add};
use crate::error::{Result, TrainError};
use crate::noise::BLOCK;
use crate::ops::{self, Summand};
#[cfg(feature = "audit")]
use crate::parameters::ParameterVector;
use crate::ranks::{Collective, shares};

/// Which rank has the sum of which parameters, and what the others gave for those of this one.
///
/// A rank gives nothing, a vector or integers for a range; all are rounded to the same grid and
/// added in integers, so that the sum is the same in every form.
#[derive(Default)]
pub(super) struct Division {
    /// This rank's number, and the ranges of all; none where the sum is not divided.
    ranges: Option<(usize, Vec<Range<usize>>)>,
    /// What this rank gave last.
    given: Vec<u64>,
    /// What the others gave last, one behind the other, and how many words each.
    received: Vec<u64>,
    lengths: Vec<usize>,
}

/// The form of what a rank gives for a range, the first word of it: values of the number type, or
/// multiples of the grid. A rank that has nothing gives no word.
const VALUES: u64 = 1;
const INTEGERS: u64 = 2;

impl Division {
    /// The sum is a whole one again.
    pub(super) fn end(&mut self) {
        self.ranges = None;
        self.lengths.clear();
    }

    /// The range of this rank.
    pub(super) fn own(&self) -> Option<Range<usize>> {
        let (rank, ranges) = self.ranges.as_ref()?;
        Some(ranges[*rank].clone())
    }

    /// Gives every rank what this one has of its range, on the CPU.
    pub(super) fn divide(&mut self, len: usize, parts: &mut [Part], grid: Grid, ranks: &dyn Collective) -> Result<()> {
        let ranges = shares(ranks.size(), len, BLOCK);
        self.given.clear();
        let mut lengths = Vec::with_capacity(ranges.len());
        for (rank, range) in ranges.iter().enumerate() {
            let start = self.given.len();
            if rank != ranks.rank() {
                give(parts, range, grid, &mut self.given)?;
            }
            lengths.push(self.given.len() - start);
        }
        self.lengths = ranks.exchange(&mut self.given, &lengths, &mut self.received)?;
        self.ranges = Some((ranks.rank(), ranges));
        Ok(())
    }

    /// What the others gave.
    pub(super) fn received(&self) -> Result<Vec<Summand<'_>>> {
        let mut rest = &self.received[..];
        let mut summands = Vec::with_capacity(self.lengths.len());
        for &length in &self.lengths {
            let (message, after) = rest.split_at(length);
            rest = after;
            match message {
                [] => {}
                [VALUES, values @ ..] => summands.push(Summand::Words(values)),
                [INTEGERS, steps @ ..] => summands.push(Summand::Integers(bytemuck::cast_slice(steps))),
                [form, ..] => return Err(TrainError::Ranks(format!("form {form} of a sum: expected 1 or 2"))),
            }
        }
        Ok(summands)
    }

    /// Completes a gradient on every rank; whether each one's range is finite.
    pub(super) fn complete(&mut self, gradient: &Tensor, is_finite: bool, ranks: &dyn Collective) -> Result<bool> {
        let Some((own, ranges)) = &self.ranges else { return Ok(is_finite) };
        let part = |range: &Range<usize>| gradient.narrow(0, range.start, range.len());
        self.given.clear();
        self.given.push(u64::from(is_finite));
        ops::append_words(&part(&ranges[*own])?, &mut self.given)?;
        let lengths = ranks.gather_words(&mut self.given, &mut self.received)?;
        self.lengths.clear();
        let (mut rest, mut all_finite) = (&self.received[..], true);
        for (rank, (range, length)) in ranges.iter().zip(lengths).enumerate() {
            let (message, after) = rest.split_at(length);
            rest = after;
            let [is_finite, values @ ..] = message else {
                return Err(TrainError::Ranks(format!("rank {rank} gave nothing of the gradient")));
            };
            all_finite &= *is_finite == 1;
            if rank != *own {
                ops::set_words(&part(range)?, values)?;
            }
        }
        Ok(all_finite)
    }

    /// The integers of all ranges, out of those that this rank has of its own; `like` is a vector
    /// of the parameters.
    #[cfg(feature = "audit")]
    pub(super) fn whole(
        &self,
        mut sum: Vec<i64>,
        like: &ParameterVector,
        grid: Grid,
        ranks: &dyn Collective,
    ) -> Result<Vec<i64>> {
        let Some(own) = self.own() else { return Ok(sum) };
        for summand in self.received()? {
            match summand {
                Summand::Integers(steps) => add(&mut sum, steps),
                Summand::Words(words) => {
                    let values = like.range(&own)?.zeros_like()?;
                    ops::set_words(&values, words)?;
                    ops::add_to_integers(&values, &mut sum, grid.step())?;
                }
                Summand::Vector(_) | Summand::InPlace => {}
            }
        }
        let all = ranks.gather(bytemuck::cast_slice(&sum).to_vec())?;
        Ok(bytemuck::pod_collect_to_vec(&all.concat()))
    }
}

/// Appends what a rank's threads have of a range.
fn give(parts: &mut [Part], range: &Range<usize>, grid: Grid, to: &mut Vec<u64>) -> Result<()> {
    let mut vectors = parts.iter().flat_map(Part::waiting);
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
            // NaN fails the comparison.
            is_finite &= ops::add_to_integers(&vector.range(range)?, sum, grid.step())? < CAPACITY;
        }
        part.note(is_finite);
    }
    Ok(())
}
