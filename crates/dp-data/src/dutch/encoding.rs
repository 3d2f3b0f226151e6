//! The published ways to turn a Dutch record into inputs; all inputs are 0 or 1.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::arff::DutchRecord;
use super::schema::{COLUMNS, Column, OCCUPATION, PREVIOUS_RESIDENCE, SEX};
use crate::error::DataError;

/// A published encoding of the Dutch census, by the first author of its paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// 59 inputs: sex and the previous residence as one input each, the other nine columns one-hot. Sex is an input.
    ///
    /// **Source.** Esipova et al. 2023, B.1, and their published code; with two outputs it makes the 120 parameters they state.
    Esipova,
    /// 35 inputs: one-hot without sex, age and economic activity.
    ///
    /// **Source.** Xu et al. 2021, 6.1.1, states 35 unprotected inputs without listing them. Leaving out the two columns with the most
    /// codes, as their 40 inputs for Adult suggest, is one reading that gives 35.
    Xu,
    /// 50 inputs: every column one-hot without its first code. Sex is an input.
    ///
    /// **Source.** Zhao et al. 2025, published code.
    Zhao,
}

impl Encoding {
    /// Every encoding.
    pub const ALL: [Self; 3] = [Self::Esipova, Self::Xu, Self::Zhao];

    /// Name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Esipova => "esipova",
            Self::Xu => "xu",
            Self::Zhao => "zhao",
        }
    }

    /// Number of inputs.
    pub fn n_inputs(self) -> usize {
        self.features().len()
    }

    /// One sentence for the report.
    pub(super) fn note(self) -> &'static str {
        match self {
            Self::Esipova => "Encoding esipova: 59 inputs, sex among them.",
            Self::Xu => {
                "Encoding xu: 35 inputs without sex; age and economic activity are left out, our reading of the paper's count."
            }
            Self::Zhao => "Encoding zhao: 50 inputs, sex among them; the first code of each column has none.",
        }
    }

    pub(super) fn features(self) -> Vec<Feature> {
        let inputs = (0..COLUMNS.len()).filter(|&column| column != OCCUPATION);
        match self {
            Self::Esipova => inputs
                .flat_map(|column| one_hot(column, usize::from(column == SEX || column == PREVIOUS_RESIDENCE)))
                .collect(),
            Self::Xu => inputs
                .filter(|&column| column != SEX && !["age", "cur_eco_activity"].contains(&COLUMNS[column].name))
                .flat_map(|column| one_hot(column, 0))
                .collect(),
            Self::Zhao => inputs.flat_map(|column| one_hot(column, 1)).collect(),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Encoding {
    type Err = DataError;

    fn from_str(name: &str) -> Result<Self, DataError> {
        Self::ALL.into_iter().find(|encoding| encoding.name() == name).ok_or_else(|| DataError::UnknownName {
            what: "encoding",
            value: name.into(),
            accepted: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// 1 if the column has this code, else 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Feature {
    pub(super) name: String,
    column: usize,
    code: &'static str,
}

impl Feature {
    pub(super) fn encode(&self, record: &DutchRecord) -> f32 {
        f32::from(u8::from(record.code(self.column) == self.code))
    }
}

/// One feature per code that occurs, the first `skip` left out.
fn one_hot(column: usize, skip: usize) -> impl Iterator<Item = Feature> {
    let Column { name, used, .. } = &COLUMNS[column];
    used.iter().skip(skip).map(move |code| Feature { name: format!("{name}={code}"), column, code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_by_hand() {
        // sex, residence + age 12, position 8, size 6, citizenship 3, birth 3, education 6, status 3, activity 12, marital 4.
        assert_eq!(Encoding::Esipova.n_inputs(), 1 + 1 + 12 + 8 + 6 + 3 + 3 + 6 + 3 + 12 + 4);
        assert_eq!(Encoding::Esipova.n_inputs(), 59);
        // position 8, size 6, residence 2, citizenship 3, birth 3, education 6, status 3, marital 4.
        assert_eq!(Encoding::Xu.n_inputs(), 8 + 6 + 2 + 3 + 3 + 6 + 3 + 4);
        assert_eq!(Encoding::Xu.n_inputs(), 35);
        // Eleven columns with 61 codes that occur, less one each.
        assert_eq!(Encoding::Zhao.n_inputs(), 61 - 11);
        for encoding in Encoding::ALL {
            assert!(encoding.note().contains(&format!("{encoding}: {} inputs", encoding.n_inputs())));
            assert_eq!(encoding.name().parse::<Encoding>().unwrap(), encoding);
        }
    }
}
