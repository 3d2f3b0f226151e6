//! Manifests, TOML.
#![no_main]

use dp_data::Manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = Manifest::parse("fuzzed", text);
});
