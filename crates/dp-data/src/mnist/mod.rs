//! MNIST and Fashion-MNIST: grey images of 28×28 pixels in ten classes, which are also the groups;
//! one class may be made rare.

mod idx;
mod synthetic;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::dataset::{Dataset, Split};
use crate::error::DataError;
use crate::loaded::Loaded;
use crate::locator::{DataLocator, RealFiles};
use crate::provenance::Provenance;
use crate::published_set::PublishedSet;
use crate::split::{self, GroupSample, Stream};
use crate::stand_in_files::gzip;
use crate::verified_file;

/// Height and width of an image.
pub const SIDE: usize = 28;
/// Classes, and groups.
pub(crate) const N_CLASSES: usize = 10;
/// The seed of the generated images that stand in for the published files.
pub const SYNTHETIC_SEED: u64 = 1998;

/// One of the two data sets with this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collection {
    /// Handwritten digits.
    Mnist,
    /// Articles of clothing.
    FashionMnist,
}

impl Collection {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Mnist, Self::FashionMnist];

    /// Name on the command line and of the folder that holds the files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mnist => "mnist",
            Self::FashionMnist => "fashion-mnist",
        }
    }

    /// Class names in label order.
    pub fn class_names(self) -> [&'static str; N_CLASSES] {
        match self {
            Self::Mnist => ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
            Self::FashionMnist => {
                ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle-boot"]
            }
        }
    }
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Collection {
    type Err = DataError;

    fn from_str(name: &str) -> Result<Self, DataError> {
        Self::ALL.into_iter().find(|collection| collection.name() == name).ok_or_else(|| DataError::UnknownName {
            what: "collection",
            value: name.into(),
            accepted: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// Images with their labels.
///
/// **Guarantee.** `pixels` holds `SIDE²` bytes per label; every label is below 10.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    /// Image by image, row by row; 0 is the background.
    pub pixels: Vec<u8>,
    /// One per image.
    pub labels: Vec<u8>,
}

impl Images {
    /// The labels and the images as the content of IDX files, not compressed.
    pub(crate) fn to_idx(&self) -> [Vec<u8>; 2] {
        [idx::write([self.labels.len()], &self.labels), idx::write([self.labels.len(), SIDE, SIDE], &self.pixels)]
    }
}

/// Both published parts.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The data set.
    pub collection: Collection,
    /// 60,000 images.
    pub train: Images,
    /// 10,000 images.
    pub test: Images,
}

/// Both published parts with where they came from.
pub(crate) type MnistTable = Loaded<Parts>;

impl PublishedSet for Collection {
    type Records = Parts;
    type Options = MnistOptions;

    fn name(&self) -> &'static str {
        Collection::name(*self)
    }

    fn manifest_text(&self) -> &'static str {
        match self {
            Self::Mnist => include_str!("manifest.toml"),
            Self::FashionMnist => include_str!("fashion-manifest.toml"),
        }
    }

    /// # Errors
    /// As [`DataLocator::locate`]; [`DataError::BrokenGzip`] or [`DataError::MalformedBinary`] for
    /// content that breaks the format.
    fn load(&self, locator: &DataLocator) -> Result<MnistTable, DataError> {
        locator.read_or_generate(
            &self.manifest()?,
            |real| {
                let (train, test) = (read(real, "train")?, read(real, "t10k")?);
                let n_records = train.labels.len() + test.labels.len();
                Ok((Parts { collection: *self, train, test }, n_records))
            },
            || self.stand_in(SYNTHETIC_SEED),
        )
    }

    /// Drawn shapes, one per class, with the class sizes of the published files.
    fn stand_in(&self, seed: u64) -> Result<MnistTable, DataError> {
        let (train, test) = synthetic::images(*self, seed);
        let bytes = [&train.labels[..], &train.pixels, &test.labels, &test.pixels].concat();
        let what = format!("images with the classes and sizes of {self}");
        let n_records = train.labels.len() + test.labels.len();
        let provenance = Provenance::generated(self.name(), &what, seed, &bytes, n_records);
        Ok(Loaded { records: Parts { collection: *self, train, test }, provenance })
    }

    fn write_stand_in(&self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError> {
        let (train, test) = synthetic::images(*self, seed);
        let mut files = Vec::new();
        for (part, images) in [("train", &train), ("t10k", &test)] {
            for (kind, contents) in ["labels-idx1", "images-idx3"].into_iter().zip(images.to_idx()) {
                let name = format!("{part}-{kind}-ubyte.gz");
                let zipped = gzip(&contents, &name)?;
                files.push((name, zipped));
            }
        }
        self.manifest()?.write_stand_in(folder, files)
    }

    /// The published training and test parts with pixels scaled to `[0, 1]`; groups are the
    /// classes.
    ///
    /// **Shapes.** `features` is `[images, 784]`, row by row; as an image `[1, 28, 28]`.
    ///
    /// # Errors
    /// [`DataError::InvalidParameter`] if the rare class does not exist or has fewer images than
    /// asked for.
    fn split(&self, records: &Parts, options: &MnistOptions, seed: u64) -> Result<Split, DataError> {
        let names = records.collection.class_names();
        let mut keep = [GroupSample::All; N_CLASSES];
        let mut notes = vec![
            "The published training and test parts; the test part stays as it is.".into(),
            "Pixels are scaled to [0, 1]; no statistic of the data is used.".into(),
            "Groups are the classes.".into(),
        ];
        if let Some(RareClass { class, keep: part }) = options.rare {
            let slot = keep.get_mut(usize::from(class)).ok_or_else(|| DataError::InvalidParameter {
                parameter: "rare class",
                value: class.to_string(),
                expected: "0 to 9".into(),
            })?;
            *slot = part;
        }
        let groups: Vec<usize> = records.train.labels.iter().map(|&label| usize::from(label)).collect();
        let numbered: Vec<(usize, usize)> = groups.iter().copied().enumerate().collect();
        let mut rng = split::stream(seed, Stream::Sampling);
        let rows = split::sample_groups(groups.len(), &numbered, &keep, &names, &mut rng)?;
        let train = dataset(records.collection, &records.train, &rows);
        if let Some(RareClass { class, keep }) = options.rare {
            let how = match keep {
                GroupSample::All => "all are kept".into(),
                GroupSample::Exactly(n) => format!("exactly {n} are kept"),
                GroupSample::Coin(probability) => format!("each is kept with probability {probability}"),
            };
            let class = usize::from(class);
            let n = groups.iter().filter(|&&group| group == class).count();
            notes.push(format!(
                "Class {} is rare in training: of {n} images {how}, which left {}.",
                names[class],
                train.group_sizes()[class]
            ));
        }
        let all: Vec<usize> = (0..records.test.labels.len()).collect();
        let constants = match options.rare {
            Some(RareClass { keep: GroupSample::Exactly(_), .. }) => vec![split::drawn_by_group()],
            _ => Vec::new(),
        };
        Ok(Split { train, test: dataset(records.collection, &records.test, &all), validation: None, notes, constants })
    }
}

fn read(real: &RealFiles, part: &str) -> Result<Images, DataError> {
    let contents = |kind: &str| -> Result<(PathBuf, Vec<u8>), DataError> {
        let name = format!("{part}-{kind}-ubyte.gz");
        let file = real
            .files
            .iter()
            .find(|file| file.name == name)
            .ok_or_else(|| DataError::MissingFile { path: name.clone().into(), dataset: "mnist".into() })?;
        Ok((file.path.clone(), verified_file::gunzip(&file.contents[..], &file.path)?))
    };
    let (path, labels) = contents("labels-idx1")?;
    let (_, labels) = idx::parse::<1>(&labels, &path)?;
    if let Some(offset) = labels.iter().position(|&label| usize::from(label) >= N_CLASSES) {
        let reason = format!("label {} is not one of 0 to 9", labels[offset]);
        return Err(DataError::MalformedBinary { path, offset: offset + 8, reason });
    }
    let (path, pixels) = contents("images-idx3")?;
    let (sizes, pixels) = idx::parse::<3>(&pixels, &path)?;
    if sizes != [labels.len(), SIDE, SIDE] {
        let reason = format!("sizes {sizes:?}, expected {:?}", [labels.len(), SIDE, SIDE]);
        return Err(DataError::MalformedBinary { path, offset: 4, reason });
    }
    Ok(Images { pixels: pixels.to_vec(), labels: labels.to_vec() })
}

/// A class of which only a part is kept for training.
///
/// Xu et al. keep 500 of MNIST's 5,851 images of class 8 ([`GroupSample::Exactly`]), Esipova et al.
/// each with probability 9 % ([`GroupSample::Coin`]).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RareClass {
    /// Its label.
    pub class: u8,
    /// The images that stay.
    pub keep: GroupSample,
}

/// How the images become a training and a test part.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MnistOptions {
    /// The class that is made rare in the training part, if any.
    pub rare: Option<RareClass>,
}

fn dataset(collection: Collection, images: &Images, rows: &[usize]) -> Dataset {
    let size = SIDE * SIDE;
    let mut features = Array2::zeros((rows.len(), size));
    for (mut target, &row) in features.rows_mut().into_iter().zip(rows) {
        for (value, &pixel) in target.iter_mut().zip(&images.pixels[row * size..(row + 1) * size]) {
            *value = f32::from(pixel) / 255.0;
        }
    }
    let names = collection.class_names().map(String::from).to_vec();
    Dataset {
        features,
        labels: rows.iter().map(|&row| u32::from(images.labels[row])).collect(),
        groups: rows.iter().map(|&row| usize::from(images.labels[row])).collect(),
        feature_names: (0..size).map(|pixel| format!("pixel-{}-{}", pixel / SIDE, pixel % SIDE)).collect(),
        class_names: names.clone(),
        group_names: names,
        group_attribute: "class".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_agree_with_the_format() {
        for collection in Collection::ALL {
            let manifest = collection.manifest().unwrap();
            assert_eq!(manifest.name, collection.name());
            assert_eq!(manifest.records, 70_000);
            let images: usize =
                manifest.files.iter().filter(|file| file.name.contains("images")).map(|file| file.records).sum();
            assert_eq!(images, manifest.records);
            assert_eq!(collection.name().parse::<Collection>().unwrap(), collection);
        }
    }

    fn tiny() -> Parts {
        let images = |labels: &[u8]| Images {
            pixels: labels.iter().flat_map(|&label| [label * 28; SIDE * SIDE]).collect(),
            labels: labels.to_vec(),
        };
        Parts { collection: Collection::Mnist, train: images(&[8, 1, 8, 2, 8, 8]), test: images(&[8, 9]) }
    }

    #[test]
    fn a_rare_class_is_rare_in_training_only() {
        let options = MnistOptions { rare: Some(RareClass { class: 8, keep: GroupSample::Exactly(2) }) };
        let split = Collection::Mnist.split(&tiny(), &options, 3).unwrap();
        assert_eq!(split.train.group_sizes()[8], 2);
        assert_eq!((split.train.len(), split.test.len()), (4, 2));
        insta::assert_snapshot!(
            split.notes[3],
            @"Class 8 is rare in training: of 4 images exactly 2 are kept, which left 2."
        );
        // Pixels stay with their labels: 252/255 for label 9.
        assert_eq!(split.test.features[[1, 0]], 252.0 / 255.0);
    }

    #[test]
    fn a_class_that_does_not_exist() {
        let options = MnistOptions { rare: Some(RareClass { class: 10, keep: GroupSample::All }) };
        insta::assert_snapshot!(Collection::Mnist.split(&tiny(), &options, 3).unwrap_err(), @"rare class = 10: expected 0 to 9");
    }
}
