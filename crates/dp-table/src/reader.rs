//! Rows of several files, one after another.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use csv::StringRecord;

use crate::beside::BesideFile;
use crate::csv_source::CsvSource;
use crate::error::{Position, TableError};
use crate::files::{TableFiles, TableFormat};
use crate::folder_source::FolderSource;
use crate::header;
use crate::idx::IdxSource;
use crate::memory_source::MemorySource;
use crate::number_format::NumberFormat;
use crate::parquet_source::ParquetSource;
use crate::row_index::{RowIndex, RowMark};

/// Bytes of a record; what is longer is no record.
pub(crate) const LONGEST_RECORD: u64 = 64 << 20;

/// Rows after which whoever watches is told.
const ROWS_PER_NOTE: u64 = 1024;

/// Reads a table as a stream: memory does not grow with its length.
pub struct TableReader {
    files: TableFiles,
    columns: Vec<String>,
    /// Position of the file that is read.
    current: usize,
    source: OpenFile,
    /// Vectors and images beside the file, and the number of columns that the file itself has.
    vectors: Vec<BesideFile>,
    n_of_file: usize,
    /// Rows still to be read, at most.
    left: usize,
    n_read: u64,
}

/// One open file.
enum OpenFile {
    Csv(Box<CsvSource>),
    Parquet(Box<ParquetSource>),
    Memory(MemorySource),
    Folder(FolderSource),
    Idx(IdxSource),
}

/// How a file stores the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredAs {
    /// Texts, as all columns of a text file are.
    Text,
    /// Whole numbers of up to 64 bits with a sign.
    Integer,
    /// Numbers in floating point.
    Number,
    /// Truth values.
    Truth,
}

/// One row: a text per column, without blanks around it.
#[derive(Debug, Clone)]
pub struct TableRow {
    pub(crate) file: Arc<Path>,
    pub(crate) line: usize,
    pub(crate) fields: StringRecord,
    /// By column, whether its file stores numbers; empty for text.
    pub(crate) numbers: Arc<[bool]>,
}

impl Default for TableRow {
    fn default() -> Self {
        Self { file: Path::new("").into(), line: 0, fields: StringRecord::new(), numbers: Arc::default() }
    }
}

impl TableRow {
    /// The file that it is from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Its line in that file, counted from 1; in a Parquet file the number of the row.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The text of a column, by position; empty if there is no such column.
    pub fn field(&self, column: usize) -> &str {
        self.fields.get(column).unwrap_or_default().trim()
    }

    /// The number in a column, by position, that is written in this format; a number that its file
    /// stores as one has none. `None` for other texts and for numbers that are not finite.
    pub fn number(&self, column: usize, format: &NumberFormat) -> Option<f64> {
        let text = self.field(column);
        if self.numbers.get(column) == Some(&true) {
            return text.parse().ok().filter(|number: &f64| number.is_finite());
        }
        format.parse(text)
    }

    /// All texts in the order of the columns.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(str::trim)
    }

    pub(crate) fn position(&self) -> Position<'_> {
        Position { path: &self.file, line: self.line }
    }
}

/// Without the rows that were read ahead, which are private.
impl std::fmt::Debug for TableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableReader")
            .field("files", &self.files)
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

impl TableReader {
    pub(crate) fn new(files: TableFiles) -> Result<Self, TableError> {
        let source = OpenFile::open(&files, 0)?;
        let mut columns = source.columns().to_vec();
        let n_of_file = columns.len();
        columns.extend(files.vectors().iter().map(|vectors| vectors.column.clone()));
        let mut sorted: Vec<&String> = columns.iter().collect();
        sorted.sort_unstable();
        if let Some([twice, _]) = sorted.array_windows().find(|[a, b]| a == b) {
            return Err(TableError::File {
                path: files.paths()[0].clone(),
                reason: format!("has two columns with the name `{twice}`{}", header::why_doubled(&columns)),
            });
        }
        let vectors = open_vectors(&files, 0)?;
        Ok(Self { files, columns, current: 0, source, vectors, n_of_file, left: usize::MAX, n_read: 0 })
    }

    /// Reads these rows alone.
    pub(crate) fn of_rows(files: TableFiles, index: &RowIndex, rows: Range<usize>) -> Result<Self, TableError> {
        let mut reader = Self::new(files)?;
        for (file, table) in reader.files.paths().iter().enumerate() {
            let n_rows = index.of_file(file).1;
            if let Some(other) = open_vectors(&reader.files, file)?.iter().find(|vectors| vectors.rows() != n_rows) {
                return Err(other.of_another_table(table, &n_rows.to_string()));
            }
        }
        if rows.is_empty() {
            return Ok(Self { left: 0, ..reader });
        }
        let RowMark { row, file, place } = index.mark(rows.start);
        if file != reader.current {
            reader.current = file;
            reader.source = OpenFile::open(&reader.files, file)?;
            reader.vectors = open_vectors(&reader.files, file)?;
            reader.compare_header()?;
        }
        for vectors in &mut reader.vectors {
            vectors.seek(rows.start as u64 - index.of_file(file).0)?;
        }
        let n = rows.start - row as usize;
        reader.source = match (reader.source, place) {
            (OpenFile::Csv(source), Some(place)) => OpenFile::Csv(Box::new(source.begun_at(place)?)),
            (source, _) => source,
        };
        reader.source.skip(n)?;
        reader.left = rows.len();
        Ok(reader)
    }

    pub(crate) fn n_files(&self) -> usize {
        self.files.paths().len()
    }

    /// Names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// How the first file stores the values of a column, by position; as texts if there is no such
    /// column.
    pub fn stored_as(&self, column: usize) -> StoredAs {
        match &self.source {
            OpenFile::Csv(_) | OpenFile::Folder(_) => StoredAs::Text,
            OpenFile::Idx(source) => source.stored_as(column),
            OpenFile::Parquet(source) => source.stored_as(column),
            OpenFile::Memory(source) => source.stored_as(column),
        }
    }

    /// Reads the next row; false at the end.
    ///
    /// After an error for which [`TableError::is_of_one_row`] holds, the next call goes on with the
    /// next row.
    ///
    /// # Errors
    /// - of one row: [`TableError::WrongArity`] and [`TableError::NotUtf8`], where `row` has the fields
    ///   that are there, with U+FFFD for bytes that are no text; [`TableError::EmptyLine`];
    /// - [`TableError::Malformed`] for a file that ends within quotes and for a record of more than
    ///   64 MiB;
    /// - [`TableError::BrokenGzip`], [`TableError::Io`];
    /// - [`TableError::File`] for a file with another header than the first, and for Parquet
    ///   columns that are not flat or damaged;
    /// - [`TableError::EmptyFile`] for a file without a header.
    pub fn read(&mut self, row: &mut TableRow) -> Result<bool, TableError> {
        if self.left == 0 {
            return Ok(false);
        }
        let found = self.next(row);
        self.left -= 1;
        self.n_read += 1;
        if self.n_read.is_multiple_of(ROWS_PER_NOTE) {
            self.note()?;
        }
        found
    }

    /// Tells whoever watches how far it is.
    fn note(&self) -> Result<(), TableError> {
        let Some(progress) = self.files.progress() else { return Ok(()) };
        let n_files = self.files.paths().len() as f64;
        let share = self.source.share().map(|share| (self.current as f64 + share) / n_files);
        progress.note(self.n_read, share, &self.files.paths()[self.current])
    }

    fn next(&mut self, row: &mut TableRow) -> Result<bool, TableError> {
        loop {
            let found = match &mut self.source {
                OpenFile::Csv(source) => source.read(row),
                OpenFile::Parquet(source) => source.read(row),
                OpenFile::Memory(source) => Ok(source.read(row)),
                OpenFile::Folder(source) => Ok(source.read(row)),
                OpenFile::Idx(source) => source.read(row),
            };
            if self.with_vectors(found, row)? {
                return Ok(true);
            }
            if self.current + 1 == self.files.paths().len() {
                return Ok(false);
            }
            self.current += 1;
            self.source = OpenFile::open(&self.files, self.current)?;
            self.vectors = open_vectors(&self.files, self.current)?;
            self.compare_header()?;
        }
    }

    /// The vectors and images of a row, behind its fields. A row that cannot be read has its own too.
    fn with_vectors(&mut self, found: Result<bool, TableError>, row: &mut TableRow) -> Result<bool, TableError> {
        let table = &self.files.paths()[self.current];
        let is_row = match &found {
            Ok(found) => *found,
            Err(error) if error.is_of_one_row() => true,
            Err(_) => return found,
        };
        let is_whole = row.fields.len() == self.n_of_file;
        for vectors in &mut self.vectors {
            match (is_row, is_whole) {
                (true, true) => vectors.push(&mut row.fields, table)?,
                (true, false) => vectors.pass_over(table)?,
                (false, _) => vectors.end(table)?,
            }
        }
        found
    }

    fn compare_header(&self) -> Result<(), TableError> {
        let [first, current] = [0, self.current].map(|at| &self.files.paths()[at]);
        let columns = self.source.columns();
        let expected = &self.columns[..self.n_of_file];
        if columns == expected {
            return Ok(());
        }
        let reason = match columns.iter().zip(expected).position(|(found, expected)| found != expected) {
            Some(at) => format!("column {} is `{}`, expected `{}`", at + 1, columns[at], expected[at]),
            None => format!("{} columns, expected {}", columns.len(), expected.len()),
        };
        Err(TableError::File {
            path: current.clone(),
            reason: format!("has another header than `{}`: {reason}", first.display()),
        })
    }
}

/// The vectors and images beside a file.
fn open_vectors(files: &TableFiles, file: usize) -> Result<Vec<BesideFile>, TableError> {
    files.vectors().iter().map(|vectors| BesideFile::open(&vectors.paths[file])).collect()
}

impl OpenFile {
    fn open(files: &TableFiles, index: usize) -> Result<Self, TableError> {
        let path = &files.paths()[index];
        match files.format() {
            TableFormat::Csv(csv) => CsvSource::open(path, *csv).map(|source| Self::Csv(Box::new(source))),
            TableFormat::Parquet => ParquetSource::open(path).map(|source| Self::Parquet(Box::new(source))),
            TableFormat::Memory(table) => Ok(Self::Memory(MemorySource::new(Arc::clone(table)))),
            TableFormat::Folder => FolderSource::open(path).map(Self::Folder),
            TableFormat::Idx => IdxSource::open(path).map(Self::Idx),
        }
    }

    /// The part of the file that was read, if its length is known.
    fn share(&self) -> Option<f64> {
        match self {
            Self::Csv(source) => source.share(),
            Self::Parquet(source) => source.share(),
            Self::Memory(_) | Self::Folder(_) | Self::Idx(_) => None,
        }
    }

    /// Passes over rows of the file.
    fn skip(&mut self, n: usize) -> Result<(), TableError> {
        match self {
            Self::Csv(source) => {
                let mut row = TableRow::default();
                for _ in 0..n {
                    match source.read(&mut row) {
                        Err(error) if !error.is_of_one_row() => return Err(error),
                        _ => {}
                    }
                }
                Ok(())
            }
            Self::Parquet(source) => source.skip(n),
            Self::Memory(source) => {
                source.skip(n);
                Ok(())
            }
            Self::Folder(source) => {
                source.skip(n);
                Ok(())
            }
            Self::Idx(source) => source.skip(n),
        }
    }

    fn columns(&self) -> &[String] {
        match self {
            Self::Csv(source) => source.columns(),
            Self::Parquet(source) => source.columns(),
            Self::Memory(source) => source.columns(),
            Self::Folder(source) => source.columns(),
            Self::Idx(source) => source.columns(),
        }
    }
}
