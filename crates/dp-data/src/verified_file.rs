//! Content that was checked against its manifest before anything parses it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::error::DataError;
use crate::file;
use crate::manifest::ManifestFile;
use crate::provenance::sha256_hex;

/// A file whose content has the sha256 of its manifest; the bytes that were hashed are the bytes
/// that are parsed.
#[derive(Debug, Clone)]
pub struct VerifiedFile {
    /// Name as published.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// sha256 of the content, hexadecimal.
    pub sha256: String,
    /// The content; decompressed if the file is a gzip of a published file that is not one.
    pub contents: Vec<u8>,
}

impl VerifiedFile {
    /// Reads `path` and compares it with the manifest's entry.
    ///
    /// # Errors
    /// [`DataError::Io`], [`DataError::BrokenGzip`], [`DataError::EmptyFile`],
    /// [`DataError::WrongChecksum`].
    pub fn read(path: &Path, expected: &ManifestFile) -> Result<Self, DataError> {
        let contents = read_plain(path, &expected.name)?;
        let sha256 = sha256_hex(&contents);
        if contents.is_empty() && expected.bytes > 0 {
            return Err(DataError::EmptyFile { path: path.into() });
        }
        if sha256 != expected.sha256 {
            return Err(DataError::WrongChecksum {
                path: path.into(),
                actual: sha256,
                actual_bytes: contents.len() as u64,
                expected: expected.sha256.clone(),
                expected_bytes: Some(expected.bytes),
            });
        }
        Ok(Self { name: expected.name.clone(), path: path.into(), sha256, contents })
    }
}

/// The whole file, through gzip if its name is that of the published file with `.gz` appended.
pub(crate) fn read_plain(path: &Path, published: &str) -> Result<Vec<u8>, DataError> {
    let file = file::open(path)?;
    let zipped = path.file_name().is_some_and(|name| name.to_str() == Some(&format!("{published}.gz")));
    if zipped {
        return gunzip(file, path);
    }
    let mut contents = Vec::new();
    let mut file = file;
    file.read_to_end(&mut contents).map_err(DataError::io("read", path))?;
    Ok(contents)
}

/// Decompresses a whole gzip stream.
///
/// # Errors
/// [`DataError::BrokenGzip`] if it is cut short or damaged.
pub(crate) fn gunzip(compressed: impl Read, path: &Path) -> Result<Vec<u8>, DataError> {
    let mut contents = Vec::new();
    match MultiGzDecoder::new(compressed).read_to_end(&mut contents) {
        Ok(_) => Ok(contents),
        Err(error) => {
            let reason = match error.kind() {
                io::ErrorKind::UnexpectedEof => "it is cut short".to_owned(),
                _ => error.to_string(),
            };
            let line = contents.split(|&byte| byte == b'\n').count() - 1;
            Err(DataError::BrokenGzip { path: path.into(), line, reason })
        }
    }
}
