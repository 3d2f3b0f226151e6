//! Training configurations, TOML and JSON: an error or a plan that is one.
#![no_main]

use dp_train::{Plan, PublicFacts, TrainConfig};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let facts = PublicFacts { n_records: 100, n_inputs: 4, n_classes: 2, n_groups: 2 };
    let configs = [toml::from_str::<TrainConfig>(text).ok(), serde_json::from_str::<TrainConfig>(text).ok()];
    for config in configs.into_iter().flatten() {
        let _ = Plan::new(config, facts);
    }
});
