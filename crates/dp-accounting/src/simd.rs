//! Plain loops compiled for the widest vectors of the machine they run on. Nothing is fused and no
//! order changes, so the bits are the same everywhere.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use pulp::{Arch, NullaryFnOnce};

/// A closure that is inlined where it is called, which the shim of an `FnOnce` is not.
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
