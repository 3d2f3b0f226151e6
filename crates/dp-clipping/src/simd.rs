//! Plain loops compiled for the best instruction set of the machine they run on.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use pulp::{Arch, NullaryFnOnce};

/// A closure that is inlined where it is called: `FnMut` by way of a method, since the shim that
/// turns a closure into an `FnOnce` is never inlined and would leave the loop compiled for the
/// baseline.
struct Kernel<F>(F);

impl<R, F: FnMut() -> R> NullaryFnOnce for Kernel<F> {
    type Output = R;

    #[inline(always)]
    fn call(mut self) -> R {
        (self.0)()
    }
}

/// Runs a closure compiled for the best instruction set of this machine. Mark it
/// `#[inline(always)]`.
#[inline(always)]
pub fn vectorise<R>(f: impl FnMut() -> R) -> R {
    Arch::new().dispatch(Kernel(f))
}

/// Name of the instruction set that [`vectorise`] compiles for on this machine. It decides which
/// operations are fused, and with them the last bits of sums.
pub fn instruction_set() -> &'static str {
    match Arch::new() {
        Arch::Scalar => "portable",
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        Arch::V3(_) => "AVX2",
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        Arch::V4(_) => "AVX-512",
        // The enumeration is not exhaustive: other processors have other vectors.
        _ => "other vectors",
    }
}
