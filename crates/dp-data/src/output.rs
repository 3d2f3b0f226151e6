//! The one way in which this crate writes files, downloads aside: beside the place first, then
//! renamed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::DataError;

/// A file that appears whole or not at all.
pub(crate) struct Output {
    target: PathBuf,
    part: PathBuf,
    is_open: bool,
}

impl Output {
    /// On its way to `target`, whose folder is made if there is none.
    ///
    /// # Errors
    /// [`DataError::Io`], [`DataError::NotAFile`] if something else has its name.
    pub(crate) fn new(target: &Path) -> Result<Self, DataError> {
        if fs::metadata(target).is_ok_and(|found| !found.is_file()) {
            return Err(DataError::NotAFile { path: target.into() });
        }
        let folder = folder(target);
        fs::create_dir_all(folder).map_err(DataError::io("create", folder))?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self { target: target.into(), part: folder.join(format!(".{name}.part")), is_open: false })
    }

    /// Whether this is the file on its way.
    pub(crate) fn is_part(&self, path: &Path) -> bool {
        self.part.file_name() == path.file_name()
    }

    /// Writes the file, flushes it to the disk and moves it to its place.
    ///
    /// # Errors
    /// [`DataError::Io`].
    pub(crate) fn write(mut self, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), DataError> {
        let write = || {
            let file = take(&self.part)?;
            self.is_open = true;
            let mut file = BufWriter::new(file);
            fill(&mut file)?;
            file.into_inner()?.sync_all()?;
            fs::rename(&self.part, &self.target)
        };
        write().map_err(DataError::io("write", &self.target))?;
        self.is_open = false;
        Ok(())
    }

    /// Writes these bytes.
    ///
    /// # Errors
    /// [`DataError::Io`].
    pub(crate) fn write_bytes(self, bytes: &[u8]) -> Result<(), DataError> {
        self.write(|file| file.write_all(bytes))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_open {
            // What cannot be removed is taken up by the next process.
            let _ = fs::remove_file(&self.part);
        }
    }
}

/// Opens a file for writing that nobody else writes, empty. What a killed process left under its
/// name is taken up.
fn take(path: &Path) -> io::Result<File> {
    loop {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another process is writing it")),
            // Some network file systems have no locks.
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        // Whoever wrote it before may just have moved it to its place.
        if is_named(&file, path) {
            file.set_len(0)?;
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_named(_: &File, path: &Path) -> bool {
    path.exists()
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Lets this user alone read and write a file that may be open to others.
///
/// # Errors
/// The system's.
#[cfg(unix)]
pub(crate) fn keep_private(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

/// Where files have no mode, the folder's rights decide.
#[cfg(not(unix))]
pub(crate) fn keep_private(_: &File) -> io::Result<()> {
    Ok(())
}

/// Opens a regular file; a pipe or a device could keep its reader for ever.
///
/// # Errors
/// [`DataError::Io`], [`DataError::NotAFile`].
pub(crate) fn open(path: &Path) -> Result<File, DataError> {
    let metadata = fs::metadata(path).map_err(DataError::io("read", path))?;
    if !metadata.is_file() {
        return Err(DataError::NotAFile { path: path.into() });
    }
    File::open(path).map_err(DataError::io("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        Output::new(&path).unwrap().write_bytes(b"first").unwrap();
        let failed = Output::new(&path).unwrap().write(|file| {
            file.write_all(b"half")?;
            Err(io::Error::other("full"))
        });
        assert!(failed.unwrap_err().to_string().ends_with("full"));
        assert_eq!(fs::read(&path).unwrap(), b"first");
        fs::write(dir.path().join(".a.csv.part"), "of a killed process, and longer").unwrap();
        Output::new(&path).unwrap().write_bytes(b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(matches!(Output::new(dir.path()), Err(DataError::NotAFile { .. })));
    }

    #[test]
    fn devices_and_folders_are_not_read() {
        assert!(matches!(open(Path::new("/dev/zero")), Err(DataError::NotAFile { .. })));
        assert!(matches!(open(Path::new("no-such-file")), Err(DataError::Io { .. })));
        let message = open(Path::new("no-such-file")).unwrap_err();
        assert!(std::error::Error::source(&message).is_none(), "the system's answer is said once");
    }
}
