//! A table that a program has in memory already, read as any other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::TableError;
use crate::reader::{StoredAs, TableRow};

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
    /// Numbers of which most are the same one.
    Sparse {
        /// Number of rows.
        len: usize,
        /// The number of the other rows.
        fill: f64,
        /// Rows with a number of their own, ascending.
        rows: Vec<u32>,
        /// Their numbers; one that is NaN is missing.
        values: Vec<f64>,
    },
}

impl MemoryColumn {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Texts { positions, .. } => positions.len(),
            Self::Sparse { len, .. } => *len,
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
            if let MemoryColumn::Sparse { rows: of_values, values, .. } = values {
                let ascends =
                    of_values.is_sorted_by(|a, b| a < b) && of_values.last().is_none_or(|&row| (row as usize) < rows);
                if of_values.len() != values.len() || !ascends {
                    let expected = "one row for each number, ascending, below the number of rows";
                    return Err(refuse(format!("has a sparse column `{column}` without {expected}")));
                }
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
    /// By column, of sparse ones the place of the next number.
    places: Vec<usize>,
    /// By column, whether it stores numbers.
    numbers: Arc<[bool]>,
}

impl MemorySource {
    pub(crate) fn new(table: Arc<MemoryTable>) -> Self {
        let numbers = table.columns.iter().map(|column| !matches!(column, MemoryColumn::Texts { .. })).collect();
        Self { path: table.name().into(), next: 0, places: vec![0; table.columns.len()], numbers, table }
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.table.names
    }

    pub(crate) fn stored_as(&self, column: usize) -> StoredAs {
        match self.table.columns.get(column) {
            Some(MemoryColumn::Numbers(_) | MemoryColumn::Sparse { .. }) => StoredAs::Number,
            Some(MemoryColumn::Texts { .. }) | None => StoredAs::Text,
        }
    }

    /// Passes over rows.
    pub(crate) fn skip(&mut self, n: usize) {
        self.next = (self.next + n).min(self.table.rows);
        for (column, place) in self.table.columns.iter().zip(&mut self.places) {
            if let MemoryColumn::Sparse { rows, .. } = column {
                *place = rows.partition_point(|&row| (row as usize) < self.next);
            }
        }
    }

    pub(crate) fn read(&mut self, row: &mut TableRow) -> bool {
        if self.next == self.table.rows {
            return false;
        }
        if !Arc::ptr_eq(&row.file, &self.path) {
            row.file = Arc::clone(&self.path);
            row.numbers = Arc::clone(&self.numbers);
        }
        row.fields.clear();
        for (column, place) in self.table.columns.iter().zip(&mut self.places) {
            match column {
                MemoryColumn::Numbers(values) => push_number(values[self.next], row),
                MemoryColumn::Sparse { fill, rows, values, .. } => {
                    let is_there = rows.get(*place).is_some_and(|&at| at as usize == self.next);
                    push_number(if is_there { values[*place] } else { *fill }, row);
                    *place += usize::from(is_there);
                }
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

/// As the shortest text that is read as the same number.
fn push_number(number: f64, row: &mut TableRow) {
    match number {
        // Most numbers of a sparse column.
        0.0 if number.is_sign_positive() => row.fields.push_field("0"),
        number if number.is_nan() => row.fields.push_field(""),
        number => row.fields.push_field(&number.to_string()),
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
        let mut row = TableRow::default();
        let mut rows = Vec::new();
        while reader.read(&mut row).unwrap() {
            rows.push((row.line(), row.field(0).parse::<f64>().ok(), row.field(1).to_owned()));
        }
        assert_eq!(rows, [(1, Some(0.1), "clerk".into()), (2, None, String::new()), (3, Some(1e300), "clerk".into())]);
        assert_eq!(row.file(), Path::new("records"));
    }

    #[test]
    fn a_sparse_column_is_read_from_any_row() {
        let sparse = MemoryColumn::Sparse { len: 5, fill: 0.0, rows: vec![1, 4], values: vec![2.5, f64::NAN] };
        let dense = MemoryColumn::Numbers(vec![0.0, 2.5, 0.0, 0.0, f64::NAN]);
        let table = |column| Arc::new(MemoryTable::new("records", vec![("x".to_owned(), column)]).unwrap());
        for first in 0..5 {
            let rows = |column: &MemoryColumn| {
                let (mut source, mut row, mut texts) =
                    (MemorySource::new(table(column.clone())), TableRow::default(), vec![]);
                source.skip(first);
                while source.read(&mut row) {
                    texts.push(row.field(0).to_owned());
                }
                texts
            };
            assert_eq!(rows(&sparse), rows(&dense), "{first}");
        }
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
        for (rows, values) in [(vec![1, 1], vec![0.0; 2]), (vec![0, 3], vec![0.0; 2]), (vec![0], vec![])] {
            let message = of(vec![("a", MemoryColumn::Sparse { len: 3, fill: 0.0, rows, values })]).to_string();
            assert!(message.starts_with("`records` has a sparse column `a` without one row for each"), "{message}");
        }
        insta::assert_snapshot!(
            of(vec![("a", texts(&["x"], &[0, 1]))]),
            @"`records` has position 1 in row 2 of column `a`, expected below 1"
        );
    }
}
