//! The one way in which this crate writes files: a name always holds something complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Who may read a file, on Unix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Its owner alone: the file tells what the noise was.
    Owner,
    /// Whom the system lets by default: what is in the file was released.
    Default,
}

/// Writes `bytes` to `path`, or leaves what is there: to a temporary file beside it, flushed to the
/// disk, then renamed, then the folder's entry flushed too. A link is followed.
///
/// **Edge cases.** A device, a pipe or a folder is an error. A temporary file that a killed process
/// left behind is replaced. Two processes that write the same path disturb each other.
pub(crate) fn replace(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let found = fs::canonicalize(path);
    let path = found.as_deref().unwrap_or(path);
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let temporary = temporary(path)?;
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if readers == Readers::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut file = options.open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&temporary, path)?;
    // Elsewhere a folder cannot be opened as a file, and renaming is as durable as it gets.
    #[cfg(unix)]
    File::open(parent(path))?.sync_all()?;
    Ok(())
}

/// `.NAME.part` in the same folder, hence on the same file system.
fn temporary(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not the path of a file"))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(".part");
    Ok(path.with_file_name(hidden))
}

#[cfg(unix)]
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_is_the_owner_s_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.safetensors");
        // What a killed process may have left.
        fs::write(temporary(&path).unwrap(), b"half of").unwrap();
        for bytes in [&b"first"[..], b"second, longer", b""] {
            replace(&path, bytes, Readers::Owner).unwrap();
            assert_eq!(fs::read(&path).unwrap(), bytes);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn what_cannot_be_written_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        assert!(replace(&folder.path().join("missing/run"), b"x", Readers::Owner).is_err());
        assert!(replace(Path::new("/"), b"x", Readers::Owner).is_err());
        // A folder under the temporary name stops the write before the old file is touched.
        let path = folder.path().join("run");
        replace(&path, b"old", Readers::Owner).unwrap();
        fs::create_dir(temporary(&path).unwrap()).unwrap();
        assert!(replace(&path, b"new", Readers::Owner).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
}
