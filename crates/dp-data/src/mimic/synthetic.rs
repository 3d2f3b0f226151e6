//! Generated admissions with short summaries in the published format, so that every command runs
//! without the credentialed files.

use std::fmt::Write as _;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::weighted::pick;

/// Admissions before the filters; MIMIC-III has 58,976.
const N_ADMISSIONS: usize = 6_000;

/// Thousandths of the summaries written as if for a stay of another length.
const ATYPICAL: u32 = 150;

const COMMON: [&str; 12] = [
    "patient",
    "admitted",
    "with",
    "history",
    "of",
    "hypertension",
    "denies",
    "fever",
    "exam",
    "stable",
    "labs",
    "notable",
];
/// Words that go with each length of stay.
const TYPICAL: [[&str; 6]; 4] = [
    ["observation", "ambulating", "elective", "uncomplicated", "tolerating", "overnight"],
    ["antibiotics", "pneumonia", "telemetry", "diuresis", "cellulitis", "improved"],
    ["drainage", "resection", "transfusion", "bacteremia", "consult", "rehabilitation"],
    ["tracheostomy", "ventilator", "dialysis", "sepsis", "feeding", "pressors"],
];
const ETHNICITIES: [&str; 6] =
    ["WHITE", "BLACK/AFRICAN AMERICAN", "HISPANIC OR LATINO", "ASIAN", "UNKNOWN/NOT SPECIFIED", "WHITE - RUSSIAN"];

/// `PATIENTS`, `ADMISSIONS` and `NOTEEVENTS`. Only integer arithmetic: the same seed gives the same
/// text on every machine.
pub(super) fn files(seed: u64) -> [String; 3] {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut patients = "ROW_ID,SUBJECT_ID,GENDER,DOB,DOD,DOD_HOSP,DOD_SSN,EXPIRE_FLAG\n".to_owned();
    let mut admissions = "ROW_ID,SUBJECT_ID,HADM_ID,ADMITTIME,DISCHTIME,DEATHTIME,ADMISSION_TYPE,ETHNICITY,\
                          HOSPITAL_EXPIRE_FLAG\n"
        .to_owned();
    let mut notes =
        "ROW_ID,SUBJECT_ID,HADM_ID,CHARTDATE,CHARTTIME,STORETIME,CATEGORY,DESCRIPTION,CGID,ISERROR,TEXT\n".to_owned();
    for row in 1..=N_ADMISSIONS {
        let (subject, id) = (10_000 + row, 100_000 + row);
        let gender = ["M", "F"][pick(&[56, 44], &mut rng)];
        let year = 2150;
        let age = rng.random_range(16..=88_u32).max(rng.random_range(30..=88));
        // Writing to a `String` cannot fail.
        let _ = writeln!(patients, "{row},{subject},{gender},{}-06-15 00:00:00,,,,0", year - age);
        let kind = ["EMERGENCY", "ELECTIVE", "URGENT", "NEWBORN"][pick(&[71, 13, 3, 13], &mut rng)];
        let died = u8::from(pick(&[90, 10], &mut rng) == 1);
        let class = pick(&[24, 38, 25, 13], &mut rng);
        let (low, high) = [(1, 72), (73, 168), (169, 336), (337, 900)][class];
        let hours = rng.random_range(low..=high);
        let ethnicity = ETHNICITIES[pick(&[68, 10, 4, 4, 12, 2], &mut rng)];
        // At most 37 days from the first of January.
        let discharge = if hours / 24 < 31 {
            format!("{year}-01-{:02} {:02}:30:00", 1 + hours / 24, hours % 24)
        } else {
            format!("{year}-02-{:02} {:02}:30:00", hours / 24 - 30, hours % 24)
        };
        let _ =
            writeln!(admissions, "{row},{subject},{id},{year}-01-01 00:30:00,{discharge},,{kind},{ethnicity},{died}");
        let written_as = if rng.random_range(0..1000_u32) < ATYPICAL { pick(&[1; 4], &mut rng) } else { class };
        let _ = writeln!(
            notes,
            "{row},{subject},{id},{year}-03-01,,,Discharge summary,Report,,,\"{}\"",
            summary(written_as, &mut rng)
        );
    }
    [patients, admissions, notes]
}

fn summary(class: usize, rng: &mut ChaCha20Rng) -> String {
    let mut text = "Service: MEDICINE\nHistory of Present Illness:\n".to_owned();
    for _ in 0..40 {
        let words: &[&str] = if pick(&[4, 1], rng) == 0 { &COMMON } else { &TYPICAL[class] };
        text.push_str(words[rng.random_range(0..words.len() as u32) as usize]);
        text.push(' ');
    }
    text.push_str("\nDischarge Disposition:\nHome\n");
    text
}
