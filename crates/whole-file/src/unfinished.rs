//! Hidden names for unfinished files and folders, and the removal of those that killed processes left.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::readers::Readers;

/// Names are cut to this many bytes, so that a name with its prefix and number stays below the 255
/// that file systems take.
const MAX_NAME: usize = 200;

/// An unfinished file or folder `.NAME.partial-N`. It is locked as long as its process lives, and
/// removed when it is dropped.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
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
            File::open(path)
        })
    }

    fn new(folder: &Path, name: &str, create: impl Fn(&Path) -> io::Result<File>) -> io::Result<Self> {
        let prefix = prefix(name);
        remove_leftovers(folder, &prefix)?;
        let mut number = std::process::id();
        loop {
            let path = folder.join(format!("{prefix}{number}"));
            match create(&path) {
                Ok(handle) => {
                    // Some network file systems have no locks; leftovers then stay.
                    let _ = handle.try_lock();
                    // Until it was locked, another process could take it for a leftover and remove
                    // it.
                    if path.exists() {
                        return Ok(Self { path, handle, is_finished: false });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number = number.wrapping_add(1),
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

/// Removes files and folders whose name begins with `prefix` and whose lock nobody holds.
fn remove_leftovers(folder: &Path, prefix: &str) -> io::Result<()> {
    // A folder that can be written cannot always be listed.
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(prefix));
        if number.is_none_or(|number| number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit())) {
            continue;
        }
        let is_plain = entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir());
        let is_dead = is_plain && File::open(entry.path()).is_ok_and(|handle| handle.try_lock().is_ok());
        if is_dead {
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

    #[test]
    fn long_names_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let name = "ε".repeat(127);
        let unfinished = Unfinished::file(folder.path(), &name, Readers::Default).unwrap();
        unfinished.finish(&folder.path().join(&name)).unwrap();
        assert!(folder.path().join(&name).exists());
    }
}
