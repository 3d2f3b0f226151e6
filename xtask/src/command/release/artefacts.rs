//! The files of a release: where they are, how large they may be, and their checksums.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use run_records::output::Output;
use sha2::{Digest, Sha256};

use super::summary::Summary;
use crate::terminal;

/// The folder of a release's files.
#[derive(Debug)]
pub(super) struct Artefacts {
    folder: PathBuf,
}

/// Checksums, in the format of `sha256sum`.
const CHECKSUMS: &str = "SHA256SUMS";

impl Artefacts {
    /// The files of a release, in a folder that is made if it is not there. A run of all steps begins
    /// with an empty one: checksums are of what it built.
    ///
    /// # Errors
    /// If it cannot be made or emptied, or a folder that the user named has files.
    pub(super) fn new(root: &Path, folder: Option<PathBuf>, is_whole: bool) -> anyhow::Result<Self> {
        let own = root.join("target/release-files");
        if is_whole && folder.is_none() && own.exists() {
            fs::remove_dir_all(&own).with_context(|| format!("emptying {}", own.display()))?;
        }
        let folder = folder.unwrap_or(own);
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let folder = std::path::absolute(&folder).with_context(|| format!("folder {}", folder.display()))?;
        let artefacts = Self { folder };
        if is_whole && let Some(name) = artefacts.names()?.first() {
            bail!(
                "--out: {} has files already ({name}); all steps together need an empty folder",
                artefacts.folder.display()
            );
        }
        Ok(artefacts)
    }

    /// Where the files are.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file of this name.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Names of the files, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(super) fn names(&self) -> anyhow::Result<Vec<String>> {
        let entries = fs::read_dir(&self.folder).with_context(|| format!("reading {}", self.folder.display()))?;
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    /// Names of the Python package's wheels, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(super) fn wheels(&self) -> anyhow::Result<Vec<String>> {
        let mut names = self.names()?;
        names.retain(|name| Path::new(name).extension().is_some_and(|ending| ending == "whl"));
        Ok(names)
    }

    /// The checksum of a file, in hexadecimal digits.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn sha256(&self, name: &str) -> anyhow::Result<String> {
        let bytes = fs::read(self.path(name)).with_context(|| format!("reading {name}"))?;
        Ok(hex::encode(Sha256::digest(bytes)))
    }

    /// Writes the checksums of all files beside them.
    ///
    /// # Errors
    /// If a file cannot be read or the checksums cannot be written.
    pub(super) fn write_checksums(&self) -> anyhow::Result<()> {
        let mut text = String::new();
        for name in self.names()?.iter().filter(|name| *name != CHECKSUMS) {
            text += &format!("{}  {name}\n", self.sha256(name)?);
        }
        ensure!(!text.is_empty(), "{}: nothing was built yet", self.folder.display());
        Output::new(&self.path(CHECKSUMS), &[])?.write_bytes(text.as_bytes())?;
        terminal::write(format_args!("{text}"))
    }
}

/// Says how large a file is, and whether it is larger than promised.
///
/// # Errors
/// If it cannot be read.
pub(super) fn check_size(path: &Path, limit_mb: f64, summary: &mut Summary) -> anyhow::Result<()> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let size = fs::metadata(path).with_context(|| format!("size of {}", path.display()))?.len() as f64 / 1e6;
    if size > limit_mb {
        return summary.missed(format_args!("{name}: has {size:.2} MB; at most {limit_mb} MB are promised"));
    }
    summary.done(format_args!("{name}: {size:.2} MB of {limit_mb} at most"))
}
