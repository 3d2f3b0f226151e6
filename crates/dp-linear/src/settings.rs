//! What a training is told.

use dp_accounting::NoiseMultiplier;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::exact_sum::ExactSum;

/// Whose loss is made small.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// All records', each by its weight.
    #[default]
    Population,
    /// That of the classes, which count equally, however many records each has: a record of a common
    /// class has a smaller weight, by the released counts. Probabilities are those of the population
    /// all the same: the classes' shares enter the intercepts afterwards.
    EqualClasses,
}

/// Noise of every release and what follows from public numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Noise of the class counts, or of the moments of a number.
    pub counts: NoiseMultiplier,
    /// Noise of the mean squares.
    pub squares: NoiseMultiplier,
    /// Noise of each gradient.
    pub gradients: NoiseMultiplier,
    /// How many gradients there are.
    pub steps: u64,
    /// Records of one unit of privacy, at most.
    pub records_per_unit: u64,
    /// Whose loss is made small.
    #[serde(default)]
    pub objective: Objective,
}

impl Settings {
    /// The same with next to no noise, and steps enough to converge: for comparison, never for
    /// release.
    ///
    /// # Errors
    /// None: the noise multiplier is in its range.
    pub fn without_noise(&self) -> Result<Self> {
        let little = NoiseMultiplier::new(1e-6)?;
        Ok(Self { counts: little, squares: little, gradients: little, steps: 4 * self.steps, ..self.clone() })
    }
}

/// Streams of noise by purpose and step: functions of the run's key, so that a run can be taken up
/// anywhere.
pub trait Streams: Sync {
    /// The stream of this purpose and step.
    fn stream(&self, purpose: &str, step: u64) -> ChaCha20Rng;

    /// The sum of this purpose and step with its noise: everything that leaves passes here. An audit
    /// looks at it on both sides of the noise.
    fn release(&self, purpose: &str, step: u64, sum: ExactSum) -> Vec<f64> {
        sum.release(&mut self.stream(purpose, step))
    }
}
