//! Standard streams, pipes and devices in the place of files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use fairdp::FairdpError;
use tempfile::NamedTempFile;

const STREAM: &str = "-";
const STDOUT: &str = "/dev/stdout";

/// First bytes of compressed text and of Parquet, with the ending of such a file.
const KINDS: [(&[u8], &str); 3] = [(b"\x1f\x8b", ".csv.gz"), (b"\x28\xb5\x2f\xfd", ".csv.zst"), (b"PAR1", ".parquet")];

/// The files of a table, in which standard input, pipes and devices are replaced by private
/// temporary files with what they had; these are removed when the second value is dropped.
///
/// What compresses them, and Parquet, is told by the first bytes; anything else is CSV.
pub(super) fn inputs(tables: Vec<String>) -> Result<(Vec<String>, Vec<NamedTempFile>), FairdpError> {
    if tables.iter().filter(|table| *table == STREAM).count() > 1 {
        let expected = "standard input once: what was read from it is not there again";
        return Err(FairdpError::InvalidParameter {
            parameter: "TABLE".into(),
            value: STREAM.into(),
            expected: expected.into(),
        });
    }
    let mut spooled = Vec::new();
    let replaced = tables.into_iter().map(|table| {
        let path = Path::new(&table);
        let is_stream = table == STREAM || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        if !is_stream {
            return Ok::<_, FairdpError>(table);
        }
        let spool = || if table == STREAM { spool(io::stdin().lock()) } else { spool(File::open(path)?) };
        let file = spool().map_err(|source| FairdpError::Io { action: "read", path: path.to_path_buf(), source })?;
        let name = file.path().to_string_lossy().into_owned();
        spooled.push(file);
        Ok(name)
    });
    let replaced = replaced.collect::<Result<_, FairdpError>>()?;
    Ok((replaced, spooled))
}

/// A file of this user alone with all of it.
fn spool(mut from: impl Read) -> io::Result<NamedTempFile> {
    let mut head = Vec::new();
    from.by_ref().take(4).read_to_end(&mut head)?;
    let ending = KINDS.iter().find(|(first, _)| head.starts_with(first)).map_or(".csv", |(_, ending)| ending);
    let mut file = tempfile::Builder::new().prefix("fairdp-input-").suffix(ending).tempfile()?;
    file.write_all(&head)?;
    io::copy(&mut from, &mut file)?;
    file.flush()?;
    Ok(file)
}

/// Whether an output is no file: `-`, a pipe or a device.
pub(super) fn is_output(path: &Path) -> bool {
    let is_named = [STREAM, STDOUT].iter().any(|name| path == Path::new(name));
    is_named || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The output of such a name.
pub(super) fn output(path: &Path) -> Result<Box<dyn Write + Send>, FairdpError> {
    if [STREAM, STDOUT].iter().any(|name| path == Path::new(name)) {
        return Ok(Box::new(BufWriter::new(io::stdout())));
    }
    let opened = OpenOptions::new().write(true).open(path);
    let file = opened.map_err(|source| FairdpError::Io { action: "write", path: path.to_path_buf(), source })?;
    Ok(Box::new(BufWriter::new(file)))
}
