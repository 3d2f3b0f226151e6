//! The bound `s‖g‖ ≤ S` in floating point, for every input.
//!
//! A rule states its scale in real arithmetic. What is summed later is `s·g` in the caller's
//! precision, with a norm that was itself rounded. [`cap`] therefore clips to just under the bound:
//! to `S(1 − 2⁻¹⁸)`. The headroom 2⁻¹⁸ = 3.8e-6 covers
//!
//! | source | relative error |
//! |---|---|
//! | the norm that was passed in | up to 1e-6 |
//! | casting the scale to f32 | 2⁻²⁴ = 6e-8 |
//! | rounding each product `s·g_ij` in f32 | 2⁻²⁴ = 6e-8 |
//! | our own f64 arithmetic | below 1e-15 |
//!
//! three times over. It costs four millionths of the threshold. What it cannot cover is the
//! rounding of the *sum*: adding a record changes how the others round, by about machine epsilon
//! times the sum, as in every floating-point implementation.

use std::ops::RangeInclusive;

use crate::error::{ClipError, check};

/// Largest share of the bound that a record may reach: `1 − 2⁻¹⁸`.
pub(crate) const HEADROOM: f64 = 1.0 - 1.0 / 262_144.0;

/// Largest scale, 2⁹⁶: finite in f32 with room for the product. A larger one arises only for
/// vanishing gradients.
pub(crate) const MAX_SCALE: f64 = (1_u128 << 96) as f64;

/// Smallest non-zero scale, 2⁻¹²⁶, the smallest normal f32. Below it the cast to f32 may round up
/// by a large factor and break the bound, so the scale becomes 0.
pub(crate) const MIN_SCALE: f64 = f32::MIN_POSITIVE as f64;

/// Range of every threshold and clipping norm, 2⁻⁶⁰ to 2⁶⁰ (8.7e-19 to 1.2e18), so that neither
/// they nor their squares leave the normal range of f32. A controller that would run to 0 or ∞
/// stops here; stopping is post-processing.
pub(crate) const THRESHOLD_RANGE: RangeInclusive<f64> = 1.0 / ((1_u64 << 60) as f64)..=(1_u64 << 60) as f64;

/// Range of every noise multiplier, 0 to 2⁶⁰: a released count stays finite.
pub(crate) const NOISE_MULTIPLIER_RANGE: RangeInclusive<f64> = 0.0..=(1_u64 << 60) as f64;

/// Whether a norm can be used: finite and not negative.
pub(crate) fn is_valid_norm(norm: f64) -> bool {
    norm.is_finite() && norm >= 0.0
}

/// `scale`, lowered where needed so that `scale·norm` stays below `bound` in floating point.
///
/// **Guarantee.** For every `norm`, `scale` and `bound`, NaN and ∞ included, the result `r` is 0 or
/// in [`MIN_SCALE`]..=[`MAX_SCALE`], and `r·norm ≤ bound·(1 − 2⁻¹⁸)` up to the rounding of one
/// product.
///
/// **Edge cases.** A norm that is NaN, infinite or negative gives 0. A zero norm leaves the scale
/// as it is, up to [`MAX_SCALE`].
#[inline]
pub(crate) fn cap(scale: f64, norm: f64, bound: f64) -> f64 {
    if !is_valid_norm(norm) {
        return 0.0;
    }
    // `norm` may be 0 or subnormal: the limit is then ∞ and the minimum ignores it.
    let limit = bound * HEADROOM / norm;
    let capped = scale.min(limit).min(MAX_SCALE);
    // `f64::min` drops a NaN operand: a NaN scale would come out as the limit, and a NaN bound
    // would be none.
    if scale.is_nan() || bound.is_nan() || capped < MIN_SCALE { 0.0 } else { capped }
}

/// Whether the scale of a usable norm is no number of at least 0, or breaks `scale·norm ≤ bound` by
/// more than the rounding that [`cap`] allows for.
pub(crate) fn breaks(scale: f64, norm: f64, bound: f64) -> bool {
    // A scale beyond the largest is of a vanishing gradient, and is no mistake.
    let is_within = scale >= 0.0 && scale.min(MAX_SCALE) * norm <= bound * (2.0 - HEADROOM);
    is_valid_norm(norm) && !is_within
}

/// Checks a threshold or clipping norm against [`THRESHOLD_RANGE`].
pub(crate) fn check_threshold(name: &'static str, value: f64) -> Result<(), ClipError> {
    check(name, value, THRESHOLD_RANGE, "a number in [2^-60, 2^60]")
}

/// The nearest permitted threshold. A NaN, which no validated controller produces, becomes the
/// smallest: it fails closed.
pub(crate) fn clamp_threshold(value: f64) -> f64 {
    value.max(*THRESHOLD_RANGE.start()).min(*THRESHOLD_RANGE.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(cap(1.0, 0.5, 1.0), 1.0);
        assert_eq!(cap(1.0, 4.0, 1.0), HEADROOM / 4.0);
        assert_eq!(cap(1.0, f64::NAN, 1.0), 0.0);
    }

    #[test]
    fn extreme_norms_stay_bounded() {
        for norm in [0.0, f64::MIN_POSITIVE, 5e-324, 1e-40, 1e-3, 1.0, 1e3, 1e30, 1e300, f64::MAX] {
            for scale in [0.0, 1e-300, 1.0, 1e300, f64::INFINITY, f64::NAN] {
                assert_eq!(cap(scale, norm, f64::NAN), 0.0, "{scale} {norm}");
                for bound in [*THRESHOLD_RANGE.start(), 1.0, *THRESHOLD_RANGE.end()] {
                    let capped = cap(scale, norm, bound);
                    assert_eq!(cap(capped, norm, bound), capped, "{scale} {norm} {bound} again");
                    assert!(capped == 0.0 || (MIN_SCALE..=MAX_SCALE).contains(&capped));
                    assert!(capped * norm <= bound, "{scale} {norm} {bound}: {capped}");
                    assert!(f64::from(capped as f32) * norm <= bound, "{scale} {norm} {bound} in f32");
                }
            }
        }
    }

    #[test]
    fn what_breaks_a_bound_by_hand() {
        // Exact clipping is capped by the headroom, and is no mistake.
        assert!(!breaks(0.25, 4.0, 1.0) && cap(0.25, 4.0, 1.0) < 0.25);
        assert!(!breaks(f64::INFINITY, 0.0, 1.0));
        assert!(breaks(1.0, 3_000.0, 1.0) && breaks(f64::NAN, 0.5, 1.0) && breaks(-1.0, 0.5, 1.0));
        assert!(!breaks(1.0, f64::NAN, 1.0));
    }

    #[test]
    fn nan_threshold_fails_closed() {
        assert_eq!(clamp_threshold(f64::NAN), *THRESHOLD_RANGE.start());
        assert_eq!(clamp_threshold(f64::INFINITY), *THRESHOLD_RANGE.end());
        assert_eq!(clamp_threshold(0.0), *THRESHOLD_RANGE.start());
    }
}
