//! How far a table has been read: for whoever shows it, and for whoever stops it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::TableError;

/// The progress of whoever reads a table, as another thread sees it.
#[derive(Debug, Default)]
pub struct ReadProgress {
    rows: AtomicU64,
    /// The bits of a number from 0 to 1; all ones where it is not known.
    share: AtomicU64,
    is_stopped: Arc<AtomicBool>,
}

const UNKNOWN: u64 = u64::MAX;

impl ReadProgress {
    /// Rows that were read since the table was opened.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// The part of the table that was read, from 0 to 1, if its length is known.
    pub fn share(&self) -> Option<f64> {
        let bits = self.share.load(Ordering::Relaxed);
        (bits != UNKNOWN).then(|| f64::from_bits(bits))
    }

    /// Whoever sets it ends the reading, with [`TableError::Stopped`].
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_stopped)
    }

    /// Whether the reading is to end.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, rows: u64, share: Option<f64>, path: &Path) -> Result<(), TableError> {
        self.rows.store(rows, Ordering::Relaxed);
        self.share.store(share.map_or(UNKNOWN, f64::to_bits), Ordering::Relaxed);
        if self.is_stopped() { Err(TableError::Stopped { path: path.into() }) } else { Ok(()) }
    }
}

/// Who watches; a table is the same whoever does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watch(pub(crate) Option<Arc<ReadProgress>>);

impl PartialEq for Watch {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
