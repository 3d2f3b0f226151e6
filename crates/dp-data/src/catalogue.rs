//! Every data set by name: what is known of it, what is at hand, and its generated stand-in as files.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::adult::{self, AdultOptions};
use crate::celeba::{self, CelebaTable};
use crate::dataset::Split;
use crate::dutch::{self, DutchOptions};
use crate::eicu::{self, EicuOptions};
use crate::error::DataError;
use crate::locator::DataLocator;
use crate::manifest::Manifest;
use crate::mimic::{self, MimicOptions};
use crate::mnist::{self, Collection, MnistOptions, MnistTable};
use crate::output::Output;
use crate::placed_files::SYNTHETIC_MARK;
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
    /// See [`celeba`].
    Celeba,
    /// See [`eicu`].
    Eicu,
    /// See [`mimic`].
    Mimic,
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
    pub const ALL: [Self; 7] =
        [Self::Adult, Self::Dutch, Self::Mnist, Self::FashionMnist, Self::Celeba, Self::Eicu, Self::Mimic];

    /// Name on the command line and of the folder that holds the files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adult => "adult",
            Self::Dutch => "dutch",
            Self::Mnist => Collection::Mnist.name(),
            Self::FashionMnist => Collection::FashionMnist.name(),
            Self::Celeba => "celeba",
            Self::Eicu => "eicu",
            Self::Mimic => "mimic",
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
            Self::Celeba => celeba::manifest(),
            Self::Eicu => eicu::manifest(),
            Self::Mimic => mimic::manifest(),
        }
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
    /// **Edge cases.** Files with another checksum are reported as present with `sha256_ok` false, not as an error.
    ///
    /// # Errors
    /// As the loaders, except [`DataError::WrongChecksum`].
    pub fn summary(self, locator: &DataLocator) -> Result<Summary, DataError> {
        let loaded = match self {
            Self::Adult => adult::load(locator).and_then(|table| {
                let split = adult::split(&table, &AdultOptions::new(adult::Encoding::Esipova, 0))?;
                Ok((Counted::of(&split), table.provenance))
            }),
            Self::Dutch => dutch::load(locator).and_then(|table| {
                let split = dutch::split(&table, &DutchOptions::new(dutch::Encoding::Esipova, 0))?;
                Ok((Counted::of(&split), table.provenance))
            }),
            Self::Mnist => images(Collection::Mnist, locator),
            Self::FashionMnist => images(Collection::FashionMnist, locator),
            // Not expanded into inputs: all of CelebA would need 10 GB.
            Self::Celeba => celeba::load(locator).map(|table| (Counted::of_faces(&table), table.provenance)),
            Self::Eicu => eicu::load(locator).and_then(|table| {
                let split = eicu::split(&table, &EicuOptions::default())?;
                Ok((Counted::of(&split), table.provenance))
            }),
            Self::Mimic => mimic::load(locator).and_then(|table| {
                let features = table.hashed_words();
                let split = mimic::split(&table, &features, "hashed-words", &MimicOptions::default())?;
                Ok((Counted::of(&split), table.provenance))
            }),
        };
        match loaded {
            Ok((counted, provenance)) => Ok(self.summarised(counted, provenance)),
            Err(error @ DataError::WrongChecksum { .. }) => Ok(self.unusable(&error)),
            Err(error) => Err(error),
        }
    }

    fn summarised(self, counted: Counted, provenance: Provenance) -> Summary {
        Summary {
            name: self.name().into(),
            present: !provenance.synthetic,
            synthetic: provenance.synthetic,
            rows: counted.groups.iter().map(|(_, n)| n).sum(),
            groups: counted.groups,
            inputs: counted.inputs,
            sha256_ok: provenance.sha256_ok.then_some(true),
            source: provenance.source,
            notes: provenance.notes,
        }
    }

    /// Writes the records as CSV with a header: a table like a user's own. Returns their number and where they came from.
    ///
    /// # Errors
    /// [`DataError::UnknownName`] for a data set that is no table; as the loaders; [`DataError::Io`] if `out` refuses.
    pub fn export(self, locator: &DataLocator, out: &mut impl io::Write) -> Result<(usize, Provenance), DataError> {
        let failed = DataError::io("write", format!("{self} as CSV"));
        match self {
            Self::Adult => {
                let table = adult::load(locator)?;
                Ok((table.write_csv(out).map_err(failed)?, table.provenance))
            }
            Self::Dutch => {
                let table = dutch::load(locator)?;
                Ok((table.write_csv(out).map_err(failed)?, table.provenance))
            }
            Self::Mnist | Self::FashionMnist | Self::Celeba | Self::Eicu | Self::Mimic => Err(DataError::UnknownName {
                what: "table",
                value: self.name().into(),
                accepted: [Self::Adult, Self::Dutch].map(Self::name).join(", "),
            }),
        }
    }

    /// Writes the generated stand-in into `folder` in the published format.
    ///
    /// Files whose published content is pinned get names that begin with `synthetic-`. The others get the published names and a file
    /// `SYNTHETIC.txt` beside them, which the loaders heed: such a folder can be used as a data folder, and stays marked.
    ///
    /// # Errors
    /// [`DataError::NotReplaced`] for a folder with other files in it, where the published names are used, and for files that were not
    /// generated; [`DataError::Io`].
    pub fn write_synthetic(self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError> {
        fs::create_dir_all(folder).map_err(DataError::io("create", folder))?;
        if matches!(self, Self::Celeba | Self::Eicu | Self::Mimic) {
            claim(folder)?;
        }
        let files: Vec<(String, Vec<u8>)> = match self {
            Self::Adult => vec![("synthetic-adult.data".into(), adult::synthetic_text(seed).into_bytes())],
            Self::Dutch => vec![("synthetic-dutch_census_2001.arff".into(), dutch::synthetic_text(seed).into_bytes())],
            Self::Mnist => image_files(Collection::Mnist, seed)?,
            Self::FashionMnist => image_files(Collection::FashionMnist, seed)?,
            Self::Celeba => {
                CelebaTable::synthetic(seed).write(folder)?;
                return Ok(vec![folder.to_owned()]);
            }
            Self::Eicu => zipped_texts(eicu::PUBLISHED, eicu::synthetic_texts(seed))?,
            Self::Mimic => zipped_texts(mimic::PUBLISHED, mimic::synthetic_texts(seed))?,
        };
        let mut paths = Vec::new();
        for (name, contents) in files {
            let path = folder.join(name);
            if !folder.join(SYNTHETIC_MARK).exists() {
                refuse_other(&path, &contents)?;
            }
            Output::new(&path)?.write_bytes(&contents)?;
            paths.push(path);
        }
        Ok(paths)
    }
}

/// Usable records per group, and inputs.
struct Counted {
    groups: Vec<(String, usize)>,
    inputs: usize,
}

impl Counted {
    fn of(split: &Split) -> Self {
        let parts = [Some(&split.train), split.validation.as_ref(), Some(&split.test)];
        let mut groups: Vec<(String, usize)> = split.train.group_names.iter().map(|name| (name.clone(), 0)).collect();
        for part in parts.into_iter().flatten() {
            for (group, n) in groups.iter_mut().zip(part.group_sizes()) {
                group.1 += n;
            }
        }
        Self { groups, inputs: split.train.n_inputs() }
    }

    fn of_faces(table: &CelebaTable) -> Self {
        let n_with = table.eyeglasses.iter().filter(|&&eyeglasses| eyeglasses).count();
        let [without, with] = celeba::GROUPS;
        let groups = vec![(without.into(), table.eyeglasses.len() - n_with), (with.into(), n_with)];
        Self { groups, inputs: celeba::SIDE * celeba::SIDE * celeba::CHANNELS }
    }
}

/// Marks an empty folder as one of generated files, or finds that it is.
fn claim(folder: &Path) -> Result<(), DataError> {
    let mark = folder.join(SYNTHETIC_MARK);
    if mark.exists() {
        return Ok(());
    }
    let output = Output::new(&mark)?;
    let mut entries = fs::read_dir(folder).map_err(DataError::io("read", folder))?;
    // What a killed process left on the way to the mark is taken up.
    if entries.any(|entry| entry.is_ok_and(|entry| !output.is_part(&entry.path()))) {
        return Err(DataError::NotReplaced {
            path: folder.into(),
            reason: "is not empty, and its files are not marked",
        });
    }
    output.write_bytes(b"The files in this folder were generated. They describe no person.\n")
}

/// Refuses to replace a file with other contents.
fn refuse_other(path: &Path, contents: &[u8]) -> Result<(), DataError> {
    match fs::read(path) {
        Ok(found) if found == contents => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(_) => Err(DataError::NotReplaced { path: path.into(), reason: "is there, with other contents" }),
        Err(error) => Err(DataError::io("read", path)(error)),
    }
}

fn zipped_texts<const N: usize>(names: [&str; N], texts: [String; N]) -> Result<Vec<(String, Vec<u8>)>, DataError> {
    names.into_iter().zip(texts).map(|(name, text)| Ok((name.to_owned(), gzip(text.as_bytes(), name)?))).collect()
}

fn gzip(contents: &[u8], name: &str) -> Result<Vec<u8>, DataError> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(contents).and_then(|()| encoder.finish()).map_err(DataError::io("compress", name))
}

fn images(collection: Collection, locator: &DataLocator) -> Result<(Counted, Provenance), DataError> {
    let table = mnist::load(collection, locator)?;
    Ok((Counted::of(&mnist::split(&table, &MnistOptions::default())?), table.provenance))
}

fn image_files(collection: Collection, seed: u64) -> Result<Vec<(String, Vec<u8>)>, DataError> {
    let table = MnistTable::synthetic(collection, seed);
    let mut files = Vec::new();
    for (part, images) in [("train", &table.train), ("t10k", &table.test)] {
        for (kind, contents) in ["labels-idx1", "images-idx3"].into_iter().zip(images.to_idx()) {
            let name = format!("synthetic-{part}-{kind}-ubyte.gz");
            let zipped = gzip(&contents, &name)?;
            files.push((name, zipped));
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
        let error = "iris".parse::<DatasetName>().unwrap_err().to_string();
        assert!(error.starts_with("data set `iris` is not one of adult, dutch, "), "{error}");
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

    /// What has no published checksum is told apart by a mark.
    #[test]
    fn generated_files_stay_marked() {
        for (dataset, file) in [(DatasetName::Eicu, eicu::PUBLISHED[0]), (DatasetName::Mimic, mimic::PUBLISHED[0])] {
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

    /// What a user has placed stays.
    #[test]
    fn generated_files_replace_no_others() {
        for dataset in [DatasetName::Eicu, DatasetName::Mimic, DatasetName::Celeba] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(eicu::PUBLISHED[0]), "credentialed").unwrap();
            let error = dataset.write_synthetic(dir.path(), 1).unwrap_err();
            assert!(matches!(error, DataError::NotReplaced { .. }), "{error}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("synthetic-adult.data"), "mine").unwrap();
        assert!(DatasetName::Adult.write_synthetic(dir.path(), 1).is_err());
        let own = tempfile::tempdir().unwrap();
        for seed in [1, 2] {
            DatasetName::Eicu.write_synthetic(own.path(), seed).unwrap();
        }
    }

    /// A table that is cut short does not pass for a small one.
    #[test]
    fn a_placed_table_has_the_published_number_of_records() {
        for dataset in [DatasetName::Eicu, DatasetName::Mimic] {
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
        let paths = DatasetName::Dutch.write_synthetic(dir.path(), dutch::SYNTHETIC_SEED).unwrap();
        assert_eq!(paths, [dir.path().join("synthetic-dutch_census_2001.arff")]);
        fs::rename(&paths[0], dir.path().join("dutch_census_2001.arff")).unwrap();
        locator.data_dir = Some(dir.path().into());
        assert_eq!(DatasetName::Dutch.summary(&locator).unwrap().sha256_ok, Some(false));
    }
}
