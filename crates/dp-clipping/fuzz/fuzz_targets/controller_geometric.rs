//! The geometric controller under arbitrary rules, weights and norms.
#![no_main]

use dp_clipping::{Bits, Controller, CountNoise, Counted};
use dp_clipping_fuzz::{Surroundings, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: ([f64; 6], bool, bool, Surroundings)| {
    let ([initial, target, tolerance, rate, lower_bound, multiplier], above, raw, surroundings) = input;
    let controller = Controller::Geometric {
        initial,
        target,
        tolerance,
        rate,
        lower_bound,
        counted: if above { Counted::Above } else { Counted::Within },
        bits: if raw { Bits::Raw } else { Bits::Centred },
        count_noise: CountNoise::Multiplier(multiplier),
    };
    check(controller, &surroundings);
});
