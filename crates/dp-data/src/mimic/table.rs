//! The three tables of MIMIC-III, joined and filtered.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use super::sections::without_outcome;
use super::time::minutes;
use super::{Admission, Ethnicity};
use crate::csv_rows::CsvRows;
use crate::error::{DataError, Position};

const DAY: i64 = 24 * 60;
/// MIMIC-III moves the birth of patients over 89 by 300 years.
const HIDDEN_AGE: f64 = 90.0;

/// The records of the three tables.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "counts begin with n_ throughout the workspace")]
pub(super) struct Counts {
    pub(super) n_records: usize,
    pub(super) n_newborn: usize,
    pub(super) n_died: usize,
    pub(super) n_impossible: usize,
    pub(super) n_without_note: usize,
}

struct Patient {
    female: bool,
    born: i64,
}

/// Reads patients, admissions and notes; only discharge summaries are kept in memory.
pub(super) fn join<A: Read, B: Read, C: Read>(
    patients: CsvRows<A>,
    admissions: CsvRows<B>,
    notes: CsvRows<C>,
) -> Result<(Vec<Admission>, Counts), DataError> {
    let patients = read_patients(patients)?;
    let (mut admissions, mut counts) = read_admissions(admissions, &patients)?;
    let mut notes = read_notes(notes)?;
    let n_eligible = admissions.len();
    for admission in &mut admissions {
        admission.text = notes.remove(&admission.id).map(Notes::document).unwrap_or_default();
    }
    admissions.retain(|admission| !admission.text.trim().is_empty());
    counts.n_without_note = n_eligible - admissions.len();
    Ok((admissions, counts))
}

fn time(column: &str, value: &str, at: Position<'_>) -> Result<i64, DataError> {
    minutes(value).ok_or_else(|| at.malformed(format!("column `{column}`: `{value}` is not YYYY-MM-DD HH:MM:SS")))
}

fn read_patients<R: Read>(mut rows: CsvRows<R>) -> Result<HashMap<String, Patient>, DataError> {
    let (subject, gender, birth) = (rows.column("SUBJECT_ID")?, rows.column("GENDER")?, rows.column("DOB")?);
    let mut patients = HashMap::new();
    while let Some((row, at)) = rows.next_row()? {
        let female = match &row[gender] {
            "F" => true,
            "M" => false,
            other => return Err(at.unknown_category("GENDER", other, &["F", "M"])),
        };
        patients.insert(row[subject].to_owned(), Patient { female, born: time("DOB", &row[birth], at)? });
    }
    Ok(patients)
}

fn read_admissions<R: Read>(
    mut rows: CsvRows<R>,
    patients: &HashMap<String, Patient>,
) -> Result<(Vec<Admission>, Counts), DataError> {
    let [subject, id, admitted, discharged, kind, ethnicity, died] =
        ["SUBJECT_ID", "HADM_ID", "ADMITTIME", "DISCHTIME", "ADMISSION_TYPE", "ETHNICITY", "HOSPITAL_EXPIRE_FLAG"]
            .map(|name| rows.column(name));
    let (subject, id, admitted, discharged) = (subject?, id?, admitted?, discharged?);
    let (kind, ethnicity, died) = (kind?, ethnicity?, died?);
    let mut counts = Counts { n_records: 0, n_newborn: 0, n_died: 0, n_impossible: 0, n_without_note: 0 };
    let mut admissions = Vec::new();
    let mut seen = HashSet::new();
    while let Some((row, at)) = rows.next_row()? {
        counts.n_records += 1;
        if !seen.insert(row[id].to_owned()) {
            return Err(at.malformed(format!("HADM_ID `{}` occurs twice", &row[id])));
        }
        if &row[kind] == "NEWBORN" {
            counts.n_newborn += 1;
            continue;
        }
        match &row[died] {
            "0" => {}
            "1" => {
                counts.n_died += 1;
                continue;
            }
            other => return Err(at.unknown_category("HOSPITAL_EXPIRE_FLAG", other, &["0", "1"])),
        }
        let start = time("ADMITTIME", &row[admitted], at)?;
        let length = time("DISCHTIME", &row[discharged], at)? - start;
        if length < 0 {
            counts.n_impossible += 1;
            continue;
        }
        let patient = patients
            .get(&row[subject])
            .ok_or_else(|| at.malformed(format!("SUBJECT_ID `{}` is not among the patients", &row[subject])))?;
        let years = (start - patient.born) as f64 / (365.2425 * DAY as f64);
        admissions.push(Admission {
            id: row[id].to_owned(),
            text: String::new(),
            class: class_of(length),
            female: patient.female,
            age: if years > 150.0 { HIDDEN_AGE } else { years },
            ethnicity: Ethnicity::of(&row[ethnicity]),
            position: counts.n_records - 1,
        });
    }
    if admissions.is_empty() {
        return Err(DataError::EmptyFile { path: rows.path().into() });
    }
    Ok((admissions, counts))
}

/// Up to 3 days, up to 7, up to 14, longer.
fn class_of(minutes: i64) -> u32 {
    match minutes {
        ..=4_320 => 0,
        4_321..=10_080 => 1,
        10_081..=20_160 => 2,
        _ => 3,
    }
}

/// The discharge summaries of one admission.
#[derive(Default)]
struct Notes {
    /// Date, row and text of the latest report.
    report: Option<(i64, u64, String)>,
    addenda: Vec<(i64, u64, String)>,
}

impl Notes {
    /// The latest report, then every addendum, in order of time; sections about the outcome
    /// removed.
    fn document(mut self) -> String {
        self.addenda.sort();
        let parts = self.report.into_iter().chain(self.addenda);
        parts.map(|(_, _, text)| without_outcome(&text)).collect::<Vec<_>>().join("\n")
    }
}

fn read_notes<R: Read>(mut rows: CsvRows<R>) -> Result<HashMap<String, Notes>, DataError> {
    let [row_id, id, date, category, description, is_error, text] =
        ["ROW_ID", "HADM_ID", "CHARTDATE", "CATEGORY", "DESCRIPTION", "ISERROR", "TEXT"].map(|name| rows.column(name));
    let (row_id, id, date, category) = (row_id?, id?, date?, category?);
    let (description, is_error, text) = (description?, is_error?, text?);
    let mut notes: HashMap<String, Notes> = HashMap::new();
    while let Some((row, at)) = rows.next_row()? {
        let usable = row[category].trim() == "Discharge summary"
            && !row[id].is_empty()
            && !row[text].trim().is_empty()
            && &row[is_error] != "1";
        if !usable {
            continue;
        }
        let number =
            row[row_id].parse().map_err(|_| at.malformed(format!("ROW_ID `{}` is not a number", &row[row_id])))?;
        let note = (time("CHARTDATE", &row[date], at)?, number, row[text].to_owned());
        let of_admission = notes.entry(row[id].to_owned()).or_default();
        if row[description].trim() == "Addendum" {
            of_admission.addenda.push(note);
        } else if of_admission.report.as_ref().is_none_or(|latest| *latest < note) {
            of_admission.report = Some(note);
        }
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const PATIENTS: &str = "ROW_ID,SUBJECT_ID,GENDER,DOB,DOD,DOD_HOSP,DOD_SSN,EXPIRE_FLAG\n1,10,F,2100-01-01 00:00:00,,,,0\n\
                            2,20,M,1830-01-01 00:00:00,,,,0\n";
    const ADMISSIONS: &str = "ROW_ID,SUBJECT_ID,HADM_ID,ADMITTIME,DISCHTIME,ADMISSION_TYPE,ETHNICITY,HOSPITAL_EXPIRE_FLAG\n\
                              1,10,100,2150-01-01 12:00:00,2150-01-04 12:00:00,EMERGENCY,WHITE - RUSSIAN,0\n\
                              2,10,101,2150-02-01 12:00:00,2150-02-04 12:01:00,URGENT,UNKNOWN/NOT SPECIFIED,0\n\
                              3,20,102,2130-01-01 12:00:00,2130-01-29 12:00:00,ELECTIVE,BLACK/AFRICAN AMERICAN,0\n\
                              4,20,103,2130-01-01 12:00:00,2130-01-02 12:00:00,NEWBORN,WHITE,0\n\
                              5,20,104,2130-01-01 12:00:00,2130-01-02 12:00:00,URGENT,WHITE,1\n\
                              6,20,105,2130-01-02 12:00:00,2130-01-01 12:00:00,URGENT,WHITE,0\n\
                              7,20,106,2130-01-01 12:00:00,2130-01-02 12:00:00,URGENT,WHITE,0\n";
    const NOTES: &str = "ROW_ID,SUBJECT_ID,HADM_ID,CHARTDATE,CHARTTIME,STORETIME,CATEGORY,DESCRIPTION,CGID,ISERROR,TEXT\n\
                         1,10,100,2150-01-05,,,Discharge summary,Addendum,,,\"Addendum: late\"\n\
                         2,10,100,2150-01-03,,,Discharge summary,Report,,,old\n\
                         3,10,100,2150-01-04,,,Discharge summary,Report,,,\"Service: x\nDischarge Diagnosis:\nflu\"\n\
                         4,10,101,2150-02-04,,,Discharge summary,Report,,1,wrong\n\
                         5,10,101,2150-02-04,,,Discharge summary,Report,,,right\n\
                         6,20,102,2130-01-29,,,Nursing,Report,,,not a summary\n\
                         7,20,102,2130-01-29,,,Discharge summary,Report,,,long\n";

    fn joined(patients: &str, admissions: &str, notes: &str) -> Result<(Vec<Admission>, Counts), DataError> {
        let rows = |text: &'static str, name: &str| CsvRows::new(text.as_bytes(), Path::new(name));
        let leak = |text: &str| -> &'static str { String::leak(text.to_owned()) };
        join(
            rows(leak(patients), "PATIENTS.csv")?,
            rows(leak(admissions), "ADMISSIONS.csv")?,
            rows(leak(notes), "NOTEEVENTS.csv")?,
        )
    }

    #[test]
    fn by_hand() {
        let (admissions, counts) = joined(PATIENTS, ADMISSIONS, NOTES).unwrap();
        assert_eq!(counts, Counts { n_records: 7, n_newborn: 1, n_died: 1, n_impossible: 1, n_without_note: 1 });
        let texts: Vec<_> = admissions.iter().map(|admission| admission.text.as_str()).collect();
        assert_eq!(texts, ["Service: x\n\nAddendum: late\n", "right\n", "long\n"]);
        // Exactly three days, a minute more, four weeks.
        assert_eq!(admissions.iter().map(|admission| admission.class).collect::<Vec<_>>(), [0, 1, 3]);
        assert_eq!(admissions[2].age, HIDDEN_AGE);
        assert!((admissions[0].age - 50.0).abs() < 0.01);
        assert_eq!(
            admissions.iter().map(|admission| admission.ethnicity).collect::<Vec<_>>(),
            [Ethnicity::White, Ethnicity::Other, Ethnicity::Black]
        );
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = |patients: &str, admissions: &str, notes: &str| {
            joined(patients, admissions, notes).unwrap_err().to_string()
        };
        insta::assert_snapshot!(
            error(&PATIENTS.replace("DOB", "BIRTH"), ADMISSIONS, NOTES),
            @"PATIENTS.csv:1: column `DOB` is missing from the header"
        );
        insta::assert_snapshot!(
            error(PATIENTS, &ADMISSIONS.replace("2150-01-04 12:00:00", "soon"), NOTES),
            @"ADMISSIONS.csv:2: column `DISCHTIME`: `soon` is not YYYY-MM-DD HH:MM:SS"
        );
        insta::assert_snapshot!(
            error(PATIENTS, &ADMISSIONS.replace("1,10,100", "1,11,100"), NOTES),
            @"ADMISSIONS.csv:2: SUBJECT_ID `11` is not among the patients"
        );
        insta::assert_snapshot!(
            error(PATIENTS, ADMISSIONS, &NOTES.replace("7,20,102", "x,20,102")),
            @"NOTEEVENTS.csv:10: ROW_ID `x` is not a number"
        );
    }
}
