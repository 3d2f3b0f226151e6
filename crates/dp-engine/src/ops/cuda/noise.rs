//! Noise and normalisation of a clipped sum.

use std::ops::Deref;

use candle_core::cuda::cudarc::driver::{CudaSlice, CudaViewMut, DeviceRepr};
use candle_core::{CudaDevice, Error, Layout, Result, Storage, WithDType};

use super::integers::DeviceIntegers;
use super::launch::{by_value, launch};
use super::upload::upload_into;
use super::view::{Destination, Real, destination, dtype, on_device, scratch, source};
use crate::noise::{BLOCK, NoiseSource, StepNoise};
use crate::ops::element::{Element, for_float, same};
use crate::ops::integers::FromIntegers;
use crate::ops::noise::Privatise;

/// Values that have their first bits from one block of keystream.
const VALUES_OF_BLOCK: usize = 16;
/// Pairs of a block of values, and how far their values are apart.
const PAIRS: usize = BLOCK / 2;
/// Pairs in doubt that can be listed. One of 2³⁹ is in doubt, so that more than one in a step is
/// not to be expected.
const DOUBTFUL: usize = 64;

/// The kernels' `ChaChaKey`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DeviceKey([u32; 8]);

#[expect(unsafe_code, reason = "says that a structure may be passed to a kernel")]
// SAFETY: plain numbers in the kernel's order and layout.
unsafe impl DeviceRepr for DeviceKey {}
by_value!(DeviceKey);

/// Notes of the kernels, which the host reads once, at the end of a step: `counts` (the kernels'
/// `Notes`) holds the number of pairs in doubt and whether a value is not finite, `doubtful` the
/// pairs.
struct Notes {
    counts: CudaSlice<u32>,
    doubtful: CudaSlice<u64>,
}

impl Notes {
    fn new(device: &CudaDevice) -> Result<Self> {
        Ok(Self { counts: device.alloc_zeros(2)?, doubtful: scratch(device, DOUBTFUL)? })
    }

    /// The pairs in doubt, and whether every value is finite.
    fn read(&self, device: &CudaDevice) -> Result<(Vec<u64>, bool)> {
        let counts = device.clone_dtoh(&self.counts)?;
        let (n, not_finite) = (counts.first().copied().unwrap_or(0) as usize, counts.get(1) != Some(&0));
        if n > DOUBTFUL {
            return Err(Error::Msg(format!("values of noise in doubt: expected at most {DOUBTFUL} pairs, got {n}")));
        }
        let pairs = if n > 0 { device.clone_dtoh(&self.doubtful.slice(..n))? } else { Vec::new() };
        Ok((pairs, !not_finite))
    }
}

/// Whether every value came out finite.
pub(in crate::ops) fn privatise(
    dst: Destination<'_>,
    others: &[(impl Deref<Target = Storage>, &Layout)],
    how: &Privatise<'_>,
) -> Result<bool> {
    for_float!(dtype(dst.0), "privatise", T => {
        let device = dst.0.device.clone();
        let mut values = destination::<T>(dst)?;
        for (storage, layout) in others {
            let other = source::<T>((on_device(storage)?, layout))?;
            same("values of a part of a sum", values.len(), other.len())?;
            launch!(T, &device, "axpy", values.len(); values.slice_mut(..), T::ONE, other)?;
        }
        let share = T::from_f64(1.0 / how.normaliser);
        let mut notes = Notes::new(&device)?;
        let (len, slots) = (values.len(), DOUBTFUL as u32);
        let noise = match &how.noise {
            Some(noise) if how.source == NoiseSource::Device => noise,
            noise => {
                if let Some(noise) = noise {
                    let mut on_host = device.clone_dtoh(&values)?;
                    T::add_noise(noise, 0, &mut on_host);
                    upload_into(&device, &on_host, &mut values)?;
                }
                launch!(T, &device, "share_out", len; share, values, notes.counts.as_view_mut())?;
                return Ok(notes.read(&device)?.1);
            }
        };
        launch!(
            T, &device, "privatise", n_leading_blocks(len);
            len, DeviceKey(noise.key()), T::grid_factor(noise.std()), share, values.slice_mut(..),
            notes.counts.as_view_mut(), notes.doubtful.as_view_mut(), slots
        )?;
        let (pairs, is_finite) = notes.read(&device)?;
        for pair in pairs {
            let before = |values: &CudaViewMut<'_, T>, place: usize| -> Result<f64> {
                Ok(device.clone_dtoh(&values.as_view().slice(place..=place))?.iter().map(|value| value.to_f64()).sum())
            };
            settle(&device, noise, pair, share, &mut values, before)?;
        }
        Ok(is_finite)
    })
}

/// `out = (integers · grid + N) / normaliser`, the noise rounded as on the CPU. Whether every value
/// was finite and within the capacity of the grid.
pub(in crate::ops) fn privatise_integers(
    dst: Destination<'_>,
    integers: &DeviceIntegers,
    how: &FromIntegers<'_>,
) -> Result<bool> {
    for_float!(dtype(dst.0), "privatise-integers", T => {
        let device = dst.0.device.clone();
        let mut values = destination::<T>(dst)?;
        let (len, slots) = (values.len(), DOUBTFUL as u32);
        same("integers of a sum", len, integers.steps.len())?;
        let share = T::from_f64(1.0 / how.normaliser);
        let mut notes = Notes::new(&device)?;
        launch!(
            T, &device, "privatise_integers", n_leading_blocks(len);
            len, DeviceKey(how.noise.key()), T::grid_factor(how.noise.std()), share, integers.steps.as_view(), how.grid,
            integers.beyond.as_view(), values.slice_mut(..), notes.counts.as_view_mut(), notes.doubtful.as_view_mut(),
            slots
        )?;
        let (pairs, is_finite) = notes.read(&device)?;
        for pair in pairs {
            let before = |_: &CudaViewMut<'_, T>, place: usize| -> Result<f64> {
                let steps = device.clone_dtoh(&integers.steps.slice(place..=place))?;
                Ok(steps.iter().map(|&steps| steps as f64 * how.grid).sum())
            };
            settle(&device, &how.noise, pair, share, &mut values, before)?;
        }
        Ok(is_finite)
    })
}

/// Blocks of the leading stream for `len` values.
fn n_leading_blocks(len: usize) -> usize {
    len.div_ceil(BLOCK) * (BLOCK / VALUES_OF_BLOCK)
}

/// Decides a pair of values that the device left as they were; `before` reads a value without
/// noise.
fn settle<T: Real>(
    device: &CudaDevice,
    noise: &StepNoise,
    pair: u64,
    share: T,
    values: &mut CudaViewMut<'_, T>,
    before: impl Fn(&CudaViewMut<'_, T>, usize) -> Result<f64>,
) -> Result<()> {
    let factor = T::grid_factor(noise.std());
    let first = (pair as usize / PAIRS) * BLOCK + pair as usize % PAIRS;
    let places: Vec<usize> = [first, first + PAIRS].into_iter().filter(|&place| place < values.len()).collect();
    let mut exact = [0.0; 2];
    for (exact, &place) in exact.iter_mut().zip(&places) {
        *exact = before(values, place)?;
    }
    for (steps, place) in noise.round_pair(pair, factor, exact).into_iter().zip(places) {
        upload_into(device, &[T::of_steps(steps, factor) * share], &mut values.slice_mut(place..=place))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use candle_core::{DType, Device, Tensor};
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;
    use crate::ops::cuda::testing::device;
    use crate::threads::Threads;

    fn step_noise(std: f64) -> StepNoise {
        StepNoise::draw(&mut ChaCha20Rng::seed_from_u64(5), std)
    }

    /// `(values + N(0, std²)) / 3`, and whether all is finite.
    fn privatised(device: &Device, dtype: DType, values: &[f64], std: f64) -> Result<(Vec<f64>, bool)> {
        let sum = Tensor::from_slice(values, values.len(), device)?.to_dtype(dtype)?;
        let threads = Threads::new(NonZeroUsize::MIN).unwrap();
        let (noise, source) = (Some(step_noise(std)), NoiseSource::Device);
        let how = Privatise { noise, source, normaliser: 3.0, threads: &threads };
        let finite = crate::ops::privatise(&sum, &[], &how)?;
        Ok((sum.to_dtype(DType::F64)?.to_vec1()?, finite))
    }

    /// Whatever the length, the type, and the size of the values: bit for bit, for the bits of a
    /// value's noise depend on its place alone.
    #[test]
    fn the_device_adds_the_noise_of_the_cpu() {
        let Some(device) = device() else { return };
        for n in [1, 2, PAIRS - 1, PAIRS, PAIRS + 1, BLOCK, BLOCK + 1, 40 * BLOCK + 77] {
            let values: Vec<f64> = (0..n).map(|i| f64::from((i % 997) as u32) * 0.375 - 180.0).collect();
            for (dtype, std) in [(DType::F32, 0.7), (DType::F64, 0.7), (DType::F32, 1e-4), (DType::F64, 1e6)] {
                let on_device = privatised(&device, dtype, &values, std).unwrap();
                assert_eq!(on_device, privatised(&Device::Cpu, dtype, &values, std).unwrap(), "{n} {dtype:?} {std}");
            }
        }
    }

    /// Twice the value, in units of the grid, at which the first value of a pair is rounded up:
    /// found by halving.
    fn boundary(noise: &StepNoise, pair: usize) -> f64 {
        let factor = f64::grid_factor(noise.std());
        let rounded = |value: f64| noise.round_pair(pair as u64, factor, [value, 0.0])[0];
        let (mut low, mut high) = (0.0_f64, 1.0 / factor);
        let below = rounded(low);
        assert_eq!(rounded(high), below + 1.0);
        while low.midpoint(high) > low && low.midpoint(high) < high {
            let middle = low.midpoint(high);
            if rounded(middle) == below { low = middle } else { high = middle }
        }
        high
    }

    /// Values on the edge between two grid points: in doubt on the device, decided by the host as
    /// on the CPU; one pair more than can be listed is refused.
    #[test]
    fn what_the_device_cannot_decide_is_decided() {
        let Some(device) = device() else { return };
        let noise = step_noise(1.0);
        let on_edge =
            |n: usize| -> Vec<f64> { (0..BLOCK).map(|i| if i < n { boundary(&noise, i) } else { 0.25 }).collect() };
        let values = on_edge(DOUBTFUL);
        let on_device = privatised(&device, DType::F64, &values, 1.0).unwrap();
        assert_eq!(on_device, privatised(&Device::Cpu, DType::F64, &values, 1.0).unwrap());
        let error = privatised(&device, DType::F64, &on_edge(DOUBTFUL + 1), 1.0).unwrap_err().to_string();
        assert!(error.starts_with("values of noise in doubt: expected at most 64 pairs, got 65"), "{error}");
    }

    /// Over many blocks too, hence as normal and independent as the host's, which is tested.
    #[test]
    fn a_million_values_get_the_noise_of_the_cpu() {
        let Some(device) = device() else { return };
        let zeros = vec![0.0; 1_000_000];
        let on_device = privatised(&device, DType::F32, &zeros, 3.0).unwrap();
        assert!(on_device.1);
        assert_eq!(on_device, privatised(&Device::Cpu, DType::F32, &zeros, 3.0).unwrap());
    }

    #[test]
    fn what_is_no_number_stays_so_and_is_seen() {
        let Some(device) = device() else { return };
        let (values, finite) = privatised(&device, DType::F64, &[f64::NAN, f64::INFINITY, 0.0], 1.0).unwrap();
        assert!(values[0].is_nan() && values[1] == f64::INFINITY && values[2].is_finite() && !finite);
    }
}
