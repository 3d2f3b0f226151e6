//! IDX files, in which MNIST and its kin come: labels as a table, and images beside one.

use std::io::{BufReader, ErrorKind, Read, copy, sink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use csv::StringRecord;
use flate2::read::MultiGzDecoder;

use crate::error::TableError;
use crate::image_text::PIXELS;
use crate::reader::{StoredAs, TableRow};

/// The type of a file of bytes, by its header.
const BYTES: u8 = 8;
/// Values of one image.
const MOST_VALUES: u64 = 1 << 25;

/// A file of bytes in one to four dimensions, the first of which counts records.
struct IdxFile {
    path: PathBuf,
    content: Box<dyn Read + Send>,
    rows: u64,
    /// Of a record.
    sides: Vec<u64>,
    /// Records that were read or passed over.
    next: u64,
}

impl IdxFile {
    /// # Errors
    /// [`TableError::Io`]; [`TableError::File`] for what is no IDX file of bytes.
    fn open(path: &Path) -> Result<Self, TableError> {
        let refuse = |reason: String| TableError::File { path: path.into(), reason };
        let file = whole_file::open(path).map_err(TableError::io("read", path))?;
        let file = BufReader::with_capacity(1 << 18, file);
        let ending = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        let mut content: Box<dyn Read + Send> = match ending.as_deref().and_then(|ending| ending.to_str()) {
            Some("gz") => Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(file))),
            Some("zst") => {
                let decoder = zstd::Decoder::with_buffer(file).map_err(TableError::io("read", path))?;
                Box::new(BufReader::with_capacity(1 << 18, decoder))
            }
            _ => Box::new(file),
        };
        let mut word = || {
            let mut word = [0; 4];
            content.read_exact(&mut word).map_err(|error| refuse(format!("ends within its header: {error}")))?;
            Ok::<_, TableError>(word)
        };
        let magic = word()?;
        let [0, 0, kind, n @ 1..=4] = magic else {
            return Err(refuse("is no IDX file of one to four dimensions".into()));
        };
        if kind != BYTES {
            return Err(refuse(format!("is an IDX file of the type {kind:#04x}, expected bytes, 0x08")));
        }
        let rows = u64::from(u32::from_be_bytes(word()?));
        let sides =
            (1..n).map(|_| Ok(u64::from(u32::from_be_bytes(word()?)))).collect::<Result<Vec<_>, TableError>>()?;
        let values = sides.iter().try_fold(1_u64, |n, side| n.checked_mul(*side));
        if !values.is_some_and(|n| (1..=MOST_VALUES).contains(&n)) {
            return Err(refuse(format!("has records of {sides:?} values, expected 1 to {MOST_VALUES} in all")));
        }
        Ok(Self { path: path.into(), content, rows, sides, next: 0 })
    }

    /// Values of a record.
    fn values(&self) -> u64 {
        self.sides.iter().product()
    }

    /// Passes over records.
    fn skip(&mut self, n: u64) -> Result<(), TableError> {
        let n = n.min(self.rows - self.next);
        let bytes = n * self.values();
        let found = copy(&mut (&mut self.content).take(bytes), &mut sink()).map_err(|error| self.broken(&error))?;
        if found != bytes {
            return Err(self.broken(&ErrorKind::UnexpectedEof.into()));
        }
        self.next += n;
        Ok(())
    }

    fn read(&mut self, record: &mut [u8]) -> Result<(), TableError> {
        self.content.read_exact(record).map_err(|error| self.broken(&error))?;
        self.next += 1;
        Ok(())
    }

    fn broken(&self, error: &std::io::Error) -> TableError {
        let reason = format!("cannot be read from record {} of {} on: {error}", self.next + 1, self.rows);
        TableError::File { path: self.path.clone(), reason }
    }
}

/// A file as a table of one column: `label`, or `image` where its records have sides.
pub(crate) struct IdxSource {
    file: IdxFile,
    name: Arc<Path>,
    columns: Vec<String>,
    /// Rows, columns and channels of an image, as a text; `None` for labels.
    size: Option<String>,
    record: Vec<u8>,
    numbers: Arc<[bool]>,
}

impl IdxSource {
    /// # Errors
    /// [`TableError::Io`]; [`TableError::File`] for what is no IDX file of labels or images.
    pub(crate) fn open(path: &Path) -> Result<Self, TableError> {
        let file = IdxFile::open(path)?;
        let size = if file.sides.is_empty() { None } else { Some(size(&file)?) };
        let (column, numbers) = if size.is_none() { ("label", [true]) } else { ("image", [false]) };
        let record = vec![0; file.values() as usize];
        Ok(Self { file, name: path.into(), columns: vec![column.into()], size, record, numbers: numbers.into() })
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    pub(crate) fn stored_as(&self, column: usize) -> StoredAs {
        if column == 0 && self.size.is_none() { StoredAs::Integer } else { StoredAs::Text }
    }

    pub(crate) fn rows(&self) -> u64 {
        self.file.rows
    }

    pub(crate) fn skip(&mut self, n: usize) -> Result<(), TableError> {
        self.file.skip(n as u64)
    }

    pub(crate) fn read(&mut self, row: &mut TableRow) -> Result<bool, TableError> {
        if self.file.next == self.file.rows {
            return Ok(false);
        }
        if !Arc::ptr_eq(&row.file, &self.name) {
            row.file = Arc::clone(&self.name);
            row.numbers = Arc::clone(&self.numbers);
        }
        row.fields.clear();
        if let Err(error) = self.file.read(&mut self.record) {
            // Nothing more comes from this file.
            self.file.next = self.file.rows;
            return Err(error);
        }
        row.line = self.file.next as usize;
        match (&self.size, &self.record[..]) {
            (Some(size), pixels) => row.fields.push_field(&text(size, pixels)),
            (None, labels) => labels.iter().for_each(|label| row.fields.push_field(&label.to_string())),
        }
        Ok(true)
    }
}

/// Rows, columns and channels of a file's images.
fn size(file: &IdxFile) -> Result<String, TableError> {
    match file.sides[..] {
        [height, width] => Ok(format!("{height}x{width}x1")),
        [height, width, channels] => Ok(format!("{height}x{width}x{channels}")),
        _ => {
            let reason = "has records of one dimension, expected images of two, or three with channels".into();
            Err(TableError::File { path: file.path.clone(), reason })
        }
    }
}

fn text(size: &str, pixels: &[u8]) -> String {
    format!("{PIXELS}{size}:{}", hex::encode(pixels))
}

/// A file of images beside a table.
pub(crate) struct IdxImages {
    file: IdxFile,
    size: String,
    pixels: Vec<u8>,
}

impl IdxImages {
    /// # Errors
    /// [`TableError::Io`]; [`TableError::File`] for what is no IDX file of images.
    pub(crate) fn open(path: &Path) -> Result<Self, TableError> {
        let file = IdxFile::open(path)?;
        let size = size(&file)?;
        let pixels = vec![0; file.values() as usize];
        Ok(Self { file, size, pixels })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    pub(crate) fn rows(&self) -> u64 {
        self.file.rows
    }

    pub(crate) fn next(&self) -> u64 {
        self.file.next
    }

    /// Goes on with this row.
    pub(crate) fn seek(&mut self, row: u64) -> Result<(), TableError> {
        if row < self.file.next {
            self.file = IdxFile::open(&self.file.path)?;
        }
        self.file.skip(row - self.file.next)
    }

    pub(crate) fn push(&mut self, fields: &mut StringRecord) -> Result<(), TableError> {
        self.file.read(&mut self.pixels)?;
        fields.push_field(&text(&self.size, &self.pixels));
        Ok(())
    }

    pub(crate) fn pass_over(&mut self) -> Result<(), TableError> {
        self.file.skip(1)
    }
}
