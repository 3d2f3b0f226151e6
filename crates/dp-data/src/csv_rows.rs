//! Rows of a CSV file that may be compressed, with file and line in every error.

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord};
use flate2::read::MultiGzDecoder;

use crate::error::{DataError, Position};
use crate::file;

/// A CSV file whose first row names the columns; read row by row, so that size does not matter.
pub(crate) struct CsvRows<R> {
    reader: csv::Reader<Watched<R>>,
    n_rows: usize,
    expected: Option<usize>,
    path: PathBuf,
    header: Vec<String>,
    record: StringRecord,
}

impl CsvRows<Box<dyn Read>> {
    /// Opens a file, through gzip if its name ends in `.gz`.
    ///
    /// # Errors
    /// [`DataError::Io`]; as [`new`](Self::new).
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        let file = BufReader::new(file::open(path)?);
        let zipped = path.extension().is_some_and(|extension| extension == "gz");
        let reader: Box<dyn Read> = if zipped { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
        Self::new(reader, path)
    }
}

impl<R: Read> CsvRows<R> {
    /// Reads the header; `path` is for messages.
    ///
    /// # Errors
    /// [`DataError::EmptyFile`] without a header; as [`next_row`](Self::next_row).
    pub(crate) fn new(reader: R, path: &Path) -> Result<Self, DataError> {
        let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(Watched {
            inner: reader,
            is_quoted: false,
            last: None,
        });
        let mut rows = Self {
            reader,
            n_rows: 0,
            expected: None,
            path: path.into(),
            header: Vec::new(),
            record: StringRecord::new(),
        };
        if !rows.advance()? {
            return Err(DataError::EmptyFile { path: path.into() });
        }
        rows.header = rows.record.iter().map(|name| name.trim().to_owned()).collect();
        Ok(rows)
    }

    /// The same, refusing at the end another number of rows than the published one, where that is
    /// known.
    pub(crate) fn expecting(self, rows: Option<usize>) -> Self {
        Self { expected: rows, ..self }
    }

    /// Names of the columns.
    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// The file, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Position of a column, in upper or lower case.
    ///
    /// # Errors
    /// [`DataError::MissingColumn`].
    pub(crate) fn column(&self, name: &str) -> Result<usize, DataError> {
        let at = Position { path: &self.path, line: 1 };
        self.header.iter().position(|column| column.eq_ignore_ascii_case(name)).ok_or_else(|| at.missing_column(name))
    }

    /// The next row, which has one field per column; `None` at the end.
    ///
    /// # Errors
    /// [`DataError::WrongArity`], [`DataError::Malformed`] for text that is not UTF-8 and for a
    /// file that ends within a field or a line, [`DataError::WrongCount`],
    /// [`DataError::BrokenGzip`], [`DataError::Io`].
    pub(crate) fn next_row(&mut self) -> Result<Option<(&StringRecord, Position<'_>)>, DataError> {
        let last = line(&self.record);
        if !self.advance()? {
            self.ensure_whole(last)?;
            return Ok(None);
        }
        self.n_rows += 1;
        let at = Position { path: &self.path, line: line(&self.record) };
        if self.reader.get_ref().is_quoted && self.reader.is_done() {
            return Err(at.malformed("the file ends within quotes: it is cut short"));
        }
        if self.record.len() != self.header.len() {
            return Err(at.wrong_arity(self.record.len(), self.header.len()));
        }
        Ok(Some((&self.record, at)))
    }

    /// A file that is cut short mostly ends within a line, or lacks rows.
    fn ensure_whole(&self, last: usize) -> Result<(), DataError> {
        let at = Position { path: &self.path, line: last };
        let Watched { is_quoted, last, .. } = self.reader.get_ref();
        if *is_quoted {
            return Err(at.malformed("the file ends within quotes: it is cut short"));
        }
        if *last != Some(b'\n') {
            return Err(at.malformed("the file ends without a line break: it is cut short"));
        }
        match self.expected {
            Some(expected) if expected != self.n_rows => {
                Err(DataError::WrongCount { path: self.path.clone(), found: self.n_rows, expected })
            }
            _ => Ok(()),
        }
    }

    fn advance(&mut self) -> Result<bool, DataError> {
        let last = line(&self.record);
        self.reader.read_record(&mut self.record).map_err(|error| {
            let text = error.to_string();
            let line = error.position().map_or(last + 1, |position| position.line() as usize);
            match error.into_kind() {
                csv::ErrorKind::Io(source) => match source.kind() {
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                        let reason = match source.kind() {
                            io::ErrorKind::UnexpectedEof => "it is cut short".to_owned(),
                            _ => source.to_string(),
                        };
                        DataError::BrokenGzip { path: self.path.clone(), line: last, reason }
                    }
                    _ => DataError::Io { action: "read", path: self.path.clone(), reason: source },
                },
                csv::ErrorKind::Utf8 { .. } => Position { path: &self.path, line }.malformed("not UTF-8 text"),
                _ => Position { path: &self.path, line }.malformed(text),
            }
        })
    }
}

/// Sees every byte on its way to the parser, which takes a field that never ends for one that does.
struct Watched<R> {
    inner: R,
    /// An odd number of quotes so far.
    is_quoted: bool,
    last: Option<u8>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let read = &buffer[..n];
        self.is_quoted = read.iter().fold(self.is_quoted, |is_quoted, byte| is_quoted ^ (*byte == b'"'));
        self.last = read.last().copied().or(self.last);
        Ok(n)
    }
}

/// 0 before the first row.
fn line(record: &StringRecord) -> usize {
    record.position().map_or(0, |position| position.line() as usize)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn read(contents: &[u8]) -> Result<Vec<Vec<String>>, DataError> {
        let mut rows = CsvRows::new(contents, Path::new("t.csv"))?;
        let mut all = Vec::new();
        while let Some((row, _)) = rows.next_row()? {
            all.push(row.iter().map(String::from).collect());
        }
        Ok(all)
    }

    #[test]
    fn quoted_fields_may_hold_lines() {
        assert_eq!(read(b"a,b\n1,\"x\n\"\"y\"\"\"\n2,z\n").unwrap(), [["1", "x\n\"y\""], ["2", "z"]]);
    }

    #[test]
    fn errors_name_file_and_line() {
        insta::assert_snapshot!(read(b"").unwrap_err(), @"`t.csv` has no records");
        insta::assert_snapshot!(read(b"a,b\n1,\"x\ny\"\n2\n").unwrap_err(), @"t.csv:4: 1 fields, expected 2");
        insta::assert_snapshot!(read(b"a,b\n1,\xff\n").unwrap_err(), @"t.csv:2: not UTF-8 text");
        let rows = CsvRows::new(&b"a,b\n"[..], Path::new("t.csv")).unwrap();
        assert_eq!(rows.column("B").unwrap(), 1);
        insta::assert_snapshot!(rows.column("c").unwrap_err(), @"t.csv:1: column `c` is missing from the header");
    }

    #[test]
    fn a_file_that_is_cut_short_is_noticed() {
        insta::assert_snapshot!(read(b"a,b\n1,2\n3,4").unwrap_err(), @"t.csv:3: the file ends without a line break: it is cut short");
        insta::assert_snapshot!(read(b"a,b\n1,2\n3,\"x\ny\n").unwrap_err(), @"t.csv:3: the file ends within quotes: it is cut short");
        let mut rows = CsvRows::new(&b"a,b\n1,2\n"[..], Path::new("t.csv")).unwrap().expecting(Some(2));
        assert!(rows.next_row().unwrap().is_some());
        insta::assert_snapshot!(
            rows.next_row().err().unwrap(),
            @"`t.csv` has 1 records, the published file 2: it is cut short, or another file"
        );
    }

    #[test]
    fn a_cut_gzip_file_is_noticed() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        for row in 0..5_000 {
            writeln!(encoder, "{row},{}", row * row).unwrap();
        }
        let zipped = encoder.finish().unwrap();
        let decoder = MultiGzDecoder::new(&zipped[..zipped.len() / 2]);
        let mut rows = CsvRows::new(decoder, Path::new("t.csv.gz")).unwrap();
        let error = loop {
            match rows.next_row() {
                Ok(row) => assert!(row.is_some()),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.starts_with("`t.csv.gz` is not a complete gzip file: it is cut short (after line "), "{error}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
