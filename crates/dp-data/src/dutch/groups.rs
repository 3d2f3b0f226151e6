//! The attribute that defines the groups.

use serde::{Deserialize, Serialize};

use super::arff::DutchRecord;
use super::schema::{MARITAL_STATUS, SEX};

/// The attribute that defines the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupBy {
    /// Male (code 1), female (code 2), as the file's documentation has them.
    #[default]
    Sex,
    /// The names exchanged: code 2 is called male. Xu 2020, 2021 print numbers of men and women
    /// that fit only so.
    SexExchanged,
    /// Marital status 4 against 1 to 3: what the published trainer of Zhao 2025 takes for the
    /// sexes, the last input column. 5.9 % of the records have status 4.
    MaritalStatus,
}

impl GroupBy {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sex => "sex",
            Self::SexExchanged => "sex (codes exchanged)",
            Self::MaritalStatus => "marital status",
        }
    }

    pub(super) fn groups(self) -> &'static [&'static str] {
        match self {
            Self::Sex | Self::SexExchanged => &["male", "female"],
            Self::MaritalStatus => &["status 1 to 3", "status 4"],
        }
    }

    pub(super) fn group_of(self, record: &DutchRecord) -> usize {
        usize::from(match self {
            Self::Sex => record.code(SEX) == "2",
            Self::SexExchanged => record.code(SEX) == "1",
            Self::MaritalStatus => record.code(MARITAL_STATUS) == "4",
        })
    }

    /// A sentence for the report, if groups differ from the file's documentation.
    pub(super) fn note(self) -> Option<&'static str> {
        match self {
            Self::Sex => None,
            Self::SexExchanged => Some("The names of the sexes are exchanged: code 2 is called male."),
            Self::MaritalStatus => Some("Groups are marital status 4 (5.9 % of the records) and 1 to 3."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Dutch, SYNTHETIC_SEED};
    use super::*;
    use crate::published_set::PublishedSet;

    #[test]
    fn names_are_exchanged_and_no_record_moves() {
        let table = Dutch.stand_in(SYNTHETIC_SEED).unwrap();
        let n_of = |group_by: GroupBy| table.records.iter().filter(|record| group_by.group_of(record) == 1).count();
        assert_eq!(n_of(GroupBy::Sex), 30_273);
        assert_eq!(n_of(GroupBy::SexExchanged), 30_147);
        assert!(n_of(GroupBy::MaritalStatus) > 0 && n_of(GroupBy::MaritalStatus) < 12_000);
    }
}
