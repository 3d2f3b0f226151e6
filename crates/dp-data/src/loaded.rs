//! Records with their source.

use crate::provenance::Provenance;

/// Every usable record of a data set, and their source.
#[derive(Debug, Clone)]
pub struct Loaded<R> {
    /// The records.
    pub records: R,
    /// Their source.
    pub provenance: Provenance,
}
