//! Gaussian noise from a cryptographic stream, without the marks that floating-point arithmetic
//! leaves on it.
//!
//! **The attack.** A noisy value `fl(f + n)` computed in floating point can take only some of the
//! numbers near it, and which ones depends on `f`: the low bits of one released value can exclude a
//! data set altogether (Mironov 2012 for Laplace noise; Jin, McMurtry, Rubinstein and Ohrimenko
//! 2022, "Are We There Yet?", for Gaussian noise by Box and Muller). No ε holds for such a release.
//!
//! **The defence.** What is released is `⌊(f + N)/g⌉ · g` for a grid `g` that does not depend on
//! the data, where `N` is the *real* Gaussian variate that infinitely many random bits would give.
//! Rounding a real number to a public grid is post-processing, so the release is exactly as private
//! as the Gaussian mechanism of the theory, at no cost in sensitivity. The rounding is right
//! although `N` is never known exactly, for it can be decided from an interval:
//!
//! 1. In single precision, sixteen values at a time, from 32 bits of either coordinate of Box and
//!    Muller's point, with a bound on the error of everything, the other bits included. If the
//!    interval around `(f + N)/g` holds no boundary between two grid points, it is rounded.
//! 2. Otherwise (one pair of values in 600) in double precision, with 64 bits of either coordinate.
//! 3. Otherwise (one value in 2⁴⁰) in multiple precision with 192 bits. One in 2¹⁶⁰ of *those* is
//!    then rounded by what is known: over all values of all runs that will ever be, this moves δ by
//!    less than 1e-30.
//!
//! All paths speak of the same `N`, for the bits of a value depend on nothing but the step's key
//! and the value's place in the vector ([`StepNoise`]). The grid is the noise's standard deviation
//! divided by [`GRID`]: it adds a relative 1.3e-6 to the variance. Its step is rounded up, and with
//! it the noise.
//!
//! **Random bits** come from ChaCha20. Every step draws a key of 256 bits from the run's noise
//! stream, which gives nothing but such keys; a value's bits are words of two streams under that
//! key, at numbers that belong to the value alone. No pair of key, stream and block number is thus
//! used twice. To tell the bits from independent uniform ones is to tell ChaCha20's block function
//! from a random one: "exactly" above means up to that. Since no value's noise
//! depends on another's, neither threads nor pieces of the vector nor the kind of device that adds
//! it can change it.
//!
//! **What this does not cover.** How `f` came about: that one record moves it by no more than the
//! sensitivity is for the caller to see to; dp-train's sums of clipped gradients do. Time: the
//! second and third paths take longer, and their number depends on the noisy values' digits below
//! the grid.

mod block_parts;
mod box_muller;
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod eight_blocks;
mod exact;
pub(crate) mod grid;
mod keystream;
#[cfg(test)]
mod normality;
#[cfg(target_arch = "x86_64")]
mod two_states;

use rand::CryptoRng;

use self::block_parts::BlockParts;
use self::exact::{Coordinate, Pair};
use self::grid::at_most;
use self::keystream::{Keystream, LANES, WORDS};
use crate::simd::vectorise;

/// Steps of the grid in one standard deviation of the noise.
pub const GRID: f64 = 256.0;

/// Values whose noise is made together: one for each word in a group of the keystream.
/// Parts of a vector begin at multiples of it.
pub const BLOCK: usize = WORDS;
/// Pairs of a block. The first half of a block takes the cosines, the second the sines: two
/// contiguous runs.
const PAIRS: usize = BLOCK / 2;

/// Stream of the leading 32 bits of every value's coordinate: word `i` of group `b` belongs to
/// value `b · BLOCK + i`, radii first.
const LEADING: u64 = 0;
/// Stream of the bits that follow: block `p` belongs to pair `p` of the vector.
const FURTHER: u64 = 1;

/// The Gaussian noise of one step.
///
/// **Guarantee.** Post-processing of the Gaussian mechanism with a standard deviation of at least
/// the one asked for on the values as they are; see the module. What is added to a value depends on
/// the key and on its place in the vector alone.
///
/// **Edge cases.** A value that is not finite stays so. A standard deviation that is not finite
/// makes every value infinite or not a number; [`kernels::add_noise`](crate::kernels::add_noise)
/// refuses it by name.
pub struct StepNoise {
    keystream: Keystream,
    std: f64,
}

/// Without the key, which gives the noise away.
impl std::fmt::Debug for StepNoise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepNoise").field("std", &self.std).finish_non_exhaustive()
    }
}

impl StepNoise {
    /// Noise of this standard deviation, above 0, under a key of 256 bits drawn from a stream that
    /// must be cryptographic.
    pub fn draw(rng: &mut dyn CryptoRng, std: f64) -> Self {
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        Self { keystream: Keystream::new(key), std }
    }

    /// Adds noise to values in single precision; see [`Self::add_exact`].
    pub fn add_f32(&self, first_block: u64, values: &mut [f32]) {
        let mut exact = [0.0; BLOCK];
        for (number, values) in (first_block..).zip(values.chunks_mut(BLOCK)) {
            let exact = &mut exact[..values.len()];
            for (exact, &value) in exact.iter_mut().zip(&*values) {
                *exact = f64::from(value);
            }
            self.add_exact(number, exact, values);
        }
    }

    /// Adds noise to values, the first of which is at `first_block · BLOCK` in the step's vector,
    /// and rounds to multiples of about `std / 256`, in single precision. The values are taken as
    /// the real numbers that they are in double precision: they are rounded once, with their noise.
    ///
    /// **Shapes.** Both slices have one value for each place.
    ///
    /// Box and Muller's transform from four random bytes a value. Further bits are looked at where
    /// those do not decide the rounding, or hold too few significant ones of the radius.
    pub fn add_exact(&self, first_block: u64, exact: &[f64], noisy: &mut [f32]) {
        let factor = at_most(GRID / self.std);
        let step = 1.0 / factor;
        let mut undecided = Vec::with_capacity(LANES);
        let mut parts = BlockParts::default();
        let (mut last, mut noisy_block) = ([0.0; BLOCK], [0.0; BLOCK]);
        for (i, (values, noisy)) in exact.chunks(BLOCK).zip(noisy.chunks_mut(BLOCK)).enumerate() {
            let number = first_block.wrapping_add(i as u64);
            let is_second = i % 2 == 1;
            if !is_second {
                self.leading_words_of_two(number, (i + 1) * BLOCK < exact.len(), &mut parts.words);
            }
            let block = if let (Some(block), Some(noisy)) = (values.as_array(), noisy.as_mut_array()) {
                parts.add_where_certain(is_second, [factor, step], block, noisy);
                block
            } else {
                last[..values.len()].copy_from_slice(values);
                parts.add_where_certain(is_second, [factor, step], &last, &mut noisy_block);
                noisy.copy_from_slice(&noisy_block[..noisy.len()]);
                &last
            };
            for (run, unsettled) in parts.unsettled.as_chunks::<RUN>().0.iter().enumerate() {
                let mut unsettled = u64::from_le_bytes(*unsettled);
                while unsettled != 0 {
                    let pair = run * RUN + unsettled.trailing_zeros() as usize / 8;
                    unsettled &= unsettled - 1;
                    let values = [block[pair], block[PAIRS + pair]];
                    undecided.push(Undecided::new(number, i * BLOCK, pair, &parts.words[i % 2], values));
                }
            }
        }
        self.settle(&mut undecided, f64::from(factor), noisy, |steps| steps as f32 * step);
    }

    /// The same in double precision, from the same bits: for counts, and to check single precision.
    pub fn add_f64(&self, first_block: u64, values: &mut [f64]) {
        let factor = (GRID / self.std).next_down();
        let mut words = [0; WORDS];
        for (number, start) in (first_block..).zip((0..values.len()).step_by(BLOCK)) {
            vectorise(
                #[inline(always)]
                || self.leading_words(number, &mut words),
            );
            let before = |place: usize| values.get(place).copied().unwrap_or(0.0);
            let pair = |i| Undecided::new(number, start, i, &words, [before(start + i), before(start + PAIRS + i)]);
            // Few values, such as counts, leave the second half of the block empty.
            let mut pairs: Vec<Undecided> = (0..PAIRS.min(values.len() - start)).map(pair).collect();
            self.settle(&mut pairs, factor, values, |steps| steps / factor);
        }
    }

    /// The key as the cipher takes it, for a device that makes the noise itself.
    pub fn key(&self) -> [u32; 8] {
        self.keystream.key()
    }

    /// The standard deviation.
    pub fn std(&self) -> f64 {
        self.std
    }

    /// Grid steps of the values of a pair of the step's vector, from all its bits: for the rare
    /// pair that a device leaves in doubt.
    #[doc(hidden)]
    pub fn round_pair(&self, number: u64, factor: f64, values: [f64; 2]) -> [f64; 2] {
        let (block, i) = (number / PAIRS as u64, (number % PAIRS as u64) as usize);
        let (mut leading, mut further) = ([0; WORDS], [0; WORDS]);
        vectorise(
            #[inline(always)]
            || {
                self.leading_words(block, &mut leading);
                self.keystream.blocks(FURTHER, [number; LANES], &mut further);
            },
        );
        Undecided::new(block, 0, i, &leading, values).point(|word| further[word * LANES]).round(factor, values)
    }

    /// The leading 32 bits of the coordinates of a block's pairs: radii, then turns.
    #[expect(
        clippy::inline_always,
        reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
    )]
    #[inline(always)]
    fn leading_words(&self, block: u64, words: &mut [u32; WORDS]) {
        self.keystream.blocks(LEADING, numbers_of(block), words);
    }

    /// The same of a block and, if there is one, of the next.
    fn leading_words_of_two(&self, block: u64, has_next: bool, words: &mut [[u32; WORDS]; 2]) {
        vectorise(
            #[inline(always)]
            || {
                if has_next {
                    let numbers = [numbers_of(block), numbers_of(block.wrapping_add(1))];
                    self.keystream.two_times_blocks(LEADING, numbers, words);
                } else {
                    self.leading_words(block, &mut words[0]);
                }
            },
        );
    }

    /// Rounds pairs with all their bits and puts them into their places; `value` turns a number of
    /// grid steps into a value.
    fn settle<T>(&self, pairs: &mut Vec<Undecided>, factor: f64, values: &mut [T], value: impl Fn(f64) -> T) {
        let mut words = [0; WORDS];
        for pairs in pairs.chunks(LANES) {
            let numbers = std::array::from_fn(|lane| pairs.get(lane).map_or(0, |pair| pair.number));
            vectorise(
                #[inline(always)]
                || self.keystream.blocks(FURTHER, numbers, &mut words),
            );
            for (lane, pair) in pairs.iter().enumerate() {
                let rounded = pair.point(|word| words[word * LANES + lane]).round(factor, pair.values);
                for (place, rounded) in pair.places.into_iter().zip(rounded) {
                    // The last block may have no value there.
                    if let Some(place) = values.get_mut(place) {
                        *place = value(rounded);
                    }
                }
            }
        }
        pairs.clear();
    }
}

/// The cipher's blocks with the leading bits of a block of values.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn numbers_of(block: u64) -> [u64; LANES] {
    let first = block.wrapping_mul(LANES as u64);
    std::array::from_fn(|lane| first.wrapping_add(lane as u64))
}

/// A pair of values whose noise takes more bits than the leading ones.
struct Undecided {
    /// In the step's vector.
    number: u64,
    leading: [u32; 2],
    /// Without noise.
    values: [f64; 2],
    /// Where they are in the slice at hand.
    places: [usize; 2],
}

impl Undecided {
    /// Pair `i` of a block that starts at `start` in the slice.
    fn new(block: u64, start: usize, i: usize, words: &[u32; WORDS], values: [f64; 2]) -> Self {
        Self {
            number: block.wrapping_mul(PAIRS as u64).wrapping_add(i as u64),
            leading: [words[i], words[PAIRS + i]],
            values,
            places: [start + i, start + PAIRS + i],
        }
    }

    fn point(&self, further: impl Fn(usize) -> u32) -> Pair {
        let coordinate = |leading, first| {
            Coordinate::new(std::array::from_fn(|i| if i == 0 { leading } else { further(first + i - 1) }))
        };
        Pair::new(coordinate(self.leading[0], 0), coordinate(self.leading[1], 5))
    }
}

/// Pairs that are looked at together: most runs have none that is undecided.
const RUN: usize = 8;

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::normality::{assert_normal, assert_uncorrelated, phi};
    use super::*;

    fn noise(seed: u64, std: f64) -> StepNoise {
        StepNoise::draw(&mut ChaCha20Rng::seed_from_u64(seed), std)
    }

    fn sample(n: usize, seed: u64) -> Vec<f64> {
        let mut values = vec![0.0f32; n];
        noise(seed, 1.0).add_f32(0, &mut values);
        values.into_iter().map(f64::from).collect()
    }

    #[test]
    fn values_follow_the_normal_distribution() {
        assert_normal(sample(1_000_000, 1));
    }

    #[test]
    fn neighbours_in_a_block_are_independent() {
        assert_uncorrelated(&sample(1_000_000, 2), [1, 2, PAIRS - 1, PAIRS, PAIRS + 1, BLOCK]);
    }

    /// Among 4 · 10⁶ values 253.4 are expected beyond ±4; their number beyond 5 of its standard
    /// deviations by chance: 6e-7.
    #[test]
    fn tails_have_their_mass() {
        let values = sample(4_000_000, 3);
        let beyond = values.iter().filter(|v| v.abs() > 4.0).count() as f64;
        let expected = 2.0 * phi(-4.0) * values.len() as f64;
        assert!((beyond - expected).abs() < 5.0 * expected.sqrt(), "{beyond} of {expected}");
    }

    /// A value is rounded to 0 with probability 0.4/256: more than three of a thousand next to each
    /// other by chance, 6e-9.
    #[test]
    fn every_length_gets_noise_in_every_place() {
        for n in [0, 1, 2, PAIRS - 1, PAIRS, PAIRS + 1, BLOCK - 1, BLOCK, BLOCK + 1] {
            let values = sample(n, 4);
            assert!(values.windows(4).all(|w| w.iter().any(|v| *v != 0.0)), "{n}");
            assert!(values.last().is_none_or(|v| *v != 0.0), "{n}");
        }
    }

    /// Pieces that begin at blocks, in any order and of any size, get the noise of the whole; so
    /// does a vector that ends earlier.
    #[test]
    fn noise_depends_on_the_place_alone() {
        const N: usize = 40 * BLOCK + 77;
        let before: Vec<f32> = (0..N).map(|i| (i % 91) as f32 * 0.03 - 1.3).collect();
        let noise = noise(7, 0.8);
        let mut whole = before.clone();
        noise.add_f32(0, &mut whole);
        for blocks in [1, 3, 16, 39] {
            let mut pieces = before.clone();
            let numbered: Vec<_> = pieces.chunks_mut(blocks * BLOCK).enumerate().collect();
            for (i, piece) in numbered.into_iter().rev() {
                noise.add_f32((i * blocks) as u64, piece);
            }
            assert_eq!(pieces, whole, "{blocks} blocks");
        }
        for n in [1, PAIRS, BLOCK + 1, N - 1] {
            let mut start = before[..n].to_vec();
            noise.add_f32(0, &mut start);
            assert_eq!(start, whole[..n], "{n} values");
        }
    }

    /// Two paths to one number: what single precision decides is what double precision says of the
    /// same bits.
    #[test]
    fn single_and_double_precision_see_the_same_noise() {
        const N: usize = 400 * BLOCK + 3;
        // A power of 2, so that both grids are the same.
        let noise = noise(8, 0.5);
        let mut single: Vec<f32> = (0..N).map(|i| (i % 1_013) as f32 * 0.01 - 5.0).collect();
        let mut double: Vec<f64> = single.iter().copied().map(f64::from).collect();
        noise.add_f32(3, &mut single);
        noise.add_f64(3, &mut double);
        let single: Vec<f64> = single.into_iter().map(f64::from).collect();
        // Double precision's grid is one unit in the last place coarser.
        assert!(single.iter().zip(&double).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn steps_have_noise_of_their_own() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut draw = || {
            let mut values = [0.0; BLOCK];
            StepNoise::draw(&mut rng, 1.0).add_f32(0, &mut values);
            values
        };
        assert_ne!(draw(), draw());
    }

    /// Whatever was there: what comes out is a whole number of steps, for values far above and far
    /// below the noise.
    #[test]
    fn what_comes_out_is_on_a_grid_that_the_values_do_not_move() {
        for (std, size) in [(1.0, 0.0), (0.3, 1.0), (1e-4, 1.0), (2e-6, 1.0), (1e30, 1.0), (1e-20, 1e-22)] {
            let mut rng = ChaCha20Rng::seed_from_u64(5);
            let before: Vec<f32> = (0..5_001).map(|_| rng.random_range(-1.0..=1.0) * size as f32).collect();
            let (mut single, mut double) = (before.clone(), before.iter().copied().map(f64::from).collect::<Vec<_>>());
            noise(5, std).add_f32(0, &mut single);
            noise(6, std).add_f64(0, &mut double);
            let (f, d) = (at_most(GRID / std), (GRID / std).next_down());
            for ((single, double), before) in single.into_iter().zip(double).zip(before) {
                // Beyond that a number of steps cannot be told from its neighbours in single
                // precision.
                let steps = (f64::from(single) * f64::from(f)).round();
                assert!(steps.abs() > 4_194_304.0 || single == steps as f32 * (1.0 / f), "{std} {size}");
                assert_eq!(double, (double * d).round() / d, "{std} {size}");
                assert!((double - f64::from(before)).abs() < 7.0 * std);
                assert!((f64::from(single) - f64::from(before)).abs() < 7.0 * std + 1e-7 * size);
            }
        }
    }
}
