//! Faults that a test puts into the rows that its thread encodes.

use std::cell::Cell;

thread_local! {
    /// A row that does not fit moves to unit 0.
    pub(crate) static LEAVES_ITS_UNIT: Cell<bool> = const { Cell::new(false) };
}
