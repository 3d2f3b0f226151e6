//! The per-group controller under arbitrary rules, weights and norms.
#![no_main]

use dp_clipping::{Controller, CountNoise, ShareOf};
use dp_clipping_fuzz::{Surroundings, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (f64, f64, bool, Surroundings)| {
    let (base, multiplier, of_groups, surroundings) = input;
    let share_of = if of_groups { ShareOf::Groups } else { ShareOf::Batch };
    check(Controller::PerGroup { base, share_of, count_noise: CountNoise::Multiplier(multiplier) }, &surroundings);
});
