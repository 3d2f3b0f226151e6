//! Standard streams, pipes and devices in the place of files.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use fairdp::{FairdpError, is_stream, spool, stream_name};
use tempfile::TempDir;

use super::failure::Failure;

const STDOUT: &str = "/dev/stdout";

/// What messages of the library call a stream that is written to.
const OUTPUT: &str = "the output";

/// The files of a table, in which streams are replaced by files of this user with what they held. These
/// are removed when it is dropped.
pub(super) struct Inputs {
    pub(super) tables: Vec<String>,
    /// Names of those files, and of the streams.
    names: Vec<(String, String)>,
    _folder: Option<TempDir>,
}

impl Inputs {
    /// Reads the streams. Standard input is there once.
    pub(super) fn new(tables: Vec<String>) -> Result<Self, FairdpError> {
        if tables.iter().filter(|table| *table == "-").count() > 1 {
            let expected = "standard input once: what was read from it is not there again";
            return Err(FairdpError::InvalidParameter {
                parameter: "TABLE".into(),
                value: "-".into(),
                expected: expected.into(),
            });
        }
        if !tables.iter().any(is_stream) {
            return Ok(Self { tables, names: Vec::new(), _folder: None });
        }
        let place = std::env::temp_dir();
        let failed = |source| FairdpError::Io { action: "create a folder in", path: place.clone(), source };
        let folder = tempfile::Builder::new().prefix("fairdp-input-").tempdir().map_err(failed)?;
        let mut names = Vec::new();
        let replaced = tables.into_iter().enumerate().map(|(place, table)| {
            if !is_stream(&table) {
                return Ok(table);
            }
            let file = spool(&table, folder.path(), &(place + 1).to_string())?;
            let file = file.to_string_lossy().into_owned();
            names.push((file.clone(), stream_name(&table).to_owned()));
            Ok(file)
        });
        let tables = replaced.collect::<Result<_, FairdpError>>()?;
        Ok(Self { tables, names, _folder: Some(folder) })
    }

    /// The same, and messages name the stream that is written to.
    pub(super) fn with_output(mut self, output: &Path) -> Self {
        let name = if output == Path::new("-") { "standard output".into() } else { output.to_string_lossy() };
        self.names.push((OUTPUT.to_owned(), name.into_owned()));
        self
    }

    /// The result, whose failure names the streams and not the files in their place.
    pub(super) fn named<T>(&self, result: Result<T, FairdpError>) -> Result<T, Failure> {
        result.map_err(|error| Failure::of_inputs(error, self.names.clone()))
    }
}

/// A file that grows.
pub(super) fn append(path: &Path) -> Result<File, FairdpError> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|source| FairdpError::Io { action: "write", path: path.to_path_buf(), source })
}

/// Whether an output is no file: `-`, a pipe or a device.
pub(super) fn is_output(path: &Path) -> bool {
    is_stdout(path) || is_stream(path)
}

pub(super) fn is_stdout(path: &Path) -> bool {
    ["-", STDOUT].iter().any(|name| path == Path::new(name))
}

/// The output of such a name.
pub(super) fn output(path: &Path) -> Result<Box<dyn Write + Send>, FairdpError> {
    if is_stdout(path) {
        return Ok(Box::new(BufWriter::new(io::stdout())));
    }
    let opened = OpenOptions::new().write(true).open(path);
    let file = opened.map_err(|source| FairdpError::Io { action: "write", path: path.to_path_buf(), source })?;
    Ok(Box::new(BufWriter::new(file)))
}
