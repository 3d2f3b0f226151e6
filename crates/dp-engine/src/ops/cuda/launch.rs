//! Kernels and how they are started.

use candle_core::cuda::WrapErr;
use candle_core::cuda::cudarc::driver::{CudaView, CudaViewMut, LaunchArgs, LaunchConfig, PushKernelArg};
use candle_core::{CudaDevice, Error, Result};

use super::view::Real;

/// Threads of a block.
const BLOCK: u32 = 256;
/// Blocks of a grid, at most.
const MOST_BLOCKS: u64 = (1 << 31) - 1;

/// An argument of a kernel.
pub(super) trait Argument {
    fn push<'a>(&'a mut self, to: &mut LaunchArgs<'a>);
}

impl<T> Argument for CudaView<'_, T> {
    fn push<'a>(&'a mut self, to: &mut LaunchArgs<'a>) {
        to.arg(&*self);
    }
}

impl<T> Argument for CudaViewMut<'_, T> {
    fn push<'a>(&'a mut self, to: &mut LaunchArgs<'a>) {
        to.arg(self);
    }
}

/// Numbers and structures that are passed by value.
macro_rules! by_value {
    ($($T:ty),+) => {$(
        impl $crate::ops::cuda::launch::Argument for $T {
            fn push<'a>(&'a mut self, to: &mut candle_core::cuda::cudarc::driver::LaunchArgs<'a>) {
                candle_core::cuda::cudarc::driver::PushKernelArg::arg(to, &*self);
            }
        }
    )+};
}
pub(super) use by_value;

by_value!(u32, u64, usize, f32, f64);

/// Starts a kernel of the module for `T` with one thread for each of `n` items; `n` is its first
/// argument.
///
/// The arguments must be the kernel's, in type and order, and the views as long as it expects:
/// callers check lengths first.
pub(super) fn start<T: Real>(
    device: &CudaDevice,
    kernel: &str,
    n: usize,
    arguments: &mut [&mut dyn Argument],
) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let n = n as u64;
    let (blocks, most) = (n.div_ceil(BLOCK.into()), MOST_BLOCKS * u64::from(BLOCK));
    if blocks > MOST_BLOCKS {
        return Err(Error::Msg(format!("items of kernel {kernel}: expected at most {most}, got {n}")));
    }
    let config = LaunchConfig { grid_dim: (blocks as u32, 1, 1), block_dim: (BLOCK, 1, 1), shared_mem_bytes: 0 };
    let function = device.get_or_load_custom_func(kernel, T::MODULE, T::PTX)?;
    let mut to = function.builder();
    to.arg(&n);
    for argument in arguments {
        argument.push(&mut to);
    }
    #[expect(unsafe_code, reason = "kernels are compiled apart: nothing checks their arguments")]
    // SAFETY: by the callers' contract above, the arguments are the kernel's and no item reaches
    // beyond a view.
    unsafe { to.launch(config) }.w()?;
    Ok(())
}

/// Starts a kernel: number type, device, kernel, items; then its other arguments, by value.
macro_rules! launch {
    ($T:ty, $device:expr, $kernel:literal, $n:expr; $($argument:expr),+ $(,)?) => {
        $crate::ops::cuda::launch::start::<$T>($device, $kernel, $n, &mut [$(&mut { $argument }),+])
    };
}
pub(super) use launch;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cuda::testing::device;

    #[test]
    fn more_items_than_a_grid_has_threads_are_refused() {
        let Some(device) = device() else { return };
        let device = device.as_cuda_device().unwrap();
        let n = MOST_BLOCKS as usize * BLOCK as usize + 1;
        let error = launch!(f32, device, "fill", n; 0_u64, 0.0_f32).unwrap_err().to_string();
        assert!(error.starts_with("items of kernel fill: expected at most 549755813632, got 549755813633"), "{error}");
        launch!(f32, device, "fill", 0; 0_u64, 0.0_f32).unwrap();
    }
}
