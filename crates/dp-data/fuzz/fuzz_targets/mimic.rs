//! The three tables of MIMIC-III.
#![no_main]

use dp_data::PublishedSet;
use dp_data::mimic::{self, Mimic, MimicOptions};
use dp_data_fuzz::placed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (_folder, locator) = placed(input, &["PATIENTS.csv", "ADMISSIONS.csv", "NOTEEVENTS.csv"]);
    let Ok(table) = Mimic.load(&locator) else { return };
    let features = table.records.hashed_words();
    assert!(features.iter().all(|value| value.is_finite()));
    let _ = mimic::split(&table.records, &features, "hashed-words", &MimicOptions::default(), 0);
});
