//! The twelve columns of the Dutch census extract, all nominal, with their fixed lists.

/// One column: codes as declared in the file, and which of them occur.
pub(super) struct Column {
    pub(super) name: &'static str,
    /// As declared, in that order.
    pub(super) codes: &'static [&'static str],
    /// Codes that occur, ascending. The extract was filtered after its header was written; models
    /// get inputs for these only.
    pub(super) used: &'static [&'static str],
}

/// Position of the group's column.
pub(super) const SEX: usize = 0;
/// Position of a column with two codes.
pub(super) const PREVIOUS_RESIDENCE: usize = 4;
/// Position of the last column before the label's.
pub(super) const MARITAL_STATUS: usize = 10;
/// Position of the label's column.
pub(super) const OCCUPATION: usize = 11;

/// The columns in file order.
pub(super) const COLUMNS: [Column; 12] = [
    Column { name: "sex", codes: &["2", "1"], used: &["1", "2"] },
    Column {
        name: "age",
        codes: &["17", "15", "16", "13", "14", "11", "12", "3", "2", "1", "10", "7", "6", "5", "4", "9", "8"],
        used: &["4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"],
    },
    Column {
        name: "household_position",
        codes: &["1110", "1132", "1210", "1131", "1121", "1140", "1122", "1220"],
        used: &["1110", "1121", "1122", "1131", "1132", "1140", "1210", "1220"],
    },
    Column {
        name: "household_size",
        codes: &["125", "126", "114", "112", "113", "111"],
        used: &["111", "112", "113", "114", "125", "126"],
    },
    Column { name: "prev_residence_place", codes: &["2", "1", "9"], used: &["1", "2"] },
    Column { name: "citizenship", codes: &["3", "2", "1"], used: &["1", "2", "3"] },
    Column { name: "country_birth", codes: &["3", "2", "1"], used: &["1", "2", "3"] },
    Column { name: "edu_level", codes: &["3", "2", "1", "0", "5", "4", "9"], used: &["0", "1", "2", "3", "4", "5"] },
    Column {
        name: "economic_status",
        codes: &["221", "222", "210", "223", "112", "224", "111", "120"],
        used: &["111", "112", "120"],
    },
    Column {
        name: "cur_eco_activity",
        codes: &["134", "135", "132", "133", "138", "122", "139", "200", "136", "137", "124", "111", "131"],
        used: &["111", "122", "124", "131", "132", "133", "134", "135", "136", "137", "138", "139"],
    },
    Column { name: "Marital_status", codes: &["3", "2", "1", "4"], used: &["1", "2", "3", "4"] },
    Column { name: "occupation", codes: &["5_4_9", "2_1"], used: &["2_1", "5_4_9"] },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published_set::PublishedSet;

    #[test]
    fn agrees_with_the_manifest() {
        let manifest = super::super::Dutch.manifest().unwrap();
        assert_eq!(manifest.columns.len(), COLUMNS.len());
        for (published, column) in manifest.columns.iter().zip(&COLUMNS) {
            assert_eq!(published.name, column.name);
            assert_eq!(published.values.as_ref().unwrap(), column.codes);
            assert!(column.used.iter().all(|code| column.codes.contains(code)));
        }
        assert_eq!(manifest.records, manifest.files[0].records);
        assert!(!manifest.redistributable);
    }

    #[test]
    fn positions() {
        assert_eq!(
            [SEX, PREVIOUS_RESIDENCE, MARITAL_STATUS, OCCUPATION].map(|index| COLUMNS[index].name),
            ["sex", "prev_residence_place", "Marital_status", "occupation"]
        );
    }
}
