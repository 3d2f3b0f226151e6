//! Where a file goes, and what may not be replaced there.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// How an SQLite database begins.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// The place of a file, links followed, and what is there.
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    pub(crate) earlier: Option<Metadata>,
}

impl Target {
    /// # Errors
    /// If something other than a replaceable file has the name, or a link leads nowhere.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(earlier) => {
                refuse_kind(path, &earlier)?;
                Ok(Self { path: fs::canonicalize(path)?, earlier: Some(earlier) })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.is_symlink() {
                    return Err(refusal("is a link that leads nowhere"));
                }
                Ok(Self { path: path.to_owned(), earlier: None })
            }
            Err(error) => Err(error),
        }
    }
}

fn refuse_kind(path: &Path, earlier: &Metadata) -> io::Result<()> {
    if earlier.is_dir() {
        return Err(refusal("is a directory, expected the name of a file"));
    }
    if !earlier.is_file() {
        return Err(refusal("is a device or a pipe, expected the name of a file"));
    }
    if earlier.permissions().readonly() {
        return Err(refusal("is write-protected"));
    }
    if is_database(path)? {
        return Err(refusal("is a database, which is not replaced"));
    }
    Ok(())
}

fn refusal(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

/// Whether this file is an SQLite database.
///
/// # Errors
/// The system's, if it cannot be read.
pub fn is_database(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(DATABASE.len() as u64).read_to_end(&mut head)?;
    Ok(head == DATABASE)
}

/// Opens a regular file for reading; a pipe or a device could keep its reader for ever.
///
/// # Errors
/// The system's; [`io::ErrorKind::InvalidInput`] for anything but a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(refusal("is not a regular file"));
    }
    File::open(path)
}

/// The folder of a path.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Flushes the names in a folder to the disk.
///
/// # Errors
/// The system's. Where a folder cannot be opened as a file, nothing is done.
#[cfg(unix)]
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Flushes the names in a folder to the disk.
///
/// # Errors
/// The system's. Where a folder cannot be opened as a file, nothing is done.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the Unix version can fail")]
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_folders_are_not_read() {
        assert_eq!(open(Path::new("/dev/zero")).unwrap_err().to_string(), "is not a regular file");
        assert_eq!(open(Path::new("no-such-file")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_name_without_a_folder_lies_in_the_current_one() {
        assert_eq!(parent(Path::new("a.csv")), Path::new("."));
        assert_eq!(parent(Path::new("b/a.csv")), Path::new("b"));
    }
}
