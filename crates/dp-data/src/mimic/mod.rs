//! MIMIC-III: how long does a patient stay in hospital, judged from the discharge summary? Groups
//! by gender, age or ethnicity.

mod sections;
mod synthetic;
mod table;
mod time;

use std::path::{Path, PathBuf};

use ndarray::{Array2, Axis};
use serde::{Deserialize, Serialize};

use self::table::Counts;
use crate::dataset::{Dataset, Split};
use crate::error::DataError;
use crate::hospital::{self, Hospital};
use crate::loaded::Loaded;
use crate::locator::DataLocator;
use crate::published_set::PublishedSet;
use crate::split;

/// The seed of the generated admissions that stand in for the published files.
pub const SYNTHETIC_SEED: u64 = 2016;

/// Class names in label order.
pub(crate) const CLASSES: [&str; 4] = ["up-to-3-days", "4-to-7-days", "8-to-14-days", "over-14-days"];

/// Ethnicity in five groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ethnicity {
    /// Any value that begins with `WHITE`, or `PORTUGUESE`.
    White,
    /// Any value that begins with `BLACK`.
    Black,
    /// Any value that begins with `HISPANIC`, or `SOUTH AMERICAN`.
    Hispanic,
    /// Any value that begins with `ASIAN`.
    Asian,
    /// Everything else, unknown and not stated included.
    Other,
}

impl Ethnicity {
    fn of(value: &str) -> Self {
        let begins = |names: &[&str]| names.iter().any(|name| value.starts_with(name));
        if begins(&["WHITE", "PORTUGUESE"]) {
            Self::White
        } else if begins(&["BLACK"]) {
            Self::Black
        } else if begins(&["HISPANIC", "SOUTH AMERICAN"]) {
            Self::Hispanic
        } else if begins(&["ASIAN"]) {
            Self::Asian
        } else {
            Self::Other
        }
    }
}

/// One hospital admission with its summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    /// `HADM_ID`.
    pub id: String,
    /// The latest discharge summary and its addenda, without the sections about the outcome.
    pub text: String,
    /// Index of the length of stay: up to 3, 4 to 7, 8 to 14, over 14 days.
    pub class: u32,
    /// Gender as recorded: female, else male.
    pub female: bool,
    /// Years at admission; 90 for patients whose age MIMIC-III hides.
    pub age: f64,
    /// In five groups.
    pub ethnicity: Ethnicity,
    /// In `ADMISSIONS`, counted over all of them: what a split goes by.
    position: usize,
}

/// Every usable admission.
///
/// The inputs of a model are made from [`Admission::text`] by a frozen encoder, which this crate
/// knows nothing of: see [`split`].
#[derive(Debug, Clone)]
pub struct Admissions {
    /// In the order of `ADMISSIONS`.
    pub admissions: Vec<Admission>,
    counts: Counts,
}

/// Every usable admission with where they came from.
pub(crate) type MimicTable = Loaded<Admissions>;

/// The data set.
///
/// Newborns, deaths in hospital, and admissions without a discharge summary are dropped. Of several
/// reports the latest stays, every addendum is appended; notes marked as errors are passed over.
///
/// **Units.** `NOTEEVENTS` is read as a stream; the discharge summaries of all admissions (about
/// 0.6 GB) are kept in memory.
///
/// **Source.** Soleymani et al. 2025, A.1, after van Aken et al. 2021.
#[derive(Debug, Clone, Copy)]
pub struct Mimic;

const HOSPITAL: Hospital<Admissions> = Hospital {
    name: "mimic",
    manifest: include_str!("manifest.toml"),
    tables: &["PATIENTS.csv", "ADMISSIONS.csv", "NOTEEVENTS.csv"],
    marker: "NOTEEVENTS.csv",
    join: |open| {
        let (admissions, counts) = table::join(open(0)?, open(1)?, open(2)?)?;
        let n_records = counts.n_records;
        Ok((Admissions { admissions, counts }, n_records))
    },
    generate: |seed| synthetic::files(seed).into(),
    generated: "admissions in the format of MIMIC-III",
    seed: SYNTHETIC_SEED,
};

impl PublishedSet for Mimic {
    type Records = Admissions;
    type Options = MimicOptions;

    fn name(&self) -> &'static str {
        HOSPITAL.name
    }

    fn manifest_text(&self) -> &'static str {
        HOSPITAL.manifest
    }

    /// # Errors
    /// [`DataError::MissingFile`]; a row that breaks the format; a checksum that PhysioNet's
    /// `SHA256SUMS.txt` contradicts; as [`DataLocator::locate`] if nothing is there.
    fn load(&self, locator: &DataLocator) -> Result<MimicTable, DataError> {
        HOSPITAL.load(locator)
    }

    /// Generated admissions in the published format, a tenth of its size.
    fn stand_in(&self, seed: u64) -> Result<MimicTable, DataError> {
        HOSPITAL.stand_in(seed)
    }

    fn write_stand_in(&self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError> {
        HOSPITAL.write_stand_in(folder, seed)
    }

    /// With [hashed words](Admissions::hashed_words) as inputs; see [`split`] for the inputs of an
    /// encoder.
    fn split(&self, records: &Admissions, options: &MimicOptions, seed: u64) -> Result<Split, DataError> {
        split(records, &records.hashed_words(), "hashed-words", options, seed)
    }
}

impl Admissions {
    /// Inputs without an encoder: how often each of 256 hashed words occurs, over the square root
    /// of the number of words.
    ///
    /// For tests and for the generated admissions; the published figures need the features of a
    /// frozen encoder.
    pub fn hashed_words(&self) -> Array2<f32> {
        let mut features = Array2::zeros((self.admissions.len(), N_HASHED));
        for (mut row, admission) in features.axis_iter_mut(Axis(0)).zip(&self.admissions) {
            let words: Vec<&str> = admission.text.split_whitespace().collect();
            for word in &words {
                row[bucket(word)] += 1.0;
            }
            let norm = (words.len().max(1) as f32).sqrt();
            row.mapv_inplace(|count| count / norm);
        }
        features
    }
}

const N_HASHED: usize = 256;

/// FNV-1a: the same on every machine and in every version.
fn bucket(word: &str) -> usize {
    let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3)
    });
    (hash % N_HASHED as u64) as usize
}

/// The attribute that defines the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupBy {
    /// Male, female.
    #[default]
    Gender,
    /// Below 65 years at admission, or not.
    Age,
    /// White, black, Hispanic, Asian, other.
    Ethnicity,
    /// The intersections of gender, age and whether white.
    All,
}

impl GroupBy {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gender => "gender",
            Self::Age => "age",
            Self::Ethnicity => "ethnicity",
            Self::All => "gender, age and ethnicity",
        }
    }

    fn groups(self) -> &'static [&'static str] {
        match self {
            Self::Gender => &["male", "female"],
            Self::Age => &["younger", "older"],
            Self::Ethnicity => &["white", "black", "hispanic", "asian", "other"],
            Self::All => &[
                "male, younger, white",
                "male, younger, non-white",
                "male, older, white",
                "male, older, non-white",
                "female, younger, white",
                "female, younger, non-white",
                "female, older, white",
                "female, older, non-white",
            ],
        }
    }

    fn group_of(self, admission: &Admission) -> usize {
        match self {
            Self::Gender => usize::from(admission.female),
            Self::Age => usize::from(admission.age >= 65.0),
            Self::Ethnicity => admission.ethnicity as usize,
            Self::All => {
                let non_white = usize::from(admission.ethnicity != Ethnicity::White);
                4 * Self::Gender.group_of(admission) + 2 * Self::Age.group_of(admission) + non_white
            }
        }
    }
}

/// How the admissions become training, validation and test part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MimicOptions {
    /// The attribute that makes groups. It does not affect the split.
    pub group_by: GroupBy,
}

/// Splits features of an encoder 70/10/20 with equal shares of each class, as
/// [`eicu`](crate::eicu); the paper does not state the proportions for MIMIC-III.
///
/// **Shapes.** `features` is `[admissions, inputs]`, row by row as [`Admissions::admissions`];
/// `encoder` names what made it.
///
/// # Errors
/// [`DataError::InvalidParameter`] if `features` has another number of rows.
pub fn split(
    records: &Admissions,
    features: &Array2<f32>,
    encoder: &str,
    options: &MimicOptions,
    seed: u64,
) -> Result<Split, DataError> {
    let Admissions { admissions, counts } = records;
    if features.nrows() != admissions.len() {
        return Err(DataError::InvalidParameter {
            parameter: "rows of the features",
            value: features.nrows().to_string(),
            expected: format!("{}, one per admission", admissions.len()),
        });
    }
    let classes: Vec<(usize, u32)> = admissions.iter().map(|admission| (admission.position, admission.class)).collect();
    let (parts, sizes) = hospital::parts(counts.n_records, &classes, seed, "admissions");
    let mut row_at = vec![None; counts.n_records];
    for (row, admission) in admissions.iter().enumerate() {
        row_at[admission.position] = Some(row);
    }
    let [train, validation, test] =
        parts.map(|positions| positions.into_iter().filter_map(|position| row_at[position]).collect::<Vec<usize>>());
    let part = |rows: &[usize]| Dataset {
        features: features.select(Axis(0), rows),
        labels: rows.iter().map(|&row| admissions[row].class).collect(),
        groups: rows.iter().map(|&row| options.group_by.group_of(&admissions[row])).collect(),
        feature_names: (0..features.ncols()).map(|column| format!("{encoder}-{column}")).collect(),
        class_names: CLASSES.map(String::from).to_vec(),
        group_names: options.group_by.groups().iter().map(|&name| name.into()).collect(),
        group_attribute: options.group_by.name().into(),
    };
    let Counts { n_records, n_newborn, n_died, n_impossible, n_without_note } = counts;
    let notes = vec![
        format!(
            "Of {n_records} admissions {n_newborn} of newborns, {n_died} with death in hospital, {n_impossible} that end before \
             they begin and {n_without_note} without a discharge summary are dropped."
        ),
        sizes,
        format!("Inputs: {} from {encoder}.", features.ncols()),
    ];
    let constants = vec![split::divided_by_label()];
    Ok(Split { train: part(&train), test: part(&test), validation: Some(part(&validation)), notes, constants })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_admissions_pass_through_every_filter() {
        let table = Mimic.stand_in(SYNTHETIC_SEED).unwrap();
        assert!(
            table.records.counts.n_newborn > 0
                && table.records.counts.n_died > 0
                && table.records.counts.n_without_note == 0
        );
        assert!(table.records.admissions.iter().all(|admission| !admission.text.contains("Disposition")));
        let by_ethnicity = MimicOptions { group_by: GroupBy::Ethnicity };
        let split = Mimic.split(&table.records, &by_ethnicity, 0).unwrap();
        assert_eq!(split.train.n_inputs(), N_HASHED);
        assert!(split.train.group_sizes().iter().all(|&n| n > 50));
        insta::assert_snapshot!(split.notes.join("\n"), @r"
        Of 6000 admissions 788 of newborns, 491 with death in hospital, 0 that end before they begin and 0 without a discharge summary are dropped.
        Stratified split: 3306 training, 470 validation and 945 test admissions.
        Inputs: 256 from hashed-words.
        ");
        insta::assert_snapshot!(table.provenance.digest, @"88b1f54053b52a6307344f518266e1a1dd2c0958b8eb4a2c73ec012dabe6facc");
    }

    #[test]
    fn features_must_fit() {
        let table = Mimic.stand_in(1).unwrap();
        let features = Array2::zeros((1, 2));
        let error = split(&table.records, &features, "x", &MimicOptions::default(), 0).unwrap_err().to_string();
        assert!(error.starts_with("rows of the features = 1: expected "), "{error}");
    }
}
