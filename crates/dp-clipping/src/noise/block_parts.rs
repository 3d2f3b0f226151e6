//! The noise of a block in single precision, where that decides how it is rounded.

use std::hint::black_box;

use super::box_muller::{minus_two_ln, sin_cos_turn};
use super::keystream::WORDS;
use super::{BLOCK, GRID, PAIRS};
use crate::simd::vectorise;

/// What a block is computed from, one block after the other.
pub(super) struct BlockParts {
    /// Leading bits of two blocks: radii, then turns.
    pub(super) words: [[u32; WORDS]; 2],
    radii: [f32; PAIRS],
    cosines: [f32; PAIRS],
    sines: [f32; PAIRS],
    /// The values in single precision, and what that leaves.
    leading: [f32; BLOCK],
    trailing: [f32; BLOCK],
    /// 1 for each pair of which single precision does not decide.
    pub(super) unsettled: [u8; PAIRS],
}

impl Default for BlockParts {
    fn default() -> Self {
        let (pairs, values) = ([0.0; PAIRS], [0.0; BLOCK]);
        let [radii, cosines, sines] = [pairs; 3];
        let [leading, trailing] = [values; 2];
        Self { words: [[0; WORDS]; 2], radii, cosines, sines, leading, trailing, unsettled: [0; PAIRS] }
    }
}

impl BlockParts {
    /// Adds the noise of the first block or the second, where single precision decides.
    pub(super) fn add_where_certain(
        &mut self,
        is_second: bool,
        [factor, step]: [f32; 2],
        exact: &[f64; BLOCK],
        noisy: &mut [f32; BLOCK],
    ) {
        let Self { words, radii, cosines, sines, leading, trailing, unsettled } = self;
        let words = &words[usize::from(is_second)];
        vectorise(
            #[inline(always)]
            || {
                // LLVM would turn conditional reads through the closure into gathers.
                let (factor, step) = black_box((factor, step));
                let (bits, turns) = words.split_at(PAIRS);
                // In short loops: of a long one's chain of dependent operations the processor sees
                // too few rounds at once.
                for (radius, &bits) in radii.iter_mut().zip(bits) {
                    *radius = minus_two_ln(bits).sqrt();
                }
                for ((sin, cos), &turn) in sines.iter_mut().zip(&mut *cosines).zip(turns) {
                    (*sin, *cos) = sin_cos_turn(turn);
                }
                for ((leading, trailing), &value) in leading.iter_mut().zip(&mut *trailing).zip(exact) {
                    *leading = value as f32;
                    *trailing = (value - f64::from(*leading)) as f32;
                }
                let (first, second) = noisy.split_at_mut(PAIRS);
                let values = leading.iter().zip(&*trailing);
                let later = leading[PAIRS..].iter().zip(&trailing[PAIRS..]);
                let places = first.iter_mut().zip(second).zip(&mut *unsettled).zip(values.zip(later));
                let points = radii.iter().zip(bits).zip(cosines.iter().zip(&*sines));
                for ((((a, b), unsettled), (of_a, of_b)), ((&radius, &bits), (&cos, &sin))) in places.zip(points) {
                    let (a_steps, a_certain) = round(factor, (*of_a.0, *of_a.1), radius, cos);
                    let (b_steps, b_certain) = round(factor, (*of_b.0, *of_b.1), radius, sin);
                    let certain = a_certain & b_certain & (FEW_BITS..=!FEW_BITS).contains(&bits);
                    *a = a_steps * step;
                    *b = b_steps * step;
                    *unsettled = u8::from(!certain);
                }
            },
        );
    }
}

/// `⌊factor · value + GRID · radius · direction⌉` of a value in two parts, and whether that is
/// certain: the sum keeps further from the boundaries between two integers than its error can be.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn round(factor: f32, (leading, trailing): (f32, f32), radius: f32, direction: f32) -> (f32, bool) {
    let sum = factor.mul_add(leading, factor.mul_add(trailing, (GRID as f32 * radius) * direction));
    let rounded = (sum + ROUND) - ROUND;
    let margin = radius.mul_add(-(GRID as f32) * RADIUS_ERROR, 0.5 - GRID as f32 * ERROR);
    // If `ROUND` does not round the sum to an integer, the second term alone is above ½.
    // Comparisons with NaN fail.
    (rounded, sum.abs().mul_add(ROUNDING_ERROR, (sum - rounded).abs()) < margin)
}

/// Error of a variate `r cos θ` in single precision, over all bits that may follow, where the
/// leading ones of the radius are neither fewer than [`FEW_BITS`] nor more than its complement: at
/// most `ERROR + RADIUS_ERROR · r`.
///
/// The radius' square has a relative error of 3.5e-7, the root adds 2⁻²⁴: 2.4e-7 of the radius.
/// With fewer than 24 significant bits, `n` at least, those that follow add `1/(n r) < 2.4e-7`, at
/// `r > 4`, where `U` is small, and `r/2n < 1.1e-8` where `1 − U` is. The direction is off by at
/// most 2e-7 and 2π · 2⁻³² for its bits, and the product with it is rounded: together less than
/// `5.7e-7 r + 1.1e-8`. To add the value's trailing part rounds once more: 0.6e-7 r.
const ERROR: f32 = 2e-8;
const RADIUS_ERROR: f32 = 6.5e-7;
/// Twice the 2⁻²⁴ by which the sum is rounded.
const ROUNDING_ERROR: f32 = 1.2e-7;
/// Adding and subtracting it rounds a magnitude below 2²² to an integer.
const ROUND: f32 = 12_582_912.0;

/// Leading bits below this leave fewer than 20 significant ones.
const FEW_BITS: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use rand::{Rng, RngCore, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::super::Undecided;
    use super::*;

    /// Where single precision says that it is certain, double precision agrees, whatever bits
    /// follow; and it mostly is. A third of the values lies a hair beside a boundary.
    #[test]
    fn single_precision_is_as_good_as_it_says() {
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        let (mut certain, n) = (0, 600_000);
        for i in 0..n {
            let (high, turn) = (rng.random_range(FEW_BITS..=!FEW_BITS), rng.next_u32());
            let radius = minus_two_ln(high).sqrt();
            let (_, cos) = sin_cos_turn(turn);
            let mut value = rng.random_range(-300.0f32..300.0);
            if i % 3 == 0 {
                let sum = value + GRID as f32 * radius * cos;
                value += 0.5 - (sum - sum.floor()) + rng.random_range(-0.01..0.01);
            }
            let (single, is_certain) = round(1.0, (value, 0.0), radius, cos);
            if !is_certain {
                continue;
            }
            certain += usize::from(i % 3 != 0);
            for further in [0, u32::MAX] {
                let pair = Undecided { number: 0, leading: [high, turn], values: [0.0; 2], places: [0; 2] };
                let [exact, _] = pair.point(|_| further).round(1.0, [f64::from(value), 0.0]);
                assert_eq!(f64::from(single), exact, "{high} {turn} {value}");
            }
        }
        assert!(certain as f64 > 0.998 * f64::from(n) * 2.0 / 3.0, "{certain}");
    }
}
