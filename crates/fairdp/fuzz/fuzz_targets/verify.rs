//! A run's folder: whatever its files hold, the problems, or a release that holds.
#![no_main]

use std::fs;

use fairdp_fuzz::{files, sealed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let [statement, ledger, pipeline, text, weights] = files::<5>(input);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let seal = |document: &[u8]| if choice & 1 == 0 { sealed(document) } else { document.to_vec() };
    for inner in ["release", "private"] {
        fs::create_dir(folder.path().join(inner)).expect("writable");
    }
    for (name, bytes) in [
        ("release/statement.json", seal(statement)),
        ("private/ledger.json", seal(ledger)),
        ("release/pipeline.json", pipeline.to_vec()),
        ("release/statement.md", text.to_vec()),
        ("release/model.safetensors", weights.to_vec()),
    ] {
        fs::write(folder.path().join(name), bytes).expect("writable");
    }
    let _ = fairdp::verify(folder.path());
});
