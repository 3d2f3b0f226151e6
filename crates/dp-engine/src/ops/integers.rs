//! Sums of pieces as integers, and from there to a private gradient.

#[cfg(feature = "cuda")]
use candle_core::Error;
use candle_core::Tensor;

#[cfg(feature = "cuda")]
use super::cuda::{self, DeviceIntegers};
use super::element::{Element, cpu, destination, dtype, for_float, same, source};
#[cfg(feature = "cuda")]
use super::in_place::Operands;
use super::in_place::unary;
use super::prefetch::prefetch;
use super::words;
use crate::error::TensorError;
use crate::grid::CAPACITY;
use crate::hook;
use crate::noise::{BLOCK, StepNoise};
use crate::threads::Threads;
use crate::vector_math::vectorise;

/// Adding it to a magnitude below 2⁵¹ rounds that to an integer, which is then in the trailing
/// bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Adds the values of a vector, rounded to multiples of a public step, to integers, `[values]`. The
/// vector stays as it is.
///
/// `grid` is the step, a power of two. Returns whether every value was finite and within the
/// capacity of the grid.
pub(crate) fn add_to_integers(vector: &Tensor, steps: &mut [i64], grid: f64) -> candle_core::Result<bool> {
    let (storage, layout) = vector.storage_and_layout();
    let storage = cpu(&storage)?;
    for_float!(dtype(storage), "add-to-integers", T => {
        let values = source::<T>((storage, layout))?;
        same("integers of a sum", values.len(), steps.len())?;
        if hook::ask(|other| other.add_values(steps, &mut values.iter().map(|value| value.to_double()), grid)).is_some()
        {
            return Ok(true);
        }
        let per_step = 1.0 / grid;
        Ok(vectorise(#[inline(always)] || {
            let mut all_fit = true;
            for (step, &value) in steps.iter_mut().zip(values) {
                let scaled = value.to_double() * per_step;
                all_fit &= fits(scaled);
                *step = step.wrapping_add(to_integer(scaled));
            }
            all_fit
        }))
    })
}

/// Whether a number of steps is finite and within the capacity of the grid. Compared as bits, those
/// of infinities and NaN are larger than those of every number.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn fits(scaled: f64) -> bool {
    scaled.to_bits().cast_signed() & i64::MAX < CAPACITY.to_bits().cast_signed()
}

/// The nearest integer of a magnitude below 2⁵¹, ties to even.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn to_integer(scaled: f64) -> i64 {
    (scaled + ROUND).to_bits().wrapping_sub(ROUND.to_bits()).cast_signed()
}

/// The reverse, exact for magnitudes below 2⁵¹.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn from_integer(steps: i64) -> f64 {
    f64::from_bits(steps.cast_unsigned().wrapping_add(ROUND.to_bits())) - ROUND
}

/// A term of a sum.
pub enum Summand<'a> {
    /// Multiples of the grid.
    Integers(&'a [i64]),
    /// Values that are still to be rounded to the grid.
    Vector(Tensor),
    /// The same, from another rank.
    Words(&'a [u64]),
    /// The same, in the destination.
    InPlace,
}

/// Lengths, and no value.
impl std::fmt::Debug for Summand<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integers(integers) => write!(f, "Integers([{}])", integers.len()),
            Self::Vector(vector) => write!(f, "Vector({:?})", vector.dims()),
            Self::Words(words) => write!(f, "Words([{}])", words.len()),
            Self::InPlace => f.write_str("InPlace"),
        }
    }
}

/// How integers become a gradient.
pub struct FromIntegers<'a> {
    /// The step of the integers: a power of two.
    pub grid: f64,
    /// Place of the first value among all that the noise is for: a multiple of [`BLOCK`].
    pub start: usize,
    /// The noise of the step.
    pub noise: &'a StepNoise,
    /// A public constant: the expected batch size.
    pub normaliser: f64,
    /// Who works on it.
    pub threads: &'a Threads,
}

/// Without the key of the noise.
impl std::fmt::Debug for FromIntegers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { grid, start, noise: _, normaliser, threads } = self;
        f.debug_struct("FromIntegers")
            .field("grid", grid)
            .field("start", start)
            .field("normaliser", normaliser)
            .field("threads", threads)
            .finish_non_exhaustive()
    }
}

/// Values that go through all stages before the next ones: they stay in the first-level cache.
const AT_ONCE: usize = 8 * BLOCK;
/// Values below which one thread does it all.
const FEW: usize = 32 * BLOCK;
/// Values of a vector that leaves the cache: it is asked for before it is needed.
const MANY: usize = 1 << 18;

/// The summands on the CPU.
struct Slices<'a, T> {
    integers: Vec<&'a [i64]>,
    vectors: Vec<&'a [T]>,
    in_place: bool,
}

/// `out = (Σ summands · grid + N) / normaliser`, the sum taken in integers and rounded once, with
/// its noise. Whether every value was finite and within the capacity of the grid.
///
/// **Guarantee.** Neither sum nor noise depend on how the sum is split into summands, nor on the
/// threads.
///
/// # Errors
/// [`TensorError`] if shapes or number types do not fit, or the device fails.
pub fn from_integers(out: &Tensor, summands: &[Summand<'_>], how: &FromIntegers<'_>) -> Result<bool, TensorError> {
    let mut all_finite = false;
    unary("from-integers", out, |operands| {
        let (out, []) = operands.on_cpu("from-integers")?;
        for_float!(dtype(out.0), "from-integers", T => {
            let values = destination::<T>(out)?;
            let tensors = summands.iter().filter_map(|summand| match summand {
                Summand::Vector(tensor) => Some(tensor.storage_and_layout()),
                _ => None,
            });
            let guards: Vec<_> = tensors.collect();
            let mut slices = Slices { integers: Vec::new(), vectors: Vec::with_capacity(guards.len()), in_place: false };
            for (storage, layout) in &guards {
                let vector = source::<T>((cpu(storage)?, layout))?;
                same("values of a part of a sum", values.len(), vector.len())?;
                slices.vectors.push(vector);
            }
            for summand in summands {
                match summand {
                    Summand::Integers(steps) => {
                        same("integers of a part of a sum", values.len(), steps.len())?;
                        slices.integers.push(steps);
                    }
                    Summand::Vector(_) => {}
                    Summand::Words(words) => slices.vectors.push(words::values::<T>(words, values.len())?),
                    Summand::InPlace => slices.in_place = true,
                }
            }
            let len = how.threads.part_len(values.len(), BLOCK, FEW);
            let ahead = if values.len() < MANY { 0 } else { AT_ONCE };
            let finite = how.threads.each(values.chunks_mut(len).enumerate(), |(i, values)| {
                let (mut finite, mut start, mut rest) = (true, i * len, values);
                let mut exact = vec![0.0; AT_ONCE.min(rest.len())];
                while !rest.is_empty() {
                    let (now, later) = rest.split_at_mut(AT_ONCE.min(rest.len()));
                    let next = &later[..ahead.min(later.len())];
                    finite &= how.block(start, now, next, &slices, &mut exact[..now.len()]);
                    (start, rest) = (start + now.len(), later);
                }
                finite
            });
            all_finite = finite.iter().all(|&finite| finite);
            Ok(())
        })
    })?;
    Ok(all_finite)
}

/// [`from_integers`] for integers on a CUDA device, with the noise made there.
#[cfg(feature = "cuda")]
pub fn from_device_integers(
    out: &Tensor,
    integers: &DeviceIntegers,
    how: &FromIntegers<'_>,
) -> Result<bool, TensorError> {
    let mut all_finite = false;
    unary("from-integers", out, |operands| match operands {
        Operands::Cpu(..) => Err(Error::Msg("from-integers: expected tensors on a CUDA device".into())),
        Operands::Cuda(out, []) => {
            all_finite = cuda::privatise_integers(out, integers, how)?;
            Ok(())
        }
    })?;
    Ok(all_finite)
}

impl FromIntegers<'_> {
    /// All stages for the values from `start` on; whether they were finite. `next` are those after them
    /// that are in no cache; `exact` takes the sums.
    fn block<T: Element>(
        &self,
        start: usize,
        values: &mut [T],
        next: &[T],
        slices: &Slices<'_, T>,
        exact: &mut [f64],
    ) -> bool {
        let range = start..start + values.len();
        let (grid, per_step) = (self.grid, 1.0 / self.grid);
        let mut all_fit = true;
        // Terms are multiples of the grid, and their sums exact. The first one takes the place of what
        // `exact` holds.
        let mut has_begun = false;
        let in_place = slices.in_place.then_some(&*values);
        for vector in slices.vectors.iter().map(|vector| &vector[range.clone()]).chain(in_place) {
            let adds = std::mem::replace(&mut has_begun, true);
            all_fit &= vectorise(
                #[inline(always)]
                || {
                    let mut all_fit = true;
                    for (exact, &value) in exact.iter_mut().zip(vector) {
                        let scaled = value.to_double() * per_step;
                        all_fit &= fits(scaled);
                        let term = ((scaled + ROUND) - ROUND) * grid;
                        *exact = if adds { *exact + term } else { term };
                    }
                    all_fit
                },
            );
        }
        for steps in &slices.integers {
            let adds = std::mem::replace(&mut has_begun, true);
            vectorise(
                #[inline(always)]
                || {
                    for (exact, &steps) in exact.iter_mut().zip(&steps[range.clone()]) {
                        let term = from_integer(steps) * grid;
                        *exact = if adds { *exact + term } else { term };
                    }
                },
            );
        }
        if !has_begun {
            exact.fill(0.0);
        }
        // While the noise is made, memory has time for what is summed next.
        let range = range.end..range.end + next.len();
        prefetch(next);
        slices.vectors.iter().for_each(|vector| prefetch(&vector[range.clone()]));
        slices.integers.iter().for_each(|steps| prefetch(&steps[range.clone()]));
        T::noisy(self.noise, ((self.start + start) / BLOCK) as u64, exact, values);
        let factor = T::from_double(1.0 / self.normaliser);
        vectorise(
            #[inline(always)]
            || values.iter_mut().for_each(|value| *value *= factor),
        );
        all_fit
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use candle_core::Device;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    const N: usize = 2 * FEW + 71;

    fn vector(seed: usize) -> Vec<f32> {
        (0..N).map(|i| ((i * seed) % 103) as f32 * 0.25 - 11.0).collect()
    }

    fn tensor(values: &[f32]) -> Tensor {
        Tensor::from_slice(values, values.len(), &Device::Cpu).unwrap()
    }

    fn steps_of(vectors: &[&[f32]], grid: f64) -> Vec<i64> {
        let mut steps = vec![0; N];
        for values in vectors {
            assert!(add_to_integers(&tensor(values), &mut steps, grid).unwrap());
        }
        steps
    }

    fn gradient(dst: &[f32], summands: &[Summand<'_>], threads: usize) -> (Vec<f32>, bool) {
        let threads = Threads::new(NonZeroUsize::new(threads).unwrap()).unwrap();
        let noise = StepNoise::draw(&mut ChaCha20Rng::seed_from_u64(3), 0.5);
        let how = FromIntegers { grid: GRID, start: 0, noise: &noise, normaliser: 8.0, threads: &threads };
        let result = tensor(dst);
        let finite = from_integers(&result, summands, &how).unwrap();
        (result.to_vec1().unwrap(), finite)
    }

    const GRID: f64 = 1.0 / 1_073_741_824.0;

    /// However a sum is split between integers and vectors, and between threads: the same bits.
    #[test]
    fn a_sum_does_not_depend_on_how_it_is_split() {
        let (a, b, c) = (vector(7), vector(31), vector(53));
        let all = steps_of(&[&a, &b, &c], GRID);
        let whole = gradient(&a, &[Summand::Integers(&all)], 1);
        assert!(whole.1);
        let (first, later) = (steps_of(&[&c], GRID), steps_of(&[&b], GRID));
        let other = tensor(&b);
        for threads in [1, 2, 3] {
            let split = [Summand::Integers(&first), Summand::InPlace, Summand::Vector(other.clone())];
            assert!(gradient(&a, &split, threads) == whole, "{threads} threads");
            let in_integers = [Summand::Integers(&first), Summand::InPlace, Summand::Integers(&later)];
            assert!(gradient(&a, &in_integers, threads) == whole, "{threads} threads");
        }
    }

    #[test]
    fn integers_are_the_values_on_the_grid() {
        let steps = steps_of(&[&vector(7), &vector(7)], 0.5);
        for (value, steps) in vector(7).iter().zip(steps) {
            assert_eq!(steps, 2 * (f64::from(*value) * 2.0).round_ties_even() as i64);
            assert_eq!(from_integer(steps), steps as f64);
        }
    }

    #[test]
    fn what_is_not_finite_or_too_large_is_seen() {
        for (place, value) in [(0, f32::NAN), (FEW, f32::INFINITY), (N - 1, 1e30), (17, -1e30)] {
            let mut values = vector(5);
            values[place] = value;
            assert!(!gradient(&values, &[Summand::InPlace], 2).1, "{place}: {value}");
            assert!(!add_to_integers(&tensor(&values), &mut vec![0; N], GRID).unwrap(), "{place}: {value}");
        }
    }
}
