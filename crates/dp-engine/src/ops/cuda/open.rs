//! Preparation of a device before its first use.

use candle_core::cuda::WrapErr;
use candle_core::cuda::cudarc::cublas::sys::{self as blas, cublasMath_t};
use candle_core::cuda::cudarc::driver::result::{device as driver_device, mem_pool};
use candle_core::cuda::cudarc::driver::sys::{self, CUdevice_attribute, CUmemPool_attribute};
use candle_core::{CudaDevice, Result};

use super::arithmetic;

/// cuBLAS's working memory on devices of compute capability 9 and above, and on others: NVIDIA's
/// recommendation.
const WORKSPACE_BYTES: [usize; 2] = [32 << 20, 4 << 20];

/// Prepares a device that was just opened, with passes in TF32 or not, and refuses one whose
/// arithmetic is not that of its number types.
///
/// **Edge cases.** The device stays open until the process ends. cudarc panics where cuBLAS refuses
/// to close its handle, as it does after a fault of the device: the panic would hide the fault.
pub(crate) fn prepare(device: &CudaDevice, tf32: bool) -> Result<()> {
    std::mem::forget(device.clone());
    keep_memory(device)?;
    give_workspace(device)?;
    set_math_mode(device, tf32)?;
    if tf32 {
        arithmetic::allow_tf32(device);
    }
    arithmetic::prove(device)
}

/// The version of cuBLAS, as its header numbers it.
pub(crate) fn cublas_version(device: &CudaDevice) -> Result<i32> {
    let (handle, mut version) = (device.cublas_handle(), 0);
    #[expect(unsafe_code, reason = "cudarc has no safe way to the version")]
    // SAFETY: the handle is open, and the version is an `int`.
    unsafe {
        blas::cublasGetVersion_v2(*handle.handle(), &raw mut version).result().w()?;
    }
    Ok(version)
}

/// Bytes of the device that are free, or that its memory pool holds and nothing uses.
pub(crate) fn free_memory(device: &CudaDevice) -> Result<usize> {
    let context = device.cuda_stream().context().clone();
    let (free, _) = context.mem_get_info().w()?;
    if !context.has_async_alloc() {
        return Ok(free);
    }
    let [mut reserved, mut used] = [0_u64; 2];
    #[expect(unsafe_code, reason = "cudarc has no safe way to a memory pool")]
    // SAFETY: the device exists, and both attributes are 64-bit numbers.
    unsafe {
        let pool = driver_device::get_mem_pool(context.cu_device()).w()?;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        mem_pool::get_attribute(pool, attribute, (&raw mut reserved).cast()).w()?;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
        mem_pool::get_attribute(pool, attribute, (&raw mut used).cast()).w()?;
    }
    Ok(free + reserved.saturating_sub(used) as usize)
}

/// Asks cuBLAS for the arithmetic of the number type in every phase of every product, unless some
/// may be in TF32: then each call says what it wants.
fn set_math_mode(device: &CudaDevice, tf32: bool) -> Result<()> {
    let handle = device.cublas_handle();
    let mode = if tf32 { cublasMath_t::CUBLAS_DEFAULT_MATH } else { cublasMath_t::CUBLAS_PEDANTIC_MATH };
    #[expect(unsafe_code, reason = "cudarc has no safe way to set the math mode")]
    // SAFETY: the handle is open, and no product runs on a device that is being opened.
    unsafe {
        blas::cublasSetMathMode(*handle.handle(), mode).result().w()
    }
}

/// Memory that was given back stays with the process: otherwise every synchronisation would return
/// it to the system, and the next operation would ask for it again.
fn keep_memory(device: &CudaDevice) -> Result<()> {
    let context = device.cuda_stream().context().clone();
    if !context.has_async_alloc() {
        return Ok(());
    }
    let mut all = u64::MAX;
    #[expect(unsafe_code, reason = "cudarc has no safe way to a memory pool")]
    // SAFETY: the device exists, and the attribute is a 64-bit number.
    unsafe {
        let pool = driver_device::get_mem_pool(context.cu_device()).w()?;
        let threshold = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        mem_pool::set_attribute(pool, threshold, (&raw mut all).cast()).w()
    }
}

/// Gives cuBLAS working memory of a fixed size: which kernel it takes, and with that how sums are
/// rounded, must not depend on how much memory is free.
fn give_workspace(device: &CudaDevice) -> Result<()> {
    let stream = device.cuda_stream();
    let major = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    let [large, small] = WORKSPACE_BYTES;
    let bytes = if stream.context().attribute(major).w()? >= 9 { large } else { small };
    // As long as the handle, hence never given back.
    let workspace: sys::CUdeviceptr = device.alloc_zeros::<u8>(bytes)?.leak();
    let handle = device.cublas_handle();
    #[expect(unsafe_code, reason = "cudarc has no safe way to set the working memory")]
    // SAFETY: the memory is as large as said and is never given back; all of the handle's work is
    // on the stream that it was taken on.
    unsafe {
        blas::cublasSetWorkspace_v2(*handle.handle(), workspace as *mut std::ffi::c_void, bytes).result().w()
    }
}

#[cfg(test)]
mod tests {
    use super::free_memory;
    use crate::ops::cuda::testing::device;

    /// The emulation says so much.
    #[test]
    fn memory_that_the_pool_keeps_is_free() {
        let Some(device) = device() else { return };
        let device = device.as_cuda_device().unwrap();
        let free = free_memory(device).unwrap();
        let is_emulated = device.cuda_stream().context().name().unwrap() == "emulated";
        assert!(if is_emulated { free == 2 << 30 } else { free > 0 }, "{free}");
    }

    /// cuBLAS's handle of a device that had a fault cannot be closed; under the emulation none can.
    #[test]
    fn a_device_that_is_dropped_does_not_panic() {
        let Some(device) = device() else { return };
        drop(device);
    }
}
