//! The files of a table and their format, or a table in memory.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::TableError;
use crate::memory_source::MemoryTable;
use crate::read_progress::{ReadProgress, Watch};
use crate::reader::TableReader;
use crate::row_index::RowIndex;
use crate::text_encoding::TextEncoding;

/// The files of one table, in the order in which they are read.
#[derive(Debug, Clone, PartialEq)]
pub struct TableFiles {
    paths: Vec<PathBuf>,
    format: TableFormat,
    vectors: Vec<VectorFiles>,
    watch: Watch,
}

/// A column of vectors or images in files of its own, one beside each file of the table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VectorFiles {
    pub(crate) column: String,
    pub(crate) paths: Vec<PathBuf>,
}

/// How a table's files are written.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TableFormat {
    /// Text with a delimiter; each file may be compressed by gzip (`.gz`) or Zstandard (`.zst`).
    Csv(Csv),
    /// Apache Parquet: flat columns, uncompressed or by Snappy, gzip, Zstandard, Brotli or LZ4.
    Parquet,
    /// No file: a table that is in memory.
    Memory(Arc<MemoryTable>),
    /// A folder of images, PNG or JPEG, in a subfolder for each label: the columns `folder`, empty for
    /// an image in no subfolder, and `image`, a path. Rows are sorted by both.
    Folder,
    /// IDX labels, one byte each: the column `label`. Images in IDX files lie beside them
    /// ([`TableFiles::with_vectors`]), or are a table with the column `image`.
    Idx,
}

/// Details of a delimited text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Csv {
    /// Between two fields. `None`: a comma, or where the first line has none outside of quotes, the
    /// first semicolon, tab or bar in it.
    pub delimiter: Option<u8>,
    /// Around a field that holds delimiters or line breaks; doubled inside. `None` if a quote is a
    /// character like any other.
    pub quote: Option<u8>,
    /// The encoding of the text.
    pub encoding: TextEncoding,
}

impl Default for Csv {
    fn default() -> Self {
        Self { delimiter: None, quote: Some(b'"'), encoding: TextEncoding::default() }
    }
}

impl TableFiles {
    /// Expands paths and patterns with `*`, `?`, `[…]`, `**`. The paths of a pattern are sorted. A
    /// path that exists is never taken for a pattern. Endings decide the format: `.csv`, `.tsv`,
    /// `.txt` (tabs for `.tsv`) and IDX labels (`.idx` or a name that ends in `ubyte`), each also with
    /// `.gz` or `.zst`, and `.parquet`. A folder holds images.
    ///
    /// # Errors
    /// [`TableError::Io`] if a path does not exist, [`TableError::File`] for a pattern that is
    /// broken or that matches nothing, an ending that is not in the list, and files of different
    /// formats.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, TableError> {
        let mut paths = Vec::new();
        for pattern in patterns {
            expand(pattern.as_ref(), &mut paths)?;
        }
        let Some(first) = paths.first() else {
            return Err(TableError::InvalidParameter {
                parameter: "files of a table",
                value: "none".into(),
                expected: "at least one".into(),
            });
        };
        let format = format_of(first)?;
        for path in &paths[1..] {
            if format_of(path)? != format {
                let reason = format!("is not in the format of `{}`, the table's first file", first.display());
                return Err(TableError::File { path: path.clone(), reason });
            }
        }
        let mut identities = HashSet::new();
        for path in &paths {
            if !identities.insert(identity(path).map_err(TableError::io("read", path))?) {
                let reason = "is among the table's files twice: its rows would be twice in the table".into();
                return Err(TableError::File { path: path.clone(), reason });
            }
        }
        Ok(Self { paths, format, vectors: Vec::new(), watch: Watch::default() })
    }

    /// No files: a table that is in memory, whose name stands for a path in errors.
    pub fn in_memory(table: MemoryTable) -> Self {
        let paths = vec![table.name().to_path_buf()];
        Self { paths, format: TableFormat::Memory(Arc::new(table)), vectors: Vec::new(), watch: Watch::default() }
    }

    /// The same files, read as delimited text with these details.
    #[must_use]
    pub fn with_csv(self, csv: Csv) -> Self {
        Self { format: TableFormat::Csv(csv), ..self }
    }

    /// The same files, whose text has this encoding; Parquet has its own.
    #[must_use]
    pub fn with_encoding(self, encoding: TextEncoding) -> Self {
        match self.format {
            TableFormat::Csv(csv) => Self { format: TableFormat::Csv(Csv { encoding, ..csv }), ..self },
            _ => self,
        }
    }

    /// The same table with a further column, of vectors that are in files of NumPy (`.npy`) or of
    /// images that are in IDX files: one file for each of the table's, in their order, with a record
    /// for each of its rows. Patterns are expanded and sorted.
    ///
    /// # Errors
    /// As [`new`](Self::new) for files that are not there; [`TableError::File`] for another number of
    /// files.
    pub fn with_vectors<S: AsRef<str>>(mut self, column: &str, patterns: &[S]) -> Result<Self, TableError> {
        let mut paths = Vec::new();
        for pattern in patterns {
            expand(pattern.as_ref(), &mut paths)?;
        }
        if paths.len() != self.paths.len() {
            return Err(TableError::InvalidParameter {
                parameter: "files of vectors",
                value: format!("{} for `{column}`", paths.len()),
                expected: format!("{}, one for each file of the table", self.paths.len()),
            });
        }
        self.vectors.push(VectorFiles { column: column.into(), paths });
        Ok(self)
    }

    /// The same table, whose readers say how far they are, and end where they are told to.
    #[must_use]
    pub fn watched(self, progress: Arc<ReadProgress>) -> Self {
        Self { watch: Watch(Some(progress)), ..self }
    }

    pub(crate) fn progress(&self) -> Option<&ReadProgress> {
        self.watch.0.as_deref()
    }

    pub(crate) fn vectors(&self) -> &[VectorFiles] {
        &self.vectors
    }

    /// The files in order.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Their format.
    pub fn format(&self) -> &TableFormat {
        &self.format
    }

    /// The first of these files that also belongs to another table, under whatever name.
    pub fn shared_with(&self, other: &Self) -> Option<&Path> {
        let identities: HashSet<_> = other.paths.iter().filter_map(|path| identity(path).ok()).collect();
        let is_shared = |path: &&PathBuf| identity(path).is_ok_and(|identity| identities.contains(&identity));
        self.paths.iter().find(is_shared).map(PathBuf::as_path)
    }

    /// Opens the table. The header of every file is compared with the first one when it is reached.
    ///
    /// # Errors
    /// As [`TableReader::read`], for the first file's header; [`TableError::File`] if two columns
    /// have one name.
    pub fn open(&self) -> Result<TableReader, TableError> {
        TableReader::new(self.clone())
    }

    /// Opens these rows alone, with the same line numbers and errors as in the whole table.
    ///
    /// # Errors
    /// As [`open`](Self::open), and the errors of the file that holds the first of the rows.
    pub fn open_rows(&self, index: &RowIndex, rows: Range<usize>) -> Result<TableReader, TableError> {
        TableReader::of_rows(self.clone(), index, rows)
    }
}

/// An identifier that all names of a file share, hard links included.
#[cfg(unix)]
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = std::fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// An identifier that all names of a file share.
#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

fn expand(pattern: &str, paths: &mut Vec<PathBuf>) -> Result<(), TableError> {
    let path = Path::new(pattern);
    if path.exists() || !pattern.contains(['*', '?', '[']) {
        std::fs::metadata(path).map_err(TableError::io("read", path))?;
        paths.push(path.into());
        return Ok(());
    }
    let refuse = |reason: String| TableError::File { path: path.into(), reason };
    let found = glob::glob(pattern).map_err(|error| refuse(format!("is not a pattern of files: {error}")))?;
    let before = paths.len();
    for entry in found {
        paths.push(entry.map_err(|error| {
            let path = error.path().to_path_buf();
            TableError::Io { action: "read", path, reason: error.into() }
        })?);
    }
    if paths.len() == before {
        return Err(refuse("is a pattern that no file matches".into()));
    }
    paths[before..].sort();
    Ok(())
}

/// Whether a file is IDX by its name, such as `train-images-idx3-ubyte.gz` and `labels.idx`.
pub(crate) fn is_idx(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    name.ends_with("ubyte") || name.rsplit_once('.').is_some_and(|(_, ending)| ending == "idx")
}

/// The format by a file's ending, upper or lower case.
fn format_of(path: &Path) -> Result<TableFormat, TableError> {
    if path.is_dir() {
        return Ok(TableFormat::Folder);
    }
    if is_idx(path) {
        return Ok(TableFormat::Idx);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("csv" | "txt") => Ok(TableFormat::Csv(Csv::default())),
        Some("tsv") => Ok(TableFormat::Csv(Csv { delimiter: Some(b'\t'), ..Csv::default() })),
        Some("parquet") => Ok(TableFormat::Parquet),
        ending => {
            let formats = "has an ending that no format has: .csv, .tsv, .txt, .idx, -ubyte (also .gz, .zst), .parquet";
            let how = ending.and_then(|ending| conversion(ending, path));
            let reason = how.map_or_else(|| formats.to_owned(), |how| format!("{formats}; this converts it: {how}"));
            Err(TableError::File { path: path.into(), reason })
        }
    }
}

/// The command of a common program that makes Parquet of a table in another format.
fn conversion(ending: &str, path: &Path) -> Option<String> {
    let from = path.display();
    let to = path.with_extension("parquet");
    let to = to.display();
    let duckdb = |source: String| format!("duckdb -c \"COPY (FROM {source}) TO '{to}'\"");
    let pandas = |reader: &str| {
        format!("python3 -c \"import pandas; pandas.{reader}('{from}').to_parquet('{to}', index=False)\"")
    };
    Some(match ending {
        "json" | "jsonl" | "ndjson" => duckdb(format!("read_json_auto('{from}')")),
        "xlsx" => duckdb(format!("read_xlsx('{from}')")),
        "db" | "sqlite" | "sqlite3" => duckdb(format!("sqlite_scan('{from}', 'TABLE')")),
        "arrow" | "feather" | "ipc" => pandas("read_feather"),
        "xls" | "ods" => pandas("read_excel"),
        "orc" => pandas("read_orc"),
        "dta" => pandas("read_stata"),
        "sav" => pandas("read_spss"),
        "sas7bdat" | "xpt" => pandas("read_sas"),
        "bz2" => format!("bunzip2 -k '{from}'"),
        "xz" => format!("unxz -k '{from}'"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_expanded_and_sorted() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a.csv", "c.tsv", "x[1].csv"] {
            std::fs::write(folder.path().join(name), "a\n1\n").unwrap();
        }
        let at = |pattern: &str| format!("{}/{pattern}", folder.path().display());
        let names = |patterns: &[String]| -> Result<Vec<String>, TableError> {
            let files = TableFiles::new(patterns)?;
            Ok(files.paths().iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect())
        };
        assert_eq!(names(&[at("?.csv")]).unwrap(), ["a.csv", "b.csv"]);
        if std::fs::hard_link(at("a.csv"), at("linked.csv")).is_ok() {
            let message = names(&[at("a.csv"), at("linked.csv")]).unwrap_err().to_string();
            assert!(message.ends_with("its rows would be twice in the table"), "{message}");
            std::fs::remove_file(at("linked.csv")).unwrap();
        }
        assert_eq!(names(&[at("x[1].csv"), at("a.csv")]).unwrap(), ["x[1].csv", "a.csv"]);
        let message = |pattern: &str| {
            names(&[at(pattern)]).unwrap_err().to_string().replace(&folder.path().display().to_string(), "")
        };
        insta::assert_snapshot!(message("*.json"), @"`/*.json` is a pattern that no file matches");
        insta::assert_snapshot!(message("?.?sv"), @"`/c.tsv` is not in the format of `/a.csv`, the table's first file");
        insta::assert_snapshot!(message("d.csv"), @"cannot read `/d.csv`: No such file or directory (os error 2)");
        insta::assert_snapshot!(
            TableFiles::new::<&str>(&[]).unwrap_err(),
            @"files of a table = none: expected at least one"
        );
    }

    #[test]
    fn endings_decide_the_format() {
        let format = |name: &str| format_of(Path::new(name));
        assert_eq!(format("a.CSV.gz").unwrap(), TableFormat::Csv(Csv::default()));
        assert_eq!(format("a.tsv.zst").unwrap(), TableFormat::Csv(Csv { delimiter: Some(b'\t'), ..Csv::default() }));
        assert_eq!(format("a.parquet").unwrap(), TableFormat::Parquet);
        insta::assert_snapshot!(
            format("table.xlsb").unwrap_err(),
            @"`table.xlsb` has an ending that no format has: .csv, .tsv, .txt, .idx, -ubyte (also .gz, .zst), .parquet"
        );
        for (name, command) in [
            ("a/t.xlsx", "duckdb -c \"COPY (FROM read_xlsx('a/t.xlsx')) TO 'a/t.parquet'\""),
            ("t.jsonl", "duckdb -c \"COPY (FROM read_json_auto('t.jsonl')) TO 't.parquet'\""),
            ("t.sqlite", "duckdb -c \"COPY (FROM sqlite_scan('t.sqlite', 'TABLE')) TO 't.parquet'\""),
            ("t.arrow", "pandas.read_feather('t.arrow').to_parquet('t.parquet', index=False)"),
            ("t.sav", "pandas.read_spss('t.sav').to_parquet('t.parquet', index=False)"),
            ("t.csv.xz", "unxz -k 't.csv.xz'"),
        ] {
            let message = format(name).unwrap_err().to_string();
            assert!(message.contains(command), "{message}");
        }
    }
}
