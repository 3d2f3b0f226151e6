//! The choice of records, and their division into training and test part.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::{AdultRecord, GroupBy};
use crate::census::{Draw, DrawnUse};
use crate::constants::InputConstant;
use crate::error::DataError;
use crate::split::{self, GroupSample, TestFraction};

/// Number of records of `adult.data`. They come before the records of `adult.test` in a table here,
/// and after them in the widespread single file that Zhao's published code, which comes without it,
/// is thought to read.
const DATA_FILE: usize = 32_561;

/// The choice among the records that the encoding can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sampling {
    /// All of them.
    #[default]
    Original,
    /// Exactly this many men and as many women, drawn without replacement.
    Balanced {
        /// Records of each sex.
        per_group: usize,
    },
    /// Each record on its own with the probability that gives this many men and women on average,
    /// as in Esipova's text.
    BalancedOnAverage {
        /// Expected records of each sex.
        per_group: usize,
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
    /// As `Balanced`; then this many copies of incomes above 50,000 are drawn with replacement, and
    /// only then is the whole divided: copies of a record may be in both parts, and one person may
    /// be several training records.
    Oversampled {
        /// Records of each sex before any is drawn again.
        per_group: usize,
        /// Copies of records above 50,000.
        copies: usize,
    },
}

impl Sampling {
    /// Rows of the training and of the test part, each in random order; adds one sentence per
    /// choice. `records` has the place of each record that takes part in a table of `n_positions`.
    pub(super) fn divide(
        self,
        n_positions: usize,
        records: &[(usize, &AdultRecord)],
        test_fraction: TestFraction,
        seed: u64,
        notes: &mut Vec<String>,
    ) -> Result<[Vec<usize>; 2], DataError> {
        let sexes: Vec<(usize, usize)> =
            records.iter().map(|&(position, record)| (position, GroupBy::Sex.group_of(record))).collect();
        let keep = match self {
            Self::Original => {
                notes.push(format!("All {} remaining records take part.", records.len()));
                [GroupSample::All; 2]
            }
            Self::Balanced { per_group } => {
                notes.push(format!("Balanced: exactly {per_group} records of each sex, drawn without replacement."));
                [GroupSample::Exactly(per_group); 2]
            }
            Self::BalancedOnAverage { per_group } => {
                notes.push(format!(
                    "Balanced by coin: on average {per_group} records of each sex, each kept on its own."
                ));
                [0, 1].map(|sex| {
                    let n = sexes.iter().filter(|&&(_, other)| other == sex).count();
                    GroupSample::Coin(per_group as f64 / n as f64)
                })
            }
            Self::BalancedTraining { per_group } => {
                notes.push(format!(
                    "Exactly {per_group} records of each sex to train on, every other record to test on."
                ));
                [GroupSample::Exactly(per_group); 2]
            }
            Self::BalancedTrainingAsPublished { per_group } => {
                notes.push(format!(
                    "Exactly {per_group} records of each sex to train on, every other record to test on, drawn as in Zhao's \
                     published code, whatever the seed."
                ));
                [GroupSample::Exactly(per_group); 2]
            }
            Self::Oversampled { per_group, copies } => {
                notes.push(format!(
                    "Exactly {per_group} records of each sex, drawn without replacement; then {copies} copies of incomes above 50,000, \
                     drawn with replacement. Copies of a record may be in both parts: test figures are too good."
                ));
                [GroupSample::Exactly(per_group); 2]
            }
        };
        let rich: HashSet<usize> =
            records.iter().filter(|(_, record)| record.over_50k).map(|&(position, _)| position).collect();
        let positive = |position: usize| rich.contains(&position);
        let drawn_use = match self {
            Self::Original | Self::Balanced { .. } | Self::BalancedOnAverage { .. } => DrawnUse::Divide,
            Self::BalancedTraining { .. } => DrawnUse::TrainOnDrawn,
            Self::BalancedTrainingAsPublished { .. } => DrawnUse::TrainOnNumpyDraw { first: DATA_FILE },
            Self::Oversampled { copies, .. } => DrawnUse::Oversample { positive: &positive, copies },
        };
        Draw { n_positions, sexes: &sexes, names: GroupBy::Sex.groups(), keep, drawn_use }.parts(
            test_fraction,
            seed,
            notes,
        )
    }

    /// Constants of the choice that depend on the records.
    pub(super) fn constant(self) -> Option<InputConstant> {
        match self {
            Self::Original => None,
            Self::Balanced { .. } | Self::BalancedTraining { .. } | Self::BalancedTrainingAsPublished { .. } => {
                Some(split::drawn_by_group())
            }
            Self::Oversampled { .. } => Some(InputConstant::from_records(
                "the choice of records",
                "draws fixed numbers of each sex, and some records several times; ε is that of one copy",
            )),
            Self::BalancedOnAverage { .. } => Some(InputConstant::from_records(
                "the choice of records",
                "keeps each with a probability that follows from the numbers of private ones of its group",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Adult, AdultOptions, Encoding, SYNTHETIC_SEED};
    use crate::published_set::PublishedSet;

    const TEXT: &str = "encoding = 'zhao'\nsampling = { balanced-training = { per_group = 14000 } }\ntest_fraction = \
                        0.2\nscaling_fit = 'train-only'\ngroup_by = 'sex'\n";

    #[test]
    fn options_are_checked_when_they_are_read() {
        let options: AdultOptions = toml::from_str(TEXT).unwrap();
        assert_eq!(options.sampling, super::Sampling::BalancedTraining { per_group: 14_000 });
        let error = |text: &str| toml::from_str::<AdultOptions>(text).unwrap_err().to_string();
        let range = error(&TEXT.replace("0.2", "1.5"));
        assert!(range.contains("test fraction = 1.5: expected between 0 and 1, both excluded"), "{range}");
        let unknown = error(&format!("{TEXT}sample = 3\n"));
        assert!(unknown.contains("unknown field `sample`"), "{unknown}");
        let unknown = error(&TEXT.replace("per_group", "n"));
        assert!(unknown.contains("available keys: per_group"), "{unknown}");
    }

    #[test]
    fn incomes_above_are_drawn_again() {
        let table = Adult.stand_in(SYNTHETIC_SEED).unwrap();
        let labels = |sampling: super::Sampling| {
            let options = AdultOptions { sampling, ..AdultOptions::new(Encoding::Soleymani) };
            let parts = Adult.split(&table.records, &options, 1).unwrap();
            assert_eq!(parts.test.len(), (0.2 * (parts.train.len() + parts.test.len()) as f64).round() as usize);
            let labels = [&parts.train.labels[..], &parts.test.labels].concat();
            (labels.iter().filter(|&&label| label == 1).count(), labels.len())
        };
        let (n_rich, n) = labels(super::Sampling::Balanced { per_group: 14_000 });
        assert_eq!(
            labels(super::Sampling::Oversampled { per_group: 14_000, copies: 7_400 }),
            (n_rich + 7_400, n + 7_400)
        );
    }
}
