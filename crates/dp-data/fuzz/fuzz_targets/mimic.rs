//! The three tables of MIMIC-III.
#![no_main]

use dp_data::mimic::{self, MimicOptions};
use dp_data_fuzz::placed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (_folder, locator) = placed(input, &["PATIENTS.csv", "ADMISSIONS.csv", "NOTEEVENTS.csv"]);
    let Ok(table) = mimic::load(&locator) else { return };
    let features = table.hashed_words();
    assert!(features.iter().all(|value| value.is_finite()));
    let _ = mimic::split(&table, &features, "hashed-words", &MimicOptions::default());
});
