//! What an audit does with the sums of a run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dp_audit::one_run::{Attack, Fault, Participation};
use dp_linear::ExactSum;
use rand_chacha::ChaCha20Rng;

use crate::key::Watch;

/// Canaries in every gradient.
pub(super) struct OneRun(pub(super) Arc<Attack>);

impl Watch for OneRun {
    fn release(&self, purpose: &str, _step: u64, mut sum: ExactSum, rng: &mut ChaCha20Rng) -> Vec<f64> {
        if purpose != "gradient" {
            return sum.release(rng);
        }
        let Self(attack) = self;
        let (grid, std) = (sum.grid(), sum.std);
        let exact: Vec<f64> = sum.values.iter().map(|steps| steps * grid.step()).collect();
        let length = std / attack.claim().noise_multiplier;
        let whole = Participation { rate: attack.claim().sampling_rate, share: 1.0 };
        for (weight, value) in attack.before_noise(&exact, length, &|_| whole) {
            sum.values[weight] += grid.place(value);
        }
        sum.std = Fault::std(attack.fault(), std);
        let noisy = sum.release(rng);
        attack.after_noise(&noisy, std);
        noisy
    }

    fn attack(&self) -> Option<&Arc<Attack>> {
        Some(&self.0)
    }
}

/// A release: its purpose and step.
pub(super) type Place = (String, u64);

/// Notes the sums of a run, whose releases are those of the run before, so that what one record
/// changes in a sum is what it adds. The first run has no noise, so that models stay sensible on few
/// records.
#[derive(Default)]
pub(super) struct Recorder {
    /// What was released before.
    released: HashMap<Place, Vec<f64>>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    sums: HashMap<Place, ExactSum>,
    released: HashMap<Place, Vec<f64>>,
}

impl Recorder {
    /// A recorder that releases what this one saw, and the sums that it saw.
    pub(super) fn next(&self) -> (Self, HashMap<Place, ExactSum>) {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        (Self { released: seen.released, seen: Mutex::default() }, seen.sums)
    }
}

impl Watch for Recorder {
    fn release(&self, purpose: &str, step: u64, sum: ExactSum, _rng: &mut ChaCha20Rng) -> Vec<f64> {
        let place = (purpose.to_owned(), step);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let exact = || sum.values.iter().map(|steps| steps * sum.grid().step()).collect();
        let released = self.released.get(&place).cloned().unwrap_or_else(exact);
        seen.sums.insert(place.clone(), sum);
        seen.released.insert(place, released.clone());
        released
    }
}
