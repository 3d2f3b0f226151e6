//! The choice of records, and their division into training and test part.

use serde::{Deserialize, Serialize};

use super::GroupBy;
use super::arff::DutchRecord;
use crate::census::{Draw, DrawnUse};
use crate::constants::InputConstant;
use crate::error::DataError;
use crate::split::{self, GroupSample, TestFraction};

/// The choice of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sampling {
    /// All: 30,147 men and 30,273 women.
    #[default]
    Original,
    /// Exactly this many, drawn without replacement.
    Exactly {
        /// Men (code 1).
        male: usize,
        /// Women (code 2).
        female: usize,
    },
    /// All of them: exactly this many men and as many women to train on, every other record to test
    /// on, as in Zhao's published code.
    BalancedTraining {
        /// Training records of each sex.
        per_group: usize,
    },
    /// The same with the records that Zhao's published code draws: by numpy's generator, which it
    /// seeds with 1 in every run. Training and test part are the parts of the paper's figures, if
    /// that code made them.
    BalancedTrainingAsPublished {
        /// Training records of each sex.
        per_group: usize,
    },
}

impl Sampling {
    /// Rows of the training and of the test part, each in random order; adds one sentence per
    /// choice.
    pub(super) fn divide(
        self,
        records: &[DutchRecord],
        test_fraction: TestFraction,
        seed: u64,
        notes: &mut Vec<String>,
    ) -> Result<[Vec<usize>; 2], DataError> {
        let (keep, note) = match self {
            Self::Original => ([GroupSample::All; 2], format!("All {} records take part.", records.len())),
            Self::Exactly { male, female } => (
                [GroupSample::Exactly(male), GroupSample::Exactly(female)],
                format!("Exactly {male} men and {female} women, drawn without replacement."),
            ),
            Self::BalancedTraining { per_group } => (
                [GroupSample::Exactly(per_group); 2],
                format!("Exactly {per_group} records of each sex to train on, every other record to test on."),
            ),
            Self::BalancedTrainingAsPublished { per_group } => (
                [GroupSample::Exactly(per_group); 2],
                format!(
                    "Exactly {per_group} records of each sex to train on, every other record to test on, drawn as in Zhao's \
                     published code, whatever the seed."
                ),
            ),
        };
        notes.push(note);
        let sexes: Vec<(usize, usize)> =
            records.iter().enumerate().map(|(row, record)| (row, GroupBy::Sex.group_of(record))).collect();
        let drawn_use = match self {
            Self::Original | Self::Exactly { .. } => DrawnUse::Divide,
            Self::BalancedTraining { .. } => DrawnUse::TrainOnDrawn,
            Self::BalancedTrainingAsPublished { .. } => DrawnUse::TrainOnNumpyDraw { first: 0 },
        };
        Draw { n_positions: records.len(), sexes: &sexes, names: GroupBy::Sex.groups(), keep, drawn_use }.parts(
            test_fraction,
            seed,
            notes,
        )
    }

    /// Constants of the choice that depend on the records.
    pub(super) fn constant(self) -> Option<InputConstant> {
        match self {
            Self::Original => None,
            Self::Exactly { .. } | Self::BalancedTraining { .. } | Self::BalancedTrainingAsPublished { .. } => {
                Some(split::drawn_by_group())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Dutch, DutchOptions, Encoding, SYNTHETIC_SEED};
    use super::*;
    use crate::published_set::PublishedSet;

    /// The two persons who are drawn of three men and two women, in this order of the file.
    #[test]
    fn numpy_draws_from_each_sex_in_turn() {
        let sexes = [(0, 0), (1, 1), (2, 0), (3, 0), (4, 1)];
        let draw = |first| {
            let keep = [GroupSample::Exactly(1); 2];
            let draw = Draw {
                n_positions: 5,
                sexes: &sexes,
                names: &["male", "female"],
                keep,
                drawn_use: DrawnUse::TrainOnNumpyDraw { first },
            };
            let mut train = draw.parts(TestFraction::default(), 3, &mut Vec::new()).unwrap()[0].clone();
            train.sort_unstable();
            train
        };
        // `numpy.random.seed(1)`: permutation(3) is [0, 2, 1], then permutation(2) is [1, 0].
        assert_eq!(draw(0), [0, 4]);
        // The file begins at the third place: men 2, 3, 0 and women 4, 1.
        assert_eq!(draw(2), [1, 2]);
    }

    #[test]
    fn published_records_are_the_same_for_every_seed() {
        let table = Dutch.stand_in(SYNTHETIC_SEED).unwrap();
        let sampling = Sampling::BalancedTrainingAsPublished { per_group: 14_000 };
        let options = DutchOptions { sampling, ..DutchOptions::new(Encoding::Zhao) };
        let sums = [1, 2].map(|seed| {
            let parts = Dutch.split(&table.records, &options, seed).unwrap();
            assert_eq!((parts.train.len(), parts.test.len()), (28_000, 60_420 - 28_000));
            parts.test.features.sum_axis(ndarray::Axis(0))
        });
        assert_eq!(sums[0], sums[1]);
    }

    #[test]
    fn balanced_training_leaves_the_rest_for_testing() {
        let table = Dutch.stand_in(SYNTHETIC_SEED).unwrap();
        let sampling = Sampling::BalancedTraining { per_group: 14_000 };
        let parts =
            Dutch.split(&table.records, &DutchOptions { sampling, ..DutchOptions::new(Encoding::Zhao) }, 1).unwrap();
        assert_eq!((parts.train.len(), parts.test.len()), (28_000, 60_420 - 28_000));
        assert_eq!(parts.train.groups.iter().filter(|&&group| group == 1).count(), 14_000);
    }
}
