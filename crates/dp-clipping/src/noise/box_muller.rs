//! Elementary functions for Box and Muller's transform, for many values at a time: without branches
//! or calls, so that they compile to the vectors of every instruction set.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

const TWO_POW_MINUS_32: f32 = 1.0 / 4_294_967_296.0;

/// `−2 ln U` to 3.5e-7 of its value, and to 1 in `bits` or `2³² − 1 − bits` besides where that is
/// below 2²⁴, for every `U` with these leading 32 bits; for noise.
///
/// Near 1 it is `1 − U` that goes through single precision, so that the logarithm keeps its digits
/// there.
#[inline(always)]
pub(super) fn minus_two_ln(bits: u32) -> f32 {
    // √½ as a fraction of 2³².
    let upper = bits > 0xb504_f333;
    let number = if upper { !bits } else { bits } as f32;
    // U = 2ᵏ (1 + f) with 1 + f in [√½, √2); above √½ that is U itself.
    let shifted = number.to_bits().wrapping_sub(0x3f35_04f3);
    let f = f32::from_bits((shifted & 0x007f_ffff).wrapping_add(0x3f35_04f3)) - 1.0;
    let f = if upper { number * -TWO_POW_MINUS_32 } else { f };
    let k = ((shifted.cast_signed() >> 23) - 32) as f32;
    let k = if upper { 0.0 } else { k };
    // (−2 ln(1 + f) + 2f − f²) / f³, fitted: 3.2e-8 of the logarithm.
    let fit = f.mul_add(-0.174_008_61, 0.285_349_73).mul_add(f, -0.298_295_38);
    let fit = fit.mul_add(f, 0.331_551_7).mul_add(f, -0.399_261_26).mul_add(f, 0.500_026_76).mul_add(f, -0.666_678_2);
    let square = f * f;
    k.mul_add(-2.0 * std::f32::consts::LN_2, (square * f).mul_add(fit, f.mul_add(-2.0, square)))
}

/// Sine and cosine of `2π · turn / 2³²`, each with an absolute error below 2e-7.
#[inline(always)]
pub(super) fn sin_cos_turn(turn: u32) -> (f32, f32) {
    // The octant's sign and swap come from the top bits; the rest is an angle in [−π/4, π/4).
    let quarter = turn.wrapping_add(0x2000_0000) >> 30;
    let rest = turn.wrapping_sub(quarter << 30).cast_signed();
    let a = rest as f32 * (std::f32::consts::TAU * TWO_POW_MINUS_32);
    let z = a * a;
    // (sin a − a)/a³ and (cos a − 1 + z/2)/z², fitted: 2e-9 of the sine, 1e-10 of the cosine.
    let sin_fit = z.mul_add(-1.949_563_6e-4, 8.331_979e-3).mul_add(z, -0.166_666_51);
    let cos_fit = z.mul_add(2.443_845_2e-5, -1.388_736_8e-3).mul_add(z, 4.166_664_6e-2);
    let sin = (a * z).mul_add(sin_fit, a);
    let cos = cos_fit.mul_add(z, -0.5).mul_add(z, 1.0);
    let (sin, cos) = if quarter & 1 == 0 { (sin, cos) } else { (cos, sin) };
    // Quarter 1 and 2 negate the cosine, 2 and 3 the sine.
    let sin_sign = (quarter & 2) << 30;
    let cos_sign = ((quarter.wrapping_add(1)) & 2) << 30;
    (f32::from_bits(sin.to_bits() ^ sin_sign), f32::from_bits(cos.to_bits() ^ cos_sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the double-precision logarithm, for the least and the largest number with these
    /// leading bits.
    #[test]
    fn minus_two_ln_is_accurate_from_end_to_end() {
        let edges = (0..32).flat_map(|i| [1_u32 << i, (1 << i) + 1, !(1 << i), 0xb504_f333, 0xb504_f334]);
        let spread = (1..3_000_000_u32).map(|i| i.wrapping_mul(2_654_435_761));
        for bits in edges.chain(spread) {
            let few = bits.min(!bits);
            if few < 1 << 20 {
                continue;
            }
            let allowed = 3.5e-7 + if few < 1 << 24 { 1.0 / f64::from(few) } else { 0.0 };
            for further in [0.0, 1.0] {
                let rest = (4_294_967_295.0 - f64::from(bits) + 1.0 - further) / 4_294_967_296.0;
                let exact = -2.0 * (-rest).ln_1p();
                let error = (f64::from(minus_two_ln(bits)) / exact - 1.0).abs();
                assert!(error < allowed, "{bits}: {error}");
            }
        }
    }

    #[test]
    fn sin_and_cos_of_a_turn_are_accurate() {
        for i in 0..1_000_000u32 {
            let turn = i.wrapping_mul(4_294_967);
            let (sin, cos) = sin_cos_turn(turn);
            let angle = f64::from(turn) / 4_294_967_296.0 * std::f64::consts::TAU;
            assert!((f64::from(sin) - angle.sin()).abs() < 2e-7, "sin {turn}");
            assert!((f64::from(cos) - angle.cos()).abs() < 2e-7, "cos {turn}");
        }
    }
}
