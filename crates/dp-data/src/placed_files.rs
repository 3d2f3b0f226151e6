//! Files that a user places by hand and for which no checksum is published.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Attempt, DataError};
use crate::file;
use crate::loaded::Loaded;
use crate::locator::{DataLocator, with_notes};
use crate::manifest::Manifest;
use crate::provenance::{FileRecord, Provenance};

/// A folder with the files of a data set that cannot be downloaded freely.
#[derive(Debug, Clone)]
pub(crate) struct PlacedFiles {
    /// For example `--data-dir`.
    pub(crate) origin: &'static str,
    pub(crate) folder: PathBuf,
    /// The folder says that its files were generated.
    pub(crate) synthetic: bool,
}

/// A file of this name marks a folder of generated files: without a published checksum nothing else
/// would tell.
pub(crate) const SYNTHETIC_MARK: &str = "SYNTHETIC.txt";

/// The result of a search.
#[derive(Debug, Clone)]
enum Placed {
    Here(PlacedFiles),
    Nowhere(Vec<Attempt>),
}

impl PlacedFiles {
    /// Records of the published table; `None` where generated files stand in for it.
    pub(crate) fn published_records(&self, manifest: &Manifest, table: &str) -> Option<usize> {
        let table = manifest.tables.iter().find(|candidate| candidate.name == table)?;
        (!self.synthetic).then_some(table.records)
    }

    /// The first of several names that exists.
    ///
    /// # Errors
    /// [`DataError::MissingFile`] naming the first.
    pub(crate) fn any_of(&self, names: &[&str], dataset: &str) -> Result<PathBuf, DataError> {
        first(&self.folder, names)
            .ok_or_else(|| DataError::MissingFile { path: self.folder.join(names[0]), dataset: dataset.into() })
    }
}

impl PlacedFiles {
    /// sha256 of a file, compared with `SHA256SUMS.txt` where that lies beside it: the second value
    /// says whether it did.
    ///
    /// # Errors
    /// [`DataError::WrongChecksum`], [`DataError::NotListed`] if the list does not know the file,
    /// [`DataError::Io`].
    pub(crate) fn digest(&self, path: &Path) -> Result<(FileRecord, bool), DataError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut file = file::open(path)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        let mut bytes = 0;
        loop {
            match file.read(&mut buffer).map_err(DataError::io("read", path))? {
                0 => break,
                n => {
                    hasher.update(&buffer[..n]);
                    bytes += n as u64;
                }
            }
        }
        let record = FileRecord { name, sha256: hex::encode(hasher.finalize()), bytes };
        let list = self.folder.join("SHA256SUMS.txt");
        if !list.exists() {
            return Ok((record, false));
        }
        let text = fs::read_to_string(&list).map_err(DataError::io("read", &list))?;
        let expected = text.lines().find_map(|line| {
            let (sha256, name) = line.split_once(char::is_whitespace)?;
            (name.trim_start_matches([' ', '*']).trim_end() == record.name).then(|| sha256.to_ascii_lowercase())
        });
        match expected {
            None => Err(DataError::NotListed { path: list, entry: record.name }),
            Some(expected) if expected == record.sha256 => Ok((record, true)),
            Some(expected) => Err(DataError::WrongChecksum {
                path: path.into(),
                actual: record.sha256,
                actual_bytes: bytes,
                expected,
                expected_bytes: None,
            }),
        }
    }

    /// The provenance of a table read from files that [`digest`](Self::digest) saw.
    pub(crate) fn provenance(
        &self,
        manifest: &Manifest,
        files: Vec<(FileRecord, bool)>,
        n_records: usize,
    ) -> Provenance {
        let verified = files.iter().all(|(_, verified)| *verified);
        let files: Vec<FileRecord> = files.into_iter().map(|(file, _)| file).collect();
        Provenance {
            name: manifest.name.clone(),
            synthetic: self.synthetic,
            source: match (self.synthetic, verified) {
                (true, _) => format!("SYNTHETIC files in the format of {} ({})", manifest.name, self.origin),
                (false, true) => format!("{} ({}; SHA256SUMS.txt verified)", manifest.source, self.origin),
                (false, false) => format!("{} ({}; no checksum to compare with)", manifest.source, self.origin),
            },
            sha256_ok: verified && !self.synthetic,
            digest: Provenance::digest_of(&files),
            n_records,
            files,
            notes: Vec::new(),
        }
    }
}

fn first(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    names.iter().map(|name| folder.join(name)).find(|path| path.exists())
}

impl DataLocator {
    /// Reads files that a user placed. If there are none, takes generated records and notes every
    /// place that was tried.
    ///
    /// # Errors
    /// As [`locate_placed`](Self::locate_placed), and the errors of `read` and `stand_in`.
    pub(crate) fn read_placed<R>(
        &self,
        manifest: &Manifest,
        markers: &[&str],
        read: impl FnOnce(&PlacedFiles) -> Result<Loaded<R>, DataError>,
        stand_in: impl FnOnce() -> Result<Loaded<R>, DataError>,
    ) -> Result<Loaded<R>, DataError> {
        match self.locate_placed(manifest, markers)? {
            Placed::Here(placed) => read(&placed),
            Placed::Nowhere(attempts) => Ok(with_notes(stand_in()?, &attempts)),
        }
    }

    /// Looks for a folder, in the order of [`locate`](Self::locate) without the download, that
    /// holds one of `markers`.
    ///
    /// # Errors
    /// [`DataError::MissingFolder`] for a folder that was named but does not exist;
    /// [`DataError::NotFound`] if no place has the files and `require_real` is set.
    fn locate_placed(&self, manifest: &Manifest, markers: &[&str]) -> Result<Placed, DataError> {
        let mut attempts = Vec::new();
        let places =
            [(&self.data_dir, "--data-dir"), (&self.env_dir, "DP_DATA_DIR"), (&Some(self.cache_dir.clone()), "cache")];
        for (dir, origin) in places {
            let Some(dir) = dir else { continue };
            if origin != "cache" && !dir.is_dir() {
                return Err(DataError::MissingFolder { path: dir.clone(), given_by: origin });
            }
            for folder in [dir.join(&manifest.name), dir.clone()] {
                if first(&folder, markers).is_none() {
                    continue;
                }
                let synthetic = folder.join(SYNTHETIC_MARK).exists();
                if synthetic && self.require_real {
                    attempts.push(Attempt { place: origin.into(), reason: "generated files".into() });
                    continue;
                }
                return Ok(Placed::Here(PlacedFiles { origin, folder, synthetic }));
            }
            attempts.push(Attempt { place: origin.into(), reason: "no file of this data set".into() });
        }
        attempts.push(Attempt { place: "download".into(), reason: "it cannot be downloaded freely".into() });
        if self.require_real {
            return Err(DataError::NotFound { dataset: manifest.name.clone(), attempts });
        }
        Ok(Placed::Nowhere(attempts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_publishers_list_is_heeded() {
        let dir = tempfile::tempdir().unwrap();
        let placed = PlacedFiles { origin: "--data-dir", folder: dir.path().into(), synthetic: false };
        let path = dir.path().join("a.csv");
        fs::write(&path, "one").unwrap();
        let (record, verified) = placed.digest(&path).unwrap();
        assert!(!verified && record.bytes == 3 && record.sha256.starts_with("7692c3ad"));

        let list = |text: &str| fs::write(dir.path().join("SHA256SUMS.txt"), text).unwrap();
        list(&format!("{}  a.csv\n", record.sha256));
        assert!(placed.digest(&path).unwrap().1);
        let message =
            || placed.digest(&path).unwrap_err().to_string().replace(&dir.path().display().to_string(), "DIR");
        list("00  b.csv\n");
        insta::assert_snapshot!(message(), @"`DIR/SHA256SUMS.txt` does not list `a.csv`");
        list("00  a.csv\n");
        insta::assert_snapshot!(
            message(),
            @"`DIR/a.csv` is not the published file: sha256 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed (3 bytes), expected 00; replace or remove it"
        );
    }
}
