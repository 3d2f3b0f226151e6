//! Files beside a table's, with a record for each of its rows.

use std::path::Path;

use csv::StringRecord;

use crate::error::TableError;
use crate::files::is_idx;
use crate::idx::IdxImages;
use crate::npy::NpyFile;

/// A column in a file of its own.
pub(crate) enum BesideFile {
    /// Vectors.
    Npy(NpyFile),
    /// Images.
    Idx(IdxImages),
}

impl BesideFile {
    /// # Errors
    /// [`TableError::Io`]; [`TableError::File`] for what is no such file.
    pub(crate) fn open(path: &Path) -> Result<Self, TableError> {
        if is_idx(path) { IdxImages::open(path).map(Self::Idx) } else { NpyFile::open(path).map(Self::Npy) }
    }

    /// Number of records.
    pub(crate) fn rows(&self) -> u64 {
        match self {
            Self::Npy(file) => file.rows(),
            Self::Idx(file) => file.rows(),
        }
    }

    fn next(&self) -> u64 {
        match self {
            Self::Npy(file) => file.next(),
            Self::Idx(file) => file.next(),
        }
    }

    /// Goes on with this row.
    pub(crate) fn seek(&mut self, row: u64) -> Result<(), TableError> {
        match self {
            Self::Npy(file) => file.seek(row),
            Self::Idx(file) => file.seek(row),
        }
    }

    /// Appends the next record to a row's fields; `table` is the file beside it.
    ///
    /// # Errors
    /// [`TableError::File`] if there is none; [`TableError::Io`].
    pub(crate) fn push(&mut self, fields: &mut StringRecord, table: &Path) -> Result<(), TableError> {
        self.expect_more(table)?;
        match self {
            Self::Npy(file) => file.push(fields),
            Self::Idx(file) => file.push(fields),
        }
    }

    /// Passes over the record of a row that cannot be read.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub(crate) fn pass_over(&mut self, table: &Path) -> Result<(), TableError> {
        self.expect_more(table)?;
        match self {
            Self::Npy(file) => file.pass_over(),
            Self::Idx(file) => file.pass_over(),
        }
    }

    fn expect_more(&self, table: &Path) -> Result<(), TableError> {
        if self.next() == self.rows() { Err(self.of_another_table(table, "more")) } else { Ok(()) }
    }

    /// Refuses records that are left over at the end of the table's file.
    pub(crate) fn end(&self, table: &Path) -> Result<(), TableError> {
        if self.next() == self.rows() { Ok(()) } else { Err(self.of_another_table(table, &self.next().to_string())) }
    }

    /// Refuses another number of rows.
    pub(crate) fn of_another_table(&self, table: &Path, rows: &str) -> TableError {
        let (path, what) = match self {
            Self::Npy(file) => (file.path(), "vectors"),
            Self::Idx(file) => (file.path(), "images"),
        };
        let reason =
            format!("has {} {what}, and `{}` has {rows} rows: expected one for each", self.rows(), table.display());
        TableError::File { path: path.into(), reason }
    }
}
