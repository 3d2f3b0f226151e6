//! Gaussian noise from a cryptographic stream, without the marks that floating-point arithmetic leaves on it.
//!
//! **The attack.** A noisy value `fl(f + n)` computed in floating point can take only some of the numbers near it, and which ones depends on
//! `f`: the low bits of one released value can exclude a data set altogether (Mironov 2012 for Laplace noise; Jin, McMurtry, Rubinstein
//! and Ohrimenko 2022, "Are We There Yet?", for Gaussian noise by Box and Muller). No ε holds for such a release.
//!
//! **The defence.** What is released is `⌊(f + N)/g⌉ · g` for a grid `g` that does not depend on the data, where `N` is the *real* Gaussian
//! variate that infinitely many random bits would give. Rounding a real number to a public grid is post-processing, so the release is
//! exactly as private as the Gaussian mechanism of the theory, at no cost in sensitivity. The rounding is right although `N` is
//! never known exactly, for it can be decided from an interval:
//!
//! 1. In single precision, sixteen values at a time, with a bound on the error of everything, bits that were not drawn included. If the
//!    interval around `(f + N)/g` holds no boundary between two grid points, it is rounded.
//! 2. Otherwise (one value in 200) in double precision, with 64 bits of either coordinate of Box and Muller's point.
//! 3. Otherwise (one value in 2⁴⁰) in multiple precision with 192 bits. One in 2¹⁶⁰ of *those* is then rounded by what is
//!    known: over all values of all runs that will ever be, this moves δ by less than 1e-30.
//!
//! Later bits are fresh and continue earlier ones, so all paths speak of the same `N`. The grid is the noise's standard deviation divided by
//! [`GRID`]: it adds a relative 1.3e-6 to the variance. Its step is rounded up, and with it the noise.
//!
//! **What this does not cover.** `f` is the sum as the machine computed it. Adding a record also changes how the others' terms round, by about
//! 2⁻²⁴ of the sum in single precision; that lies outside of the sensitivity (Casacuberta et al. 2022), in this program as in any
//! other that sums in floating point. Time: the second and third paths take longer, and their number depends on the noisy values' digits below the
//! grid. Random bits are those of ChaCha20 under a key from the operating system; "exactly" means up to telling it from random.

mod exact;

use rand::RngCore;
use rand_chacha::ChaCha20Rng;

use crate::keystream::{WORDS, next_words};
use crate::vector_math::{ln, sin_cos_turn, vectorise};
use exact::Pair;

/// Steps of the grid in one standard deviation of the noise.
pub(crate) const GRID: f64 = 256.0;

/// Groups of keystream used at a time: with them and the uniforms in the first-level cache.
const GROUPS: usize = 4;
/// Pairs made at a time.
const PAIRS: usize = GROUPS * WORDS / 2;

/// Adds independent `N(0, std²)` noise to every value and rounds to multiples of about `std / 256`, in single precision.
///
/// Box and Muller's transform, four random bytes a value to begin with. The radius is that of a uniform variate with 24 significant bits
/// everywhere and a resolution of 2⁻⁶⁴, so that values reach 9.4 standard deviations: where the first 32 bits leave fewer
/// than 24 significant ones (one pair in 256) another 32 follow.
///
/// **Guarantee.** Post-processing of the Gaussian mechanism with a standard deviation of at least `std` on the values as they are; see the
/// module.
///
/// **Edge cases.** A value that is not finite stays so.
pub(crate) fn add_gaussian_f32(rng: &mut ChaCha20Rng, std: f64, values: &mut [f32]) {
    let factor = at_most(GRID / std);
    let step = 1.0 / factor;
    let mut groups = [[0; WORDS]; GROUPS];
    let mut uniform = [0.0f32; PAIRS];
    let mut further = [0; PAIRS];
    let mut rounded = [[0.0f32; PAIRS]; 2];
    let mut margins = [0.0f32; PAIRS];
    for block in values.chunks_mut(2 * PAIRS) {
        next_words(rng, &mut groups);
        let pairs = block.len().div_ceil(2);
        let (radii, turns) = groups.as_flattened().split_at(PAIRS);
        let mut least = [u32::MAX; PAIRS / RUN];
        vectorise(
            #[inline(always)]
            || {
                for (uniform, &bits) in uniform.iter_mut().zip(radii) {
                    *uniform = bits as f32 * TWO_POW_MINUS_32;
                }
                for (least, run) in least.iter_mut().zip(radii.chunks_exact(RUN)) {
                    *least = run.iter().fold(u32::MAX, |least, &bits| least.min(bits));
                }
            },
        );
        for (run, _) in least.iter().enumerate().filter(|(_, least)| **least < FEW_BITS) {
            for i in run * RUN..(run + 1) * RUN {
                if radii[i] < FEW_BITS {
                    further[i] = rng.next_u32();
                    uniform[i] = extended_uniform(radii[i], further[i]);
                }
            }
        }
        // The first half of a block takes the cosines, the second the sines: two contiguous runs.
        let (first, second) = block.split_at_mut(pairs);
        let [cosines, sines] = &mut rounded;
        cosines[..pairs].copy_from_slice(first);
        sines[..second.len()].copy_from_slice(second);
        vectorise(
            #[inline(always)]
            || {
                let points = uniform.iter().zip(turns);
                let results = cosines.iter_mut().zip(sines.iter_mut()).zip(margins.iter_mut());
                for ((&u, &turn), ((cosine, sine), margin)) in points.zip(results) {
                    let radius = (-2.0 * ln(u)).sqrt();
                    let (sin, cos) = sin_cos_turn(turn);
                    let (a, a_margin) = round(factor, *cosine, radius, cos);
                    let (b, b_margin) = round(factor, *sine, radius, sin);
                    (*cosine, *sine) = (a, b);
                    let smaller = if a_margin > 0.0 { b_margin } else { -1.0 };
                    *margin = if radius > LEAST_RADIUS && radius < MOST_RADIUS { smaller } else { -1.0 };
                }
            },
        );
        for run in 0..pairs.div_ceil(RUN) {
            let range = run * RUN..((run + 1) * RUN).min(pairs);
            if margins[range.clone()].iter().copied().fold(f32::INFINITY, f32::min) > 0.0 {
                continue;
            }
            for i in range.filter(|&i| margins[i] <= 0.0) {
                let low = if radii[i] < FEW_BITS { further[i] } else { rng.next_u32() };
                let extend = |high: u32, low: u32| (u64::from(high) << 32) | u64::from(low);
                let pair = Pair::new(extend(radii[i], low), extend(turns[i], rng.next_u32()));
                let values = [first[i], second.get(i).copied().unwrap_or(0.0)].map(f64::from);
                let [a, b] = pair.round(rng, f64::from(factor), values);
                (cosines[i], sines[i]) = (a as f32, b as f32);
            }
        }
        vectorise(
            #[inline(always)]
            || {
                for (value, rounded) in first.iter_mut().zip(&*cosines) {
                    *value = rounded * step;
                }
                for (value, rounded) in second.iter_mut().zip(&*sines) {
                    *value = rounded * step;
                }
            },
        );
    }
}

/// `⌊factor · value + GRID · radius · direction⌉`, and how far the sum keeps from the boundaries between two integers beyond the error that it can
/// have: certain if positive.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn round(factor: f32, value: f32, radius: f32, direction: f32) -> (f32, f32) {
    let value = factor * value;
    let sum = value + (GRID as f32 * radius) * direction;
    let rounded = (sum + ROUND) - ROUND;
    let error = GRID as f32 * (ERROR + RADIUS_ERROR * radius) + ROUNDING_ERROR * (value.abs() + sum.abs());
    let margin = 0.5 - error - (sum - rounded).abs();
    // Beyond it `ROUND` does not round to integers; a comparison with what is not a number fails.
    (rounded, if sum.abs() < LARGEST && margin > 0.0 { margin } else { -1.0 })
}

/// Error of a variate `r cos θ` in single precision for a radius `r` of at least [`LEAST_RADIUS`], over all bits that may follow: at most
/// `ERROR + RADIUS_ERROR · r`.
///
/// `U` has a relative error of 2⁻²⁴ from its conversion and of 2⁻²⁴ for the bits that follow 24; its logarithm one of 2 ulp, 2⁻²² relative, besides. With
/// `r² = −2 ln U` the radius is off by at most `(2·2⁻²³ + r²·2⁻²²)/2r + 2⁻²³ r = 2⁻²³/r + 2⁻²² r`, the direction by 2e-7 and 2⁻²⁹ for
/// its bits, and the product is rounded: together `2⁻²³/r + 5.2e-7 r`. With `r ≥ 1/16` the first term is below 1.91e-6.
const ERROR: f32 = 2.2e-6;
const RADIUS_ERROR: f32 = 7e-7;
/// Two products and a sum, of relative error 2⁻²⁴ each.
const ROUNDING_ERROR: f32 = 1.2e-7;
/// Below it (one pair in 500) the logarithm of a `U` near 1 loses its digits.
const LEAST_RADIUS: f32 = 1.0 / 16.0;
/// Beyond it (one pair in 10¹²) 64 bits are too few for 24 significant ones.
const MOST_RADIUS: f32 = 7.4;
/// Adding and subtracting it rounds a magnitude below 2²² to an integer.
const ROUND: f32 = 12_582_912.0;
const LARGEST: f32 = 4_194_304.0;

/// Leading bits below this leave fewer than 24 significant ones.
const FEW_BITS: u32 = 1 << 24;
/// Pairs whose leading bits are looked at together: most runs have none with too few.
const RUN: usize = 16;
const TWO_POW_MINUS_32: f32 = 1.0 / 4_294_967_296.0;

/// The single-precision number next to `x`, not above it: a grid no finer and noise no smaller than asked for.
fn at_most(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) > x { near.next_down() } else { near }
}

/// A uniform variate in (0, 1) from 32 leading and 32 further bits.
fn extended_uniform(leading: u32, further: u32) -> f32 {
    let bits = (u64::from(leading) << 32) | u64::from(further);
    ((bits as f64 + 0.5) / 18_446_744_073_709_551_616.0) as f32
}

/// The same in double precision, one pair at a time.
pub(crate) fn add_gaussian_f64(rng: &mut ChaCha20Rng, std: f64, values: &mut [f64]) {
    let factor = (GRID / std).next_down();
    for pair in values.chunks_mut(2) {
        let padded = [pair[0], pair.get(1).copied().unwrap_or(0.0)];
        let rounded = Pair::draw(rng).round(rng, factor, padded);
        for (value, rounded) in pair.iter_mut().zip(rounded) {
            *value = rounded / factor;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};

    use super::*;

    fn sample(n: usize, seed: u64) -> Vec<f64> {
        let mut values = vec![0.0f32; n];
        add_gaussian_f32(&mut ChaCha20Rng::seed_from_u64(seed), 1.0, &mut values);
        values.into_iter().map(f64::from).collect()
    }

    /// Off the grid again: each value moved to a random place between its neighbours' halves.
    fn continuous(values: Vec<f64>) -> Vec<f64> {
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        values.into_iter().map(|value| value + rng.random_range(-0.5..0.5) / GRID).collect()
    }

    /// Standard normal distribution function.
    fn phi(x: f64) -> f64 {
        0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
    }

    /// Kolmogorov and Smirnov at n = 10⁶: the statistic exceeds 2.23/√n with probability 2 exp(−2 · 2.23²) < 1e-4.
    /// The seed is fixed, so a pass is a pass for ever.
    #[test]
    fn values_follow_the_normal_distribution() {
        let mut values = continuous(sample(1_000_000, 1));
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let distance = values
            .iter()
            .enumerate()
            .map(|(i, &x)| (phi(x) - i as f64 / n).abs().max((phi(x) - (i + 1) as f64 / n).abs()))
            .fold(0.0, f64::max);
        assert!(distance * n.sqrt() < 2.23, "{}", distance * n.sqrt());
    }

    /// Each mean of products has standard deviation 1/√n; six of them beyond 5 of those by chance: 4e-6.
    #[test]
    fn neighbours_in_a_block_are_independent() {
        let values = sample(1_000_000, 2);
        let n = values.len() as f64;
        for lag in [1, 2, PAIRS - 1, PAIRS, PAIRS + 1, 2 * PAIRS] {
            let correlation = values.iter().zip(&values[lag..]).map(|(a, b)| a * b).sum::<f64>() / n;
            assert!(correlation.abs() * n.sqrt() < 5.0, "lag {lag}: {correlation}");
        }
    }

    /// Of 4 · 10⁶ values 253.4 are expected beyond ±4; their number beyond 5 of its standard deviations by chance: 6e-7.
    #[test]
    fn tails_have_their_mass() {
        let values = sample(4_000_000, 3);
        let beyond = values.iter().filter(|v| v.abs() > 4.0).count() as f64;
        let expected = 2.0 * phi(-4.0) * values.len() as f64;
        assert!((beyond - expected).abs() < 5.0 * expected.sqrt(), "{beyond} of {expected}");
    }

    /// A value is rounded to 0 with probability 0.4/256: more than three of a thousand next to each other by chance, 6e-9.
    #[test]
    fn every_length_gets_noise_in_every_place() {
        for n in [0, 1, 2, 3, 2 * PAIRS - 1, 2 * PAIRS, 2 * PAIRS + 1] {
            let values = sample(n, 4);
            assert!(values.windows(4).all(|w| w.iter().any(|v| *v != 0.0)), "{n}");
            assert!(values.last().is_none_or(|v| *v != 0.0), "{n}");
        }
    }

    /// Whatever was there: what comes out is a whole number of steps, for values far above and far below the noise.
    #[test]
    fn what_comes_out_is_on_a_grid_that_the_values_do_not_move() {
        for (std, size) in [(1.0, 0.0), (0.3, 1.0), (1e-4, 1.0), (2e-6, 1.0), (1e30, 1.0), (1e-20, 1e-22)] {
            let mut rng = ChaCha20Rng::seed_from_u64(5);
            let before: Vec<f32> = (0..5_001).map(|_| rng.random_range(-1.0..=1.0) * size as f32).collect();
            let (mut single, mut double) = (before.clone(), before.iter().copied().map(f64::from).collect::<Vec<_>>());
            add_gaussian_f32(&mut rng, std, &mut single);
            add_gaussian_f64(&mut rng, std, &mut double);
            let (f, d) = (at_most(GRID / std), (GRID / std).next_down());
            for ((single, double), before) in single.into_iter().zip(double).zip(before) {
                // Beyond that a number of steps cannot be told from its neighbours in single precision.
                let steps = (f64::from(single) * f64::from(f)).round();
                assert!(steps.abs() > 4_194_304.0 || single == steps as f32 * (1.0 / f), "{std} {size}");
                assert_eq!(double, (double * d).round() / d, "{std} {size}");
                assert!((double - f64::from(before)).abs() < 7.0 * std);
                assert!((f64::from(single) - f64::from(before)).abs() < 7.0 * std + 1e-7 * size);
            }
        }
    }

    /// Where single precision says that it is certain, double precision agrees, whatever bits follow; and it mostly is. A third of the
    /// values lies a hair beside a boundary.
    #[test]
    fn single_precision_is_as_good_as_it_says() {
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        let (mut certain, n) = (0, 600_000);
        for i in 0..n {
            let (high, turn) = (rng.random_range(FEW_BITS..=u32::MAX), rng.next_u32());
            let radius = (-2.0 * ln(high as f32 * TWO_POW_MINUS_32)).sqrt();
            let (_, cos) = sin_cos_turn(turn);
            let mut value = rng.random_range(-300.0f32..300.0);
            if i % 3 == 0 {
                let sum = value + GRID as f32 * radius * cos;
                value += 0.5 - (sum - sum.floor()) + rng.random_range(-0.01..0.01);
            }
            let (single, margin) = round(1.0, value, radius, cos);
            if margin <= 0.0 || radius <= LEAST_RADIUS {
                continue;
            }
            certain += usize::from(i % 3 != 0);
            for low in [0, u32::MAX] {
                let extend = |high: u32| (u64::from(high) << 32) | u64::from(low);
                let pair = Pair::new(extend(high), extend(turn));
                let [exact, _] = pair.round(&mut rng, 1.0, [f64::from(value), 0.0]);
                assert_eq!(f64::from(single), exact, "{high} {turn} {value} {margin}");
            }
        }
        assert!(certain as f64 > 0.99 * f64::from(n) * 2.0 / 3.0, "{certain}");
    }

    #[test]
    fn few_bits_are_extended_to_the_far_tail() {
        assert!(extended_uniform(0, 0) > 0.0 && extended_uniform(0, 0) < 1e-19);
        // Continuous with what the leading bits alone would give.
        assert!((extended_uniform(FEW_BITS - 1, u32::MAX) - FEW_BITS as f32 * TWO_POW_MINUS_32).abs() < 1e-9);
    }
}
