//! An audit of the release of the errors of predicted numbers ([`fair_decisions::ErrorCells`]).
//!
//! - *Replay.* Over a grid of predictions and labels, those at the ends of the range and beyond among them:
//!   how far a record moves the sums, beside the sensitivity that the noise is set by.
//! - *Attack.* An attacker who knows all other records runs the release many times with a unit whose
//!   predictions are wrong by the whole range and without it, and looks along the direction in which it
//!   moves the sums.

use dp_accounting::{Accountant, Delta, DpEvent, NoiseMultiplier, PldAccountant};
use dp_train::{Purpose, Randomness, Result, TrainError};
use fair_decisions::{ErrorCells, hook};
use serde::Serialize;

use crate::two_worlds::{FAILURE, attacked_epsilon};

/// Noise multiplier of the audited release.
const SIGMA: f64 = 1.0;
/// The record that moves the sums most.
const CANARY: (f64, f64) = (0.5, -0.5);
/// Noise that hides nothing.
const LITTLE: f64 = 1e-6;

/// A fault of a release of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorsPlant {
    /// Noise for a record that moves the sums by half of what it does.
    HalfNorm,
}

/// The outcome of an audit of a release of errors.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ErrorsOutcome {
    /// Records of a unit.
    pub records_per_unit: u64,
    /// The most that a record moves the sums, over the sensitivity that the noise is set by.
    pub moved: f64,
    /// The ε that is claimed.
    pub claimed_epsilon: f64,
    /// A lower bound on ε.
    pub audited_lower: f64,
    /// Probability with which it holds.
    pub confidence: f64,
}

impl ErrorsOutcome {
    /// Whether a record moves the sums by more than the noise is set by, or the bound is above the claim.
    pub fn refuted(&self) -> bool {
        self.moved > 1.0 || self.audited_lower > self.claimed_epsilon
    }
}

/// Audits the release of errors with units of this many records, with a fault or without.
///
/// # Errors
/// Those of the release and of accounting.
pub fn audit_errors(
    records_per_unit: u64,
    plant: Option<ErrorsPlant>,
    delta: Delta,
    randomness: &Randomness,
) -> Result<ErrorsOutcome> {
    hook::with_column_norm(plant.map(|ErrorsPlant::HalfNorm| 0.5), || {
        let mut accountant = PldAccountant::new(dp_train::Plan::RELATION);
        accountant.compose(&DpEvent::gaussian(NoiseMultiplier::new(SIGMA)?), 1)?;
        Ok(ErrorsOutcome {
            records_per_unit,
            moved: moved(),
            claimed_epsilon: accountant.epsilon(delta)?.epsilon.get(),
            audited_lower: attack(records_per_unit, delta, randomness)?,
            confidence: 1.0 - FAILURE,
        })
    })
}

fn moved() -> f64 {
    let places: Vec<f64> = (-12..=12).map(|step| f64::from(step) / 20.0).chain([f64::NAN, 1e300]).collect();
    let all = places.iter().flat_map(|&prediction| places.iter().map(move |&label| (prediction, label)));
    all.map(|(prediction, label)| ErrorCells::moved(prediction, label)).fold(0.0, f64::max)
}

/// Records that the attacker knows, and those of the unit.
fn cells(n_of_unit: u64) -> ErrorCells {
    let mut cells = ErrorCells::new(1);
    for other in 0..40_u32 {
        let label = f64::from(other % 9) / 9.0 - 0.5;
        cells.add(0, 0.9 * label, label);
    }
    (0..n_of_unit).for_each(|_| cells.add(0, CANARY.0, CANARY.1));
    cells
}

fn attack(records_per_unit: u64, delta: Delta, randomness: &Randomness) -> Result<f64> {
    let worlds = [0, records_per_unit].map(|n| cells(n).into_values());
    let towards: Vec<f64> = worlds[1].iter().zip(&worlds[0]).map(|(with, without)| with - without).collect();
    // Where both worlds are without noise, along that direction: the sums of a release of least noise.
    let mut rng = randomness.stream(Purpose::Noise, 2, 0)?;
    let mut at = |values: &[f64]| -> Result<f64> {
        let released = ErrorCells::of(values.to_vec())
            .release(LITTLE, records_per_unit, &mut rng)
            .map_err(|error| TrainError::invalid("release", error, "no error"))?;
        let of = |k: usize| released[0].sums[k] / released[0].variances[k].sqrt() * LITTLE / SIGMA * towards[k];
        Ok((0..towards.len()).map(of).sum())
    };
    let exact = [at(&worlds[0])?, at(&worlds[1])?];
    attacked_epsilon(delta, randomness, |world, rng| {
        let released = ErrorCells::of(worlds[world].clone())
            .release(SIGMA, records_per_unit, rng)
            .map_err(|error| TrainError::invalid("release", error, "no error"))?;
        // In standard deviations of the noise, in which each world's sums are known.
        let along: f64 =
            (0..towards.len()).map(|k| released[0].sums[k] / released[0].variances[k].sqrt() * towards[k]).sum();
        Ok(along > 0.5 * (exact[0] + exact[1]))
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
            let honest = audit_errors(records_per_unit, None, delta, &Randomness::from_seed(3)).unwrap();
            assert!(!honest.refuted() && honest.moved > 0.99, "{honest:?}");
            assert!(honest.audited_lower > 0.9 * honest.claimed_epsilon, "{honest:?}");
            let plant = Some(ErrorsPlant::HalfNorm);
            let planted = audit_errors(records_per_unit, plant, delta, &Randomness::from_seed(3)).unwrap();
            assert!(planted.moved > 1.5 && planted.audited_lower > planted.claimed_epsilon, "{planted:?}");
        }
    }
}
