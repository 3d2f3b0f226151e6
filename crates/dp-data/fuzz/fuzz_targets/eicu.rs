//! The two tables of GOSSIS-1-eICU: whatever is in them, an error or stays with finite inputs.
#![no_main]

use dp_data::PublishedSet;
use dp_data::eicu::{Eicu, EicuOptions};
use dp_data_fuzz::placed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (_folder, locator) = placed(input, &["gossis-1-eicu-only-model-ready.csv", "gossis-1-eicu-only.csv"]);
    let Ok(table) = Eicu.load(&locator) else { return };
    if let Ok(split) = Eicu.split(&table.records, &EicuOptions::default(), 0) {
        assert!(split.train.features.iter().all(|value| value.is_finite()));
    }
});
