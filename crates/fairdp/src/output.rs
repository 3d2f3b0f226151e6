//! The one way in which this crate writes files: a name always holds something complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use crate::error::{FairdpError, Result};

/// How an SQLite database begins.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Its owner alone.
    Owner,
    /// Whom the system lets by default.
    Default,
}

/// Writes a file beside its place, flushes it and renames it.
pub(crate) fn write(path: &Path, bytes: &[u8], readers: Readers) -> Result<()> {
    write_with(path, readers, |file| file.write_all(bytes))
}

/// The same for what is too long to hold in memory.
pub(crate) fn write_with(
    path: &Path,
    readers: Readers,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let attempt = || -> io::Result<()> {
        let path = &target(path)?;
        let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file's path"))?;
        let part = path.with_file_name(format!(".{}.part", name.to_string_lossy()));
        // What a killed process left behind.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if readers == Readers::Owner {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let mut file = BufWriter::new(options.open(&part)?);
        fill(&mut file)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&part, path)?;
        sync_folder(path)
    };
    attempt().map_err(FairdpError::io("write", path))
}

/// The file that a path leads to: a link is followed, and stays.
fn target(path: &Path) -> io::Result<PathBuf> {
    let refuse = |reason: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => refuse("not a regular file"),
        Ok(_) => {
            let mut head = Vec::new();
            File::open(path)?.take(DATABASE.len() as u64).read_to_end(&mut head)?;
            if head == DATABASE { refuse("a database") } else { fs::canonicalize(path) }
        }
        Err(_) if path.is_symlink() => refuse("a link that leads nowhere"),
        Err(_) => Ok(path.to_path_buf()),
    }
}

/// Keeps other processes from a file until the lock is dropped: by a file beside it.
pub(crate) fn lock(path: &Path) -> Result<File> {
    let attempt = || -> io::Result<File> {
        let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file's path"))?;
        let beside = path.with_file_name(format!(".{}.lock", name.to_string_lossy()));
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(beside)?;
        file.lock()?;
        Ok(file)
    };
    attempt().map_err(FairdpError::io("lock", path))
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
    fs::rename(from, to).and_then(|()| sync_folder(to)).map_err(FairdpError::io("create", to))
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.map_or_else(|| PathBuf::from("."), Path::to_path_buf))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
