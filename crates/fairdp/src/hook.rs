//! Faults and attacks that a test puts on the keys of its thread.

use std::cell::{Cell, RefCell};

use crate::key::DrawnKey;

thread_local! {
    /// A fault: the key is whole before the records are read, and noise follows from it alone.
    pub(crate) static KEY_BEFORE_DIGEST: Cell<bool> = const { Cell::new(false) };
    /// A fault: the counts of dates have the noise of a record that is in one bin.
    pub(crate) static DATES_IN_ONE_BIN: Cell<bool> = const { Cell::new(false) };
    /// A fault: the rows of a unit are added and not averaged.
    pub(crate) static SUM_FOR_MEAN: Cell<bool> = const { Cell::new(false) };
    /// A fault: an evaluation counts every row of a unit.
    pub(crate) static ALL_ROWS_OF_A_UNIT: Cell<bool> = const { Cell::new(false) };
    /// A fault: figures of new records, and scores of trials, have half of the noise that is charged.
    pub(crate) static HALF_THE_NOISE: Cell<bool> = const { Cell::new(false) };
    /// A fault: a trial counts an answer in its own group and in the first one.
    pub(crate) static ANSWERS_TWICE: Cell<bool> = const { Cell::new(false) };
    /// An attack: every run has this key, as if it were copied from one to the next.
    pub(crate) static COPIED_KEY: RefCell<Option<DrawnKey>> = const { RefCell::new(None) };
}
