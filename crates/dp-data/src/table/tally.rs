//! What was met while a table was encoded. Exact counts of private records: diagnostics, not for
//! release.

use serde::{Deserialize, Serialize};

/// Rows that are reported with their reason.
const EXAMPLES: usize = 10;

/// Counts over a whole table, for the person who may see its records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCounts {
    /// Rows, dropped ones included.
    pub rows: u64,
    /// Rows that did not fit and have no features.
    pub dropped: u64,
    /// Why the first ten of them were dropped.
    pub examples: Vec<String>,
    /// By input column, in the schema's order.
    pub columns: Vec<ColumnTally>,
}

/// What was met in one input column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnTally {
    /// Its name.
    pub column: String,
    /// Numbers outside the declared bounds, set to the nearest one.
    pub clamped: u64,
    /// Missing values.
    pub missing: u64,
    /// Texts outside the declared list, taken as `other`.
    pub other: u64,
}

impl TableCounts {
    pub(super) fn new<'a>(columns: impl Iterator<Item = &'a str>) -> Self {
        let columns = columns.map(|column| ColumnTally { column: column.into(), ..ColumnTally::default() }).collect();
        Self { columns, ..Self::default() }
    }

    /// Adds the counts of rows that come after these.
    pub(super) fn add(&mut self, later: &Self) {
        self.rows += later.rows;
        self.dropped += later.dropped;
        let room = EXAMPLES - self.examples.len();
        self.examples.extend(later.examples.iter().take(room).cloned());
        for (column, later) in self.columns.iter_mut().zip(&later.columns) {
            column.clamped += later.clamped;
            column.missing += later.missing;
            column.other += later.other;
        }
    }

    pub(super) fn drop_row(&mut self, reason: &impl ToString) {
        self.dropped += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(reason.to_string());
        }
    }
}
