//! Elementary functions over slices of `f32`, written so that the compiler can vectorise them for
//! every instruction set.
//!
//! The standard library's `tanh` and `ln` are calls, one value at a time: over the 131,072
//! activations of a step they would cost more than its matrix products. These are range reduction
//! and a polynomial, without branches or calls. Errors are stated in units in the last place (ulp)
//! and tested against the standard library in `f64`.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

pub use dp_clipping::internal::vectorise;

/// Adding and subtracting it rounds an `f32` of magnitude below 2²² to an integer.
const ROUND: f32 = 12_582_912.0;

const LN_2_HI: f32 = 0.693_359_4;
const LN_2_LO: f32 = -2.121_944_4e-4;

/// `(2ᵏ, eʳ − 1)` with `x = k ln 2 + r`, `|r| ≤ ln 2 / 2`, for `|x| ≤ 87`.
#[inline(always)]
fn exp_parts(x: f32) -> (f32, f32) {
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN_2_HI) - k * LN_2_LO;
    // Taylor's series of eʳ − 1 to r⁸: the rest is below 1e-10 of r for |r| ≤ 0.35.
    let series = r * (1.0 / 5_040.0 + r * (1.0 / 40_320.0));
    let series = r * (1.0 / 120.0 + r * (1.0 / 720.0 + series));
    let series = r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + series)));
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    (power, r + r * series)
}

/// `eˣ − 1` for `|x| ≤ 87`, without cancellation near 0.
#[inline(always)]
fn exp_m1(x: f32) -> f32 {
    let (power, m1) = exp_parts(x);
    power * m1 + (power - 1.0)
}

/// Hyperbolic tangent to 3 ulp. `tanh(±∞) = ±1`, `tanh(NaN) = NaN`.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    // Beyond 9.1 the nearest f32 is 1. `clamp` keeps NaN.
    let e = exp_m1(2.0 * x.clamp(-10.0, 10.0));
    e / (e + 2.0)
}

/// Logistic function `1 / (1 + e⁻ˣ)` to 3 ulp for `x ≥ −87`; below that its limit there, 1.6e-38.
/// `NaN` stays.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    let (power, m1) = exp_parts(-x.clamp(-87.0, 87.0));
    1.0 / (1.0 + (power + power * m1))
}

/// `e⁻ˣ` for `x ≥ 0` to 2 ulp; its value at 87, 1.6e-38, beyond that. `NaN` stays.
#[inline(always)]
pub(crate) fn exp_of_negated(x: f32) -> f32 {
    let (power, m1) = exp_parts(-x.clamp(0.0, 87.0));
    power + power * m1
}

/// Complementary error function of `x ≥ 0` to 6e-7 of the value up to 1 and 1.2e-5 of it up to 9,
/// beyond which it is below 1e-36; 0 at infinity. `NaN` stays.
///
/// **Source.** Press 1992, Numerical Recipes, the Chebyshev fit of `erfcc`.
#[inline(always)]
pub(crate) fn erfc(x: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.5 * x);
    let tail = t * (-1.135_204 + t * (1.488_515_9 + t * (-0.822_152_23 + t * 0.170_872_77)));
    let middle = t * (0.096_784_18 + t * (-0.186_288_06 + t * (0.278_868_07 + tail)));
    let series = t * (1.000_023_7 + t * (0.374_091_96 + middle));
    t * exp_of_negated(x * x + 1.265_512_2 - series)
}

/// Natural logarithm to 2 ulp of a positive, finite, normal number.
#[inline(always)]
pub(crate) fn ln(x: f32) -> f32 {
    // x = 2ᵏ m with m in [√½, √2): the bits of √½ are taken off before the exponent is read.
    let bits = x.to_bits().wrapping_sub(0x3f35_04f3);
    let k = (bits.cast_signed() >> 23) as f32;
    let m = f32::from_bits((bits & 0x007f_ffff).wrapping_add(0x3f35_04f3));
    // ln m = 2 artanh(s), s = (m − 1)/(m + 1), |s| ≤ 0.1716; the series' next term is below 1e-9 of
    // the sum.
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let series = z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * (2.0 / 9.0))));
    // 2s = f − s f: what is left is small, so that k ln 2 + ln m loses nothing when k = 0.
    k * LN_2_HI + (f - (s * (f - series) - k * LN_2_LO))
}

/// `ln(1 + x)` to 3 ulp for finite `x ≥ 0`; not a number for other values that are not finite.
#[inline(always)]
pub(crate) fn ln_1p(x: f32) -> f32 {
    let u = 1.0 + x;
    // Corrects the rounding of u to first order: all of x where u rounds to 1.
    ln(u) + (x - (u - 1.0)) / u
}

/// Applies `f` to every value, compiled for the best instruction set of this machine.
#[inline(always)]
pub(crate) fn map_in_place<T: Copy>(values: &mut [T], f: impl Fn(T) -> T) {
    vectorise(
        #[inline(always)]
        || {
            for v in values.iter_mut() {
                *v = f(*v);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ulps(got: f32, exact: f64) -> f64 {
        let spacing = f64::from(f32::from_bits(((exact.abs() as f32).to_bits()).max(0x0080_0000) + 1))
            - f64::from(f32::from_bits(((exact.abs() as f32).to_bits()).max(0x0080_0000)));
        (f64::from(got) - exact).abs() / spacing
    }

    fn worst(xs: impl Iterator<Item = f32>, f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) -> f64 {
        xs.map(|x| ulps(f(x), exact(f64::from(x)))).fold(0.0, f64::max)
    }

    fn grid() -> impl Iterator<Item = f32> {
        (-200_000..=200_000).map(|i| i as f32 * 1e-4).chain((0..60).flat_map(|e| {
            let x = 2f32.powi(-e) * 1.234;
            [x, -x]
        }))
    }

    #[test]
    fn tanh_is_accurate_everywhere() {
        let e = worst(grid(), tanh, f64::tanh);
        assert!(e <= 3.0, "{e} ulp");
        assert_eq!(tanh(0.0), 0.0);
        assert_eq!((tanh(f32::INFINITY), tanh(f32::NEG_INFINITY), tanh(1e30)), (1.0, -1.0, 1.0));
        assert!(tanh(f32::NAN).is_nan());
    }

    #[test]
    fn sigmoid_is_accurate_everywhere() {
        let e = worst(grid(), sigmoid, |x| 1.0 / (1.0 + (-x).exp()));
        assert!(e <= 3.0, "{e} ulp");
        assert_eq!(sigmoid(0.0), 0.5);
        assert_eq!(sigmoid(f32::INFINITY), 1.0);
        assert!(sigmoid(f32::NEG_INFINITY) < 2e-38);
        assert!(sigmoid(f32::NAN).is_nan());
    }

    #[test]
    fn erfc_is_accurate_to_the_tail() {
        let xs = (0..90_000).map(|i| i as f32 * 1e-4);
        let worst = |bound: f64, xs: &mut dyn Iterator<Item = f32>| {
            for x in xs {
                let exact = libm::erfc(f64::from(x));
                let error = (f64::from(erfc(x)) / exact - 1.0).abs();
                assert!(error < bound, "erfc({x}): {error}");
            }
        };
        worst(6e-7, &mut xs.clone().take(10_000));
        worst(1.2e-5, &mut xs.clone());
        assert_eq!(erfc(f32::INFINITY), 0.0);
        assert!(erfc(1e30) < 1e-36);
        assert!(erfc(f32::NAN).is_nan());
        let e = worst_ulps_of_exp();
        assert!(e <= 2.0, "{e} ulp");
        assert!(exp_of_negated(f32::INFINITY) < 2e-38 && exp_of_negated(f32::NAN).is_nan());
    }

    fn worst_ulps_of_exp() -> f64 {
        worst((0..870_000).map(|i| i as f32 * 1e-4), exp_of_negated, |x| (-x).exp())
    }

    #[test]
    fn ln_is_accurate_for_uniform_variates() {
        let xs = (1..400_000).map(|i| i as f32 * 5e-6).chain((0..64).map(|e| 2f32.powi(-e) * 1.3));
        let e = worst(xs, ln, f64::ln);
        assert!(e <= 2.0, "{e} ulp");
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn ln_1p_is_accurate_from_tiny_to_large() {
        let xs = (0..400_000).map(|i| i as f32 * 1e-4).chain((-120..100).map(|e| 2f32.powi(e) * 1.3));
        let e = worst(xs, ln_1p, f64::ln_1p);
        assert!(e <= 3.0, "{e} ulp");
        assert_eq!((ln_1p(0.0), ln_1p(1e-30)), (0.0, 1e-30));
        assert!(ln_1p(f32::NAN).is_nan() && ln_1p(f32::INFINITY).is_nan());
    }
}
