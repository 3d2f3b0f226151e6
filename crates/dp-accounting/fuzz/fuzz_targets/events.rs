//! Events and ledgers as JSON: what is read is written and read again.
#![no_main]

use dp_accounting::{DpEvent, Ledger};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(event) = serde_json::from_str::<DpEvent>(text) {
        let json = serde_json::to_string(&event).expect("an event is JSON");
        assert_eq!(serde_json::from_str::<DpEvent>(&json).expect("what was written"), event);
    }
    let _ = serde_json::from_str::<Ledger>(text);
});
