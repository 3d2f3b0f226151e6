//! Files of records, databases and packed ones: their runs as CSV, or an error.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use run_records::as_csv;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let name = if bytes.starts_with(b"SQLite format 3") { "toy.db" } else { "toy.runs.zst" };
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("writable");
    if let Ok(csv) = as_csv(&path) {
        assert!(csv.starts_with(b"experiment,"), "a header");
    }
    assert_eq!(fs::read(&path).expect("still there"), bytes, "reading changes nothing");
});
