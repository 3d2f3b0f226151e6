//! The constant controller under arbitrary rules, weights and norms.
#![no_main]

use dp_clipping::Controller;
use dp_clipping_fuzz::{Surroundings, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (f64, Surroundings)| {
    let (threshold, surroundings) = input;
    check(Controller::Constant { threshold }, &surroundings);
});
