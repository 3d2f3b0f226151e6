//! Configurations: an error, or a schema that is refused or can be encoded, and a plan that is
//! refused or keeps its budget.
#![no_main]

use std::path::Path;

use dp_table::Encoding;
use fairdp::FitPlan;
use fairdp::config::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let path = Path::new("fairdp.toml");
    let Ok(config) = Config::from_toml(text, path) else { return };
    if let Ok(schema) = config.schema(&|_| None) {
        let _ = Encoding::new(&schema);
    }
    if let Ok(plan) = FitPlan::new(&config, path, 1_000) {
        assert!(plan.epsilon == config.privacy.epsilon && !plan.releases.is_empty());
    }
});
