//! Every data set by name: what is known of it, what is at hand, and its generated stand-in as files.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::adult::{self, AdultOptions};
use crate::dataset::Split;
use crate::dutch::{self, DutchOptions};
use crate::error::DataError;
use crate::locator::DataLocator;
use crate::manifest::Manifest;
use crate::mnist::{self, Collection, MnistOptions, MnistTable};
use crate::provenance::Provenance;

/// A data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatasetName {
    /// See [`adult`].
    Adult,
    /// See [`dutch`].
    Dutch,
    /// See [`mnist`].
    Mnist,
    /// See [`mnist`].
    FashionMnist,
}

/// What is at hand of one data set.
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
    /// Where it came from, in words.
    pub source: String,
    /// Places that did not serve.
    pub notes: Vec<String>,
}

impl DatasetName {
    /// Every data set.
    pub const ALL: [Self; 4] = [Self::Adult, Self::Dutch, Self::Mnist, Self::FashionMnist];

    /// Name on the command line and of the folder that holds the files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adult => "adult",
            Self::Dutch => "dutch",
            Self::Mnist => Collection::Mnist.name(),
            Self::FashionMnist => Collection::FashionMnist.name(),
        }
    }

    /// Its manifest.
    ///
    /// # Errors
    /// [`DataError::InvalidManifest`], which a test excludes for the texts that are compiled in.
    pub fn manifest(self) -> Result<Manifest, DataError> {
        match self {
            Self::Adult => adult::manifest(),
            Self::Dutch => dutch::manifest(),
            Self::Mnist => Collection::Mnist.manifest(),
            Self::FashionMnist => Collection::FashionMnist.manifest(),
        }
    }

    /// Loads the data set and counts.
    ///
    /// **Edge cases.** Files with another checksum are reported as present with `sha256_ok` false, not as an error.
    ///
    /// # Errors
    /// As the loaders, except [`DataError::WrongChecksum`].
    pub fn summary(self, locator: &DataLocator) -> Result<Summary, DataError> {
        let loaded = match self {
            Self::Adult => adult::load(locator).and_then(|table| {
                let split = adult::split(&table, &AdultOptions::new(adult::Encoding::Esipova, 0))?;
                Ok((split, table.provenance))
            }),
            Self::Dutch => dutch::load(locator).and_then(|table| {
                let split = dutch::split(&table, &DutchOptions::new(dutch::Encoding::Esipova, 0))?;
                Ok((split, table.provenance))
            }),
            Self::Mnist => images(Collection::Mnist, locator),
            Self::FashionMnist => images(Collection::FashionMnist, locator),
        };
        match loaded {
            Ok((split, provenance)) => Ok(self.counted(&split, provenance)),
            Err(error @ DataError::WrongChecksum { .. }) => Ok(Summary {
                name: self.name().into(),
                present: true,
                synthetic: false,
                rows: 0,
                groups: Vec::new(),
                inputs: 0,
                sha256_ok: Some(false),
                source: String::new(),
                notes: vec![error.to_string()],
            }),
            Err(error) => Err(error),
        }
    }

    fn counted(self, split: &Split, provenance: Provenance) -> Summary {
        let sizes = split.train.group_sizes().into_iter().zip(split.test.group_sizes());
        Summary {
            name: self.name().into(),
            present: !provenance.synthetic,
            synthetic: provenance.synthetic,
            rows: split.train.len() + split.test.len(),
            groups: split.train.group_names.iter().cloned().zip(sizes.map(|(train, test)| train + test)).collect(),
            inputs: split.train.n_inputs(),
            sha256_ok: (!provenance.synthetic).then_some(true),
            source: provenance.source,
            notes: provenance.notes,
        }
    }

    /// Writes the generated stand-in into `folder` in the published format, under names that begin with `synthetic-`.
    ///
    /// # Errors
    /// [`DataError::Io`].
    pub fn write_synthetic(self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError> {
        fs::create_dir_all(folder).map_err(DataError::io("create", folder))?;
        let files: Vec<(String, Vec<u8>)> = match self {
            Self::Adult => vec![("adult.data".into(), adult::synthetic_text(seed).into_bytes())],
            Self::Dutch => vec![("dutch_census_2001.arff".into(), dutch::synthetic_text(seed).into_bytes())],
            Self::Mnist => image_files(Collection::Mnist, seed)?,
            Self::FashionMnist => image_files(Collection::FashionMnist, seed)?,
        };
        let mut paths = Vec::new();
        for (name, contents) in files {
            let path = folder.join(format!("synthetic-{name}"));
            fs::write(&path, contents).map_err(DataError::io("write", &path))?;
            paths.push(path);
        }
        Ok(paths)
    }
}

fn images(collection: Collection, locator: &DataLocator) -> Result<(Split, Provenance), DataError> {
    let table = mnist::load(collection, locator)?;
    Ok((mnist::split(&table, &MnistOptions::default())?, table.provenance))
}

fn image_files(collection: Collection, seed: u64) -> Result<Vec<(String, Vec<u8>)>, DataError> {
    let table = MnistTable::synthetic(collection, seed);
    let mut files = Vec::new();
    for (part, images) in [("train", &table.train), ("t10k", &table.test)] {
        for (kind, contents) in ["labels-idx1", "images-idx3"].into_iter().zip(images.to_idx()) {
            let name = format!("{part}-{kind}-ubyte.gz");
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            let zipped = encoder.write_all(&contents).and_then(|()| encoder.finish());
            files.push((name.clone(), zipped.map_err(DataError::io("compress", name))?));
        }
    }
    Ok(files)
}

impl fmt::Display for DatasetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DatasetName {
    type Err = DataError;

    fn from_str(name: &str) -> Result<Self, DataError> {
        Self::ALL.into_iter().find(|dataset| dataset.name() == name).ok_or_else(|| DataError::UnknownName {
            what: "data set",
            value: name.into(),
            accepted: Self::ALL.map(Self::name).join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locator() -> (tempfile::TempDir, DataLocator) {
        let dir = tempfile::tempdir().unwrap();
        let mut locator = DataLocator::new(dir.path().join("cache"));
        locator.offline = true;
        (dir, locator)
    }

    #[test]
    fn every_name_has_its_manifest() {
        for dataset in DatasetName::ALL {
            assert_eq!(dataset.manifest().unwrap().name, dataset.name());
            assert_eq!(dataset.name().parse::<DatasetName>().unwrap(), dataset);
        }
        insta::assert_snapshot!(
            "iris".parse::<DatasetName>().unwrap_err(),
            @"data set `iris` is not one of adult, dutch, mnist, fashion-mnist"
        );
    }

    #[test]
    fn absent_data_are_generated() {
        let (_dir, locator) = locator();
        let summary = DatasetName::Dutch.summary(&locator).unwrap();
        assert_eq!((summary.rows, summary.inputs), (60_420, 59));
        assert!(summary.synthetic && !summary.present && summary.sha256_ok.is_none());
        assert_eq!(summary.groups, [("male".to_owned(), 30_147), ("female".to_owned(), 30_273)]);
    }

    #[test]
    fn another_checksum_is_reported() {
        let (dir, mut locator) = locator();
        fs::write(dir.path().join("adult.data"), "x").unwrap();
        locator.data_dir = Some(dir.path().into());
        let summary = DatasetName::Adult.summary(&locator).unwrap();
        assert!(summary.present && summary.sha256_ok == Some(false) && summary.notes[0].contains("expected 5b00"));
    }

    /// Generated files under the published names are never taken for the published ones.
    #[test]
    fn generated_files_do_not_verify() {
        let (dir, mut locator) = locator();
        let paths = DatasetName::Dutch.write_synthetic(dir.path(), dutch::SYNTHETIC_SEED).unwrap();
        assert_eq!(paths, [dir.path().join("synthetic-dutch_census_2001.arff")]);
        fs::rename(&paths[0], dir.path().join("dutch_census_2001.arff")).unwrap();
        locator.data_dir = Some(dir.path().into());
        assert_eq!(DatasetName::Dutch.summary(&locator).unwrap().sha256_ok, Some(false));
    }
}
