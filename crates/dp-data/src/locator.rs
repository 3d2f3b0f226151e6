//! The places in which published files are looked for, in order.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::download_progress::{DownloadProgress, Silent};
use crate::error::{Attempt, DataError};
use crate::loaded::Loaded;
use crate::manifest::{Manifest, ManifestFile};
use crate::provenance::{FileRecord, Provenance};
use crate::verified_file::VerifiedFile;

/// Looks for a data set in order: the folder given, the environment's folder, the cache, a verified
/// download.
///
/// A folder `DIR` may hold the files of data set `NAME` as `DIR/NAME/FILE` or `DIR/FILE`, plain or
/// with `.gz` appended.
///
/// **Guarantee.** Content reaches a parser only if its sha256 is the one pinned in the manifest.
///
/// **Edge cases.** In a folder named explicitly, a file with another checksum, or a part of the
/// files, is an error; a folder without any file of the data set is passed over and noted. In the
/// cache, files that do not verify are fetched again.
#[derive(Clone)]
pub struct DataLocator {
    /// First place: `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// Second place: `DP_DATA_DIR`.
    pub env_dir: Option<PathBuf>,
    /// Third place, and where downloads go.
    pub cache_dir: PathBuf,
    /// Never download.
    pub offline: bool,
    /// An error instead of generated records.
    pub require_real: bool,
    /// Told how a download goes.
    pub progress: Arc<dyn DownloadProgress>,
}

impl fmt::Debug for DataLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataLocator")
            .field("data_dir", &self.data_dir)
            .field("env_dir", &self.env_dir)
            .field("cache_dir", &self.cache_dir)
            .field("offline", &self.offline)
            .field("require_real", &self.require_real)
            .finish_non_exhaustive()
    }
}

/// The result of a search.
#[derive(Debug, Clone)]
pub enum Located {
    /// The published files, verified.
    Real(RealFiles),
    /// No place had them; each place with the reason.
    Nowhere(Vec<Attempt>),
}

/// Verified files and the place where they were found.
#[derive(Debug, Clone)]
pub struct RealFiles {
    /// For example ``--data-dir``, `DP_DATA_DIR`, `cache`, or an address.
    pub origin: String,
    /// In the manifest's order.
    pub files: Vec<VerifiedFile>,
    /// Places that were passed over before.
    pub passed_over: Vec<Attempt>,
}

impl RealFiles {
    /// The provenance of a table read from these files.
    pub fn provenance(&self, manifest: &Manifest, n_records: usize) -> Provenance {
        let files: Vec<_> = self
            .files
            .iter()
            .map(|file| FileRecord {
                name: file.name.clone(),
                sha256: file.sha256.clone(),
                bytes: file.contents.len() as u64,
            })
            .collect();
        Provenance {
            name: manifest.name.clone(),
            synthetic: false,
            source: format!("{} ({}; checksums verified)", manifest.source, self.origin),
            sha256_ok: true,
            digest: Provenance::digest_of(&files),
            n_records,
            files,
            notes: notes(&self.passed_over),
        }
    }
}

/// A stand-in with one note per place that did not serve.
pub(crate) fn with_notes<R>(stand_in: Loaded<R>, attempts: &[Attempt]) -> Loaded<R> {
    let Loaded { records, provenance } = stand_in;
    Loaded { records, provenance: Provenance { notes: notes(attempts), ..provenance } }
}

/// One sentence per place that did not serve.
fn notes(attempts: &[Attempt]) -> Vec<String> {
    attempts.iter().map(|attempt| format!("Tried {attempt}.")).collect()
}

impl DataLocator {
    /// Reads the published files. If no place has them, takes generated records and notes every
    /// place that was tried.
    ///
    /// `read` yields the records and their number before any is dropped.
    ///
    /// # Errors
    /// As [`locate`](Self::locate), and the errors of `read` and `stand_in`.
    pub fn read_or_generate<R>(
        &self,
        manifest: &Manifest,
        read: impl FnOnce(&RealFiles) -> Result<(R, usize), DataError>,
        stand_in: impl FnOnce() -> Result<Loaded<R>, DataError>,
    ) -> Result<Loaded<R>, DataError> {
        match self.locate(manifest)? {
            Located::Real(real) => {
                let (records, n_records) = read(&real)?;
                Ok(Loaded { records, provenance: real.provenance(manifest, n_records) })
            }
            Located::Nowhere(attempts) => Ok(with_notes(stand_in()?, &attempts)),
        }
    }

    /// A locator with this cache and nothing else: no folder, downloads permitted, generated
    /// records permitted.
    pub fn new(cache_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: None,
            env_dir: None,
            cache_dir: cache_dir.into(),
            offline: false,
            require_real: false,
            progress: Arc::new(Silent),
        }
    }

    /// Same as [`new`](Self::new), with `DP_DATA_DIR` as the environment's folder where it is set
    /// and not empty.
    pub fn from_env(cache_dir: impl Into<PathBuf>) -> Self {
        let env_dir = std::env::var_os("DP_DATA_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        Self { env_dir, ..Self::new(cache_dir) }
    }

    /// Searches every place in order.
    ///
    /// # Errors
    /// - [`DataError::MissingFolder`] for a folder that was named but does not exist;
    /// - [`DataError::MissingFile`], [`DataError::WrongChecksum`], [`DataError::BrokenGzip`],
    ///   [`DataError::Io`] for files in such a folder that cannot serve;
    /// - [`DataError::NotFound`] if no place has the files and `require_real` is set.
    pub fn locate(&self, manifest: &Manifest) -> Result<Located, DataError> {
        let mut attempts = Vec::new();
        if manifest.files.is_empty() {
            attempts.push(Attempt { place: "the manifest".into(), reason: "it pins no file".into() });
            return self.nowhere(manifest, attempts);
        }
        for (dir, given_by) in [(&self.data_dir, "--data-dir"), (&self.env_dir, "DP_DATA_DIR")] {
            let Some(dir) = dir else { continue };
            if !dir.is_dir() {
                return Err(DataError::MissingFolder { path: dir.clone(), given_by });
            }
            match find_all(dir, manifest)? {
                Some(files) => {
                    return Ok(Located::Real(RealFiles { origin: given_by.into(), files, passed_over: attempts }));
                }
                None => attempts.push(Attempt { place: given_by.into(), reason: "no file of this data set".into() }),
            }
        }
        match find_all(&self.cache_dir, manifest) {
            Ok(Some(files)) => {
                return Ok(Located::Real(RealFiles { origin: "cache".into(), files, passed_over: attempts }));
            }
            Ok(None) => attempts.push(Attempt { place: "cache".into(), reason: "no file of this data set".into() }),
            Err(error) => attempts.push(Attempt { place: "cache".into(), reason: error.to_string() }),
        }
        match self.fetch(manifest, &mut attempts)? {
            Some(files) => Ok(Located::Real(RealFiles { origin: "downloaded".into(), files, passed_over: Vec::new() })),
            None => self.nowhere(manifest, attempts),
        }
    }

    fn nowhere(&self, manifest: &Manifest, attempts: Vec<Attempt>) -> Result<Located, DataError> {
        if self.require_real {
            return Err(DataError::NotFound { dataset: manifest.name.clone(), attempts });
        }
        Ok(Located::Nowhere(attempts))
    }

    /// Every file, from the cache where it verifies and else from the network; `None` if one cannot
    /// be had.
    fn fetch(&self, manifest: &Manifest, attempts: &mut Vec<Attempt>) -> Result<Option<Vec<VerifiedFile>>, DataError> {
        if let Some(file) = manifest.files.iter().find(|file| file.urls.is_empty()) {
            let reason = format!("`{}` cannot be downloaded freely", file.name);
            attempts.push(Attempt { place: "download".into(), reason });
            return Ok(None);
        }
        if self.offline {
            attempts.push(Attempt { place: "download".into(), reason: "switched off".into() });
            return Ok(None);
        }
        self.fetch_absent(manifest, attempts)
    }

    #[cfg(feature = "download")]
    fn fetch_absent(
        &self,
        manifest: &Manifest,
        attempts: &mut Vec<Attempt>,
    ) -> Result<Option<Vec<VerifiedFile>>, DataError> {
        let folder = self.cache_dir.join(&manifest.name);
        let mut files = Vec::new();
        for file in &manifest.files {
            if let Ok(Some(cached)) = find(&self.cache_dir, manifest, file) {
                files.push(cached);
                continue;
            }
            match crate::download::fetch(file, &folder, &*self.progress)? {
                Ok(path) => files.push(VerifiedFile::read(&path, file)?),
                Err(failed) => {
                    attempts.extend(failed);
                    return Ok(None);
                }
            }
        }
        Ok(Some(files))
    }

    /// Without the downloader: says where a user gets the files that the cache lacks.
    #[cfg(not(feature = "download"))]
    #[expect(clippy::unnecessary_wraps, reason = "as with the downloader")]
    fn fetch_absent(
        &self,
        manifest: &Manifest,
        attempts: &mut Vec<Attempt>,
    ) -> Result<Option<Vec<VerifiedFile>>, DataError> {
        let absent = manifest.files.iter().filter(|file| !matches!(find(&self.cache_dir, manifest, file), Ok(Some(_))));
        attempts.extend(absent.map(|file| Attempt {
            place: file.urls[0].clone(),
            reason: format!("not fetched; place it as `{}/{}`, sha256 {}", manifest.name, file.name, file.sha256),
        }));
        Ok(None)
    }
}

/// All files from one folder; `None` if it has none of them.
fn find_all(dir: &Path, manifest: &Manifest) -> Result<Option<Vec<VerifiedFile>>, DataError> {
    let mut found = Vec::new();
    let mut missing = None;
    for file in &manifest.files {
        match find(dir, manifest, file)? {
            Some(verified) => found.push(verified),
            None => missing = missing.or(Some(file)),
        }
    }
    match missing {
        None => Ok(Some(found)),
        Some(_) if found.is_empty() => Ok(None),
        Some(file) => Err(DataError::MissingFile {
            path: found[0].path.with_file_name(&file.name),
            dataset: manifest.name.clone(),
        }),
    }
}

/// One file from one folder, the first of its possible places that exists.
fn find(dir: &Path, manifest: &Manifest, file: &ManifestFile) -> Result<Option<VerifiedFile>, DataError> {
    let zipped = format!("{}.gz", file.name);
    let own = dir.join(&manifest.name);
    for path in [own.join(&file.name), own.join(&zipped), dir.join(&file.name), dir.join(&zipped)] {
        if fs::exists(&path).map_err(DataError::io("read", &path))? {
            return VerifiedFile::read(&path, file).map(Some);
        }
    }
    Ok(None)
}
