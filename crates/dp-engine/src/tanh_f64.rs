//! Hyperbolic tangent over slices of `f64`, written so that the compiler can vectorise it.
//!
//! Analyses run thousands of forward passes in `f64`; the standard library's `tanh`, a call per
//! value, would cost more than their matrix products. The error is stated in units in the last
//! place (ulp) and tested against the standard library.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

/// Adding and subtracting it rounds an `f64` of magnitude below 2⁵¹ to an integer.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// ln 2 to the bits that a product with an integer below 2¹⁰ leaves exact, and the rest.
const LN_2_HI: f64 = 0.693_147_180_369_123_8;
const LN_2_LO: f64 = 1.908_214_929_270_587_7e-10;

/// `1/n!` for n = 13 down to 2: the rest of eʳ's series is below 2e-17 of r for |r| ≤ 0.35.
const INVERSE_FACTORIALS: [f64; 12] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
];

/// `tanh(x)` to 4 ulp. `tanh(±∞) = ±1`, `tanh(NaN) = NaN`.
#[inline(always)]
pub(crate) fn tanh(x: f64) -> f64 {
    // Beyond 19.1 the nearest f64 is 1. `clamp` keeps NaN.
    let y = 2.0 * x.clamp(-20.0, 20.0);
    let shifted = y * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (y - k * LN_2_HI) - k * LN_2_LO;
    let mut series = 0.0;
    for coefficient in INVERSE_FACTORIALS {
        series = series * r + coefficient;
    }
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(0x3ff0_0000_0000_0000));
    // e²ˣ − 1, without cancellation near 0.
    let e = power * (r + r * r * series) + (power - 1.0);
    e / (e + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accurate_everywhere() {
        let small = (0..1_000).flat_map(|e| [1.234, -1.9].map(|m| m * 2_f64.powi(-e)));
        for x in (-250_000..=250_000).map(|i| f64::from(i) * 1e-4).chain(small) {
            let exact = x.tanh();
            let spacing = f64::from_bits(exact.abs().to_bits() + 1) - exact.abs();
            assert!((tanh(x) - exact).abs() <= 4.0 * spacing, "{x}: {} for {exact}", tanh(x));
        }
        assert_eq!((tanh(0.0), tanh(f64::INFINITY), tanh(f64::NEG_INFINITY), tanh(1e300)), (0.0, 1.0, -1.0, 1.0));
        assert!(tanh(f64::NAN).is_nan());
    }
}
