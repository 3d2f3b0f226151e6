//! Files are read where they are regular, and written as a whole.

use std::fs::{self, File};
use std::path::Path;

use whole_file::{Readers, WholeFile};

use crate::error::DataError;

/// Opens a regular file for reading.
pub(crate) fn open(path: &Path) -> Result<File, DataError> {
    whole_file::open(path).map_err(DataError::io("read", path))
}

/// The place of a file that appears whole or not at all; its folder is made if there is none.
pub(crate) fn create(path: &Path) -> Result<WholeFile, DataError> {
    let folder = whole_file::parent(path);
    fs::create_dir_all(folder).map_err(DataError::io("create", folder))?;
    WholeFile::create(path, Readers::Default).map_err(DataError::io("write", path))
}

/// Writes a file as a whole.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), DataError> {
    create(path)?.write_bytes(bytes).map_err(DataError::io("write", path))
}
