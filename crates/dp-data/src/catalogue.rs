//! Every data set by name: its manifest, its state on this machine, and its generated stand-in.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::DataError;
use crate::loaded::Loaded;
use crate::locator::DataLocator;
use crate::manifest::Manifest;
use crate::provenance::Provenance;
use crate::published_set::{Counts, PublishedSet};
use crate::{adult, celeba, dutch, eicu, mimic, mnist};

/// Every data set, one line each.
static SETS: &[&dyn AnySet] = &[
    &adult::Adult,
    &dutch::Dutch,
    &mnist::Collection::Mnist,
    &mnist::Collection::FashionMnist,
    &celeba::Celeba,
    &eicu::Eicu,
    &mimic::Mimic,
];

/// A data set of the catalogue.
///
/// ```
/// use dp_data::catalogue::DatasetName;
///
/// let dutch: DatasetName = "dutch".parse()?;
/// assert_eq!(dutch.manifest()?.records, 60_420);
/// # Ok::<(), dp_data::DataError>(())
/// ```
#[derive(Clone, Copy)]
pub struct DatasetName(&'static dyn AnySet);

/// A [`PublishedSet`] without its types.
trait AnySet: Send + Sync {
    fn name(&self) -> &'static str;
    fn manifest(&self) -> Result<Manifest, DataError>;
    fn counts(&self, locator: &DataLocator) -> Result<(Counts, Provenance), DataError>;
    fn is_table(&self) -> bool;
    fn export(&self, locator: &DataLocator, out: &mut dyn io::Write) -> Result<(usize, Provenance), DataError>;
    fn write_stand_in(&self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError>;
}

impl<S: PublishedSet> AnySet for S {
    fn name(&self) -> &'static str {
        PublishedSet::name(self)
    }

    fn manifest(&self) -> Result<Manifest, DataError> {
        PublishedSet::manifest(self)
    }

    fn counts(&self, locator: &DataLocator) -> Result<(Counts, Provenance), DataError> {
        let Loaded { records, provenance } = self.load(locator)?;
        Ok((PublishedSet::counts(self, &records)?, provenance))
    }

    fn is_table(&self) -> bool {
        PublishedSet::is_table(self)
    }

    fn export(&self, locator: &DataLocator, out: &mut dyn io::Write) -> Result<(usize, Provenance), DataError> {
        let Loaded { records, provenance } = self.load(locator)?;
        let failed = DataError::io("write", format!("{} as CSV", PublishedSet::name(self)));
        Ok((self.write_csv(&records, out).map_err(failed)?, provenance))
    }

    fn write_stand_in(&self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError> {
        PublishedSet::write_stand_in(self, folder, seed)
    }
}

/// The state of one data set on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Name on the command line.
    pub name: String,
    /// The published files were found.
    pub present: bool,
    /// A command would use generated records.
    pub synthetic: bool,
    /// Usable records, both parts together.
    pub rows: usize,
    /// Usable records per group, in group order.
    pub groups: Vec<(String, usize)>,
    /// Model inputs, in the first encoding where there are several.
    pub inputs: usize,
    /// Checksums of what was found; `None` where nothing was.
    pub sha256_ok: Option<bool>,
    /// The source, in words.
    pub source: String,
    /// Places that did not serve.
    pub notes: Vec<String>,
}

impl DatasetName {
    /// Every data set.
    pub fn all() -> impl Iterator<Item = Self> {
        SETS.iter().copied().map(Self)
    }

    /// Name on the command line and of the folder that holds the files.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Its manifest.
    ///
    /// # Errors
    /// [`DataError::InvalidManifest`], which a test excludes for the texts that are compiled in.
    pub fn manifest(self) -> Result<Manifest, DataError> {
        self.0.manifest()
    }

    /// A data set whose files are there and cannot be used, with the reason among its notes.
    pub fn unusable(self, error: &DataError) -> Summary {
        Summary {
            name: self.name().into(),
            present: true,
            synthetic: false,
            rows: 0,
            groups: Vec::new(),
            inputs: 0,
            sha256_ok: Some(false),
            source: String::new(),
            notes: vec![error.to_string()],
        }
    }

    /// Loads the data set and counts.
    ///
    /// **Edge cases.** Files with another checksum are reported as present with `sha256_ok` false,
    /// not as an error.
    ///
    /// # Errors
    /// As the loaders, except [`DataError::WrongChecksum`].
    pub fn summary(self, locator: &DataLocator) -> Result<Summary, DataError> {
        match self.0.counts(locator) {
            Ok((counts, provenance)) => Ok(Summary {
                name: self.name().into(),
                present: !provenance.synthetic,
                synthetic: provenance.synthetic,
                rows: counts.groups.iter().map(|(_, n)| n).sum(),
                groups: counts.groups,
                inputs: counts.inputs,
                sha256_ok: provenance.sha256_ok.then_some(true),
                source: provenance.source,
                notes: provenance.notes,
            }),
            Err(error @ DataError::WrongChecksum { .. }) => Ok(self.unusable(&error)),
            Err(error) => Err(error),
        }
    }

    /// Writes the records as CSV with a header: a table like a user's own. Returns their number and
    /// where they came from.
    ///
    /// # Errors
    /// [`DataError::UnknownName`] for a data set that is no table; as the loaders;
    /// [`DataError::Io`] if `out` refuses.
    pub fn export(self, locator: &DataLocator, out: &mut impl io::Write) -> Result<(usize, Provenance), DataError> {
        if self.0.is_table() {
            return self.0.export(locator, out);
        }
        Err(DataError::UnknownName {
            what: "table",
            value: self.name().into(),
            accepted: listed(Self::all().filter(|dataset| dataset.0.is_table())),
        })
    }

    /// Writes the generated stand-in into `folder` in the published format.
    ///
    /// Files whose published content is pinned get names that begin with `synthetic-`. The others
    /// get the published names and a file `SYNTHETIC.txt` beside them, which the loaders heed: such
    /// a folder can be used as a data folder, and stays marked.
    ///
    /// # Errors
    /// [`DataError::NotReplaced`] for a folder with other files in it, where the published names
    /// are used, and for files that were not generated; [`DataError::Io`].
    pub fn write_synthetic(self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError> {
        self.0.write_stand_in(folder, seed)
    }
}

fn listed(datasets: impl Iterator<Item = DatasetName>) -> String {
    datasets.map(DatasetName::name).collect::<Vec<_>>().join(", ")
}

impl fmt::Debug for DatasetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for DatasetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for DatasetName {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for DatasetName {}

impl FromStr for DatasetName {
    type Err = DataError;

    fn from_str(name: &str) -> Result<Self, DataError> {
        Self::all().find(|dataset| dataset.name() == name).ok_or_else(|| DataError::UnknownName {
            what: "data set",
            value: name.into(),
            accepted: listed(Self::all()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;

    use super::*;
    use crate::placed_files::SYNTHETIC_MARK;

    const EICU_FILE: &str = "gossis-1-eicu-only-model-ready.csv.gz";
    const MIMIC_FILE: &str = "PATIENTS.csv.gz";

    fn dataset(name: &str) -> DatasetName {
        name.parse().unwrap()
    }

    fn locator() -> (tempfile::TempDir, DataLocator) {
        let dir = tempfile::tempdir().unwrap();
        let mut locator = DataLocator::new(dir.path().join("cache"));
        locator.offline = true;
        (dir, locator)
    }

    #[test]
    fn every_name_has_its_manifest() {
        for dataset in DatasetName::all() {
            assert_eq!(dataset.manifest().unwrap().name, dataset.name());
            assert_eq!(dataset.name().parse::<DatasetName>().unwrap(), dataset);
        }
        assert_eq!(DatasetName::all().map(DatasetName::name).collect::<HashSet<_>>().len(), SETS.len());
        let error = "iris".parse::<DatasetName>().unwrap_err().to_string();
        assert!(error.starts_with("data set `iris` is not one of adult, dutch, "), "{error}");
    }

    #[test]
    fn absent_data_are_generated() {
        let (_dir, locator) = locator();
        let summary = dataset("dutch").summary(&locator).unwrap();
        assert_eq!((summary.rows, summary.inputs), (60_420, 59));
        assert!(summary.synthetic && !summary.present && summary.sha256_ok.is_none());
        assert_eq!(summary.groups, [("male".to_owned(), 30_147), ("female".to_owned(), 30_273)]);
    }

    #[test]
    fn another_checksum_is_reported() {
        let (dir, mut locator) = locator();
        fs::write(dir.path().join("adult.data"), "x").unwrap();
        locator.data_dir = Some(dir.path().into());
        let summary = dataset("adult").summary(&locator).unwrap();
        assert!(summary.present && summary.sha256_ok == Some(false) && summary.notes[0].contains("expected 5b00"));
    }

    /// Generated files without a published checksum carry a mark.
    #[test]
    fn generated_files_stay_marked() {
        for (dataset, file) in [(dataset("eicu"), EICU_FILE), (dataset("mimic"), MIMIC_FILE)] {
            let (dir, mut locator) = locator();
            let paths = dataset.write_synthetic(dir.path(), 1).unwrap();
            assert_eq!(paths[0], dir.path().join(file));
            locator.data_dir = Some(dir.path().into());
            let summary = dataset.summary(&locator).unwrap();
            assert!(summary.synthetic && !summary.present && summary.rows > 1_000);
            assert_eq!(summary.source, format!("SYNTHETIC files in the format of {dataset} (--data-dir)"));
            locator.require_real = true;
            assert!(matches!(dataset.summary(&locator), Err(DataError::NotFound { .. })));
        }
    }

    /// Files that a user has placed stay.
    #[test]
    fn generated_files_replace_no_others() {
        for dataset in [dataset("eicu"), dataset("mimic"), dataset("celeba")] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(EICU_FILE), "credentialed").unwrap();
            let error = dataset.write_synthetic(dir.path(), 1).unwrap_err();
            assert!(matches!(error, DataError::NotReplaced { .. }), "{error}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("synthetic-adult.data"), "mine").unwrap();
        assert!(dataset("adult").write_synthetic(dir.path(), 1).is_err());
        let own = tempfile::tempdir().unwrap();
        for seed in [1, 2] {
            dataset("eicu").write_synthetic(own.path(), seed).unwrap();
        }
    }

    /// A table that is cut short does not pass for a small one.
    #[test]
    fn a_placed_table_has_the_published_number_of_records() {
        for dataset in [dataset("eicu"), dataset("mimic")] {
            let (dir, mut locator) = locator();
            dataset.write_synthetic(dir.path(), 1).unwrap();
            fs::remove_file(dir.path().join(SYNTHETIC_MARK)).unwrap();
            locator.data_dir = Some(dir.path().into());
            let error = dataset.summary(&locator).unwrap_err();
            assert!(matches!(error, DataError::WrongCount { .. }), "{error}");
        }
    }

    /// Generated files under the published names are never taken for the published ones.
    #[test]
    fn generated_files_do_not_verify() {
        let (dir, mut locator) = locator();
        let paths = dataset("dutch").write_synthetic(dir.path(), dutch::SYNTHETIC_SEED).unwrap();
        assert_eq!(paths, [dir.path().join("synthetic-dutch_census_2001.arff")]);
        fs::rename(&paths[0], dir.path().join("dutch_census_2001.arff")).unwrap();
        locator.data_dir = Some(dir.path().into());
        assert_eq!(dataset("dutch").summary(&locator).unwrap().sha256_ok, Some(false));
    }
}
