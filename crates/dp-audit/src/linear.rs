//! A replay of every release of a training on all records ([`dp_linear`]).
//!
//! Each case trains on a small table with a unit and with blanks in its place. Rows beyond every bound
//! are among the records. What is released earlier is the same in both trainings, so each release is
//! compared by itself: the distance by which the unit moves its exact sum, over the sensitivity that its
//! noise is made for.

mod case;
mod tape;

use dp_train::{Purpose, Randomness, Result, TrainError};
use rand::Rng as _;
use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};

use self::case::Case;
use self::tape::{Released, Tape};

/// Of a distance between two sums.
const ROUNDING: f64 = 1e-12;

/// A kind of release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray, Serialize)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LinearRelease {
    /// Records of each class.
    ClassCounts,
    /// Sums of a number and of its square.
    LabelMoments,
    /// Mean squares of the features.
    MeanSquares,
    /// The mean of a block.
    BlockMean,
    /// The covariance of a block.
    BlockCovariance,
    /// The diagonal of the covariance of a long block.
    BlockDiagonal,
    /// Lengths of whitened rows.
    Lengths,
    /// A gradient on scaled features.
    Gradient,
    /// A gradient on whitened blocks.
    WhitenedGradient,
    /// A gradient of a number's loss on scaled features.
    NumberGradient,
    /// A gradient of a number's loss on whitened blocks.
    WhitenedNumberGradient,
    /// Right answers of each class.
    RightAnswers,
}

impl LinearRelease {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind of this name.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] with the names that there are.
    pub fn find(name: &str) -> Result<Self> {
        let names = || Self::VARIANTS.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        let found = Self::VARIANTS.iter().copied().find(|kind| kind.name() == name);
        found.ok_or_else(|| TrainError::invalid("plant", name, names()))
    }
}

/// What a replay of one kind of release found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LinearOutcome {
    /// The kind.
    pub release: LinearRelease,
    /// Pairs of sums that were compared.
    pub replayed: u64,
    /// The largest distance by which a unit moved a sum, over the sensitivity.
    pub moved: f64,
}

impl LinearOutcome {
    /// Whether a unit moves a sum by more than the sensitivity.
    pub fn refuted(&self) -> bool {
        self.moved > 1.0 + ROUNDING
    }
}

/// Replays every kind of release over this many cases. With `plant`, releases of one kind are made with
/// half of the noise.
///
/// # Errors
/// Those of the trainings.
pub fn replay_linear(cases: u64, plant: Option<LinearRelease>, randomness: &Randomness) -> Result<Vec<LinearOutcome>> {
    let outcome = |&release| LinearOutcome { release, replayed: 0, moved: 0.0 };
    let mut found: Vec<LinearOutcome> = LinearRelease::VARIANTS.iter().map(outcome).collect();
    let mut rng = randomness.stream(Purpose::Noise, 3, 0)?;
    for index in 0..cases {
        let case = Case::draw(index, &mut rng);
        let seed = rng.random();
        let without = released(&case, false, plant, Tape::new(seed, Vec::new()))?;
        let with = released(&case, true, plant, Tape::new(seed, without.clone()))?;
        for (without, with) in without.iter().zip(&with) {
            let kind = case.kind(&without.purpose);
            for outcome in found.iter_mut().filter(|outcome| Some(outcome.release) == kind) {
                outcome.replayed += 1;
                outcome.moved = outcome.moved.max(without.distance(with) * case.noise_multiplier() / without.std);
            }
        }
    }
    Ok(found)
}

fn released(case: &Case, is_there: bool, plant: Option<LinearRelease>, tape: Tape) -> Result<Vec<Released>> {
    case.run(is_there, plant, &tape)?;
    Ok(tape.released())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No unit moves a sum by more than the sensitivity, and every kind comes close to it. Half of the
    /// noise of any kind is found, and nothing else is.
    #[test]
    fn every_release_stands_and_half_of_its_noise_is_found() {
        let replay = |plant| replay_linear(160, plant, &Randomness::from_seed(5)).unwrap();
        let honest = replay(None);
        assert!(honest.iter().all(|outcome| !outcome.refuted() && outcome.moved > 0.95), "{honest:?}");
        for &kind in LinearRelease::VARIANTS {
            let planted = replay(Some(kind));
            let refuted: Vec<LinearRelease> =
                planted.iter().filter(|outcome| outcome.refuted()).map(|outcome| outcome.release).collect();
            assert_eq!(refuted, [kind], "{planted:?}");
            assert_eq!(LinearRelease::find(kind.name()).unwrap(), kind);
        }
        assert!(LinearRelease::find("x").unwrap_err().to_string().contains("block-mean"));
    }
}
