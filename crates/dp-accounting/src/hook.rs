//! A fault that an audit switches on in its own process, to see that it would be found.

use std::sync::atomic::{AtomicBool, Ordering};

static HUMP_IS_MISSED: AtomicBool = AtomicBool::new(false);

/// From now on Rényi moments miss the upper hump of their integrand where nearly every record is in
/// the batch, and are too low.
pub fn miss_upper_hump() {
    HUMP_IS_MISSED.store(true, Ordering::Relaxed);
}

/// Whether the nodes from `u` on are left out at the sampling rate `q`.
pub(crate) fn leaves_out(q: f64, u: f64) -> bool {
    HUMP_IS_MISSED.load(Ordering::Relaxed) && 1.0 - q < 3e-9 && u > 10.0
}
