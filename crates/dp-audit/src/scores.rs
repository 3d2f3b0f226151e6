//! An audit of the release of cumulative scores ([`fair_decisions::PrefixSums`]).
//!
//! - *Replay.* For every class and cell, of two classes and of more: how far a unit moves the encoded counts of all
//!   blocks, exactly, beside the sensitivity that the noise is set by.
//! - *Attack.* An attacker who knows all other records runs the release many times with a unit in the
//!   first cell and without it, and looks along the direction in which it moves the counts.

use dp_accounting::{Accountant, Delta, DpEvent, NoiseMultiplier, PldAccountant};
use dp_train::{Randomness, Result, TrainError};
use fair_decisions::{N_CELLS, PrefixSums, ScoreCells, hook};
use serde::Serialize;

use crate::two_worlds::{FAILURE, attacked_epsilon};

/// Noise multiplier of the audited release.
const SIGMA: f64 = 1.0;
/// More classes than two: each but the last has two blocks of counts.
const CLASSES: usize = 3;

/// A fault of a release of cumulative scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScoresPlant {
    /// Noise for a record that changes one number by 1, as if it were in the encoded counts of its cell
    /// alone.
    ColumnNorm,
}

impl ScoresPlant {
    /// The fault of a name.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] with the names that there are.
    pub fn find(name: &str) -> Result<Self> {
        match name {
            "column-norm" => Ok(Self::ColumnNorm),
            _ => Err(TrainError::invalid("plant", name, "column-norm")),
        }
    }
}

/// The outcome of an audit of a release of cumulative scores.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ScoresOutcome {
    /// Records of a unit.
    pub records_per_unit: u64,
    /// The most that a unit moves the encoded counts, over the sensitivity that the noise is set by.
    pub moved: f64,
    /// The ε that is claimed.
    pub claimed_epsilon: f64,
    /// A lower bound on ε.
    pub audited_lower: f64,
    /// Probability with which it holds.
    pub confidence: f64,
}

impl ScoresOutcome {
    /// Whether a unit moves the counts by more than the noise is set by, or the bound is above the claim.
    pub fn refuted(&self) -> bool {
        self.moved > 1.0 || self.audited_lower > self.claimed_epsilon
    }
}

/// Audits the release of cumulative scores with units of this many records, with a fault or without.
///
/// # Errors
/// Those of the release and of accounting.
pub fn audit_scores(
    records_per_unit: u64,
    plant: Option<ScoresPlant>,
    delta: Delta,
    randomness: &Randomness,
) -> Result<ScoresOutcome> {
    let norm = plant.map(|ScoresPlant::ColumnNorm| 1.0);
    hook::with_column_norm(norm, || {
        let sums = PrefixSums::new();
        let claim = DpEvent::gaussian(NoiseMultiplier::new(SIGMA)?);
        let mut accountant = PldAccountant::new(dp_train::Plan::RELATION);
        accountant.compose(&claim, 1)?;
        Ok(ScoresOutcome {
            records_per_unit,
            moved: moved(&sums, records_per_unit),
            claimed_epsilon: accountant.epsilon(delta)?.epsilon.get(),
            audited_lower: attack(&sums, records_per_unit, delta, randomness)?,
            confidence: 1.0 - FAILURE,
        })
    })
}

/// Counts of other records of this many classes, and of a unit's: `records_per_unit` in one cell of one class.
fn counted(n_classes: usize, unit: Option<(usize, bool, usize)>, records_per_unit: u64) -> Vec<f64> {
    let mut cells = ScoreCells::of_classes(1, n_classes);
    for i in 0..700 {
        cells.add_of_many(0, i % n_classes, i % 5 > 1, i * i % N_CELLS);
    }
    for _ in 0..records_per_unit {
        if let Some((class, is_right, cell)) = unit {
            cells.add_of_many(0, class, is_right, cell);
        }
    }
    cells.into_values()
}

/// All blocks, encoded.
fn encode(sums: &PrefixSums, counts: &[f64]) -> Vec<f64> {
    counts.chunks_exact(N_CELLS).flat_map(|block| sums.encode(block)).collect()
}

/// Every way in which a unit can be in one cell of one class, of two classes and of more: all its records there,
/// which is the farthest since norms of sums are at most sums of norms.
fn moved(sums: &PrefixSums, records_per_unit: u64) -> f64 {
    let sensitivity = sums.noise_std(1.0, records_per_unit);
    let mut most = 0.0_f64;
    for n_classes in [2, CLASSES] {
        let before = encode(sums, &counted(n_classes, None, 0));
        for class in 0..n_classes {
            for place in 0..2 * N_CELLS {
                let unit = (class, place % 2 == 0, place / 2);
                let after = encode(sums, &counted(n_classes, Some(unit), records_per_unit));
                let squares: f64 = after.iter().zip(&before).map(|(a, b)| (a - b) * (a - b)).sum();
                most = most.max(squares.sqrt() / PrefixSums::PER_UNIT / sensitivity);
            }
        }
    }
    most
}

fn attack(sums: &PrefixSums, records_per_unit: u64, delta: Delta, randomness: &Randomness) -> Result<f64> {
    let worlds = [None, Some((0, true, 0))].map(|unit| counted(CLASSES, unit, records_per_unit));
    let [without, with] = [&worlds[0], &worlds[1]].map(|counts| encode(sums, counts));
    let direction: Vec<f64> = with.iter().zip(&without).map(|(a, b)| (a - b) / records_per_unit as f64).collect();
    let along = |encoded: &[f64]| encoded.iter().zip(&direction).map(|(y, d)| y * d).sum::<f64>();
    let middle = 0.5 * (along(&with) + along(&without));
    attacked_epsilon(delta, randomness, |world, rng| {
        let released = sums
            .release(&worlds[world], SIGMA, records_per_unit, rng)
            .map_err(|error| TrainError::invalid("release", error, "no error"))?;
        // Released prefixes determine the encoded counts with their noise.
        Ok(along(&sums.encode_released(&released)) > middle)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fault is found by both, and the release stands; seeds are fixed.
    #[test]
    fn the_release_stands_and_the_fault_is_found() {
        let delta = Delta::new(1e-5).unwrap();
        for records_per_unit in [1, 3] {
            let honest = audit_scores(records_per_unit, None, delta, &Randomness::from_seed(3)).unwrap();
            assert!(!honest.refuted() && honest.moved > 1.0 - 1e-12, "{honest:?}");
            assert!(honest.audited_lower > 0.9 * honest.claimed_epsilon, "{honest:?}");
            let plant = Some(ScoresPlant::find("column-norm").unwrap());
            let planted = audit_scores(records_per_unit, plant, delta, &Randomness::from_seed(3)).unwrap();
            assert!(planted.moved > 1.5 && planted.audited_lower > planted.claimed_epsilon, "{planted:?}");
        }
        assert!(ScoresPlant::find("x").is_err());
    }
}
