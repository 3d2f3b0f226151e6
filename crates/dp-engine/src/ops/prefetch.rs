//! Memory that is asked for before it is needed.

/// Bytes that a processor reads at once.
const LINE: usize = 64;

/// Has the processor read these values into its caches while it goes on; nothing where that cannot be
/// asked for.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the instruction takes a pointer")]
pub(super) fn prefetch<T>(values: &[T]) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};

    for line in values.chunks(LINE / size_of::<T>().clamp(1, LINE)) {
        // SAFETY: SSE is part of x86-64; a hint reads and writes nothing, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn prefetch<T>(_values: &[T]) {}
