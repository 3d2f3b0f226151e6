//! The releases of a training, noted and played back.

use std::sync::{Mutex, PoisonError};

use dp_linear::{ExactSum, Streams};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

/// One release.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Released {
    pub(super) purpose: String,
    /// The sum without noise, so that its norm is the one that the noise is made for.
    exact: Vec<f64>,
    /// Standard deviation of the noise.
    pub(super) std: f64,
    noisy: Vec<f64>,
}

impl Released {
    /// The norm of the difference of two sums.
    pub(super) fn distance(&self, other: &Self) -> f64 {
        self.exact.iter().zip(&other.exact).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    }
}

/// Notes the releases of a training, the first of which are those of another, whatever the sums are.
#[derive(Debug)]
pub(super) struct Tape {
    seed: u64,
    played: Vec<Released>,
    noted: Mutex<Vec<Released>>,
}

impl Tape {
    pub(super) fn new(seed: u64, played: Vec<Released>) -> Self {
        Self { seed, played, noted: Mutex::default() }
    }

    pub(super) fn released(self) -> Vec<Released> {
        self.noted.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streams for Tape {
    fn stream(&self, purpose: &str, step: u64) -> ChaCha20Rng {
        let purpose = purpose.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        ChaCha20Rng::seed_from_u64(self.seed ^ purpose.rotate_left(17) ^ step.rotate_left(40))
    }

    fn release(&self, purpose: &str, step: u64, sum: ExactSum) -> Vec<f64> {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let unit = sum.grid().step();
        // A value that is in the sum twice counts twice in its norm.
        let exact = sum.values.iter().zip(sum.multiplicities()).map(|(value, times)| value * unit * times.sqrt());
        let (exact, std) = (exact.collect(), sum.std);
        let noisy = match self.played.get(noted.len()) {
            Some(before) => before.noisy.clone(),
            None => sum.release(&mut self.stream(purpose, step)),
        };
        noted.push(Released { purpose: purpose.to_owned(), exact, std, noisy: noisy.clone() });
        noisy
    }
}
