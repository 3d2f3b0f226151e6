//! One file.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::part::Part;

/// How an SQLite database begins.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// A file that is about to be written: beside its place first, and moved there when it is complete.
///
/// Until then, and if anything fails or the process is killed, an earlier file stays as it is. A
/// link is followed.
///
/// ```text
/// let output = Output::new(&path, &[&input])?;   // refuses here, before any work
/// output.write(|file| export(&database, file))   // whole, or not at all
/// ```
pub struct Output {
    /// Links followed.
    target: PathBuf,
    /// What is there.
    earlier: Option<Metadata>,
    part: Part,
}

impl Output {
    /// Takes the place. `inputs` are files that will be read.
    ///
    /// # Errors
    /// If `path` is a directory, a device or a database, one of `inputs`, or cannot be written; the
    /// message names it.
    pub fn new(path: &Path, inputs: &[&Path]) -> anyhow::Result<Self> {
        let named = || path.display().to_string();
        let (target, earlier) = match fs::metadata(path) {
            Ok(earlier) => {
                refuse_kind(path, &earlier)?;
                for input in inputs {
                    if is_same(path, &earlier, input) {
                        bail!("{} is read by this command, so it cannot be written, too", path.display());
                    }
                }
                (fs::canonicalize(path).with_context(named)?, Some(earlier))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(path).is_ok() {
                    bail!("{} is a link that leads nowhere", path.display());
                }
                (path.to_owned(), None)
            }
            Err(error) => return Err(error).with_context(named),
        };
        let name = target.file_name().with_context(|| format!("{} names no file", path.display()))?;
        let folder = parent(&target);
        let part = Part::file(folder, &name.to_string_lossy())
            .with_context(|| format!("{}: cannot write to its folder", path.display()))?;
        Ok(Self { target, earlier, part })
    }

    /// The same, readable by its owner alone.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn private(self) -> anyhow::Result<Self> {
        #[cfg(unix)]
        {
            let owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            self.part.handle().set_permissions(owner).with_context(|| self.writing())?;
        }
        Ok(Self { earlier: None, ..self })
    }

    /// Writes the file and moves it to its place.
    ///
    /// # Errors
    /// As `fill`, or if the disk refuses. What was there before is then still there.
    pub fn write(self, fill: impl FnOnce(&mut BufWriter<&File>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.fill(fill)?;
        let (writing, folder) = (self.writing(), parent(&self.target).to_owned());
        self.part.finish(&self.target).and_then(|()| sync_folder(&folder)).context(writing)
    }

    /// Writes these bytes.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_bytes(self, bytes: &[u8]) -> anyhow::Result<()> {
        self.write(|file| Ok(file.write_all(bytes)?))
    }

    /// Writes these bytes unless the file has appeared meanwhile; returns whether it has not.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_if_absent(self, bytes: &[u8]) -> anyhow::Result<bool> {
        self.fill(|file| Ok(file.write_all(bytes)?))?;
        match fs::hard_link(self.part.path(), &self.target) {
            Ok(()) => sync_folder(parent(&self.target)).map(|()| true).with_context(|| self.writing()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error).with_context(|| self.writing()),
        }
    }

    fn fill(&self, fill: impl FnOnce(&mut BufWriter<&File>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let handle = self.part.handle();
        if let Some(earlier) = &self.earlier {
            handle.set_permissions(earlier.permissions()).with_context(|| self.writing())?;
        }
        let mut file = BufWriter::new(handle);
        fill(&mut file).and_then(|()| Ok(file.flush()?)).with_context(|| self.writing())?;
        handle.sync_all().with_context(|| self.writing())
    }

    fn writing(&self) -> String {
        format!("writing {}", self.target.display())
    }
}

/// The folder of a path.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the names in a folder durable.
#[cfg(unix)]
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the Unix version can fail")]
pub(super) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

fn refuse_kind(path: &Path, earlier: &Metadata) -> anyhow::Result<()> {
    if earlier.is_dir() {
        bail!("{} is a directory, expected the name of a file", path.display());
    }
    if !earlier.is_file() {
        bail!("{} is a device or a pipe, expected the name of a file", path.display());
    }
    if earlier.permissions().readonly() {
        bail!("{} is write-protected", path.display());
    }
    if is_database(path).with_context(|| format!("{} is there and cannot be read", path.display()))? {
        bail!("{} is a database, which is not replaced", path.display());
    }
    Ok(())
}

/// Whether this file is an SQLite database.
pub(crate) fn is_database(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(DATABASE.len() as u64).read_to_end(&mut head)?;
    Ok(head == DATABASE)
}

/// Whether both names lead to one file.
#[cfg(unix)]
fn is_same(_: &Path, output: &Metadata, input: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(input).is_ok_and(|input| (input.dev(), input.ino()) == (output.dev(), output.ino()))
}

#[cfg(not(unix))]
fn is_same(path: &Path, _: &Metadata, input: &Path) -> bool {
    match (fs::canonicalize(path), fs::canonicalize(input)) {
        (Ok(path), Ok(input)) => path == input,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path, inputs: &[&Path]) -> String {
        format!("{:#}", Output::new(path, inputs).err().unwrap())
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        Output::new(&path, &[]).unwrap().write_bytes(b"first").unwrap();
        let failed = Output::new(&path, &[]).unwrap().write(|file| {
            file.write_all(b"half")?;
            bail!("stopped")
        });
        assert!(format!("{:#}", failed.unwrap_err()).ends_with("stopped"));
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        assert!(!Output::new(&path, &[]).unwrap().write_if_absent(b"second").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"first");
    }

    #[test]
    fn inputs_databases_devices_and_directories_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("r.db"), [DATABASE, &[0; 100]].concat()).unwrap();
        fs::write(at("r.json"), "{}").unwrap();
        fs::hard_link(at("r.json"), at("same.json")).unwrap();
        assert!(refusal(&at("r.db"), &[]).ends_with("r.db is a database, which is not replaced"));
        assert!(refusal(&at("same.json"), &[&at("r.json")]).contains("is read by this command"));
        assert!(refusal(folder.path(), &[]).ends_with("is a directory, expected the name of a file"));
        assert!(refusal(Path::new("/dev/null"), &[]).ends_with("is a device or a pipe, expected the name of a file"));
        assert!(refusal(&at("no/such/folder.csv"), &[]).contains("cannot write to its folder"));
        assert!(!refusal(&at(&"x".repeat(300)), &[]).is_empty());
        assert_eq!(fs::read(at("r.json")).unwrap(), b"{}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("real.csv"), "old").unwrap();
        std::os::unix::fs::symlink(at("real.csv"), at("link.csv")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("broken.csv")).unwrap();
        Output::new(&at("link.csv"), &[]).unwrap().write_bytes(b"new").unwrap();
        assert!(fs::symlink_metadata(at("link.csv")).unwrap().is_symlink());
        assert_eq!(fs::read(at("real.csv")).unwrap(), b"new");
        assert!(refusal(&at("broken.csv"), &[]).ends_with("is a link that leads nowhere"));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_private_is_the_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(Output::new(&path, &[]).unwrap().private().unwrap().write_if_absent(b"secret").unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
