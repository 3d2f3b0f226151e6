//! By how much one record moves a step.

use dp_engine::Records;
use dp_train::ranks::on_threads;
use dp_train::{BeforeNoise, Execution, FixedStep, Plan, Randomness, Result, TrainError, Trainer};
use std::num::NonZeroUsize;

use crate::plant::{Fault, with_planted};

/// How a step broke its promise.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Breach {
    /// The clipped sum moved by this many times the bound.
    Sum(f64),
    /// A count moved by this many times its declared sensitivity.
    Count(f64),
    /// The bound itself moved.
    Bound,
    /// The sum holds a value that is not finite.
    NotFinite,
    /// The step failed for one of the two neighbours.
    Stopped(String),
    /// The norm or the scale of another record changed: of this many.
    Coupled(usize),
    /// The sum has other bits with other micro-batches or threads, or on one rank alone.
    Split,
    /// Ranks have other bits than the first.
    Ranks,
}

impl Breach {
    /// How bad it is, for the choice of those that are shown: a ratio where there is one.
    fn severity(&self) -> f64 {
        match self {
            Self::Sum(ratio) | Self::Count(ratio) => *ratio,
            Self::NotFinite | Self::Stopped(_) => f64::INFINITY,
            Self::Bound | Self::Coupled(_) | Self::Split | Self::Ranks => 1.0,
        }
    }
}

impl std::fmt::Display for Breach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sum(ratio) => write!(f, "the sum moved by {ratio} times its bound"),
            Self::Count(ratio) => write!(f, "a count moved by {ratio} times its sensitivity"),
            Self::Bound => write!(f, "the bound moved"),
            Self::NotFinite => write!(f, "the sum is not finite"),
            Self::Stopped(error) => write!(f, "the step stopped: {error}"),
            Self::Coupled(n) => write!(f, "norms or scales of {n} other records changed"),
            Self::Split => write!(f, "the sum has other bits with other micro-batches, threads or ranks"),
            Self::Ranks => write!(f, "ranks have sums of other bits than the first"),
        }
    }
}

/// A step, and all that its neighbour shares with it.
pub struct Neighbours<'a> {
    /// The plan of both.
    pub plan: &'a Plan,
    /// The records of one.
    pub records: &'a Records,
    /// The records of the other: [`Self::record`] is blanked.
    pub blanked: &'a Records,
    /// Parameters, which were released before.
    pub parameters: &'a [f64],
    /// The other public and released values.
    pub fixed: &'a FixedStep,
    /// Record numbers, ascending.
    pub batch: &'a [usize],
    /// The record in which they differ.
    pub record: usize,
    /// How the steps are executed.
    pub execution: Execution,
    /// Another way to execute a step, on one rank, which must give the same bits.
    pub otherwise: Option<Execution>,
    /// Ranks, threads of this process, that take the steps together.
    pub ranks: NonZeroUsize,
}

/// Without parameters, counts and the batch.
impl std::fmt::Debug for Neighbours<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Neighbours")
            .field("plan", &self.plan)
            .field("records", &self.records)
            .field("record", &self.record)
            .field("execution", &self.execution)
            .field("otherwise", &self.otherwise)
            .field("ranks", &self.ranks)
            .finish_non_exhaustive()
    }
}

/// A step with the record, with the record not drawn, and with the record blanked.
type Steps = [Result<BeforeNoise>; 3];

/// The result of a comparison.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// Largest change of the sum over its bound, of which a record of a group may have a share alone.
    pub sum_ratio: f64,
    /// Largest change of a count over its declared sensitivity.
    pub count_ratio: f64,
    /// The worst way in which the step broke its promise.
    pub breach: Option<Breach>,
    /// Norms of the batch, the record among them.
    pub norms: Vec<f64>,
}

impl Comparison {
    /// The larger ratio, or worse: what a search makes larger.
    pub fn severity(&self) -> f64 {
        self.sum_ratio.max(self.count_ratio).max(self.breach.as_ref().map_or(0.0, Breach::severity))
    }

    fn note(&mut self, breach: Breach) {
        if self.breach.as_ref().is_none_or(|known| known.severity() < breach.severity()) {
            self.breach = Some(breach);
        }
    }

    /// Compares the sum of a step with its neighbour's. The record may reach this share of the bound.
    fn compare_sums(&mut self, with: &BeforeNoise, without: &BeforeNoise, share: f64) {
        if with.bound != without.bound {
            self.note(Breach::Bound);
        }
        if with.sum.iter().chain(&without.sum).all(|value| value.is_finite()) {
            let change = distance(&with.sum, &without.sum) / (with.bound * share);
            self.sum_ratio = self.sum_ratio.max(change);
            if change > 1.0 {
                self.note(Breach::Sum(change));
            }
        } else {
            self.note(Breach::NotFinite);
        }
    }

    /// Compares the counts of a step and all of its other records with a neighbour's, whose record
    /// at `position` is blanked, or not drawn.
    fn compare_others(&mut self, with: &BeforeNoise, without: &BeforeNoise, position: usize) {
        for (a, b) in with.counts.iter().zip(&without.counts) {
            let change = distance(&a.released, &b.released) / a.l2_sensitivity;
            self.count_ratio = self.count_ratio.max(change);
            if change > 1.0 {
                self.note(Breach::Count(change));
            }
        }
        let others = |step: &BeforeNoise, has_record: bool| -> Vec<[u64; 2]> {
            let of_records = step.norms.iter().zip(&step.scales).enumerate();
            of_records
                .filter(|(i, _)| !has_record || *i != position)
                .map(|(_, (norm, scale))| [norm.to_bits(), scale.to_bits()])
                .collect()
        };
        let (a, b) = (others(with, true), others(without, without.norms.len() == with.norms.len()));
        let n_changed = a.iter().zip(&b).filter(|(a, b)| a != b).count();
        if n_changed > 0 {
            self.note(Breach::Coupled(n_changed));
        }
    }
}

/// A plan whose groups are clipped at the threshold of the next one.
fn with_other_thresholds(plan: &Plan) -> Result<Plan> {
    let mut config = plan.config().clone();
    if let Some(shares) = config.group_sampling.as_mut().and_then(|sampling| sampling.shares.as_mut()) {
        shares.rotate_left(1);
    }
    if let Some(found) = config.rates_by_loss.as_mut().and_then(|limits| limits.levels.as_mut()) {
        let mut shares: Vec<f64> = found.levels.iter().map(|level| level.share).collect();
        shares.rotate_left(1);
        found.levels.iter_mut().zip(shares).for_each(|(level, share)| level.share = share);
    }
    Plan::new(config, plan.facts())
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

impl Neighbours<'_> {
    /// Takes the step with the record, with the record blanked, and with the record not drawn, and
    /// compares.
    ///
    /// # Errors
    /// If there cannot be a trainer for it. A step that fails is a breach.
    pub fn compare(&self) -> Result<Comparison> {
        self.compare_with(None)
    }

    /// With a fault planted, or with none.
    pub(super) fn compare_with(&self, fault: Option<Fault>) -> Result<Comparison> {
        let position = self.batch.iter().position(|&row| row == self.record).unwrap_or(0);
        let group = self.records.groups().get(self.record).copied().unwrap_or(0);
        let share = self.plan.rates_at(self.fixed.weights.as_deref()).map_or(1.0, |rates| rates[group].share);
        let planted = (fault == Some(Fault::OtherThreshold)).then(|| with_other_thresholds(self.plan)).transpose()?;
        let played = Neighbours {
            plan: planted.as_ref().unwrap_or(self.plan),
            otherwise: self.otherwise.clone(),
            execution: self.execution.clone(),
            ..*self
        };
        let mut comparison = Comparison::default();
        let mut of_ranks = played.on_ranks(fault)?;
        let [with, absent, blanked] = of_ranks.swap_remove(0);
        let stopped = |error: TrainError| Breach::Stopped(error.to_string());
        let with = match with {
            Ok(with) => with,
            Err(error) => {
                comparison.note(stopped(error));
                return Ok(comparison);
            }
        };
        comparison.norms.clone_from(&with.norms);
        match absent {
            Ok(without) => {
                comparison.compare_others(&with, &without, position);
                // Sums are compared only for full batches: a shorter draw may be cut into other
                // pieces, which is public.
                if self.plan.config().batches.sampling_rate.get() == 1.0 {
                    comparison.compare_sums(&with, &without, share);
                }
            }
            Err(error) => comparison.note(stopped(error)),
        }
        match blanked {
            Ok(without) => {
                comparison.compare_others(&with, &without, position);
                comparison.compare_sums(&with, &without, share);
            }
            Err(error) => comparison.note(stopped(error)),
        }
        for [other, ..] in of_ranks {
            match other {
                Ok(other) if other.bound != with.bound || !same_bits(&other.sum, &with.sum) => {
                    comparison.note(Breach::Ranks);
                }
                Ok(_) => {}
                Err(error) => comparison.note(stopped(error)),
            }
        }
        if let Some(otherwise) = &self.otherwise {
            let mut trainer = played.trainer(self.records, otherwise.clone())?;
            match with_planted(fault, || trainer.before_noise(self.batch, self.fixed)) {
                Ok(other) if !same_bits(&other.sum, &with.sum) => comparison.note(Breach::Split),
                Ok(_) => {}
                Err(error) => comparison.note(stopped(error)),
            }
        }
        Ok(comparison)
    }

    /// The steps as each rank took them.
    fn on_ranks(&self, fault: Option<Fault>) -> Result<Vec<Steps>> {
        if self.ranks == NonZeroUsize::MIN {
            return Ok(vec![with_planted(fault, || self.steps(self.records, self.blanked, self.execution.clone()))?]);
        }
        on_threads(self.ranks.get(), |ranks| {
            let held = self.plan.held_by(ranks.rank(), ranks.size());
            let (records, blanked) = (self.records.held_part(held.clone())?, self.blanked.held_part(held)?);
            let execution = Execution { ranks, ..self.execution.clone() };
            with_planted(fault, || self.steps(&records, &blanked, execution))
        })
    }

    fn steps(&self, records: &Records, blanked: &Records, execution: Execution) -> Result<Steps> {
        let mut absent = self.batch.to_vec();
        absent.retain(|&row| row != self.record);
        let mut trainer = self.trainer(records, execution)?;
        let with = trainer.before_noise(self.batch, self.fixed);
        let absent = trainer.before_noise(&absent, self.fixed);
        let blanked = trainer.on_records(blanked)?.before_noise(self.batch, self.fixed);
        Ok([with, absent, blanked])
    }

    fn trainer<'a>(&'a self, records: &'a Records, execution: Execution) -> Result<Trainer<'a>> {
        let streams = Randomness::from_seed(0).streams(0, 0)?;
        let trainer = Trainer::new(self.plan, records, streams, execution)?;
        trainer.model().parameters().set(self.parameters)?;
        Ok(trainer)
    }
}

fn same_bits(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}
