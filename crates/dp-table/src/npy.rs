//! NumPy's files of vectors: one beside each file of a table, a row for each of its rows.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use csv::StringRecord;

use crate::error::TableError;
use crate::vector::MOST_NUMBERS;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longer headers are no headers of one array.
const LONGEST_HEADER: u64 = 1 << 16;

/// The numbers of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Real {
    Single,
    Double,
}

/// A file of vectors that is read row by row.
#[derive(Debug)]
pub(crate) struct NpyFile {
    path: PathBuf,
    content: BufReader<File>,
    real: Real,
    rows: u64,
    /// Where the numbers begin.
    begin: u64,
    /// Rows that were read or passed over.
    next: u64,
    bytes: Vec<u8>,
    text: String,
}

impl NpyFile {
    /// Opens a file, and checks that it is whole.
    ///
    /// # Errors
    /// [`TableError::Io`]; [`TableError::File`] for what is no NumPy file of vectors of `float32` or
    /// `float64`, row by row.
    pub(crate) fn open(path: &Path) -> Result<Self, TableError> {
        let refuse = |reason: String| TableError::File { path: path.into(), reason };
        let broken = |error: std::io::Error| match error.kind() {
            ErrorKind::UnexpectedEof => refuse("ends within its header".into()),
            _ => TableError::Io { action: "read", path: path.into(), reason: error },
        };
        let file = File::open(path).map_err(TableError::io("read", path))?;
        let size = file.metadata().map_err(TableError::io("read", path))?.len();
        let mut content = BufReader::with_capacity(1 << 18, file);
        let mut start = [0; 8];
        content.read_exact(&mut start).map_err(broken)?;
        if start[..6] != MAGIC[..] {
            return Err(refuse("is no NumPy file: expected one that numpy.save wrote".into()));
        }
        let (length, before) = if start[6] == 1 {
            let mut length = [0; 2];
            content.read_exact(&mut length).map_err(broken)?;
            (u64::from(u16::from_le_bytes(length)), 10)
        } else {
            let mut length = [0; 4];
            content.read_exact(&mut length).map_err(broken)?;
            (u64::from(u32::from_le_bytes(length)), 12)
        };
        if length > LONGEST_HEADER {
            return Err(refuse(format!("has a header of {length} bytes, expected at most {LONGEST_HEADER}")));
        }
        let mut header = vec![0; length as usize];
        content.read_exact(&mut header).map_err(broken)?;
        let (real, rows, width) = shape(&String::from_utf8_lossy(&header)).map_err(refuse)?;
        let bytes = vec![0; width * real.size()];
        let begin = before + length;
        let expected = rows.checked_mul(bytes.len() as u64).and_then(|numbers| numbers.checked_add(begin));
        if expected != Some(size) {
            let reason = format!("has {size} bytes: {rows} vectors of {width} numbers are not that many");
            return Err(refuse(reason));
        }
        let text = String::new();
        Ok(Self { path: path.into(), content, real, rows, begin, next: 0, bytes, text })
    }

    /// Number of vectors.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Vectors that were read or passed over.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Goes on with this row.
    pub(crate) fn seek(&mut self, row: u64) -> Result<(), TableError> {
        let place = self.begin + row * self.bytes.len() as u64;
        self.content.seek(SeekFrom::Start(place)).map_err(TableError::io("read", &self.path))?;
        self.next = row;
        Ok(())
    }

    /// Appends the next vector to a row's fields, as a list between brackets with the shortest
    /// decimals.
    pub(crate) fn push(&mut self, fields: &mut StringRecord) -> Result<(), TableError> {
        self.next += 1;
        self.content.read_exact(&mut self.bytes).map_err(TableError::io("read", &self.path))?;
        self.text.clear();
        let bytes = self.bytes.chunks_exact(self.real.size());
        for (place, bytes) in bytes.enumerate() {
            self.text.push(if place == 0 { '[' } else { ',' });
            // Writing to a text does not fail.
            let _ = match (self.real, bytes.first_chunk(), bytes.first_chunk()) {
                (Real::Single, Some(bytes), _) => write!(self.text, "{}", f32::from_le_bytes(*bytes)),
                (_, _, Some(bytes)) => write!(self.text, "{}", f64::from_le_bytes(*bytes)),
                _ => Ok(()),
            };
        }
        self.text.push(']');
        fields.push_field(&self.text);
        Ok(())
    }

    /// Passes over the next vector.
    pub(crate) fn pass_over(&mut self) -> Result<(), TableError> {
        self.next += 1;
        self.content.read_exact(&mut self.bytes).map_err(TableError::io("read", &self.path))
    }
}

impl Real {
    fn size(self) -> usize {
        match self {
            Self::Single => 4,
            Self::Double => 8,
        }
    }
}

/// Numbers, rows and columns by a header, a dictionary of Python such as
/// `{'descr': '<f4', 'fortran_order': False, 'shape': (100, 8), }`.
fn shape(header: &str) -> Result<(Real, u64, usize), String> {
    let value = |key: &str| {
        let (_, behind) = header.split_once(&format!("'{key}'"))?;
        Some(behind.trim_start().strip_prefix(':')?.trim_start())
    };
    let no_header = || "has no header of NumPy".to_owned();
    let descr = value("descr").ok_or_else(no_header)?;
    let dtype = descr.strip_prefix('\'').and_then(|descr| descr.split('\'').next());
    let real = match dtype {
        Some("<f4") => Real::Single,
        Some("<f8") => Real::Double,
        other => {
            let found = other.map_or("records of several types".to_owned(), |dtype| format!("the dtype {dtype}"));
            return Err(format!("has {found}: expected float32 or float64, little-endian (<f4 or <f8)"));
        }
    };
    if !value("fortran_order").ok_or_else(no_header)?.starts_with("False") {
        return Err("is in Fortran order: expected row by row, as numpy.ascontiguousarray makes it".into());
    }
    let numbers = value("shape").and_then(|shape| shape.strip_prefix('(')?.split(')').next()).ok_or_else(no_header)?;
    let sizes: Option<Vec<u64>> =
        numbers.split(',').map(str::trim).filter(|size| !size.is_empty()).map(|size| size.parse().ok()).collect();
    match sizes.as_deref() {
        Some(&[rows, length]) if (1..=MOST_NUMBERS as u64).contains(&length) => Ok((real, rows, length as usize)),
        Some(_) => Err(format!("has the shape ({numbers}): expected (rows, numbers of a vector, 1 to {MOST_NUMBERS})")),
        None => Err(no_header()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beside::BesideFile;

    /// A file of version 1 with this header and these numbers.
    fn written(folder: &Path, header: &str, numbers: &[u8]) -> PathBuf {
        let path = folder.join("v.npy");
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(numbers);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn vectors_by_hand() {
        let folder = tempfile::tempdir().unwrap();
        let table = Path::new("t.csv");
        let singles: Vec<u8> = [0.1_f32, -2.0, 1e20, f32::NAN].iter().flat_map(|value| value.to_le_bytes()).collect();
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n";
        let mut file = BesideFile::open(&written(folder.path(), header, &singles)).unwrap();
        let mut fields = StringRecord::new();
        file.push(&mut fields, table).unwrap();
        let early = file.end(table).unwrap_err().to_string().replace(&*folder.path().to_string_lossy(), "");
        insta::assert_snapshot!(early, @"`/v.npy` has 2 vectors, and `t.csv` has 1 rows: expected one for each");
        file.push(&mut fields, table).unwrap();
        assert_eq!(fields, vec!["[0.1,-2]", "[100000000000000000000,NaN]"]);
        file.end(table).unwrap();
        let late =
            file.push(&mut fields, table).unwrap_err().to_string().replace(&*folder.path().to_string_lossy(), "");
        insta::assert_snapshot!(late, @"`/v.npy` has 2 vectors, and `t.csv` has more rows: expected one for each");
        file.seek(1).unwrap();
        file.pass_over(table).unwrap();
        file.end(table).unwrap();
    }

    #[test]
    fn other_arrays_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |header: &str, n_bytes: usize| {
            let error = NpyFile::open(&written(folder.path(), header, &vec![0; n_bytes])).unwrap_err();
            error.to_string().replace(&*folder.path().to_string_lossy(), "")
        };
        let refusals = [
            ("{'descr': '<i8', 'fortran_order': False, 'shape': (2, 2), }", 32),
            ("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2), }", 16),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8),
            ("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", 16),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 2), }", 16),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0), }", 0),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", 15),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 2), }", 16),
            ("{'shape': (2, 2), }", 16),
        ]
        .map(|(header, n_bytes)| refusal(header, n_bytes));
        insta::assert_snapshot!(refusals.join("\n"), @"
        `/v.npy` has the dtype <i8: expected float32 or float64, little-endian (<f4 or <f8)
        `/v.npy` has the dtype >f4: expected float32 or float64, little-endian (<f4 or <f8)
        `/v.npy` has records of several types: expected float32 or float64, little-endian (<f4 or <f8)
        `/v.npy` is in Fortran order: expected row by row, as numpy.ascontiguousarray makes it
        `/v.npy` has the shape (4,): expected (rows, numbers of a vector, 1 to 16384)
        `/v.npy` has the shape (1, 2, 2): expected (rows, numbers of a vector, 1 to 16384)
        `/v.npy` has the shape (2, 0): expected (rows, numbers of a vector, 1 to 16384)
        `/v.npy` has 84 bytes: 2 vectors of 2 numbers are not that many
        `/v.npy` has 104 bytes: 18446744073709551615 vectors of 2 numbers are not that many
        `/v.npy` has no header of NumPy
        ");
        let path = folder.path().join("t.npy");
        for (bytes, expected) in [(&b"a,b\n1,2\n3"[..], "is no NumPy file"), (b"\x93NUM", "ends within its header")] {
            std::fs::write(&path, bytes).unwrap();
            let error = NpyFile::open(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
