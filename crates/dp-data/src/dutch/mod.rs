//! Dutch census of 2001: does a person have a high-level occupation? Groups by sex, or by marital
//! status.

mod arff;
mod encoding;
mod export;
mod groups;
mod sampling;
mod schema;
mod synthetic;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::arff::DutchRecord;
pub use self::encoding::Encoding;
pub use self::groups::GroupBy;
pub use self::sampling::Sampling;
use self::schema::OCCUPATION;
use crate::census::Census;
use crate::dataset::{Dataset, Names, Split};
use crate::error::DataError;
use crate::loaded::Loaded;
use crate::locator::DataLocator;
use crate::published_set::PublishedSet;
use crate::split::TestFraction;

/// The seed of the generated extract that stands in for the published file.
pub const SYNTHETIC_SEED: u64 = 2001;

/// Every record with where it came from, in file order. The published file is already filtered:
/// nothing is dropped here.
pub type DutchTable = Loaded<Vec<DutchRecord>>;

/// The data set.
#[derive(Debug, Clone, Copy)]
pub struct Dutch;

const CENSUS: Census<DutchRecord> = Census {
    name: "dutch",
    manifest: include_str!("manifest.toml"),
    parse: arff::parse,
    generate: synthetic::census,
    generated: "census with the Dutch schema and counts",
    file: "dutch_census_2001.arff",
    seed: SYNTHETIC_SEED,
};

impl DutchRecord {
    /// Whether the occupation is high-level (`2_1`).
    fn is_high_level(&self) -> bool {
        self.code(OCCUPATION) == "2_1"
    }
}

impl PublishedSet for Dutch {
    type Records = Vec<DutchRecord>;
    type Options = DutchOptions;

    fn name(&self) -> &'static str {
        CENSUS.name
    }

    fn manifest_text(&self) -> &'static str {
        CENSUS.manifest
    }

    fn load(&self, locator: &DataLocator) -> Result<DutchTable, DataError> {
        CENSUS.load(locator)
    }

    /// A generated extract with the Dutch schema and the published counts of sex by label.
    fn stand_in(&self, seed: u64) -> Result<DutchTable, DataError> {
        CENSUS.stand_in(seed)
    }

    fn write_stand_in(&self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError> {
        CENSUS.write_stand_in(folder, seed)
    }

    /// Samples, splits and encodes.
    ///
    /// # Errors
    /// [`DataError::InvalidParameter`] if a group has fewer records than asked for.
    ///
    /// # Example
    /// ```
    /// use dp_data::PublishedSet;
    /// use dp_data::dutch::{Dutch, DutchOptions, Encoding, SYNTHETIC_SEED};
    ///
    /// let table = Dutch.stand_in(SYNTHETIC_SEED)?;
    /// let split = Dutch.split(&table.records, &DutchOptions::new(Encoding::Esipova), 1)?;
    /// assert_eq!(split.train.features.dim(), (48_336, 59));
    /// # Ok::<(), dp_data::DataError>(())
    /// ```
    fn split(&self, records: &Vec<DutchRecord>, options: &DutchOptions, seed: u64) -> Result<Split, DataError> {
        let DutchOptions { encoding, sampling, test_fraction, group_by } = *options;
        let mut notes = vec![
            "The published file is already filtered (adults with a high- or low-level occupation); nothing is dropped."
                .into(),
        ];
        let [train, test] = sampling.divide(records, test_fraction, seed, &mut notes)?;
        notes.push(encoding.note().into());
        notes.extend(group_by.note().map(String::from));
        let features = encoding.features();
        let names = Names {
            features: features.iter().map(|feature| feature.name.clone()).collect(),
            classes: ["low-level", "high-level"],
            groups: group_by.groups(),
            group_attribute: group_by.name(),
        };
        let encode = |rows: &[usize]| {
            Dataset::of(
                &rows.iter().map(|&row| &records[row]).collect::<Vec<&DutchRecord>>(),
                &names,
                |record, input| features[input].encode(record),
                DutchRecord::is_high_level,
                |record| group_by.group_of(record),
            )
        };
        let constants = sampling.constant().into_iter().collect();
        Ok(Split { train: encode(&train), test: encode(&test), validation: None, notes, constants })
    }

    fn is_table(&self) -> bool {
        true
    }

    /// Every record with the published names and codes. The last column, `occupation`, is the
    /// label: `2_1` is a high-level occupation.
    fn write_csv(&self, records: &Vec<DutchRecord>, out: &mut dyn Write) -> io::Result<usize> {
        export::write_csv(records, out)
    }
}

/// How a table becomes a training and a test part.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DutchOptions {
    /// The encoding of inputs.
    pub encoding: Encoding,
    /// The choice of records.
    pub sampling: Sampling,
    /// Share of the records that is held out.
    pub test_fraction: TestFraction,
    /// The attribute that makes groups. It does not affect the choice of records or the split.
    #[serde(default)]
    pub group_by: GroupBy,
}

impl DutchOptions {
    /// All records, 80/20, groups by sex.
    pub fn new(encoding: Encoding) -> Self {
        Self { encoding, ..Self::default() }
    }
}
