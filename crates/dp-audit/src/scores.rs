//! An audit of the release of cumulative scores ([`fair_decisions::PrefixSums`]).
//!
//! - *Replay.* For every cell: how far a unit moves the encoded counts, exactly, beside the sensitivity
//!   that the noise is set by.
//! - *Attack.* An attacker who knows all other records runs the release many times with a unit in the
//!   first cell and without it, and looks along the direction in which it moves the counts.

use dp_accounting::{Accountant, Delta, DpEvent, NoiseMultiplier, PldAccountant};
use dp_train::{Randomness, Result, TrainError};
use fair_decisions::{N_CELLS, PrefixSums, hook};
use serde::Serialize;

use crate::two_worlds::{FAILURE, attacked_epsilon};

/// Noise multiplier of the audited release.
const SIGMA: f64 = 1.0;

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

/// Counts of other records.
fn others() -> Vec<f64> {
    (0..N_CELLS).map(|cell| (cell * cell % 23) as f64).collect()
}

/// Every way in which a unit can be in one cell: all its records there, which is the farthest since norms of
/// sums are at most sums of norms.
fn moved(sums: &PrefixSums, records_per_unit: u64) -> f64 {
    let before = sums.encode(&others());
    let unit = sums.noise_std(1.0, records_per_unit);
    let of = |cell: usize| {
        let mut counts = others();
        counts[cell] += records_per_unit as f64;
        let after = sums.encode(&counts);
        let squares: f64 = after.iter().zip(&before).map(|(a, b)| (a - b) * (a - b)).sum();
        squares.sqrt() / PrefixSums::PER_UNIT / unit
    };
    (0..N_CELLS).map(of).fold(0.0, f64::max)
}

fn attack(sums: &PrefixSums, records_per_unit: u64, delta: Delta, randomness: &Randomness) -> Result<f64> {
    let mut first = vec![0.0; N_CELLS];
    first[0] = 1.0;
    let direction = sums.encode(&first);
    let shift: f64 = direction.iter().map(|d| d * d).sum::<f64>() * records_per_unit as f64;
    let known: f64 = sums.encode(&others()).iter().zip(&direction).map(|(y, d)| y * d).sum();
    attacked_epsilon(delta, randomness, |world, rng| {
        let mut counts = others();
        counts[0] += (world as u64 * records_per_unit) as f64;
        let released = sums
            .release(&counts, SIGMA, records_per_unit, rng)
            .map_err(|error| TrainError::invalid("release", error, "no error"))?;
        // Released prefixes determine the encoded counts with their noise.
        let cells: Vec<f64> = (0..N_CELLS).map(|i| released[i] - if i == 0 { 0.0 } else { released[i - 1] }).collect();
        let along: f64 = sums.encode(&cells).iter().zip(&direction).map(|(y, d)| y * d).sum();
        Ok(along - known > 0.5 * shift)
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
