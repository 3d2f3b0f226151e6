//! Gaussian noise from a cryptographic stream.

use rand::{Rng, RngCore};
use rand_chacha::ChaCha20Rng;
use rand_distr::StandardNormal;

use crate::keystream::{WORDS, next_words};
use crate::vector_math::{ln, sin_cos_turn, vectorise};

/// Groups of keystream used at a time: with them and the uniforms in the first-level cache.
const GROUPS: usize = 4;
/// Pairs made at a time.
const PAIRS: usize = GROUPS * WORDS / 2;

/// Adds independent `N(0, std²)` noise to every value, in single precision.
///
/// Box and Muller's transform, four random bytes a value. The radius is that of a uniform variate with 24 significant bits
/// everywhere and a resolution of 2⁻⁶⁴, so that values reach 9.4 standard deviations: where the first 32 bits leave fewer
/// than 24 significant ones (one pair in 256) another 32 follow.
///
/// **Guarantee.** The distribution is that of the ideal Gaussian up to `f32` rounding. Rounding of floating-point noise is a known side channel
/// (Mironov 2012) that this function does not close.
pub(crate) fn add_gaussian_f32(rng: &mut ChaCha20Rng, std: f64, values: &mut [f32]) {
    let std = std as f32;
    let mut groups = [[0; WORDS]; GROUPS];
    let mut uniform = [0.0f32; PAIRS];
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
                    uniform[i] = extended_uniform(radii[i], rng.next_u32());
                }
            }
        }
        // The first half of a block takes the cosines, the second the sines: two contiguous runs.
        let (first, second) = block.split_at_mut(pairs);
        vectorise(
            #[inline(always)]
            || {
                for ((u, turn), value) in uniform.iter_mut().zip(turns).zip(first.iter_mut()) {
                    let radius = std * (-2.0 * ln(*u)).sqrt();
                    let (sin, cos) = sin_cos_turn(*turn);
                    *value += radius * cos;
                    *u = radius * sin;
                }
                for (noise, value) in uniform.iter().zip(second.iter_mut()) {
                    *value += noise;
                }
            },
        );
    }
}

/// Leading bits below this leave fewer than 24 significant ones.
const FEW_BITS: u32 = 1 << 24;
/// Pairs whose leading bits are looked at together: most runs have none with too few.
const RUN: usize = 16;
const TWO_POW_MINUS_32: f32 = 1.0 / 4_294_967_296.0;

/// A uniform variate in (0, 1) from 32 leading and 32 further bits.
fn extended_uniform(leading: u32, further: u32) -> f32 {
    let bits = (u64::from(leading) << 32) | u64::from(further);
    ((bits as f64 + 0.5) / 18_446_744_073_709_551_616.0) as f32
}

/// Adds independent `N(0, std²)` noise to every value, in double precision (Marsaglia and Tsang's ziggurat).
pub(crate) fn add_gaussian_f64(rng: &mut ChaCha20Rng, std: f64, values: &mut [f64]) {
    for value in values {
        *value += std * rng.sample::<f64, _>(StandardNormal);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn sample(n: usize, seed: u64) -> Vec<f64> {
        let mut values = vec![0.0f32; n];
        add_gaussian_f32(&mut ChaCha20Rng::seed_from_u64(seed), 1.0, &mut values);
        values.into_iter().map(f64::from).collect()
    }

    /// Standard normal distribution function.
    fn phi(x: f64) -> f64 {
        0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
    }

    /// Kolmogorov and Smirnov at n = 10⁶: the statistic exceeds 2.23/√n with probability 2 exp(−2 · 2.23²) < 1e-4.
    /// The seed is fixed, so a pass is a pass for ever.
    #[test]
    fn values_follow_the_normal_distribution() {
        let mut values = sample(1_000_000, 1);
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

    #[test]
    fn every_length_gets_noise_in_every_place() {
        for n in [0, 1, 2, 3, 2 * PAIRS - 1, 2 * PAIRS, 2 * PAIRS + 1] {
            assert!(sample(n, 4).iter().all(|v| *v != 0.0), "{n}");
        }
    }

    #[test]
    fn few_bits_are_extended_to_the_far_tail() {
        assert!(extended_uniform(0, 0) > 0.0 && extended_uniform(0, 0) < 1e-19);
        // Continuous with what the leading bits alone would give.
        assert!((extended_uniform(FEW_BITS - 1, u32::MAX) - FEW_BITS as f32 * TWO_POW_MINUS_32).abs() < 1e-9);
    }
}
