//! Generated stays in the published format, so that every command runs without the credentialed
//! files.

use std::fmt::Write as _;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::weighted::pick;

/// The deaths that remain in the paper after its filters, and as many survivors and a few more to
/// draw from.
const DEATHS: usize = 11_817;
const SURVIVORS: usize = 16_000;
/// Stays that the filters drop: labels in conflict, a missing value.
const CONFLICTING: usize = 40;
const INCOMPLETE: usize = 60;

/// Thousandths of the stays whose measurements look like the other outcome.
const ATYPICAL: u32 = 180;

const SOURCES: [&str; 4] = ["Accident & Emergency", "Floor", "Operating Room / Recovery", "Other Hospital"];
const GROUPS: [&str; 6] = ["cardiovascular", "gastrointestinal", "neurological", "respiratory", "sepsis", "trauma"];

/// Measured values: name, typical value of survivors, of deaths, half the spread.
const MEASUREMENTS: [(&str, i32, i32, i32); 10] = [
    ("d1_heartrate_avg", 84, 98, 30),
    ("d1_sysbp_avg", 122, 108, 34),
    ("d1_resprate_avg", 19, 23, 9),
    ("d1_spo2_avg", 97, 94, 6),
    ("d1_temp_avg", 37, 36, 2),
    ("d1_creatinine_avg", 12, 21, 14),
    ("d1_lactate_avg", 18, 42, 26),
    ("d1_bun_avg", 24, 40, 24),
    ("d1_glucose_avg", 140, 165, 70),
    ("gcs_total", 14, 9, 4),
];

/// The model-ready file and the raw file. Only integer arithmetic: the same seed gives the same
/// text on every machine.
pub(super) fn files(seed: u64) -> [String; 2] {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut outcomes: Vec<(bool, Defect)> = std::iter::repeat_n((true, Defect::None), DEATHS)
        .chain(std::iter::repeat_n((false, Defect::None), SURVIVORS))
        .chain(std::iter::repeat_n((false, Defect::Conflict), CONFLICTING))
        .chain(std::iter::repeat_n((true, Defect::Missing), INCOMPLETE))
        .collect();
    outcomes.shuffle(&mut rng);
    let names: Vec<&str> = MEASUREMENTS.iter().map(|measurement| measurement.0).collect();
    let mut ready = format!(
        "patientunitstayid,encounter_id,partition,hospital_death,icu_death,elective_surgery,icu_admit_source,group,{}\n",
        names.join(",")
    );
    let mut raw = "patientunitstayid,hospitalid,age,gender,ethnicity\n".to_owned();
    for (index, (died, defect)) in outcomes.into_iter().enumerate() {
        stay(index, died, defect, &mut rng, &mut ready);
        person(index, died, &mut rng, &mut raw);
    }
    [ready, raw]
}

#[derive(Clone, Copy, PartialEq)]
enum Defect {
    None,
    Conflict,
    Missing,
}

fn stay(index: usize, died: bool, defect: Defect, rng: &mut ChaCha20Rng, text: &mut String) {
    let looks_ill = died != (rng.random_range(0..1000_u32) < ATYPICAL);
    let icu_death = u8::from(defect == Defect::Conflict || died && rng.random_range(0..3_u32) > 0);
    let elective = u8::from(rng.random_range(0..100_u32) < if looks_ill { 6 } else { 22 });
    let source = SOURCES[pick(if looks_ill { &[40, 35, 10, 15] } else { &[50, 15, 28, 7] }, rng)];
    let group = GROUPS[pick(if looks_ill { &[28, 9, 14, 16, 28, 5] } else { &[34, 12, 16, 14, 13, 11] }, rng)];
    // Writing to a `String` cannot fail.
    let _ = write!(
        text,
        "{},{},{},{},{icu_death},{elective},{source},{group}",
        200_000 + index,
        index + 1,
        if index.is_multiple_of(5) { "test" } else { "training" },
        u8::from(died)
    );
    for (position, (_, well, ill, spread)) in MEASUREMENTS.into_iter().enumerate() {
        let centre = if looks_ill { ill } else { well };
        // The sum of three uniform draws: bell-shaped.
        let noise = (0..3).map(|_| rng.random_range(-spread..=spread)).sum::<i32>() / 2;
        let tenths = (centre * 10 + noise * 10 + rng.random_range(-5..=5)).max(0);
        let missing = defect == Defect::Missing && position == 6;
        let _ = if missing { write!(text, ",NA") } else { write!(text, ",{}.{}", tenths / 10, tenths % 10) };
    }
    text.push('\n');
}

fn person(index: usize, died: bool, rng: &mut ChaCha20Rng, text: &mut String) {
    let age = rng.random_range(16..=89_u32).max(rng.random_range(16..=89_u32)).min(rng.random_range(40..=100))
        + u32::from(died) * 4;
    let gender = ["M", "F", ""][pick(&[5_360, 4_634, 6], rng)];
    let ethnicity = ["Caucasian", "African American", "Hispanic", "Asian", "Native American", "Other/Unknown"]
        [pick(&[77, 11, 4, 2, 1, 5], rng)];
    let age = if age > 89 { "> 89".to_owned() } else { age.to_string() };
    let _ = writeln!(text, "{},{},{age},{gender},{ethnicity}", 200_000 + index, 1 + index % 204);
}
