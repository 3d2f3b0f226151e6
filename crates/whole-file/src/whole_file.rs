use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::readers::Readers;
use crate::target::{Target, parent, sync_folder};
use crate::unfinished::Unfinished;

/// A file that is written under a hidden name beside its target and renamed when it is complete.
///
/// An earlier file stays as it is until then. It also stays if anything fails or the process is
/// killed.
///
/// ```
/// use whole_file::{Readers, WholeFile};
///
/// let path = std::env::temp_dir().join(format!("whole-file-{}", std::process::id()));
/// WholeFile::create(&path, Readers::Owner)?.write_bytes(b"all of it")?;
/// assert_eq!(std::fs::read(&path)?, b"all of it");
/// std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct WholeFile {
    target: Target,
    unfinished: Unfinished,
    readers: Readers,
}

impl WholeFile {
    /// Checks the target and creates the hidden file.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if `path` is a directory, a device, a database,
    /// write-protected, a link that leads nowhere or no name of a file; an error of the system if its
    /// folder cannot be written.
    pub fn create(path: &Path, readers: Readers) -> io::Result<Self> {
        let target = Target::of(path)?;
        let name = target
            .path
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "is not the name of a file"))?;
        let unfinished = Unfinished::file(parent(&target.path), &name.to_string_lossy(), readers)?;
        Ok(Self { target, unfinished, readers })
    }

    /// Whether `path` is this unfinished file or another one for the same target, which another
    /// process writes or has left behind. Names of targets are compared in their first 200 bytes.
    pub fn is_unfinished(&self, path: &Path) -> bool {
        self.unfinished.is_for_same_name(path)
    }

    /// Writes the file with `fill` and renames it to its target.
    ///
    /// # Errors
    /// The error of `fill`, or one of the system. An earlier file is then unchanged.
    pub fn write<E: From<io::Error>>(self, fill: impl FnOnce(&mut BufWriter<&File>) -> Result<(), E>) -> Result<(), E> {
        self.fill(fill)?;
        self.unfinished.finish(&self.target.path)?;
        Ok(sync_folder(parent(&self.target.path))?)
    }

    /// Writes `bytes` and renames the file to its target.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_bytes(self, bytes: &[u8]) -> io::Result<()> {
        self.write(|file| file.write_all(bytes))
    }

    /// Writes `bytes` unless another process has created the target meanwhile; returns whether they
    /// were written.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_if_absent(self, bytes: &[u8]) -> io::Result<bool> {
        self.fill(|file| file.write_all(bytes))?;
        match fs::hard_link(self.unfinished.path(), &self.target.path) {
            Ok(()) => sync_folder(parent(&self.target.path)).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn fill<E: From<io::Error>>(&self, fill: impl FnOnce(&mut BufWriter<&File>) -> Result<(), E>) -> Result<(), E> {
        let handle = self.unfinished.handle();
        if self.readers == Readers::Default
            && let Some(earlier) = &self.target.earlier
        {
            handle.set_permissions(earlier.permissions())?;
        }
        let mut file = BufWriter::new(handle);
        fill(&mut file)?;
        file.flush()?;
        Ok(handle.sync_all()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path) -> String {
        WholeFile::create(path, Readers::Default).err().unwrap().to_string()
    }

    fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
        WholeFile::create(path, Readers::Default)?.write_bytes(bytes)
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        write(&path, b"first").unwrap();
        let failed = WholeFile::create(&path, Readers::Default).unwrap().write(|file| {
            file.write_all(b"half")?;
            Err(io::Error::other("stopped"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "stopped");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        assert!(!WholeFile::create(&path, Readers::Default).unwrap().write_if_absent(b"second").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"first");
        write(&path, b"").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn unfinished_files_for_one_target_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let [first, second, other] =
            ["t.csv", "t.csv", "u.csv"].map(|name| WholeFile::create(&at(name), Readers::Default).unwrap());
        assert!(first.is_unfinished(first.unfinished.path()) && first.is_unfinished(second.unfinished.path()));
        assert!(!first.is_unfinished(other.unfinished.path()) && !first.is_unfinished(&at("t.csv")));
        assert!(!first.is_unfinished(&at(".t.csv.partial-mine")));
        assert!(!first.is_unfinished(&at("sub").join(first.unfinished.path().file_name().unwrap())));
    }

    #[test]
    fn databases_devices_and_directories_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("r.db"), [b"SQLite format 3\0".as_slice(), &[0; 100]].concat()).unwrap();
        assert_eq!(refusal(&at("r.db")), "is a database, which is not replaced");
        assert_eq!(refusal(folder.path()), "is a directory, expected the name of a file");
        assert_eq!(refusal(Path::new("/dev/null")), "is a device or a pipe, expected the name of a file");
        assert!(!refusal(&at("no/such/folder.csv")).is_empty());
        assert!(!refusal(&at(&"x".repeat(300))).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("real.csv"), "old").unwrap();
        std::os::unix::fs::symlink(at("real.csv"), at("link.csv")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("broken.csv")).unwrap();
        write(&at("link.csv"), b"new").unwrap();
        assert!(fs::symlink_metadata(at("link.csv")).unwrap().is_symlink());
        assert_eq!(fs::read(at("real.csv")).unwrap(), b"new");
        assert_eq!(refusal(&at("broken.csv")), "is a link that leads nowhere");
    }

    #[cfg(unix)]
    #[test]
    fn readers_are_the_owner_alone_or_those_of_the_earlier_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
        let key = WholeFile::create(&at("key"), Readers::Owner).unwrap();
        assert_eq!(fs::metadata(key.unfinished.path()).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(key.write_if_absent(b"secret").unwrap());
        assert_eq!(mode("key"), 0o600);

        write(&at("open"), b"").unwrap();
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o664)).unwrap();
        write(&at("open"), b"again").unwrap();
        assert_eq!(mode("open"), 0o664);
        WholeFile::create(&at("open"), Readers::Owner).unwrap().write_bytes(b"closed").unwrap();
        assert_eq!(mode("open"), 0o600);
    }
}
