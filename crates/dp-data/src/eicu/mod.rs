//! GOSSIS-1-eICU: does a patient in intensive care die in hospital? Groups by gender or age.

mod ranges;
mod synthetic;
mod table;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::table::{Column, Joined};
use crate::constants::InputConstant;
use crate::dataset::{Dataset, Names, Split};
use crate::error::DataError;
use crate::hospital::{self, Hospital};
use crate::loaded::Loaded;
use crate::locator::DataLocator;
use crate::published_set::PublishedSet;
use crate::scaling::{Affine, Scale, ScalingFit};
use crate::split::{self, GroupSample, Stream};

/// The seed of the generated stays that stand in for the published files.
pub const SYNTHETIC_SEED: u64 = 2022;

/// Gender as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gender {
    Male,
    Female,
    NotRecorded,
}

/// One stay with complete values.
#[derive(Debug, Clone, PartialEq)]
struct Stay {
    /// In the model-ready file.
    position: usize,
    died: bool,
    gender: Gender,
    age: f64,
    /// One per column; a category as its index.
    values: Vec<f64>,
}

/// Every usable stay.
#[derive(Debug, Clone)]
pub struct Stays {
    joined: Joined,
    median_age: f64,
}

/// Every usable stay with where they came from.
pub(crate) type EicuTable = Loaded<Stays>;

/// The data set.
///
/// The model-ready file gives labels and inputs, the raw file age and gender. Every column of the
/// model-ready file that is no key, label or demographic is an input: one-hot over its fixed list
/// of categories where it has one, else a number.
///
/// **Source.** Soleymani et al. 2025, A.2.
#[derive(Debug, Clone, Copy)]
pub struct Eicu;

const HOSPITAL: Hospital<Stays> = Hospital {
    name: "eicu",
    manifest: include_str!("manifest.toml"),
    tables: &["gossis-1-eicu-only-model-ready.csv", "gossis-1-eicu-only.csv"],
    marker: "gossis-1-eicu-only-model-ready.csv",
    join: |open| Stays::new(table::join(open(0)?, open(1)?)?),
    generate: |seed| synthetic::files(seed).into(),
    generated: "stays in the format of GOSSIS-1-eICU",
    seed: SYNTHETIC_SEED,
};

impl Stays {
    fn new(joined: Joined) -> Result<(Self, usize), DataError> {
        let mut ages: Vec<f64> = joined.stays.iter().map(|stay| stay.age).collect();
        ages.sort_by(f64::total_cmp);
        let Some(&median_age) = ages.get(ages.len() / 2) else {
            return Err(DataError::EmptyFile { path: format!("{}.gz", HOSPITAL.tables[0]).into() });
        };
        let n_records = joined.n_records;
        Ok((Self { joined, median_age }, n_records))
    }
}

/// The attribute that defines the groups; neither is an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupBy {
    /// Male, female, not recorded (14 stays in the paper's data belong to neither).
    #[default]
    Gender,
    /// Below the median age of all usable stays (65 in the published data), or not.
    Age,
    /// The intersections of gender and age.
    GenderAndAge,
}

/// How the stays become training, validation and test part.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EicuOptions {
    /// The attribute that makes groups. It does not affect the choice of stays or the split.
    pub group_by: GroupBy,
    /// The source of the scaling of numbers.
    pub scaling_fit: ScalingFit,
}

impl PublishedSet for Eicu {
    type Records = Stays;
    type Options = EicuOptions;

    fn name(&self) -> &'static str {
        HOSPITAL.name
    }

    fn manifest_text(&self) -> &'static str {
        HOSPITAL.manifest
    }

    /// # Errors
    /// [`DataError::MissingFile`]; a row that breaks the format; a checksum that PhysioNet's
    /// `SHA256SUMS.txt` contradicts; as [`DataLocator::locate`] if nothing is there.
    fn load(&self, locator: &DataLocator) -> Result<EicuTable, DataError> {
        HOSPITAL.load(locator)
    }

    fn stand_in(&self, seed: u64) -> Result<EicuTable, DataError> {
        HOSPITAL.stand_in(seed)
    }

    fn write_stand_in(&self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError> {
        HOSPITAL.write_stand_in(folder, seed)
    }

    /// As many survivors as deaths, split 70/10/20 with equal shares of deaths, categories one-hot;
    /// numbers by declared ranges to `[−1, 1]`, or as z-scores.
    ///
    /// # Errors
    /// [`DataError::InvalidParameter`] if there are fewer survivors than deaths, or no death; if
    /// numbers are to be scaled by declared ranges and one has none.
    fn split(&self, records: &Stays, options: &EicuOptions, seed: u64) -> Result<Split, DataError> {
        let EicuOptions { group_by, scaling_fit } = *options;
        let Joined { columns, stays, n_records, n_conflicting, n_incomplete } = &records.joined;
        let outcomes: Vec<(usize, usize)> = stays.iter().map(|stay| (stay.position, usize::from(stay.died))).collect();
        let n_deaths = stays.iter().filter(|stay| stay.died).count();
        let rows = split::sample_groups(
            *n_records,
            &outcomes,
            &[GroupSample::Exactly(n_deaths), GroupSample::All],
            &["survivors", "deaths"],
            &mut split::stream(seed, Stream::Sampling),
        )?;
        let mut at: Vec<Option<&Stay>> = vec![None; *n_records];
        for stay in stays {
            at[stay.position] = Some(stay);
        }
        let at = |position: &usize| at[*position];
        let labels: Vec<(usize, u32)> =
            rows.iter().filter_map(at).map(|stay| (stay.position, u32::from(stay.died))).collect();
        let (parts, sizes) = hospital::parts(*n_records, &labels, seed, "stays");
        let [train, validation, test] = parts.map(|part| part.iter().filter_map(at).collect::<Vec<_>>());

        let all: Vec<&Stay> = rows.iter().filter_map(at).collect();
        let fitted_on = match scaling_fit {
            ScalingFit::Public => None,
            ScalingFit::TrainOnly => Some(&train),
            ScalingFit::AllRecords => Some(&all),
        };
        let inputs: Vec<Input> = columns
            .iter()
            .enumerate()
            .map(|(index, column)| inputs(index, column, fitted_on.map(Vec::as_slice)))
            .collect::<Result<Vec<_>, _>>()?
            .concat();
        let names = Names {
            features: inputs.iter().map(|input| input.name.clone()).collect(),
            classes: ["survived", "died"],
            groups: group_by.groups(),
            group_attribute: group_by.name(),
        };
        let encode = |stays: &[&Stay]| {
            Dataset::of(
                stays,
                &names,
                |stay, input| inputs[input].value(stay),
                |stay| stay.died,
                |stay| group_by.group_of(stay, records.median_age),
            )
        };
        let notes = vec![
            format!(
                "Of {n_records} stays {n_conflicting} with conflicting labels and {n_incomplete} with missing values are dropped."
            ),
            format!("Undersampled: {n_deaths} deaths and as many survivors, drawn without replacement."),
            sizes,
            format!(
                "{} inputs without age and gender; older means at least {} years, the median.",
                inputs.len(),
                records.median_age
            ),
            scaling_fit.note().into(),
        ];
        let mut constants = vec![
            scaling_fit.constant(),
            InputConstant::from_records(
                "the undersampling",
                "draws as many survivors as there are deaths among the private records",
            ),
            split::divided_by_label(),
        ];
        if group_by != GroupBy::Gender {
            let how = "is the median of the private records";
            constants.push(InputConstant::from_records("the age that divides the groups", how));
        }
        Ok(Split {
            train: encode(&train),
            test: encode(&test),
            validation: Some(encode(&validation)),
            notes,
            constants,
        })
    }
}

impl GroupBy {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gender => "gender",
            Self::Age => "age",
            Self::GenderAndAge => "gender and age",
        }
    }

    fn groups(self) -> &'static [&'static str] {
        match self {
            Self::Gender => &["male", "female", "not-recorded"],
            Self::Age => &["younger", "older"],
            Self::GenderAndAge => &[
                "male, younger",
                "male, older",
                "female, younger",
                "female, older",
                "not-recorded, younger",
                "not-recorded, older",
            ],
        }
    }

    fn group_of(self, stay: &Stay, median_age: f64) -> usize {
        match (self, stay.gender) {
            (Self::GenderAndAge, _) => {
                2 * Self::Gender.group_of(stay, median_age) + Self::Age.group_of(stay, median_age)
            }
            (Self::Age, _) => usize::from(stay.age >= median_age),
            (Self::Gender, Gender::Male) => 0,
            (Self::Gender, Gender::Female) => 1,
            (Self::Gender, Gender::NotRecorded) => 2,
        }
    }
}

#[derive(Clone)]
struct Input {
    name: String,
    column: usize,
    /// For a category its index.
    category: Option<f64>,
    scaling: Affine,
}

impl Input {
    fn value(&self, stay: &Stay) -> f32 {
        let value = stay.values[self.column];
        match self.category {
            Some(category) => f32::from(u8::from(value == category)),
            None => self.scaling.apply(value),
        }
    }
}

/// The inputs of a column, its scaling fitted on these stays, or by its declared range.
fn inputs(index: usize, column: &Column, fitted_on: Option<&[&Stay]>) -> Result<Vec<Input>, DataError> {
    let input = |name: String, category, scaling| Input { name, column: index, category, scaling };
    Ok(match column {
        Column::Number(name) => {
            let scaling = if let Some(stays) = fitted_on {
                let values: Vec<f64> = stays.iter().map(|stay| stay.values[index]).collect();
                Affine::fit(Scale::ZScore, &values)
            } else {
                let range = ranges::of(name).ok_or_else(|| DataError::InvalidParameter {
                    parameter: "scaling_fit",
                    value: "public".into(),
                    expected: format!("train-only, since the column `{name}` has no declared range"),
                })?;
                Affine::declared(Scale::ZScore, range)
            };
            vec![input(name.clone(), None, scaling)]
        }
        Column::Category(name, categories) => categories
            .iter()
            .enumerate()
            .map(|(category, label)| input(format!("{name}={label}"), Some(category as f64), Affine::IDENTITY))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_stays_pass_through_every_filter() {
        let table = Eicu.stand_in(SYNTHETIC_SEED).unwrap();
        let split = Eicu.split(&table.records, &EicuOptions::default(), 0).unwrap();
        // 2·11,817 stays, 70/10/20 of each outcome: 8,272 + 1,182 + 2,363.
        let validation = split.validation.as_ref().unwrap();
        assert_eq!([split.train.len(), validation.len(), split.test.len()], [16_544, 2_364, 4_726]);
        // Surgery, 5 sources, 7 diagnoses, 10 measurements.
        assert_eq!(split.train.n_inputs(), 1 + 5 + 7 + 10);
        assert_eq!(split.test.labels.iter().filter(|&&label| label == 1).count(), 2_363);
        assert!(split.train.features.iter().all(|value| (-1.0..=1.0).contains(value)));
        assert_eq!(split.given().len(), 2);
        insta::assert_snapshot!(split.notes.join("\n"), @r"
        Of 27917 stays 40 with conflicting labels and 60 with missing values are dropped.
        Undersampled: 11817 deaths and as many survivors, drawn without replacement.
        Stratified split: 16544 training, 2364 validation and 4726 test stays.
        23 inputs without age and gender; older means at least 58 years, the median.
        Scaling is by declared ranges, which are public; values outside are clamped.
        ");
        insta::assert_snapshot!(table.provenance.digest, @"abae92866bf781f8cc61afeeda63d1e07d1c28b1e4533e595248085749205f3a");
    }

    #[test]
    fn groups_do_not_move_records() {
        let table = Eicu.stand_in(3).unwrap();
        let by = |group_by| Eicu.split(&table.records, &EicuOptions { group_by, ..EicuOptions::default() }, 0).unwrap();
        let (gender, age) = (by(GroupBy::Gender), by(GroupBy::Age));
        assert_eq!(gender.train.features, age.train.features);
        assert!(
            age.given()
                .contains(&"the age that divides the groups, which is the median of the private records".to_owned())
        );
        assert_eq!((gender.train.group_names.len(), age.train.group_names.len()), (3, 2));
    }
}
