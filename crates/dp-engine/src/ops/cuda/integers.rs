//! Sums of pieces as integers in the device's memory.

use candle_core::cuda::WrapErr;
use candle_core::cuda::cudarc::driver::CudaSlice;
use candle_core::{CudaDevice, Device, Result, Tensor};

use super::launch::launch;
use super::view::{dtype, on_device, source};
use crate::collective::Collective;
use crate::ops::element::{for_float, same};

/// The clipped sum of a step on a device, in multiples of a public step, `[values]`.
///
/// The same integers as on the CPU
/// ([`add_to_integers`](crate::ops::add_to_integers)) for the same values.
pub struct DeviceIntegers {
    pub(super) device: CudaDevice,
    pub(super) steps: CudaSlice<i64>,
    /// Whether a value was not finite or beyond the capacity of the grid.
    pub(super) beyond: CudaSlice<u32>,
}

/// The length, and no value.
impl std::fmt::Debug for DeviceIntegers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DeviceIntegers([{}])", self.steps.len())
    }
}

impl DeviceIntegers {
    /// `len` integers, all 0.
    pub(crate) fn new(device: &Device, len: usize) -> Result<Self> {
        let device = device.as_cuda_device()?.clone();
        Ok(Self { steps: device.alloc_zeros(len.max(1))?, beyond: device.alloc_zeros(1)?, device })
    }

    /// Makes them 0.
    pub(crate) fn clear(&mut self) -> Result<()> {
        let stream = self.device.cuda_stream();
        stream.memset_zeros(&mut self.steps).w()?;
        stream.memset_zeros(&mut self.beyond).w()
    }

    /// Adds the values of a vector, rounded to multiples of `grid`, or takes them as the first.
    pub(crate) fn add(&mut self, vector: &Tensor, grid: f64, is_first: bool) -> Result<()> {
        if is_first {
            self.device.cuda_stream().memset_zeros(&mut self.beyond).w()?;
        }
        let (storage, layout) = vector.storage_and_layout();
        let storage = on_device(&storage)?;
        for_float!(dtype(storage), "add-to-integers", T => {
            let values = source::<T>((storage, layout))?;
            same("integers of a sum", values.len(), self.steps.len())?;
            launch!(
                T, &self.device, "add_to_integers", values.len();
                values, 1.0 / grid, u32::from(is_first), self.steps.as_view_mut(), self.beyond.as_view_mut()
            )
        })
    }

    /// Adds up the integers of all ranks, and leaves the sum on each.
    pub(crate) fn share(&mut self, ranks: &dyn Collective) -> crate::Result<()> {
        ranks.sum_on_devices(&mut self.steps, &mut self.beyond)
    }

    /// Copies the integers to the host. Returns whether every value was finite and within the
    /// capacity of the grid.
    pub(crate) fn read(&self, steps: &mut Vec<i64>) -> Result<bool> {
        *steps = self.device.clone_dtoh(&self.steps)?;
        Ok(self.device.clone_dtoh(&self.beyond)?.iter().all(|&flag| flag == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cuda::testing::device;

    const GRID: f64 = 1.0 / 1_073_741_824.0;

    fn vector(seed: usize, device: &Device) -> Tensor {
        let values: Vec<f32> = (0..2_000).map(|i| ((i * seed) % 103) as f32 * 0.2503 - 11.0).collect();
        Tensor::from_vec(values, 2_000, device).unwrap()
    }

    #[test]
    fn they_are_those_of_the_cpu() {
        let Some(device) = device() else { return };
        let mut integers = DeviceIntegers::new(&device, 2_000).unwrap();
        // Values from an earlier step do not count.
        integers.add(&vector(5, &device), 1.0, true).unwrap();
        let mut expected = vec![0; 2_000];
        for (i, seed) in [7, 31, 53].into_iter().enumerate() {
            integers.add(&vector(seed, &device), GRID, i == 0).unwrap();
            assert!(crate::ops::add_to_integers(&vector(seed, &Device::Cpu), &mut expected, GRID).unwrap());
        }
        let mut steps = Vec::new();
        assert!(integers.read(&mut steps).unwrap());
        assert_eq!(steps, expected);
    }

    #[test]
    fn what_is_not_finite_or_too_large_is_seen() {
        let Some(device) = device() else { return };
        for value in [f64::NAN, f64::NEG_INFINITY, 1e30] {
            let mut integers = DeviceIntegers::new(&device, 2_000).unwrap();
            let spoilt = vector(3, &device);
            crate::ops::fill(&spoilt.narrow(0, 1_999, 1).unwrap(), value).unwrap();
            integers.add(&spoilt, GRID, true).unwrap();
            integers.add(&vector(3, &device), GRID, false).unwrap();
            assert!(!integers.read(&mut Vec::new()).unwrap(), "{value}");
        }
    }
}
