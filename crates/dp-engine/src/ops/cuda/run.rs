//! Adjacent values that a thread takes at once: the kernels' `Run`.

use candle_core::CudaDevice;
use candle_core::cuda::cudarc::driver::{CudaView, DevicePtr};

use super::view::Real;

/// Bytes of a run.
const BYTES: usize = 16;

/// How many of `n` values that lie together are taken at once, of several tensors of such values:
/// a run of them where all begin where a run may, else one.
pub(super) fn unit<T: Real>(device: &CudaDevice, n: usize, tensors: &[&CudaView<'_, T>]) -> usize {
    let run = BYTES / size_of::<T>();
    let stream = device.cuda_stream();
    let is_aligned = |values: &&CudaView<'_, T>| {
        let (address, _reads) = values.device_ptr(&stream);
        address.is_multiple_of(BYTES as u64)
    };
    if n.is_multiple_of(run) && tensors.iter().all(is_aligned) { run } else { 1 }
}
