//! Sum of the threads' gradients, noise and normalisation, in one pass.

use candle_core::Tensor;

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, cpu, destination, dtype, for_float, same, source};
use super::in_place::{Operands, unary};
use crate::error::TensorError;
use crate::noise::{BLOCK, NoiseSource, StepNoise};
use crate::threads::Threads;
use crate::vector_math::vectorise;

/// How a sum becomes a gradient.
pub struct Privatise<'a> {
    /// `None` adds nothing.
    pub noise: Option<StepNoise>,
    /// Where noise is made if this is on a CUDA device.
    pub source: NoiseSource,
    /// A public constant: the expected batch size.
    pub normaliser: f64,
    /// Who works on it.
    pub threads: &'a Threads,
}

/// Without the key of the noise.
impl std::fmt::Debug for Privatise<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { noise, source, normaliser, threads } = self;
        f.debug_struct("Privatise")
            .field("has_noise", &noise.is_some())
            .field("source", source)
            .field("normaliser", normaliser)
            .field("threads", threads)
            .finish_non_exhaustive()
    }
}

/// Values that go through all stages before the next ones: they stay in the first-level cache.
const AT_ONCE: usize = 16 * BLOCK;
/// Values below which one thread does it all.
const FEW: usize = 32 * BLOCK;

/// `out = (out + Σ others + N) / normaliser` with the noise `N`, if there is any, and vectors of
/// the same length. Whether every value came out finite.
///
/// **Guarantee.** The noise does not depend on the threads; the sum is taken in the order of the
/// vectors.
///
/// # Errors
/// [`TensorError`] if shapes or number types do not fit, or the device fails.
pub fn privatise(out: &Tensor, others: &[&Tensor], how: &Privatise<'_>) -> Result<bool, TensorError> {
    let guards: Vec<_> = others.iter().map(|other| other.storage_and_layout()).collect();
    let mut all_finite = false;
    unary("privatise", out, |operands| match operands {
        Operands::Cpu(out, []) => for_float!(dtype(out.0), "privatise", T => {
            let values = destination::<T>(out)?;
            let mut others = Vec::with_capacity(guards.len());
            for (storage, layout) in &guards {
                let other = source::<T>((cpu(storage)?, layout))?;
                same("values of a part of a sum", values.len(), other.len())?;
                others.push(other);
            }
            let len = how.threads.part_len(values.len(), BLOCK, FEW);
            let finite = how.threads.each(values.chunks_mut(len).enumerate(), |(i, values)| {
                let mut finite = true;
                for (j, values) in values.chunks_mut(AT_ONCE).enumerate() {
                    finite &= how.block(i * len + j * AT_ONCE, values, &others);
                }
                finite
            });
            all_finite = finite.iter().all(|&finite| finite);
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(out, []) => {
            all_finite = cuda::privatise(out, &guards, how)?;
            Ok(())
        }
    })?;
    Ok(all_finite)
}

impl Privatise<'_> {
    /// All stages for the values from `start` on; whether they came out finite.
    fn block<T: Element>(&self, start: usize, values: &mut [T], others: &[&[T]]) -> bool {
        let range = start..start + values.len();
        for other in others {
            vectorise(
                #[inline(always)]
                || {
                    for (sum, &value) in values.iter_mut().zip(&other[range.clone()]) {
                        *sum += value;
                    }
                },
            );
        }
        if let Some(noise) = &self.noise {
            T::add_noise(noise, (start / BLOCK) as u64, values);
        }
        let factor = T::from_double(1.0 / self.normaliser);
        // 0 · v is NaN for NaN and ±∞ and stays so. In lanes and without early exit, so that the
        // loop vectorises.
        let mut lanes = [T::ZERO; 16];
        vectorise(
            #[inline(always)]
            || {
                let (blocks, rest) = values.as_chunks_mut();
                for values in blocks.iter_mut().map(<[T; 16]>::as_mut_slice).chain([rest]) {
                    for (lane, value) in lanes.iter_mut().zip(values) {
                        *value *= factor;
                        *lane += *value * T::ZERO;
                    }
                }
            },
        );
        lanes == [T::ZERO; 16]
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use candle_core::Device;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    const N: usize = 3 * FEW + 71;

    fn privatise(parts: &[Tensor], std: f64, threads: usize) -> (Vec<f32>, bool) {
        let result = parts[0].copy().unwrap();
        let noise = (std > 0.0).then(|| StepNoise::draw(&mut ChaCha20Rng::seed_from_u64(3), std));
        let threads = Threads::new(NonZeroUsize::new(threads).unwrap()).unwrap();
        let others: Vec<&Tensor> = parts[1..].iter().collect();
        let how = Privatise { noise, source: NoiseSource::default(), normaliser: 8.0, threads: &threads };
        let finite = super::privatise(&result, &others, &how).unwrap();
        (result.to_vec1().unwrap(), finite)
    }

    fn part(seed: usize) -> Tensor {
        let values: Vec<f32> = (0..N).map(|i| ((i * seed) % 103) as f32 * 0.25).collect();
        Tensor::from_vec(values, N, &Device::Cpu).unwrap()
    }

    #[test]
    fn parts_are_added_and_divided() {
        let parts = [part(7), part(31)];
        let (sum, finite) = privatise(&parts, 0.0, 2);
        let expected = ((&parts[0] + &parts[1]).unwrap() / 8.0).unwrap().to_vec1::<f32>().unwrap();
        assert_eq!((sum, finite), (expected, true));
        let alone = ((&parts[0]) / 8.0).unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(privatise(&parts[..1], 0.0, 2), (alone, true));
    }

    #[test]
    fn any_number_of_threads_adds_the_same_noise() {
        let parts = [part(7), part(31)];
        let (one, _) = privatise(&parts, 3.0, 1);
        for threads in [2, 3, 5] {
            assert!(privatise(&parts, 3.0, threads).0 == one, "{threads} threads");
        }
        assert!(one != privatise(&parts, 0.0, 1).0);
    }

    #[test]
    fn a_value_that_is_not_finite_is_seen_wherever_it_is() {
        for place in [0, FEW, N - 1] {
            let mut values = vec![0.0_f32; N];
            values[place] = f32::INFINITY;
            let spoilt = Tensor::from_vec(values, N, &Device::Cpu).unwrap();
            assert!(!privatise(&[part(1), spoilt], 0.0, 2).1, "{place}");
        }
    }
}
