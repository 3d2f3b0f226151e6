//! A batch, a few records at a time.

use std::ops::Range;

use candle_core::{Result, Tensor};

/// Adjacent records of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    first: usize,
    len: usize,
}

/// Rows of a batch in pieces of `at_once` records, the last one perhaps smaller.
pub(super) fn pieces(rows: Range<usize>, at_once: usize) -> impl Iterator<Item = Piece> {
    let (end, at_once) = (rows.end, at_once.max(1));
    rows.step_by(at_once).map(move |first| Piece { first, len: at_once.min(end - first) })
}

impl Piece {
    /// All of it.
    pub(super) fn whole(n_records: usize) -> Self {
        Self { first: 0, len: n_records }
    }

    /// Number of records.
    pub(super) fn len(self) -> usize {
        self.len
    }

    /// Its rows of a tensor of the whole batch.
    pub(super) fn rows(self, batch: &Tensor) -> Result<Tensor> {
        batch.narrow(0, self.first, self.len)
    }

    /// Where its values are in rows of `width` values.
    pub(super) fn values(self, width: usize) -> Range<usize> {
        self.first * width..(self.first + self.len) * width
    }
}
