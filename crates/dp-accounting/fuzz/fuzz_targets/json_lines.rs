//! Lines of `cargo xtask account --jsonl`: an answer or a note, never both missing, and no upper
//! bound without an answer.
#![no_main]

use dp_accounting::case::{Case, Outcome};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let outcome = Outcome::of_line(line, &Case { delta: Some(1e-5), ..Case::default() });
    let json = serde_json::to_value(&outcome).expect("an outcome is JSON");
    assert!(outcome.is_answered || json["note"].is_string(), "{json}");
});
