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
pub(crate) fn vectorise<R>(f: impl FnMut() -> R) -> R {
    Arch::new().dispatch(Kernel(f))
}
