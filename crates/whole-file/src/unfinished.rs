//! Hidden names for unfinished files and folders, and the removal of those that killed processes left.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use crate::readers::Readers;

/// Names are cut to this many bytes, so that a name with its prefix and number stays below the 255
/// that file systems take.
const MAX_NAME: usize = 200;

/// An unfinished file or folder `.NAME.partial-N`. It is locked as long as its process lives, and
/// removed when it is dropped.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
    prefix: String,
    handle: File,
    is_finished: bool,
}

impl Unfinished {
    /// Creates a file in `folder` that will become `name`. Unfinished files of dead processes for
    /// the same name are removed.
    ///
    /// # Errors
    /// An error of the system.
    pub fn file(folder: &Path, name: &str, readers: Readers) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        if readers == Readers::Owner {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        Self::new(folder, name, |path| options.open(path))
    }

    /// Creates a folder in `folder` that will become `name`.
    ///
    /// # Errors
    /// An error of the system.
    pub fn folder(folder: &Path, name: &str) -> io::Result<Self> {
        Self::new(folder, name, |path| {
            fs::create_dir(path)?;
            match File::open(path) {
                // Another process took it for a leftover and removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io::ErrorKind::AlreadyExists.into()),
                opened => opened,
            }
        })
    }

    fn new(folder: &Path, name: &str, create: impl Fn(&Path) -> io::Result<File>) -> io::Result<Self> {
        let prefix = prefix(name);
        remove_leftovers(folder, &prefix)?;
        loop {
            // Each name is tried once, so that whatever lies under it later is this file.
            let path = folder.join(format!("{prefix}{}", random_number()));
            match create(&path) {
                Ok(handle) => {
                    // Until it is locked, another process can take it for a leftover, and then
                    // removes it. Some network file systems have no locks; leftovers then stay.
                    let is_taken = matches!(handle.try_lock(), Err(TryLockError::WouldBlock));
                    if !is_taken && path.exists() {
                        return Ok(Self { path, prefix, handle, is_finished: false });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The hidden path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file or folder.
    pub fn handle(&self) -> &File {
        &self.handle
    }

    /// Whether `path` is in the same folder and on its way to the same name.
    pub(crate) fn is_for_same_name(&self, path: &Path) -> bool {
        path.parent() == self.path.parent() && path.file_name().is_some_and(|name| is_unfinished(name, &self.prefix))
    }

    /// Renames it to `target`.
    ///
    /// # Errors
    /// An error of the system; the unfinished file or folder is then removed.
    pub fn finish(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_finished {
            // If this fails, the next process removes it as a leftover.
            let _ = remove(&self.path);
        }
    }
}

fn prefix(name: &str) -> String {
    let end = (0..=MAX_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    format!(".{}.partial-", &name[..end])
}

/// A number that no other process or thread draws.
fn random_number() -> u64 {
    // Its keys are random.
    RandomState::new().hash_one(process::id())
}

fn is_unfinished(name: &OsStr, prefix: &str) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix(prefix));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Removes files and folders whose name begins with `prefix` and whose lock nobody holds.
fn remove_leftovers(folder: &Path, prefix: &str) -> io::Result<()> {
    // A folder that can be written cannot always be listed.
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let is_plain = entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir());
        if !is_plain || !is_unfinished(&entry.file_name(), prefix) {
            continue;
        }
        let Ok(handle) = File::open(entry.path()) else { continue };
        // Held until the file is removed: a process that has just created it tries another name.
        if handle.try_lock().is_ok() {
            match remove(&entry.path()) {
                // Another process was faster.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn leftovers_of_the_dead_are_removed_and_those_of_the_living_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at(".a.csv.partial-7"), "of a killed process").unwrap();
        fs::create_dir(at(".a.csv.partial-8")).unwrap();
        fs::write(at(".a.csv.partial-mine"), "a user's").unwrap();
        fs::write(at(".b.csv.partial-7"), "on the way to another name").unwrap();
        let living = Unfinished::file(folder.path(), "a.csv", Readers::Default).unwrap();
        assert!(!at(".a.csv.partial-7").exists() && !at(".a.csv.partial-8").exists());
        let second = Unfinished::file(folder.path(), "a.csv", Readers::Default).unwrap();
        assert!(living.path().exists() && living.path() != second.path());
        drop((living, second));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "what was not ours");
    }

    /// Each looks for leftovers while the others have created theirs and not locked them yet.
    #[test]
    fn writers_that_begin_at_once_keep_their_files() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        let barrier = Barrier::new(4);
        let write = || {
            barrier.wait();
            let file = Unfinished::file(folder.path(), "a.csv", Readers::Default)?;
            let sub = Unfinished::folder(folder.path(), "a.csv")?;
            assert!(sub.path().exists());
            file.finish(&target)
        };
        for _ in 0..200 {
            thread::scope(|scope| {
                for writer in [(); 4].map(|()| scope.spawn(write)) {
                    writer.join().unwrap().unwrap();
                }
            });
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn long_names_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let name = "ε".repeat(127);
        let unfinished = Unfinished::file(folder.path(), &name, Readers::Default).unwrap();
        unfinished.finish(&folder.path().join(&name)).unwrap();
        assert!(folder.path().join(&name).exists());
    }
}
