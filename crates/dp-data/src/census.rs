//! Common parts of the two censuses: text files with one person per line, and groups that papers
//! balance.

use std::path::{Path, PathBuf};

use rand_chacha::ChaCha20Rng;

use crate::error::DataError;
use crate::loaded::Loaded;
use crate::locator::DataLocator;
use crate::manifest::Manifest;
use crate::numpy::LegacyRandom;
use crate::provenance::Provenance;
use crate::split::{self, GroupSample, Stream, TestFraction};

/// A census whose files are pinned and read whole.
pub(crate) struct Census<R: 'static> {
    pub(crate) name: &'static str,
    pub(crate) manifest: &'static str,
    /// The content of a file; the path is for messages.
    pub(crate) parse: fn(&[u8], &Path) -> Result<Vec<R>, DataError>,
    /// The content of a generated file.
    pub(crate) generate: fn(u64) -> String,
    /// The generated records, in words.
    pub(crate) generated: &'static str,
    /// Published name of the file that a generated one stands in for.
    pub(crate) file: &'static str,
    /// The seed of the records that stand in for files that are nowhere.
    pub(crate) seed: u64,
}

impl<R> Census<R> {
    pub(crate) fn load(&self, locator: &DataLocator) -> Result<Loaded<Vec<R>>, DataError> {
        let manifest = Manifest::parse(self.name, self.manifest)?;
        locator.read_or_generate(
            &manifest,
            |real| {
                let mut records = Vec::with_capacity(manifest.records);
                for file in &real.files {
                    records.extend((self.parse)(&file.contents, &file.path)?);
                }
                let n_records = records.len();
                Ok((records, n_records))
            },
            || self.stand_in(self.seed),
        )
    }

    /// Its text passes through the parser of real files.
    pub(crate) fn stand_in(&self, seed: u64) -> Result<Loaded<Vec<R>>, DataError> {
        let text = (self.generate)(seed);
        let records = (self.parse)(text.as_bytes(), Path::new("synthetic census"))?;
        let provenance = Provenance::generated(self.name, self.generated, seed, text.as_bytes(), records.len());
        Ok(Loaded { records, provenance })
    }

    pub(crate) fn write_stand_in(&self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError> {
        let files = vec![(self.file.to_owned(), (self.generate)(seed).into_bytes())];
        Manifest::parse(self.name, self.manifest)?.write_stand_in(folder, files)
    }
}

/// The choice of persons, and of the ones that a model is trained on.
pub(crate) struct Draw<'a> {
    /// Places in the table.
    pub(crate) n_positions: usize,
    /// Place and sex of each person who may take part.
    pub(crate) sexes: &'a [(usize, usize)],
    /// The sexes, for errors.
    pub(crate) names: &'a [&'a str],
    /// How many of each sex are drawn.
    pub(crate) keep: [GroupSample; 2],
    pub(crate) drawn_use: DrawnUse<'a>,
}

/// The use of the persons who were drawn.
pub(crate) enum DrawnUse<'a> {
    /// They are divided into training and test part.
    Divide,
    /// They are the training part; all others are the test part.
    TrainOnDrawn,
    /// The same, and it is numpy's generator, seeded with 1, that draws: from the persons of the
    /// first sex and then from persons of the other, in the order of the file that begins at this
    /// place of the table and goes on at its start.
    TrainOnNumpyDraw { first: usize },
    /// `copies` of those that are `positive` are drawn again with replacement, and then the whole
    /// is divided.
    Oversample { positive: &'a dyn Fn(usize) -> bool, copies: usize },
}

impl Draw<'_> {
    /// Rows of the training and of the test part, each in random order; adds a sentence with their
    /// numbers.
    ///
    /// # Errors
    /// [`DataError::InvalidParameter`] if there are fewer persons of a sex than asked for.
    pub(crate) fn parts(
        &self,
        test_fraction: TestFraction,
        seed: u64,
        notes: &mut Vec<String>,
    ) -> Result<[Vec<usize>; 2], DataError> {
        let mut rng = split::stream(seed, Stream::Sampling);
        let mut rows = match self.drawn_use {
            DrawnUse::TrainOnNumpyDraw { first } => self.drawn_by_numpy(first, &mut rng)?,
            _ => split::sample_groups(self.n_positions, self.sexes, &self.keep, self.names, &mut rng)?,
        };
        let mut split_rng = split::stream(seed, Stream::Split);
        let (train, test) = match self.drawn_use {
            DrawnUse::Divide => test_fraction.divide(self.n_positions, &rows, &mut split_rng),
            DrawnUse::TrainOnDrawn | DrawnUse::TrainOnNumpyDraw { .. } => {
                let all: Vec<usize> = self.sexes.iter().map(|&(position, _)| position).collect();
                split::partition_chosen(self.n_positions, &rows, &all, &mut split_rng)
            }
            DrawnUse::Oversample { positive, copies } => {
                rows.extend(split::oversampled(&rows, positive, copies, &mut rng));
                let places: Vec<usize> = (0..rows.len()).collect();
                let (train, test) = test_fraction.divide(rows.len(), &places, &mut split_rng);
                let row_of = |places: Vec<usize>| places.into_iter().map(|place| rows[place]).collect();
                (row_of(train), row_of(test))
            }
        };
        notes.push(format!("Random split: {} training and {} test records.", train.len(), test.len()));
        Ok([train, test])
    }

    fn drawn_by_numpy(&self, first: usize, rng: &mut ChaCha20Rng) -> Result<Vec<usize>, DataError> {
        let mut in_file = self.sexes.to_vec();
        in_file.sort_by_key(|&(position, _)| (position < first, position));
        let mut numpy = LegacyRandom::seeded(1);
        let mut rows = Vec::new();
        for (sex, keep) in self.keep.into_iter().enumerate() {
            let of_sex: Vec<usize> =
                in_file.iter().filter(|&&(_, other)| other == sex).map(|&(position, _)| position).collect();
            let drawn = numpy.permutation(of_sex.len()).into_iter().map(|place| of_sex[place]).collect();
            rows.extend(keep.choose(drawn, self.names[sex], rng)?);
        }
        Ok(rows)
    }
}
