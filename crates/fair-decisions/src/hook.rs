//! Where an audit puts another sensitivity in the place of the release's, to see that it is found.
//!
//! In builds without the feature `audit` nothing can be put there.

#[cfg(feature = "audit")]
use std::cell::Cell;

#[cfg(feature = "audit")]
thread_local! {
    static COLUMN_NORM: Cell<Option<f64>> = const { Cell::new(None) };
}

/// Does the work with this column norm in the place of the exact one, on this thread.
#[cfg(feature = "audit")]
pub fn with_column_norm<R>(norm: Option<f64>, work: impl FnOnce() -> R) -> R {
    let before = COLUMN_NORM.replace(norm);
    let result = work();
    COLUMN_NORM.set(before);
    result
}

/// The norm that is used.
pub(crate) fn column_norm(exact: f64) -> f64 {
    #[cfg(feature = "audit")]
    if let Some(other) = COLUMN_NORM.get() {
        return other;
    }
    exact
}
