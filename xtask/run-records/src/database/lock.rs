//! Who may write to a database.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};

use super::with_suffix;

/// How often, and with what pause, a lock is asked for before it counts as another process's.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// A file beside the database that one process holds. The operating system lets go of it when the
/// process ends, however it ends; what a killed one left is taken up.
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Keeps other processes from writing, through a file beside the database: the rename of a new
    /// database must not slip the lock.
    pub(super) fn take(path: &Path) -> anyhow::Result<Self> {
        let beside = with_suffix(path, "lock");
        // A process that was just killed, or a child that another thread is about to start, may hold
        // the lock a moment longer.
        for _ in 0..ATTEMPTS {
            let file = File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&beside)
                .with_context(|| format!("creating {}", beside.display()))?;
            match file.try_lock() {
                Ok(()) if is_named(&file, &beside) => return Ok(Self { path: beside, _file: file }),
                // The process that held it has just removed it.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("locking {}", beside.display()));
                }
            }
        }
        bail!("{} is being written by another process", path.display())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is held: whoever opened it meanwhile sees that its name is gone, and tries
        // again.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether the file is still the one of this name.
#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_named(_: &File, path: &Path) -> bool {
    path.exists()
}
