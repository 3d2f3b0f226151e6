//! The per-group controller under arbitrary rules, weights and norms.
#![no_main]

use dp_clipping::{Controller, CountNoise};
use dp_clipping_fuzz::{Surroundings, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (f64, f64, Surroundings)| {
    let (base, multiplier, surroundings) = input;
    check(Controller::PerGroup { base, count_noise: CountNoise::Multiplier(multiplier) }, &surroundings);
});
