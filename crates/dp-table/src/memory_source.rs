//! A table that a program has in memory already, read as any other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::TableError;
use crate::reader::{Row, StoredAs};

/// Named columns of one length. Its rows have no copy on a disk but the encoded one.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryTable {
    name: PathBuf,
    names: Vec<String>,
    columns: Vec<MemoryColumn>,
    rows: usize,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryColumn {
    /// Numbers; one that is NaN is missing.
    Numbers(Vec<f64>),
    /// Texts as positions in a list of those that occur.
    Texts {
        /// The texts; an empty one is missing.
        levels: Vec<String>,
        /// One position per row.
        positions: Vec<u32>,
    },
}

impl MemoryColumn {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Texts { positions, .. } => positions.len(),
        }
    }
}

impl MemoryTable {
    /// A table whose errors bear this name.
    ///
    /// # Errors
    /// [`TableError::File`] for columns of different lengths, for a position beyond its list, and
    /// without columns or rows.
    pub fn new(name: impl Into<PathBuf>, columns: Vec<(String, MemoryColumn)>) -> Result<Self, TableError> {
        let name = name.into();
        let refuse = |reason: String| TableError::File { path: name.clone(), reason };
        let rows = columns.first().map_or(0, |(_, column)| column.len());
        if rows == 0 {
            return Err(refuse("has no row".into()));
        }
        for (column, values) in &columns {
            if values.len() != rows {
                return Err(refuse(format!("has {} values in column `{column}`, expected {rows}", values.len())));
            }
            if let MemoryColumn::Texts { levels, positions } = values
                && let Some(row) = positions.iter().position(|&position| position as usize >= levels.len())
            {
                let (position, n) = (positions[row], levels.len());
                return Err(refuse(format!(
                    "has position {position} in row {} of column `{column}`, expected below {n}",
                    row + 1
                )));
            }
        }
        let (names, columns) = columns.into_iter().unzip();
        Ok(Self { name, names, columns, rows })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn name(&self) -> &Path {
        &self.name
    }
}

/// Rows of such a table.
pub(crate) struct MemorySource {
    table: Arc<MemoryTable>,
    path: Arc<Path>,
    next: usize,
}

impl MemorySource {
    pub(crate) fn new(table: Arc<MemoryTable>) -> Self {
        Self { path: table.name().into(), table, next: 0 }
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.table.names
    }

    pub(crate) fn stored_as(&self, column: usize) -> StoredAs {
        match self.table.columns.get(column) {
            Some(MemoryColumn::Numbers(_)) => StoredAs::Number,
            Some(MemoryColumn::Texts { .. }) | None => StoredAs::Text,
        }
    }

    /// Passes over rows.
    pub(crate) fn skip(&mut self, n: usize) {
        self.next = (self.next + n).min(self.table.rows);
    }

    pub(crate) fn read(&mut self, row: &mut Row) -> bool {
        if self.next == self.table.rows {
            return false;
        }
        if !Arc::ptr_eq(&row.file, &self.path) {
            row.file = Arc::clone(&self.path);
        }
        row.fields.clear();
        for column in &self.table.columns {
            match column {
                MemoryColumn::Numbers(values) if values[self.next].is_nan() => row.fields.push_field(""),
                // The shortest text that is read as the same number.
                MemoryColumn::Numbers(values) => row.fields.push_field(&values[self.next].to_string()),
                MemoryColumn::Texts { levels, positions } => {
                    row.fields.push_field(&levels[positions[self.next] as usize]);
                }
            }
        }
        self.next += 1;
        row.line = self.next;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableFiles;

    fn texts(levels: &[&str], positions: &[u32]) -> MemoryColumn {
        MemoryColumn::Texts { levels: levels.iter().map(|&level| level.into()).collect(), positions: positions.into() }
    }

    #[test]
    fn rows_are_texts() {
        let numbers = MemoryColumn::Numbers(vec![0.1, f64::NAN, 1e300]);
        let columns = vec![("x".to_owned(), numbers), ("job".to_owned(), texts(&["", "clerk"], &[1, 0, 1]))];
        let files = TableFiles::in_memory(MemoryTable::new("records", columns).unwrap());
        let mut reader = files.open().unwrap();
        assert_eq!(reader.columns(), ["x", "job"]);
        let mut row = Row::default();
        let mut rows = Vec::new();
        while reader.read(&mut row).unwrap() {
            rows.push((row.line(), row.field(0).parse::<f64>().ok(), row.field(1).to_owned()));
        }
        assert_eq!(rows, [(1, Some(0.1), "clerk".into()), (2, None, String::new()), (3, Some(1e300), "clerk".into())]);
        assert_eq!(row.file(), Path::new("records"));
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let of = |columns: Vec<(&str, MemoryColumn)>| {
            let columns = columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect();
            MemoryTable::new("records", columns).unwrap_err()
        };
        insta::assert_snapshot!(of(vec![]), @"`records` has no row");
        let numbers = |n| MemoryColumn::Numbers(vec![0.0; n]);
        insta::assert_snapshot!(
            of(vec![("a", numbers(2)), ("b", numbers(1))]),
            @"`records` has 1 values in column `b`, expected 2"
        );
        insta::assert_snapshot!(
            of(vec![("a", texts(&["x"], &[0, 1]))]),
            @"`records` has position 1 in row 2 of column `a`, expected below 1"
        );
    }
}
