//! The two files of GOSSIS-1-eICU, joined and filtered.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;

use super::{Gender, Stay};
use crate::csv_rows::CsvRows;
use crate::error::{DataError, Position};

/// Columns of the model-ready file that are not inputs: keys, labels, and what the raw file gives better.
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

/// Kind and name of an input column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Column {
    Number(String),
    /// With every category in the file, sorted.
    Category(String, Vec<String>),
}

/// What both files give, before the median split and the undersampling.
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

/// Reads the raw file for age and gender, then the model-ready file, and drops stays with conflicting labels or missing values.
pub(super) fn join<A: Read, B: Read>(ready: CsvRows<A>, raw: CsvRows<B>) -> Result<Joined, DataError> {
    let people = people(raw)?;
    let (names, rows, n_records, n_conflicting) = rows(ready, &people)?;
    let complete: Vec<_> = rows.iter().filter(|row| row.fields.iter().all(|field| !is_missing(field))).collect();
    let columns: Vec<Column> = names
        .into_iter()
        .enumerate()
        .map(|(index, name)| {
            let number = |field: &str| field.parse::<f64>().is_ok_and(f64::is_finite);
            if complete.iter().all(|row| number(&row.fields[index])) {
                return Column::Number(name);
            }
            let values: BTreeSet<&String> = complete.iter().map(|row| &row.fields[index]).collect();
            Column::Category(name, values.into_iter().cloned().collect())
        })
        .collect();
    let stays: Vec<Stay> = complete.iter().map(|row| stay(row, &columns)).collect();
    let n_incomplete = rows.len() - stays.len();
    Ok(Joined { columns, stays, n_records, n_conflicting, n_incomplete })
}

struct Row {
    died: bool,
    gender: Gender,
    age: f64,
    fields: Vec<String>,
}

/// Numbers as they are, categories as their index.
fn stay(row: &Row, columns: &[Column]) -> Stay {
    let values = row.fields.iter().zip(columns).map(|(field, column)| match column {
        Column::Number(_) => field.parse().unwrap_or(f64::NAN),
        Column::Category(_, list) => list.iter().position(|category| category == field).unwrap_or(list.len()) as f64,
    });
    Stay { died: row.died, gender: row.gender, age: row.age, values: values.collect() }
}

fn is_missing(field: &str) -> bool {
    matches!(field, "" | "NA" | "NaN")
}

type Rows = (Vec<String>, Vec<Row>, usize, usize);

/// Rows whose labels do not conflict; a stay without an age has an empty field, so that it counts as incomplete.
fn rows<R: Read>(mut ready: CsvRows<R>, people: &HashMap<String, Person>) -> Result<Rows, DataError> {
    let key = ready.column("patientunitstayid")?;
    let (hospital, icu) = (ready.column("hospital_death")?, ready.column("icu_death")?);
    let header = ready.header().to_vec();
    let inputs: Vec<usize> =
        (0..header.len()).filter(|&index| !NOT_INPUTS.contains(&header[index].to_ascii_lowercase().as_str())).collect();
    let mut rows = Vec::new();
    let (mut n_records, mut n_conflicting) = (0, 0);
    while let Some((record, at)) = ready.next_row()? {
        n_records += 1;
        let died = label("hospital_death", &record[hospital], at)?;
        if label("icu_death", &record[icu], at)? && !died {
            n_conflicting += 1;
            continue;
        }
        let person = people
            .get(&record[key])
            .ok_or_else(|| at.malformed(format!("patientunitstayid `{}` is not in the raw file", &record[key])))?;
        let mut fields: Vec<String> = inputs.iter().map(|&index| record[index].trim().to_owned()).collect();
        if person.age.is_none() {
            fields.fill(String::new());
        }
        rows.push(Row { died, gender: person.gender, age: person.age.unwrap_or(f64::NAN), fields });
    }
    if rows.is_empty() {
        return Err(DataError::EmptyFile { path: ready.path().into() });
    }
    Ok((inputs.into_iter().map(|index| header[index].clone()).collect(), rows, n_records, n_conflicting))
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
                         d1_heartrate_avg\n1,9,training,0,0,1,Floor,80.5\n2,8,training,1,1,0,Operating Room,120\n3,7,test,0,1,0,Floor,90\n4,6,test,1,0,0,Floor,NA\n5,5,test,0,0,0,Floor,70\n";
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
                Column::Category("icu_admit_source".into(), vec!["Floor".into(), "Operating Room".into()]),
                Column::Number("d1_heartrate_avg".into()),
            ]
        );
        assert_eq!(
            joined.stays,
            [
                Stay { died: false, gender: Gender::Male, age: 50.0, values: vec![1.0, 0.0, 80.5] },
                Stay { died: true, gender: Gender::Female, age: 90.0, values: vec![0.0, 1.0, 120.0] },
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
