//! A configuration that is written to a file.

use std::path::Path;

use fairdp::FairdpError;
use whole_file::{Readers, WholeFile};

/// The table as the configuration must name it: from its own folder on, or in full.
pub(super) fn tables(tables: &[String], file: &Path) -> Result<Vec<String>, FairdpError> {
    let folder = whole_file::parent(file);
    if folder == Path::new(".") {
        return Ok(tables.to_vec());
    }
    let absolute = |table: &String| {
        let path = std::path::absolute(table);
        let failed = |source| FairdpError::Io { action: "find", path: table.into(), source };
        path.map(|path| path.to_string_lossy().into_owned()).map_err(failed)
    };
    tables.iter().map(absolute).collect()
}

/// Writes what `text` makes to a new file. An older configuration may have declarations made by
/// hand, and is not replaced.
pub(super) fn write(file: &Path, text: impl FnOnce() -> Result<String, FairdpError>) -> Result<(), FairdpError> {
    if file.exists() {
        return Err(FairdpError::InvalidParameter {
            parameter: "--out".into(),
            value: file.to_string_lossy().into_owned(),
            expected: "a file that is not there yet".into(),
        });
    }
    let text = text()?;
    let failed = |source| FairdpError::Io { action: "write", path: file.to_path_buf(), source };
    let written = WholeFile::create(file, Readers::Default);
    written.and_then(|file| file.write(|out| std::io::Write::write_all(out, text.as_bytes()))).map_err(failed)
}
