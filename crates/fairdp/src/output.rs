//! The one way in which this crate writes files: a name always holds something complete.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

pub(crate) use whole_file::Readers;
use whole_file::WholeFile;

use crate::error::{FairdpError, Result};

/// Writes a file that appears whole or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8], readers: Readers) -> Result<()> {
    write_with(path, readers, |file| file.write_all(bytes))
}

/// The same for a file that is too long to hold in memory.
pub(crate) fn write_with(
    path: &Path,
    readers: Readers,
    fill: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> Result<()> {
    WholeFile::create(path, readers).and_then(|file| file.write(fill)).map_err(FairdpError::io("write", path))
}

/// A file that grows, for its owner alone.
pub(crate) fn append(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(FairdpError::io("write", path))
}

/// A hidden name beside a file.
fn beside(path: &Path, ending: &str) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file's path"))?;
    Ok(path.with_file_name(format!(".{}.{ending}", name.to_string_lossy())))
}

fn ignore_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> Result<()> {
    ignore_missing(fs::remove_file(path)).map_err(FairdpError::io("remove", path))
}

/// Removes a folder with all that is in it, if it is there.
pub(crate) fn remove_folder(path: &Path) -> Result<()> {
    ignore_missing(fs::remove_dir_all(path)).map_err(FairdpError::io("remove", path))
}

/// Keeps other processes from a file until the lock is dropped: by a file beside it.
pub(crate) fn lock(path: &Path) -> Result<File> {
    let attempt = || -> io::Result<File> {
        let beside = beside(path, "lock")?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(beside)?;
        file.lock()?;
        Ok(file)
    };
    attempt().map_err(FairdpError::io("lock", path))
}

/// A file that this process alone has locked, until it is dropped.
pub(crate) struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Locks the file of this name, which is made for it; `None` if somebody else has it locked.
    pub(crate) fn try_hold(path: &Path) -> Result<Option<Self>> {
        let attempt = || -> io::Result<Option<File>> {
            loop {
                let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
                match file.try_lock() {
                    Err(TryLockError::WouldBlock) => return Ok(None),
                    Err(TryLockError::Error(error)) => return Err(error),
                    Ok(()) => {}
                }
                // Its last owner may have removed it: others would then lock another file.
                if is_at(&file, path)? {
                    return Ok(Some(file));
                }
            }
        };
        let file = attempt().map_err(FairdpError::io("lock", path))?;
        Ok(file.map(|file| Self { path: path.to_path_buf(), file }))
    }

    /// Removes the file, and gives it up.
    pub(crate) fn remove(self) -> Result<()> {
        let removed = remove(&self.path);
        drop(self.file);
        removed
    }
}

/// Whether this file is the one of this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((held.dev(), held.ino()) == (found.dev(), found.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Makes a folder that its owner alone may enter.
pub(crate) fn private_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(FairdpError::io("create", path))?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(path, mode).map_err(FairdpError::io("protect", path))?;
    }
    Ok(())
}

/// Moves a folder that was filled to its place, where nothing may be.
pub(crate) fn move_folder(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(FairdpError::io("create", to))
}

/// Flushes the entry of a file or folder to the disk.
pub(crate) fn sync_entry(path: &Path) -> Result<()> {
    whole_file::sync_folder(whole_file::parent(path)).map_err(FairdpError::io("flush", path))
}
