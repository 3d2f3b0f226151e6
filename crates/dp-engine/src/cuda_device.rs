//! Choosing a CUDA device, and telling devices apart.

use candle_core::Device;

#[cfg(not(feature = "cuda"))]
use crate::error::EngineError;
use crate::error::Result;
#[cfg(feature = "cuda")]
use crate::ops;

/// The CUDA device with this number, with a separate stream. All work on the device runs in order,
/// whichever thread asks for it.
///
/// **Edge cases.** A second call opens the GPU a second time, as another device: records for one
/// are refused by the other. Clone the first. A device stays open until the process ends.
///
/// # Errors
/// [`EngineError::Tensor`](crate::EngineError::Tensor) if no such device answers, or if its matrix
/// products are not exact where the number type is: variables such as `NVIDIA_TF32_OVERRIDE` can make
/// cuBLAS round factors; [`EngineError::InvalidParameter`](crate::EngineError::InvalidParameter) in a
/// build without the feature `cuda`.
pub fn cuda_device(number: usize) -> Result<Device> {
    open(number, false)
}

/// [`cuda_device`], with matrix products of the forward pass and of input gradients in TF32: 11
/// digits of each factor in `F32`, on cards that have it several times as fast.
///
/// **Guarantee.** That of [`cuda_device`]: per-sample gradients, their norms and sums are formed
/// from what these passes computed, in the precision of the number type.
///
/// **Edge cases.** `F64` is not affected. A checkpoint of a run in TF32 continues in TF32.
///
/// # Errors
/// As [`cuda_device`].
pub fn cuda_device_in_tf32(number: usize) -> Result<Device> {
    open(number, true)
}

#[cfg(feature = "cuda")]
fn open(number: usize, tf32: bool) -> Result<Device> {
    let device = Device::new_cuda_with_stream(number)?;
    #[expect(unsafe_code, reason = "the caller must see to the order of several streams")]
    // SAFETY: the device was just made and has one stream, on which all of its memory is taken,
    // used and given back.
    unsafe {
        // candle would keep events for every tensor, to order several.
        device.as_cuda_device()?.disable_event_tracking();
    }
    ops::prepare_cuda(device.as_cuda_device()?, tf32)?;
    Ok(device)
}

#[cfg(not(feature = "cuda"))]
fn open(number: usize, _tf32: bool) -> Result<Device> {
    let expected = "a build with the feature `cuda`; this one has the CPU alone";
    Err(EngineError::invalid("device", format!("cuda:{number}"), expected))
}

/// Memory for the gradients that a chunk of a batch keeps from its norms to its sum: on a GPU an
/// eighth of all that it has, so that a large batch takes few chunks.
pub fn kept_bytes(device: &Device) -> usize {
    const AT_LEAST: usize = 256 << 20;
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(gpu) => gpu.cuda_stream().context().total_mem().map_or(AT_LEAST, |all| (all / 8).max(AT_LEAST)),
        _ => AT_LEAST,
    }
}

/// Memory of a CUDA device that is free, or was given back and is kept; `None` on the CPU, whose
/// caches matter more, and where the driver does not say.
pub fn free_bytes(device: &Device) -> Option<usize> {
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(gpu) => ops::free_cuda_memory(gpu).ok(),
        _ => None,
    }
}

/// A second handle on the same device, for a run beside others. On a GPU it has a separate stream,
/// so that the runs do not wait for each other.
///
/// # Errors
/// As [`cuda_device`].
pub fn beside(device: &Device) -> Result<Device> {
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(gpu) => open(gpu.cuda_stream().context().ordinal(), ops::passes_in_tf32(gpu)),
        other => Ok(other.clone()),
    }
}

/// The kind of device; for a GPU also what decides how its sums are rounded: its model, the version
/// of cuBLAS and the precision of passes.
pub fn device_model(device: &Device) -> String {
    match device {
        Device::Cpu => "cpu".to_owned(),
        #[cfg(feature = "cuda")]
        Device::Cuda(gpu) => {
            let unknown = |error: &dyn std::fmt::Display| format!("not known ({error})");
            let model = gpu.cuda_stream().context().name().unwrap_or_else(|error| unknown(&error));
            let cublas = ops::cublas_version(gpu).map_or_else(|error| unknown(&error), |version| version.to_string());
            let passes = if ops::passes_in_tf32(gpu) { ", passes in TF32" } else { "" };
            format!("cuda {model}, cuBLAS {cublas}{passes}")
        }
        #[cfg(not(feature = "cuda"))]
        Device::Cuda(_) => "cuda".to_owned(),
        Device::Metal(_) => "metal".to_owned(),
    }
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;

    #[test]
    fn a_cuda_device_names_what_decides_its_rounding() {
        let (Ok(exact), Ok(fast)) = (cuda_device(0), cuda_device_in_tf32(0)) else {
            assert!(std::env::var_os("REQUIRE_CUDA").is_none(), "no CUDA device");
            return;
        };
        let (exact, fast) = (device_model(&exact), device_model(&fast));
        assert!(exact.starts_with("cuda ") && exact.contains(", cuBLAS 1"), "{exact}");
        assert_eq!(fast, format!("{exact}, passes in TF32"));
    }
}
