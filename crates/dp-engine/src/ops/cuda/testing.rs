//! The device that tests run on.

use candle_core::Device;

use crate::cuda_device;

/// The first CUDA device, or a line that says why there is none; a failure where `REQUIRE_CUDA` is
/// set.
pub(super) fn device() -> Option<Device> {
    match cuda_device(0) {
        Ok(device) => Some(device),
        Err(error) => {
            assert!(std::env::var_os("REQUIRE_CUDA").is_none(), "no CUDA device: {error}");
            println!("skipped: no CUDA device ({error})");
            None
        }
    }
}
