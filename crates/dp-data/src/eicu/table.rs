//! The two files of GOSSIS-1-eICU, joined and filtered.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use super::{Gender, Stay};
use crate::csv_rows::CsvRows;
use crate::error::{DataError, Position};

/// Columns of the model-ready file that are not inputs: keys, labels, and what the raw file gives
/// better.
const NOT_INPUTS: [&str; 14] = [
    "",
    "patientunitstayid",
    "encounter_id",
    "patient_id",
    "hospital_id",
    "hospitalid",
    "icu_id",
    "partition",
    "data_source",
    "hospital_death",
    "icu_death",
    "age",
    "gender",
    "ethnicity",
];

/// Columns of categories with their fixed lists, as the data dictionary of GOSSIS has them; every
/// other input is a number. Fixed: a list taken from the records would tell which categories occur
/// among them.
const CATEGORIES: [(&str, &[&str]); 8] = [
    (
        "icu_admit_source",
        &["Accident & Emergency", "Floor", "Operating Room / Recovery", "Other Hospital", "Other ICU"],
    ),
    (
        "hospital_admit_source",
        &[
            "Acute Care/Floor",
            "Chest Pain Center",
            "Direct Admit",
            "Emergency Department",
            "Floor",
            "ICU",
            "ICU to SDU",
            "Observation",
            "Operating Room",
            "Other",
            "Other Hospital",
            "Other ICU",
            "PACU",
            "Recovery Room",
            "Step-Down Unit (SDU)",
        ],
    ),
    ("icu_stay_type", &["admit", "readmit", "transfer"]),
    ("icu_type", &["CCU-CTICU", "CSICU", "CTICU", "Cardiac ICU", "MICU", "Med-Surg ICU", "Neuro ICU", "SICU"]),
    ("apache_3j_bodysystem", &BODY_SYSTEMS),
    ("apache_2_bodysystem", &BODY_SYSTEMS),
    ("bodysystem", &BODY_SYSTEMS),
    ("group", &["cardiovascular", "gastrointestinal", "neurological", "respiratory", "sepsis", "trauma", "other"]),
];

const BODY_SYSTEMS: [&str; 14] = [
    "Cardiovascular",
    "Gastrointestinal",
    "Genitourinary",
    "Gynecological",
    "Haematologic",
    "Hematological",
    "Metabolic",
    "Musculoskeletal/Skin",
    "Neurologic",
    "Neurological",
    "Renal/Genitourinary",
    "Respiratory",
    "Sepsis",
    "Trauma",
];

/// Kind and name of an input column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Column {
    Number(String),
    /// With its fixed list of categories.
    Category(String, &'static [&'static str]),
}

impl Column {
    fn of(name: &str) -> Self {
        match CATEGORIES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)) {
            Some((_, list)) => Self::Category(name.to_owned(), list),
            None => Self::Number(name.to_owned()),
        }
    }

    /// A number as it is, a category as its index.
    fn value(&self, field: &str, at: Position<'_>) -> Result<f64, DataError> {
        match self {
            Self::Number(name) => at.measurement(name, field),
            Self::Category(name, list) => {
                let index = list.iter().position(|category| *category == field);
                index.map(|index| index as f64).ok_or_else(|| at.unknown_category(name, field, list))
            }
        }
    }
}

/// The records of both files, before the median split and the undersampling.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Joined {
    pub(super) columns: Vec<Column>,
    pub(super) stays: Vec<Stay>,
    pub(super) n_records: usize,
    pub(super) n_conflicting: usize,
    pub(super) n_incomplete: usize,
}

struct Person {
    gender: Gender,
    age: Option<f64>,
}

/// Reads the raw file for age and gender, then the model-ready file, and drops stays with
/// conflicting labels or missing values.
pub(super) fn join<A: Read, B: Read>(mut ready: CsvRows<A>, raw: CsvRows<B>) -> Result<Joined, DataError> {
    let people = people(raw)?;
    let key = ready.column("patientunitstayid")?;
    let (hospital, icu) = (ready.column("hospital_death")?, ready.column("icu_death")?);
    let is_input = |name: &str| !NOT_INPUTS.contains(&name.to_ascii_lowercase().as_str());
    let inputs: Vec<(usize, Column)> = ready
        .header()
        .iter()
        .enumerate()
        .filter(|(_, name)| is_input(name))
        .map(|(index, name)| (index, Column::of(name)))
        .collect();
    let mut stays = Vec::new();
    let mut seen = HashSet::new();
    let (mut n_records, mut n_conflicting, mut n_incomplete) = (0, 0, 0);
    while let Some((record, at)) = ready.next_row()? {
        let position = n_records;
        n_records += 1;
        if !seen.insert(record[key].to_owned()) {
            return Err(at.malformed(format!("patientunitstayid `{}` occurs twice", &record[key])));
        }
        let died = label("hospital_death", &record[hospital], at)?;
        if label("icu_death", &record[icu], at)? && !died {
            n_conflicting += 1;
            continue;
        }
        let person = people
            .get(&record[key])
            .ok_or_else(|| at.malformed(format!("patientunitstayid `{}` is not in the raw file", &record[key])))?;
        let mut values = Vec::with_capacity(inputs.len());
        for (index, column) in &inputs {
            match record[*index].trim() {
                missing if is_missing(missing) => {}
                field => values.push(column.value(field, at)?),
            }
        }
        match person.age {
            Some(age) if values.len() == inputs.len() => {
                stays.push(Stay { position, died, gender: person.gender, age, values });
            }
            _ => n_incomplete += 1,
        }
    }
    if n_records == n_conflicting {
        return Err(DataError::EmptyFile { path: ready.path().into() });
    }
    let columns = inputs.into_iter().map(|(_, column)| column).collect();
    Ok(Joined { columns, stays, n_records, n_conflicting, n_incomplete })
}

fn is_missing(field: &str) -> bool {
    matches!(field, "" | "NA" | "NaN")
}

fn label(column: &str, value: &str, at: Position<'_>) -> Result<bool, DataError> {
    match value.trim() {
        "0" | "0.0" | "FALSE" => Ok(false),
        "1" | "1.0" | "TRUE" => Ok(true),
        other => Err(at.unknown_category(column, other, &["0", "1"])),
    }
}

fn people<R: Read>(mut raw: CsvRows<R>) -> Result<HashMap<String, Person>, DataError> {
    let (key, age, gender) = (raw.column("patientunitstayid")?, raw.column("age")?, raw.column("gender")?);
    let mut people = HashMap::new();
    while let Some((record, at)) = raw.next_row()? {
        let age = match record[age].trim() {
            missing if is_missing(missing) => None,
            // How eICU writes ages that would identify a person.
            "> 89" => Some(90.0),
            years => Some(at.non_negative("age", years)?),
        };
        let gender = match record[gender].trim() {
            "M" | "Male" => Gender::Male,
            "F" | "Female" => Gender::Female,
            _ => Gender::NotRecorded,
        };
        if people.insert(record[key].to_owned(), Person { gender, age }).is_some() {
            return Err(at.malformed(format!("patientunitstayid `{}` occurs twice", &record[key])));
        }
    }
    Ok(people)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const READY: &str = "patientunitstayid,encounter_id,partition,hospital_death,icu_death,elective_surgery,icu_admit_source,\
                         d1_heartrate_avg\n1,9,training,0,0,1,Floor,80.5\n2,8,training,1,1,0,Operating Room / Recovery,120\n3,7,test,0,1,0,Floor,90\n4,6,test,1,0,0,Floor,NA\n5,5,test,0,0,0,Floor,70\n";
    const RAW: &str = "patientunitstayid,age,gender,ethnicity,d1_heartrate_max\n1,50,M,Caucasian,90\n2,> 89,F,Asian,130\n3,40,F,Asian,1\n4,41,M,Asian,1\n5,,M,Asian,1\n";

    fn joined(ready: &str, raw: &str) -> Result<Joined, DataError> {
        join(
            CsvRows::new(ready.as_bytes(), Path::new("ready.csv"))?,
            CsvRows::new(raw.as_bytes(), Path::new("raw.csv"))?,
        )
    }

    #[test]
    fn by_hand() {
        let joined = joined(READY, RAW).unwrap();
        assert_eq!((joined.n_records, joined.n_conflicting, joined.n_incomplete), (5, 1, 2));
        assert_eq!(
            joined.columns,
            [
                Column::Number("elective_surgery".into()),
                Column::Category("icu_admit_source".into(), CATEGORIES[0].1),
                Column::Number("d1_heartrate_avg".into()),
            ]
        );
        assert_eq!(
            joined.stays,
            [
                Stay { position: 0, died: false, gender: Gender::Male, age: 50.0, values: vec![1.0, 1.0, 80.5] },
                Stay { position: 1, died: true, gender: Gender::Female, age: 90.0, values: vec![0.0, 2.0, 120.0] },
            ]
        );
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = |ready: &str, raw: &str| joined(ready, raw).unwrap_err().to_string();
        insta::assert_snapshot!(
            error(&READY.replace("icu_death", "x"), RAW),
            @"ready.csv:1: column `icu_death` is missing from the header"
        );
        insta::assert_snapshot!(
            error(&READY.replace("training,1,1", "training,2,1"), RAW),
            @"ready.csv:3: column `hospital_death`: `2` is not one of 0, 1"
        );
        insta::assert_snapshot!(
            error(&READY.replace("0,1,Floor,80.5", "0,1,Roof,80.5"), RAW),
            @"ready.csv:2: column `icu_admit_source`: `Roof` is not one of Accident & Emergency, Floor, Operating Room / Recovery, Other Hospital, Other ICU"
        );
        insta::assert_snapshot!(
            error(&READY.replace("80.5", "fast"), RAW),
            @"ready.csv:2: column `d1_heartrate_avg`: `fast` is not a number between -1e9 and 1e9"
        );
        for value in ["-inf", "1e308", "NaN1"] {
            let message = error(&READY.replace("80.5", value), RAW);
            assert!(message.ends_with("is not a number between -1e9 and 1e9"), "{message}");
        }
        insta::assert_snapshot!(
            error(&READY.replace("\n2,8", "\n1,8"), RAW),
            @"ready.csv:3: patientunitstayid `1` occurs twice"
        );
        insta::assert_snapshot!(
            error(READY, &RAW.replace("\n2,", "\n22,")),
            @"ready.csv:3: patientunitstayid `2` is not in the raw file"
        );
        insta::assert_snapshot!(
            error(READY, &RAW.replace("\n2,", "\n1,")),
            @"raw.csv:3: patientunitstayid `1` occurs twice"
        );
        insta::assert_snapshot!(
            error(READY, &RAW.replace("1,50", "1,old")),
            @"raw.csv:2: column `age`: `old` is not a finite number of at least 0"
        );
    }
}
