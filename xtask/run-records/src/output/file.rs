//! One file.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use whole_file::{Readers, WholeFile};

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
    path: PathBuf,
    file: WholeFile,
}

impl Output {
    /// Takes the place. `inputs` are files that will be read.
    ///
    /// # Errors
    /// If `path` is a directory, a device or a database, one of `inputs`, or cannot be written; the
    /// message names it.
    pub fn new(path: &Path, inputs: &[&Path]) -> anyhow::Result<Self> {
        Self::for_readers(path, inputs, Readers::Default)
    }

    /// The same, readable by its owner alone.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn private(path: &Path) -> anyhow::Result<Self> {
        Self::for_readers(path, &[], Readers::Owner)
    }

    fn for_readers(path: &Path, inputs: &[&Path], readers: Readers) -> anyhow::Result<Self> {
        if let Ok(earlier) = fs::metadata(path)
            && inputs.iter().any(|input| is_same(path, &earlier, input))
        {
            bail!("{} is read by this command, so it cannot be written, too", path.display());
        }
        let file = WholeFile::create(path, readers).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => anyhow!("{} {error}", path.display()),
            _ => anyhow!("{}: cannot write to its folder: {error}", path.display()),
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes the file and moves it to its place.
    ///
    /// # Errors
    /// As `fill`, or if the disk refuses. What was there before is then still there.
    pub fn write(self, fill: impl FnOnce(&mut BufWriter<&File>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.file.write(fill).with_context(|| writing(&self.path))
    }

    /// Writes these bytes.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_bytes(self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write_bytes(bytes).with_context(|| writing(&self.path))
    }

    /// Writes these bytes unless the file has appeared meanwhile; returns whether it has not.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_if_absent(self, bytes: &[u8]) -> anyhow::Result<bool> {
        self.file.write_if_absent(bytes).with_context(|| writing(&self.path))
    }
}

fn writing(path: &Path) -> String {
    format!("writing {}", path.display())
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
    use std::io::Write as _;

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
        fs::write(at("r.db"), [b"SQLite format 3\0".as_slice(), &[0; 100]].concat()).unwrap();
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
}
