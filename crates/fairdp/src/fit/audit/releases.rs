//! Attacks on every release of a run but its gradients by name: one unit of extreme records, or blanks
//! in its place.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use dp_accounting::NoiseMultiplier;
use dp_audit::one_run::{Fault, ReleaseBound, TwoSamples};
use dp_linear::{ExactSum, Streams as _};
use dp_table::Encoding;
use fair_decisions::{N_CELLS, PrefixSums};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::rows::{Kind, MadeRows, Shape};
use super::watch::{Place, Recorder};
use super::{AttackedRelease, AuditFault, OfKind};
use crate::blocks::purposes;
use crate::bounds;
use crate::config::Config;
use crate::error::Result;
use crate::fit::candidates::Candidate;
use crate::fit::journal::{Journal, Progress};
use crate::fit::training::Training;
use crate::fit::{
    ANSWERS, CLASS_COUNTS, FitPlan, LABEL_MOMENTS, LENGTHS_OF_BLOCKS, RIGHT_ANSWERS, SCORES, SQUARES_OF_FEATURES,
    edges_of,
};
use crate::key::NoiseKey;
use crate::planned::Planned;
use crate::recipe::Method;
use crate::subset::Subset;

/// Other records: so many that a rare feature is not taken for noise. A release's noise does not depend
/// on how many there are.
const OTHERS: usize = 4_000;
/// Steps of which the sums are looked at.
const STEPS: u64 = 2;
/// Extreme records that are tried for each kind, of which the one counts that moves a sum the most.
const TRIED: usize = 3;
/// Repetitions at most, unless they are given.
const MOST_REPEATS: u32 = 20_000;
/// More kinds would make each test weaker than it is worth.
const MOST_KINDS: usize = 24;

/// The context of the attacks.
pub(super) struct Attacks<'a> {
    pub(super) config: &'a Config,
    pub(super) plan: &'a FitPlan,
    pub(super) encoding: &'a Encoding,
    pub(super) training: &'a Training<'a>,
    pub(super) key: &'a NoiseKey,
    pub(super) fault: Option<AuditFault>,
    pub(super) repeats: Option<u32>,
    /// Probability that any of the bounds is wrong, at most.
    pub(super) failure: f64,
}

/// A release of one kind that is to be attacked.
struct Target<'a> {
    planned: &'a Planned,
    kind: Kind,
    attacked: Attacked<'a>,
}

/// What is released in either world.
enum Attacked<'a> {
    /// Sums without the unit and with it.
    Sums(Box<[ExactSum; 2]>),
    /// Counts of a column by bin.
    Bounds(&'a crate::config::ColumnEntry),
    /// Counts of scores.
    Scores,
    /// Counts of answers.
    Answers,
}

impl Attacks<'_> {
    /// Attacks every release for every group and class.
    pub(super) fn all(&self, journal: &mut Journal<'_>) -> Result<Vec<AttackedRelease>> {
        let shape = Shape { encoding: self.encoding };
        let mut targets = Vec::new();
        for kind in shape.kinds().into_iter().take(MOST_KINDS) {
            let sums = self.sums(shape, kind)?;
            for planned in &self.plan.releases {
                let attacked = match sums.get(&planned.purpose) {
                    Some(sums) => Some(Attacked::Sums(Box::new(sums.clone()))),
                    None => self.counts(planned),
                };
                targets.extend(attacked.map(|attacked| Target { planned, kind, attacked }));
            }
        }
        let failure = self.failure / targets.len().max(1) as f64;
        let uncharged = self.uncharged();
        let groups = self.encoding.groups();
        targets
            .iter()
            .enumerate()
            .map(|(number, target)| {
                let mu = target.planned.noise_multiplier.get().recip();
                let is_charged = uncharged != Some(&target.planned.purpose);
                let test = TwoSamples {
                    claimed_mu: if is_charged { mu } else { 0.0 },
                    repeats: self.repeats.unwrap_or_else(|| TwoSamples::repeats_for(mu, failure, MOST_REPEATS)),
                    failure,
                };
                let bound = self.attack(target, test, number as u64)?;
                journal.step(number as u64 + 1, targets.len() as u64)?;
                let needed = TwoSamples::repeats_for(mu, failure, u32::MAX);
                Ok(AttackedRelease {
                    release: target.planned.purpose.clone(),
                    part: target.planned.part,
                    kind: OfKind {
                        group: groups.get(target.kind.group).map(ToString::to_string),
                        class: self.class_name(target.kind.class),
                    },
                    claimed_mu: bound.claimed_mu,
                    mu: bound.mu,
                    repeats: bound.repeats,
                    finds_half_the_noise: bound.repeats >= needed,
                    refuted: bound.refuted(),
                })
            })
            .collect()
    }

    fn class_name(&self, class: usize) -> String {
        let label = &self.encoding.schema().label;
        let end = |range: &dp_table::NumberLabel| if class == 0 { range.low } else { range.high }.to_string();
        label.classes.get(class).cloned().or_else(|| label.number.as_ref().map(end)).unwrap_or_default()
    }

    /// The release that a fault leaves out of the ledger: the first one.
    fn uncharged(&self) -> Option<&String> {
        let is_meant = self.fault == Some(AuditFault::Uncharged);
        self.plan.releases.first().filter(|_| is_meant).map(|planned| &planned.purpose)
    }

    /// The copies of a record that a unit has, and with a fault those of the first group twice.
    fn copies(&self, kind: Kind) -> u64 {
        let twice = self.fault == Some(AuditFault::GroupRate) && kind.group == 0;
        self.training.records_per_unit * if twice { 2 } else { 1 }
    }

    /// By purpose the sums of a run without a unit and with it, at the step in which it moves the sum
    /// the most over the noise.
    fn sums(&self, shape: Shape<'_>, kind: Kind) -> Result<HashMap<String, [ExactSum; 2]>> {
        let mut best: HashMap<String, (f64, [ExactSum; 2])> = HashMap::new();
        for number in 0..TRIED {
            let mut recorder = Recorder::default();
            let mut worlds: [HashMap<Place, ExactSum>; 2] = Default::default();
            for (world, sums) in worlds.iter_mut().enumerate() {
                let mut rows = MadeRows::of_all_kinds(shape, OTHERS);
                let canary = (world == 1).then_some(number * 7 + 1);
                (0..self.copies(kind)).for_each(|_| rows.push(shape, kind, canary));
                let watching = Arc::new(recorder);
                self.train(&rows, &self.key.watched(watching.clone()))?;
                (recorder, *sums) = watching.next();
            }
            let [without, mut with] = worlds;
            for (place, without) in without {
                let (Some(purpose), Some(with)) = (self.purpose(&place), with.remove(&place)) else { continue };
                let moved = Along::new(&without, &with).length / without.std;
                if best.get(&purpose).is_none_or(|(most, _)| moved > *most) {
                    best.insert(purpose, (moved, [without, with]));
                }
            }
        }
        Ok(best.into_iter().map(|(purpose, (_, sums))| (purpose, sums)).collect())
    }

    /// A run up to what is attacked here: the gradients of a method by name are not.
    fn train(&self, rows: &MadeRows, key: &NoiseKey) -> Result<()> {
        let mut silent = |_: Progress<'_>| ControlFlow::Continue(());
        let journal = &mut Journal::new(&mut silent, None);
        let candidate = &Candidate { steps: STEPS, ..self.plan.candidates[0].clone() };
        let before = self.training.prepare(candidate, rows, key)?;
        if !matches!(candidate.recipe.method, Method::Sgd(_)) {
            self.training.run(candidate, rows, &before, key, None, journal)?;
        }
        Ok(())
    }

    /// The purpose in the plan of a stream.
    fn purpose(&self, (stream, step): &Place) -> Option<String> {
        let of_block = |which: usize| {
            let block = self.training.blocks.get(*step as usize)?;
            Some(purposes(block)[which].clone())
        };
        Some(match stream.as_str() {
            "class counts" => CLASS_COUNTS.to_owned(),
            "label moments" => LABEL_MOMENTS.to_owned(),
            "feature squares" => SQUARES_OF_FEATURES.to_owned(),
            "mean" => return of_block(0),
            "covariance" => return of_block(1),
            "lengths" => LENGTHS_OF_BLOCKS.to_owned(),
            "right answers" => RIGHT_ANSWERS.to_owned(),
            "gradient" => "gradients".to_owned(),
            _ => return None,
        })
    }

    /// Counts that a run makes without a sum over rows.
    fn counts(&self, planned: &Planned) -> Option<Attacked<'_>> {
        let column = bounds::private_columns(self.config).find(|column| edges_of(column) == planned.purpose);
        match &*planned.purpose {
            SCORES => Some(Attacked::Scores),
            ANSWERS => Some(Attacked::Answers),
            _ => column.map(Attacked::Bounds),
        }
    }

    fn attack(&self, target: &Target<'_>, test: TwoSamples, number: u64) -> Result<ReleaseBound> {
        let mut rng = ChaCha20Rng::from_rng(&mut self.key.stream("attacks on releases", number));
        let sigma = self.noise(target.planned)?;
        let copies = self.counted(target);
        let mut attack = |released: &mut dyn FnMut(bool, &mut ChaCha20Rng) -> Result<f64>| {
            let mut failed = None;
            let bound = test.attack(|present| {
                Ok(released(present, &mut rng).unwrap_or_else(|error| {
                    failed = Some(error);
                    0.0
                }))
            })?;
            failed.map_or(Ok(bound), Err)
        };
        match &target.attacked {
            Attacked::Sums(sums) => {
                let [without, with] = &**sums;
                let along = Along::new(without, with);
                let fault = self.fault.and_then(AuditFault::of_run);
                attack(&mut |present, rng| {
                    let mut sum = if present { with } else { without }.clone();
                    sum.std = Fault::std(fault, sum.std);
                    Ok(along.project(&sum.release(rng)))
                })
            }
            Attacked::Bounds(column) => {
                attack(&mut |present, rng| Ok(bounds::attacked(column, if present { copies } else { 0 }, sigma, rng)))
            }
            Attacked::Answers => attack(&mut |present, rng| {
                let exact = vec![if present { copies as f64 } else { 0.0 }; 1];
                Ok(crate::fairness::noisy_counts(exact, sigma, self.config.counted_per_unit(), rng).0[0])
            }),
            Attacked::Scores => self.attack_scores(copies, sigma, attack),
        }
    }

    /// Scores are released as sums over cells: what tells of a record is along the direction in which it
    /// moves them.
    fn attack_scores(
        &self,
        copies: u64,
        sigma: NoiseMultiplier,
        attack: impl FnOnce(&mut dyn FnMut(bool, &mut ChaCha20Rng) -> Result<f64>) -> Result<ReleaseBound>,
    ) -> Result<ReleaseBound> {
        let sums = PrefixSums::new();
        let mut first = vec![0.0; N_CELLS];
        first[0] = 1.0;
        let direction = sums.encode(&first);
        let units = self.config.counted_per_unit();
        attack(&mut |present, rng| {
            let mut counts = vec![0.0; N_CELLS];
            counts[0] = if present { copies as f64 } else { 0.0 };
            let released = sums.release(&counts, sigma.get(), units, rng)?;
            Ok(sums.encode_released(&released).iter().zip(&direction).map(|(y, d)| y * d).sum())
        })
    }

    /// Records of a unit that are counted.
    fn counted(&self, target: &Target<'_>) -> u64 {
        let of_training = self.copies(target.kind);
        let twice = of_training / self.training.records_per_unit;
        match (&target.attacked, target.planned.part) {
            (Attacked::Bounds(_), _) => twice,
            (_, Subset::Training) if matches!(target.attacked, Attacked::Sums(_)) => of_training,
            _ => self.config.counted_per_unit() * twice,
        }
    }

    /// The noise of a release, with a fault half of it.
    fn noise(&self, planned: &Planned) -> Result<NoiseMultiplier> {
        let sigma = planned.noise_multiplier.get();
        Ok(NoiseMultiplier::new(Fault::std(self.fault.and_then(AuditFault::of_run), sigma))?)
    }
}

/// The direction in which a unit moves a sum.
struct Along {
    /// Times how often each value is in the sum.
    direction: Vec<f64>,
    length: f64,
}

impl Along {
    fn new(without: &ExactSum, with: &ExactSum) -> Self {
        let step = without.grid().step();
        let moved: Vec<f64> =
            with.values.iter().zip(&without.values).map(|(with, without)| (with - without) * step).collect();
        let counted = without.multiplicities();
        let length = moved.iter().zip(&counted).map(|(moved, counted)| counted * moved * moved).sum::<f64>().sqrt();
        let direction = moved.iter().zip(&counted).map(|(moved, counted)| moved * counted).collect();
        Self { direction, length }
    }

    fn project(&self, released: &[f64]) -> f64 {
        released.iter().zip(&self.direction).map(|(value, direction)| value * direction).sum()
    }
}
