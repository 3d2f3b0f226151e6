//! CelebA: is a face labelled male? Groups by eyeglasses, which a tenth of the men and a fiftieth
//! of the women wear.

mod decode;
mod lists;
mod synthetic;

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ndarray::Array2;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::lists::ListFile;
pub use self::lists::Subset;
use crate::dataset::{Dataset, Split};
use crate::error::DataError;
use crate::file;
use crate::loaded::Loaded;
use crate::locator::DataLocator;
use crate::manifest::Manifest;
use crate::placed_files::PlacedFiles;
use crate::provenance::{FileRecord, sha256_hex};
use crate::published_set::{Counts, PublishedSet};
use crate::split::{self, GroupSample, Stream};
use crate::stand_in_files::claim;

/// Height and width after resizing.
pub const SIDE: usize = 64;
/// Red, green, blue.
pub const CHANNELS: usize = 3;
/// The seed of the generated faces that stand in for the published images.
pub const SYNTHETIC_SEED: u64 = 2015;

/// Group names in order.
const GROUPS: [&str; 2] = ["without-eyeglasses", "with-eyeglasses"];

const IMAGE_BYTES: usize = SIDE * SIDE * CHANNELS;

/// Every image at 64×64; 12 KiB an image, 2.5 GB for all of CelebA.
#[derive(Debug, Clone)]
pub struct Faces {
    /// `[images, 64, 64, 3]`.
    pub pixels: Vec<u8>,
    /// One per image.
    pub male: Vec<bool>,
    /// One per image.
    pub eyeglasses: Vec<bool>,
    /// The official part of each image.
    pub parts: Vec<Subset>,
}

/// Every image with where it came from.
pub(crate) type CelebaTable = Loaded<Faces>;

/// The data set.
#[derive(Debug, Clone, Copy)]
pub struct Celeba;

const ATTRIBUTES: [&str; 2] = ["list_attr_celeba.txt", "list_attr_celeba.csv"];
const PARTITION: [&str; 2] = ["list_eval_partition.txt", "list_eval_partition.csv"];
/// Kaggle's archive has the folder twice.
const IMAGES: [&str; 2] = ["img_align_celeba/img_align_celeba", "img_align_celeba"];

impl PublishedSet for Celeba {
    type Records = Faces;
    type Options = CelebaOptions;

    fn name(&self) -> &'static str {
        "celeba"
    }

    fn manifest_text(&self) -> &'static str {
        include_str!("manifest.toml")
    }

    /// Decodes the images that a user placed, or reads them from the cache of an earlier run, else
    /// generates faces.
    ///
    /// # Errors
    /// [`DataError::MissingFile`], [`DataError::Io`], [`DataError::BrokenImage`], a list that
    /// breaks its format; as [`DataLocator::locate`] if nothing is there.
    fn load(&self, locator: &DataLocator) -> Result<CelebaTable, DataError> {
        let manifest = self.manifest()?;
        locator.read_placed(
            &manifest,
            &ATTRIBUTES,
            |placed| read(placed, &manifest, locator),
            || self.stand_in(SYNTHETIC_SEED),
        )
    }

    /// Drawn faces with CelebA's shares of sex, eyeglasses and parts.
    fn stand_in(&self, seed: u64) -> Result<CelebaTable, DataError> {
        Ok(synthetic::faces(seed))
    }

    /// The folder as a whole, not file by file.
    fn write_stand_in(&self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError> {
        claim(folder)?;
        synthetic::faces(seed).records.write(folder)?;
        Ok(vec![folder.to_owned()])
    }

    /// The official parts, or random parts of them, as inputs.
    ///
    /// **Shapes.** `features` is `[images, 12288]`; as an image `[64, 64, 3]`, channels innermost.
    ///
    /// # Errors
    /// [`DataError::InvalidParameter`] if a part has fewer images than asked for.
    fn split(&self, records: &Faces, options: &CelebaOptions, seed: u64) -> Result<Split, DataError> {
        let mut rng = split::stream(seed, Stream::Sampling);
        // The partition is published: numbers and places of each part are public.
        let mut choose = |keep: GroupSample, part: Subset, name: &str| {
            let rows = records.rows(part);
            let order = split::shuffled(rows.len(), &mut rng).into_iter().map(|index| rows[index]).collect();
            keep.choose(order, name, &mut rng)
        };
        let train = choose(options.train, Subset::Train, "training part")?;
        let validation = choose(options.held_out, Subset::Validation, "validation part")?;
        let test = choose(options.held_out, Subset::Test, "test part")?;
        let notes = vec![
            format!(
                "Official partition: {} of {} training, {} of {} validation, {} of {} test images.",
                train.len(),
                records.rows(Subset::Train).len(),
                validation.len(),
                records.rows(Subset::Validation).len(),
                test.len(),
                records.rows(Subset::Test).len()
            ),
            "Images are resized to 64x64 and scaled to [0, 1]; no statistic of the data is used.".into(),
        ];
        Ok(Split {
            train: records.dataset(&train),
            test: records.dataset(&test),
            validation: Some(records.dataset(&validation)),
            notes,
            constants: Vec::new(),
        })
    }

    /// Not expanded into inputs: all of CelebA would need 10 GB.
    fn counts(&self, records: &Faces) -> Result<Counts, DataError> {
        let n_with = records.eyeglasses.iter().filter(|&&eyeglasses| eyeglasses).count();
        let [without, with] = GROUPS;
        let groups = vec![(without.into(), records.eyeglasses.len() - n_with), (with.into(), n_with)];
        Ok(Counts { groups, inputs: IMAGE_BYTES })
    }
}

fn read(placed: &PlacedFiles, manifest: &Manifest, locator: &DataLocator) -> Result<CelebaTable, DataError> {
    let mut files = Vec::new();
    let mut text = |names: &[&str]| {
        let path = placed.any_of(names, &manifest.name)?;
        let mut text = String::new();
        file::open(&path)?.read_to_string(&mut text).map_err(DataError::io("read", &path))?;
        files.push(placed.digest(&path)?);
        Ok((text, path))
    };
    let (attributes, attributes_path) = text(&ATTRIBUTES)?;
    let (partition, partition_path) = text(&PARTITION)?;
    let images = placed.any_of(&IMAGES, &manifest.name)?;
    let listed = lists::join(
        ListFile { text: &attributes, path: &attributes_path },
        ListFile { text: &partition, path: &partition_path },
    )?;
    let cache = locator.cache_dir.join(&manifest.name).join("celeba-64x64.bin");
    let pixels = decode::pixels(&listed, &images, &cache)?;
    let pixel_record =
        FileRecord { name: "pixels at 64x64".into(), sha256: sha256_hex(&pixels), bytes: pixels.len() as u64 };
    files.push((pixel_record, false));
    let records = Faces {
        pixels,
        male: listed.iter().map(|image| image.male).collect(),
        eyeglasses: listed.iter().map(|image| image.eyeglasses).collect(),
        parts: listed.iter().map(|image| image.part).collect(),
    };
    Ok(Loaded { records, provenance: placed.provenance(manifest, files, listed.len()) })
}

impl Faces {
    /// Writes lists and JPEG images of the published size, 178×218, as `list_attr_celeba.txt`,
    /// `list_eval_partition.txt` and `img_align_celeba/`.
    ///
    /// # Errors
    /// [`DataError::Io`].
    pub fn write(&self, folder: &Path) -> Result<(), DataError> {
        let images = folder.join("img_align_celeba");
        fs::create_dir_all(&images).map_err(DataError::io("create", &images))?;
        let mut attributes = format!("{}\nEyeglasses Male \n", self.parts.len());
        let mut partition = String::new();
        let sign = |bit: bool| if bit { " 1" } else { "-1" };
        for (index, part) in self.parts.iter().enumerate() {
            let name = format!("{:06}.jpg", index + 1);
            // Writing to a `String` cannot fail.
            let _ = writeln!(attributes, "{name} {} {}", sign(self.eyeglasses[index]), sign(self.male[index]));
            let _ = writeln!(partition, "{name} {}", *part as u8);
        }
        self.pixels
            .par_chunks_exact(IMAGE_BYTES)
            .enumerate()
            .try_for_each(|(index, pixels)| decode::encode(pixels, &images.join(format!("{:06}.jpg", index + 1))))?;
        for (name, text) in [(ATTRIBUTES[0], attributes), (PARTITION[0], partition)] {
            file::write(&folder.join(name), text.as_bytes())?;
        }
        Ok(())
    }

    /// Pixels of these images scaled to `[0, 1]`, `[rows, 64·64·3]` with channels innermost: 48 KiB
    /// an image.
    ///
    /// # Panics
    /// If a row is out of range.
    pub fn features(&self, rows: &[usize]) -> Array2<f32> {
        let mut features = Array2::zeros((rows.len(), IMAGE_BYTES));
        for (mut target, &row) in features.rows_mut().into_iter().zip(rows) {
            for (value, &pixel) in target.iter_mut().zip(&self.pixels[row * IMAGE_BYTES..(row + 1) * IMAGE_BYTES]) {
                *value = f32::from(pixel) / 255.0;
            }
        }
        features
    }

    fn rows(&self, part: Subset) -> Vec<usize> {
        (0..self.parts.len()).filter(|&row| self.parts[row] == part).collect()
    }

    fn dataset(&self, rows: &[usize]) -> Dataset {
        let name = |index: usize| {
            let (pixel, channel) = (index / CHANNELS, ["red", "green", "blue"][index % CHANNELS]);
            format!("pixel-{}-{}-{channel}", pixel / SIDE, pixel % SIDE)
        };
        Dataset {
            features: self.features(rows),
            labels: rows.iter().map(|&row| u32::from(self.male[row])).collect(),
            groups: rows.iter().map(|&row| usize::from(self.eyeglasses[row])).collect(),
            feature_names: (0..IMAGE_BYTES).map(name).collect(),
            class_names: vec!["female".into(), "male".into()],
            group_names: GROUPS.map(String::from).to_vec(),
            group_attribute: "eyeglasses".into(),
        }
    }
}

/// How many images are expanded into inputs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CelebaOptions {
    /// Images of the training part. All of CelebA's 162,770 need 8 GB as inputs.
    pub train: GroupSample,
    /// Images of the validation part and of the test part.
    pub held_out: GroupSample,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_pins_nothing_it_does_not_know() {
        let manifest = Celeba.manifest().unwrap();
        assert!(manifest.files.is_empty() && !manifest.redistributable && !manifest.is_downloadable());
    }

    #[test]
    fn generated_faces_have_the_published_shares() {
        let table = Celeba.stand_in(SYNTHETIC_SEED).unwrap();
        let split = Celeba
            .split(&table.records, &CelebaOptions { train: GroupSample::Exactly(500), ..CelebaOptions::default() }, 0)
            .unwrap();
        assert_eq!(split.train.features.dim(), (500, IMAGE_BYTES));
        assert!(split.train.features.iter().all(|value| (0.0..=1.0).contains(value)));
        let men = table.records.male.iter().filter(|&&male| male).count() as f64 / table.records.male.len() as f64;
        assert!((men - 84_434.0 / 202_599.0).abs() < 0.01, "{men}");
        insta::assert_snapshot!(table.provenance.digest, @"0f41e83eee689f4a1cecc6e6a88c628944aa4fb81e66a822ffdafc1c75ffd8ad");
        insta::assert_snapshot!(
            split.notes[0],
            @"Official partition: 500 of 3255 training, 397 of 397 validation, 400 of 400 test images."
        );
    }
}
