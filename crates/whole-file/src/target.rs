//! The target of a file, and targets that are never replaced.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// First bytes of an SQLite database.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// The target of a file, with links followed, and the metadata of an earlier file there.
#[derive(Debug)]
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

/// Whether a file is an SQLite database.
///
/// # Errors
/// An error of the system if it cannot be read.
pub fn is_database(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(DATABASE.len() as u64).read_to_end(&mut head)?;
    Ok(head == DATABASE)
}

/// Opens a regular file for reading. A pipe or a device could block its reader for ever.
///
/// # Errors
/// An error of the system; [`io::ErrorKind::InvalidInput`] for anything but a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(refusal("is not a regular file"));
    }
    File::open(path)
}

/// The folder of a path; `.` for a bare name.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Flushes the entries of a folder to the disk. On systems where a folder cannot be opened as a file,
/// nothing is done.
///
/// # Errors
/// An error of the system.
#[cfg(unix)]
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Flushes the entries of a folder to the disk. On systems where a folder cannot be opened as a file,
/// nothing is done.
///
/// # Errors
/// An error of the system.
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
