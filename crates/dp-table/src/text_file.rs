//! Files of text, decompressed, from any offset on.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};

use crate::error::TableError;
use crate::text_encoding::TextEncoding;

/// A place in a text: bytes before it, and its line, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TextPosition {
    pub(crate) offset: u64,
    pub(crate) line: u64,
}

/// A file that may be compressed by gzip (`.gz`) or Zstandard (`.zst`), in any encoding. Offsets
/// count bytes of the decompressed text in UTF-8.
#[derive(Debug, Clone)]
pub(crate) struct TextFile {
    path: Arc<Path>,
    compression: Option<Compression>,
    encoding: TextEncoding,
    /// Bytes of the file before the place where it is read.
    passed: Arc<AtomicU64>,
    length: u64,
}

/// A file that says where it is read.
struct CountedFile {
    file: File,
    passed: Arc<AtomicU64>,
}

impl Read for CountedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.passed.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Compression {
    Gzip,
    Zstandard,
}

impl TextFile {
    pub(crate) fn new(path: &Path, encoding: TextEncoding) -> Self {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let compression = match ending.as_deref() {
            Some("gz") => Some(Compression::Gzip),
            Some("zst") => Some(Compression::Zstandard),
            _ => None,
        };
        let length = std::fs::metadata(path).map_or(0, |data| data.len());
        Self { path: path.into(), compression, encoding, passed: Arc::default(), length }
    }

    fn file(&self) -> Result<File, TableError> {
        whole_file::open(&self.path).map_err(TableError::io("read", &*self.path))
    }

    /// The file from this byte on.
    fn counted(&self, offset: u64) -> Result<CountedFile, TableError> {
        let mut file = self.file()?;
        if offset > 0 {
            file.seek(SeekFrom::Start(offset)).map_err(TableError::io("read", &*self.path))?;
        }
        self.passed.store(offset, Ordering::Relaxed);
        Ok(CountedFile { file, passed: Arc::clone(&self.passed) })
    }

    /// The part of the file before the place where it is read.
    pub(crate) fn share(&self) -> Option<f64> {
        let passed = self.passed.load(Ordering::Relaxed);
        (self.length > 0).then(|| (passed as f64 / self.length as f64).min(1.0))
    }

    /// The text from this offset on. A compressed file is unpacked from its beginning for it, and
    /// one in another encoding is decoded from there.
    pub(crate) fn open(&self, offset: u64) -> Result<Box<dyn Read + Send>, TableError> {
        let mut text = self.unpacked()?;
        let encoding = self.encoding.of_text(text.fill_buf().map_err(|reason| self.unreadable(1, reason))?);
        if encoding.is_utf8() && self.compression.is_none() {
            if offset == 0 {
                return Ok(text);
            }
            return Ok(Box::new(buffered(self.counted(offset)?)));
        }
        let mut text: Box<dyn Read + Send> = if encoding.is_utf8() { text } else { Box::new(encoding.decoded(text)) };
        self.count(&mut (&mut text).take(offset))?;
        Ok(text)
    }

    /// The bytes of the text, from their beginning.
    fn unpacked(&self) -> Result<Box<dyn BufRead + Send>, TableError> {
        let file = self.counted(0)?;
        let text: Box<dyn Read + Send> = match self.compression {
            None => return Ok(Box::new(buffered(file))),
            Some(Compression::Gzip) => Box::new(MultiGzDecoder::new(buffered(file))),
            Some(Compression::Zstandard) => {
                let decoder = zstd::Decoder::with_buffer(buffered(file));
                Box::new(decoder.map_err(TableError::io("read", &*self.path))?)
            }
        };
        Ok(Box::new(BufReader::with_capacity(1 << 16, text)))
    }

    /// Bytes of the text.
    pub(crate) fn length(&self) -> Result<u64, TableError> {
        let mut text = self.unpacked()?;
        let begin = text.fill_buf().map_err(|reason| self.unreadable(1, reason))?;
        if self.compression.is_none() && self.encoding.of_text(begin).is_utf8() {
            return self.file()?.metadata().map(|data| data.len()).map_err(TableError::io("read", &*self.path));
        }
        self.count(&mut self.open(0)?)
    }

    /// The first line that begins at this offset or behind it; the end of the text if none does.
    pub(crate) fn line_from(&self, offset: u64) -> Result<u64, TableError> {
        let Some(before) = offset.checked_sub(1) else { return Ok(0) };
        let mut text = BufReader::new(self.open(before)?);
        let passed = text.skip_until(b'\n').map_err(|reason| self.unreadable(1, reason))?;
        Ok(before + passed as u64)
    }

    /// An error of reading, after this line.
    pub(crate) fn unreadable(&self, line: usize, reason: io::Error) -> TableError {
        let compression = match self.compression {
            None => return TableError::Io { action: "read", path: self.path.to_path_buf(), reason },
            Some(Compression::Gzip) => "gzip",
            Some(Compression::Zstandard) => "Zstandard",
        };
        let reason = match reason.kind() {
            io::ErrorKind::UnexpectedEof => "it is cut short".to_owned(),
            _ => reason.to_string(),
        };
        let reason = format!("is not a complete {compression} file: {reason} (after line {line})");
        TableError::File { path: self.path.to_path_buf(), reason }
    }

    fn count(&self, text: &mut impl Read) -> Result<u64, TableError> {
        io::copy(text, &mut io::sink()).map_err(|reason| self.unreadable(1, reason))
    }
}

fn buffered(file: CountedFile) -> BufReader<CountedFile> {
    BufReader::with_capacity(1 << 16, file)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_text_is_read_from_any_place_whether_compressed_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let text = "a,b\n1,2\n33,44\n";
        let write = |name: &str, contents: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, contents).unwrap();
            TextFile::new(&path, TextEncoding::default())
        };
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        let files = [
            write("t.csv", text.as_bytes()),
            write("t.csv.gz", &gzip.finish().unwrap()),
            write("t.csv.zst", &zstd::encode_all(text.as_bytes(), 0).unwrap()),
        ];
        let utf16: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        let files = files
            .into_iter()
            .chain([write("u.csv", &utf16), write("u.csv.zst", &zstd::encode_all(&*utf16, 0).unwrap())]);
        for file in files {
            assert_eq!(file.length().unwrap(), 14);
            assert_eq!([0, 1, 3, 4, 5, 13, 14].map(|at| file.line_from(at).unwrap()), [0, 4, 4, 4, 8, 14, 14]);
            let mut rest = String::new();
            file.open(8).unwrap().read_to_string(&mut rest).unwrap();
            assert_eq!(rest, "33,44\n");
        }
    }
}
