//! A step that several ranks take together.

use std::ops::Range;

use dp_clipping::Coupling;
use dp_engine::Records;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::gradient::Pass;
use super::{Execution, Trainer};
use crate::checkpoint::{ExecutionState, to_value};
use crate::error::{Result, TrainError};
use crate::plan::Plan;
use crate::random_streams::RandomStreams;
use crate::ranks::{Alone, Collective, agree_on};

/// Steps from one comparison of the ranks to the next.
const STEPS_PER_COMPARISON: u64 = 64;

/// Refuses records that are not this rank's, and methods that ranks cannot share.
pub(super) fn check(plan: &Plan, records: &Records, ranks: &dyn Collective) -> Result<()> {
    let held = plan.held_by(ranks.rank(), ranks.size());
    if records.held() != held {
        let what = format!("records of rank {} of {}", ranks.rank(), ranks.size());
        return Err(TrainError::mismatch(what, format!("{held:?}"), format!("{:?}", records.held())));
    }
    if ranks.size() == 1 || plan.certified() && plan.coupling() == Coupling::None {
        return Ok(());
    }
    let expected = "1: without a certified method a sum depends on how it is split";
    Err(TrainError::invalid("ranks", ranks.size(), expected))
}

/// Refuses ranks that do not have one plan, the same streams and the same arithmetic: before
/// anything is drawn. Fields of plan and arithmetic are public, and those that differ are named.
pub(super) fn agree(plan: &Plan, records: &Records, streams: &RandomStreams, execution: &Execution) -> Result<()> {
    let ranks = &*execution.ranks;
    if ranks.size() == 1 {
        return Ok(());
    }
    agree_on(ranks, "run", &of_all_ranks(plan, records, execution)?)?;
    Ok(ranks.agree("random streams", streams.digest().as_bytes())?)
}

/// The public facts of a run that must be the same on all ranks.
fn of_all_ranks(plan: &Plan, records: &Records, execution: &Execution) -> Result<Value> {
    Ok(json!({
        "config": to_value(plan.config())?,
        "facts": to_value(&plan.facts())?,
        "given": plan.conditions(),
        // Also what was paid for before the first step.
        "ledger": plan.ledger(plan.config().batches.steps)?.digest(),
        "execution": to_value(&ExecutionState::of(execution, plan.certified()))?,
        "numbers": format!("{:?}", records.dtype()),
    }))
}

/// A number of each record, as ranks exchange it.
fn append(message: &mut Vec<u8>, values: impl Iterator<Item = u64>) {
    values.for_each(|value| message.extend(value.to_le_bytes()));
}

/// How many records were drawn is private.
fn other_batch() -> TrainError {
    TrainError::Ranks("the records drawn here are not those of all ranks together".to_owned())
}

impl Trainer<'_> {
    /// The records of a batch that this rank holds: a range of positions in it.
    pub(super) fn share_of(&self, rows: &[usize]) -> Range<usize> {
        let held = self.records.held();
        rows.partition_point(|&row| row < held.start)..rows.partition_point(|&row| row < held.end)
    }

    /// The pass over the whole batch of `n_drawn` records, out of what each rank has of it.
    ///
    /// Every rank then gives the clipping method the same batch and the same noise, and so has the
    /// same scales and thresholds.
    pub(super) fn whole(&self, pass: Pass, n_drawn: usize) -> Result<Pass> {
        let ranks = &self.execution.ranks;
        if ranks.size() == 1 {
            return Ok(pass);
        }
        let mut message = Vec::with_capacity(24 * pass.norms.len());
        append(&mut message, pass.losses.iter().map(|loss| loss.to_bits()));
        append(&mut message, pass.norms.iter().map(|norm| norm.to_bits()));
        append(&mut message, pass.groups.iter().map(|&group| group as u64));
        let (mut losses, mut norms, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for part in ranks.gather(message)? {
            let values = part.as_chunks::<8>().0;
            let mut thirds = values.chunks_exact((values.len() / 3).max(1));
            let mut next = || thirds.next().unwrap_or_default().iter().map(|bytes| u64::from_le_bytes(*bytes));
            losses.extend(next().map(f64::from_bits));
            norms.extend(next().map(f64::from_bits));
            groups.extend(next().map(|group| group as usize));
        }
        if norms.len() != n_drawn {
            return Err(other_batch());
        }
        Ok(Pass::of(losses, norms, groups))
    }

    /// [`Self::whole`] and the sum of all ranks, in the message of the sum: for scales that no rank
    /// needs another for. `share` is where this rank's records are in the batch.
    pub(super) fn whole_with_sum(&mut self, pass: &Pass, share: Range<usize>, n_drawn: usize) -> Result<Pass> {
        // A place for each record of the batch. All ranks but one have 0 there, so that the sum has
        // what that one has; a record that no rank has is one without a group.
        let mut numbers = vec![0_i64; 3 * n_drawn];
        let (losses, rest) = numbers.split_at_mut(n_drawn);
        let (norms, groups) = rest.split_at_mut(n_drawn);
        for (i, place) in share.enumerate() {
            losses[place] = pass.losses[i].to_bits().cast_signed();
            norms[place] = pass.norms[i].to_bits().cast_signed();
            groups[place] = (pass.groups[i] as u64 + 1).cast_signed();
        }
        let ranks = self.execution.ranks.clone();
        self.clipped()?.share_with(&mut numbers, &*ranks)?;
        let float = |bits: &i64| f64::from_bits(bits.cast_unsigned());
        let group = |number: &i64| usize::try_from(number - 1).ok();
        let (losses, norms) = numbers[..2 * n_drawn].split_at(n_drawn);
        let groups: Vec<usize> = numbers[2 * n_drawn..].iter().filter_map(group).collect();
        if groups.len() != n_drawn {
            return Err(other_batch());
        }
        Ok(Pass::of(losses.iter().map(float).collect(), norms.iter().map(float).collect(), groups))
    }

    /// Ends the run if a rank is about to take another step than rank 0, or none: it would meet the
    /// others in the middle of theirs.
    pub(super) fn agree_to_step(&self) -> Result<()> {
        Ok(self.execution.ranks.agree("a step", &self.counts.steps.to_le_bytes())?)
    }

    /// The same before steps in a row, which may stop early.
    pub(super) fn agree_to_run(&self, until: u64) -> Result<()> {
        let ranks = &*self.execution.ranks;
        if ranks.size() == 1 {
            return Ok(());
        }
        let value = json!({
            "steps taken": self.counts.steps,
            "until step": until,
            "validation records": self.control.validation.map(|validation| validation.digest(&Alone)).transpose()?,
            "checkpoints": self.control.checkpoints.is_some(),
        });
        agree_on(ranks, "what to run", &value)
    }

    /// [`Self::compare_ranks`] now and then.
    pub(super) fn compare_ranks_if_due(&self) -> Result<()> {
        if self.counts.steps.is_multiple_of(STEPS_PER_COMPARISON) { self.compare_ranks() } else { Ok(()) }
    }

    /// Ends the run if a rank has other parameters, another threshold, another ledger or streams at
    /// another position than rank 0.
    pub(super) fn compare_ranks(&self) -> Result<()> {
        let (steps, ranks) = (self.counts.steps, &self.execution.ranks);
        if ranks.size() == 1 {
            return Ok(());
        }
        let mut hasher = Sha256::new();
        // In one call: a call for each value would take longer than the digest.
        hasher.update(bytemuck::cast_slice::<f64, u8>(&self.engine.model().parameters().to_vec()?));
        let best = self.control.patience.best.as_ref().map(|(figure, _)| figure.to_bits());
        hasher.update(format!(
            "{:?} {} {} {best:?} {} {}",
            self.method.as_ref().map(|method| method.state()),
            self.ledger.digest(),
            self.streams.digest(),
            self.control.patience.epochs_without,
            self.control.patience.stopped
        ));
        let what = format!("parameters, thresholds, ledger and random streams after step {steps}");
        Ok(ranks.agree(&what, &hasher.finalize())?)
    }
}
