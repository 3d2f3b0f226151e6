//! Dutch census of 2001: does a person have a high-level occupation? Groups by sex, or by marital status.

mod arff;
mod encoding;
mod export;
mod groups;
mod sampling;
mod schema;
mod synthetic;

use std::path::Path;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

pub use self::arff::DutchRecord;
pub use self::encoding::Encoding;
pub use self::groups::GroupBy;
pub use self::sampling::Sampling;
use self::schema::OCCUPATION;
use crate::dataset::{Dataset, Split};
use crate::error::DataError;
use crate::locator::DataLocator;
use crate::manifest::Manifest;
use crate::provenance::Provenance;
use crate::split::TestFraction;

/// The seed of the generated extract that stands in for the published file.
pub const SYNTHETIC_SEED: u64 = 2001;

/// Every record with where it came from.
#[derive(Debug, Clone)]
pub struct DutchTable {
    /// In file order. The published file is already filtered: nothing is dropped here.
    pub records: Vec<DutchRecord>,
    /// Where they came from.
    pub provenance: Provenance,
}

impl DutchRecord {
    /// 1 for a high-level occupation (`2_1`).
    fn label(&self) -> u32 {
        u32::from(self.code(OCCUPATION) == "2_1")
    }
}

/// The manifest of this data set.
///
/// # Errors
/// [`DataError::InvalidManifest`], which a test excludes for the text that is compiled in.
pub fn manifest() -> Result<Manifest, DataError> {
    Manifest::parse("dutch", include_str!("manifest.toml"))
}

/// Reads the published file from wherever the locator finds it, else generates an extract.
///
/// # Errors
/// As [`DataLocator::locate`]; any line that breaks the schema.
pub fn load(locator: &DataLocator) -> Result<DutchTable, DataError> {
    let (records, provenance) = locator.read_or_generate(&manifest()?, arff::parse, || {
        let DutchTable { records, provenance } = DutchTable::synthetic(SYNTHETIC_SEED)?;
        Ok((records, provenance))
    })?;
    Ok(DutchTable { records, provenance })
}

impl DutchTable {
    /// A generated extract with the Dutch schema and the published counts of sex by label.
    ///
    /// # Errors
    /// None with the generator as it is: its text passes through the parser of real files.
    pub fn synthetic(seed: u64) -> Result<Self, DataError> {
        let text = synthetic_text(seed);
        let records = arff::parse(text.as_bytes(), Path::new("synthetic census"))?;
        let what = "census with the Dutch schema and counts";
        let provenance = Provenance::generated("dutch", what, seed, text.as_bytes(), records.len());
        Ok(Self { records, provenance })
    }
}

/// The generated extract as text in the format of the published file.
pub fn synthetic_text(seed: u64) -> String {
    synthetic::census(seed)
}

/// How a table becomes a training and a test part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DutchOptions {
    /// Which inputs.
    pub encoding: Encoding,
    /// Which records.
    pub sampling: Sampling,
    /// Share of the records that is held out.
    pub test_fraction: TestFraction,
    /// Which groups. Has no influence on which records are drawn and where they go.
    #[serde(default)]
    pub group_by: GroupBy,
    /// Decides which records are drawn and where they go.
    pub seed: u64,
}

impl DutchOptions {
    /// All records, 80/20, groups by sex.
    pub fn new(encoding: Encoding, seed: u64) -> Self {
        Self {
            encoding,
            sampling: Sampling::default(),
            test_fraction: TestFraction::default(),
            group_by: GroupBy::default(),
            seed,
        }
    }
}

/// Samples, splits and encodes.
///
/// # Errors
/// [`DataError::InvalidParameter`] if a group has fewer records than asked for.
///
/// # Example
/// ```
/// use dp_data::dutch::{DutchOptions, DutchTable, Encoding, SYNTHETIC_SEED, split};
///
/// let table = DutchTable::synthetic(SYNTHETIC_SEED)?;
/// let split = split(&table, &DutchOptions::new(Encoding::Esipova, 1))?;
/// assert_eq!(split.train.features.dim(), (48_336, 59));
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub fn split(table: &DutchTable, options: &DutchOptions) -> Result<Split, DataError> {
    let DutchOptions { encoding, sampling, test_fraction, group_by, seed } = *options;
    let mut notes = vec![
        "The published file is already filtered (adults with a high- or low-level occupation); nothing is dropped."
            .into(),
    ];
    let [train, test] = sampling.divide(&table.records, test_fraction, seed, &mut notes)?;
    notes.push(encoding.note().into());
    notes.extend(group_by.note().map(String::from));
    let features = encoding.features();
    let encode = |part: &[usize]| {
        let records: Vec<&DutchRecord> = part.iter().map(|&row| &table.records[row]).collect();
        Dataset {
            features: Array2::from_shape_fn((records.len(), features.len()), |(row, column)| {
                features[column].encode(records[row])
            }),
            labels: records.iter().map(|record| record.label()).collect(),
            groups: records.iter().map(|record| group_by.group_of(record)).collect(),
            feature_names: features.iter().map(|feature| feature.name.clone()).collect(),
            class_names: vec!["low-level".into(), "high-level".into()],
            group_names: group_by.groups().map(String::from).to_vec(),
            group_attribute: group_by.name().into(),
        }
    };
    let constants = sampling.constant().into_iter().collect();
    Ok(Split { train: encode(&train), test: encode(&test), validation: None, notes, constants })
}
