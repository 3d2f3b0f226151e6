//! The interface of every data set.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::dataset::Split;
use crate::error::DataError;
use crate::loaded::Loaded;
use crate::locator::DataLocator;
use crate::manifest::Manifest;

/// A data set: its manifest, the loader of its files, its generated stand-in, and the encoding of
/// its records.
///
/// One type implements it, in the file of the data set, and one line of
/// [`catalogue`](crate::catalogue) lists that type.
pub trait PublishedSet: Send + Sync {
    /// The records of the files.
    type Records: Send + Sync;
    /// The choices that papers made: inputs, records, groups. Its default serves for a summary.
    type Options: Default;

    /// Name on the command line and of the folder that holds the files.
    fn name(&self) -> &'static str;

    /// The text of its manifest.
    fn manifest_text(&self) -> &'static str;

    /// Reads the published files. If the locator finds none, generates records and notes every
    /// place that was tried.
    ///
    /// # Errors
    /// As [`DataLocator::locate`]; content that breaks the format, with file and line.
    fn load(&self, locator: &DataLocator) -> Result<Loaded<Self::Records>, DataError>;

    /// Generated records with the schema of the published ones; the same seed gives the same
    /// records everywhere.
    ///
    /// # Errors
    /// None with a generator whose output keeps to the format.
    fn stand_in(&self, seed: u64) -> Result<Loaded<Self::Records>, DataError>;

    /// Writes the generated records into a folder in the published format: as
    /// [`Manifest::write_stand_in`] does.
    ///
    /// # Errors
    /// As [`Manifest::write_stand_in`].
    fn write_stand_in(&self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError>;

    /// Draws records, divides them into parts and encodes them. The same seed gives the same split.
    ///
    /// # Errors
    /// [`DataError::InvalidParameter`] if the options do not fit the records.
    fn split(&self, records: &Self::Records, options: &Self::Options, seed: u64) -> Result<Split, DataError>;

    /// Its manifest.
    ///
    /// # Errors
    /// [`DataError::InvalidManifest`], which a test excludes for the texts that are compiled in.
    fn manifest(&self) -> Result<Manifest, DataError> {
        Manifest::parse(self.name(), self.manifest_text())
    }

    /// Usable records by group, and inputs: of a split with the default options, unless there is a
    /// shorter way.
    ///
    /// # Errors
    /// As [`split`](Self::split).
    fn counts(&self, records: &Self::Records) -> Result<Counts, DataError> {
        self.split(records, &Self::Options::default(), 0).map(|split| Counts::of(&split))
    }

    /// Whether the records are a table like a user's own, which [`write_csv`](Self::write_csv)
    /// writes.
    fn is_table(&self) -> bool {
        false
    }

    /// Writes the records as CSV with a header and returns their number; nothing where the data set
    /// is no table.
    ///
    /// # Errors
    /// If `out` refuses.
    fn write_csv(&self, records: &Self::Records, out: &mut dyn Write) -> io::Result<usize> {
        let _ = (records, out);
        Ok(0)
    }
}

/// Usable records by group, and inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Records of all parts per group, in group order.
    pub groups: Vec<(String, usize)>,
    /// Model inputs.
    pub inputs: usize,
}

impl Counts {
    /// Counts over all parts.
    pub fn of(split: &Split) -> Self {
        let parts = [Some(&split.train), split.validation.as_ref(), Some(&split.test)];
        let mut groups: Vec<(String, usize)> = split.train.group_names.iter().map(|name| (name.clone(), 0)).collect();
        for part in parts.into_iter().flatten() {
            for (group, n) in groups.iter_mut().zip(part.group_sizes()) {
                group.1 += n;
            }
        }
        Self { groups, inputs: split.train.n_inputs() }
    }
}
