//! Adult: a census extract of 1994; does a person earn more than 50,000 dollars? Groups by sex,
//! race or age.

mod encoding;
mod export;
mod parse;
mod sampling;
mod schema;
mod synthetic;
mod synthetic_margins;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::encoding::Encoding;
use self::encoding::Feature;
pub use self::parse::AdultRecord;
pub use self::sampling::Sampling;
pub use self::schema::{Attribute, Number};
use crate::census::Census;
use crate::dataset::{Dataset, Names, Split};
use crate::error::DataError;
use crate::loaded::Loaded;
use crate::locator::DataLocator;
use crate::provenance::{FileRecord, Provenance, sha256_hex};
use crate::published_set::PublishedSet;
use crate::scaling::ScalingFit;
use crate::split::TestFraction;
use crate::verified_file;

/// The seed of the generated census that stands in for the published files.
pub const SYNTHETIC_SEED: u64 = 1994;

/// Every record with where it came from; incomplete ones included, in file order (`adult.data`,
/// then `adult.test`).
pub type AdultTable = Loaded<Vec<AdultRecord>>;

/// The data set.
#[derive(Debug, Clone, Copy)]
pub struct Adult;

const CENSUS: Census<AdultRecord> = Census {
    name: "adult",
    manifest: include_str!("manifest.toml"),
    parse: parse::parse,
    generate: synthetic::census,
    generated: "census with Adult's schema and margins",
    file: "adult.data",
    seed: SYNTHETIC_SEED,
};

impl PublishedSet for Adult {
    type Records = Vec<AdultRecord>;
    type Options = AdultOptions;

    fn name(&self) -> &'static str {
        CENSUS.name
    }

    fn manifest_text(&self) -> &'static str {
        CENSUS.manifest
    }

    fn load(&self, locator: &DataLocator) -> Result<AdultTable, DataError> {
        CENSUS.load(locator)
    }

    /// A generated census with Adult's schema, sizes, and group and label counts.
    fn stand_in(&self, seed: u64) -> Result<AdultTable, DataError> {
        CENSUS.stand_in(seed)
    }

    fn write_stand_in(&self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError> {
        CENSUS.write_stand_in(folder, seed)
    }

    /// Drops records that the encoding cannot use (with a `?`, but for [`Encoding::Zhao`]),
    /// samples, splits and encodes.
    ///
    /// **Edge cases.** A category without its own input (an employer `Never-worked` in a
    /// complete record) gives zeros.
    ///
    /// # Errors
    /// [`DataError::InvalidParameter`] if a group has fewer records than asked for.
    ///
    /// # Example
    /// ```
    /// use dp_data::PublishedSet;
    /// use dp_data::adult::{Adult, AdultOptions, Encoding, SYNTHETIC_SEED};
    ///
    /// let table = Adult.stand_in(SYNTHETIC_SEED)?;
    /// let split = Adult.split(&table.records, &AdultOptions::new(Encoding::Esipova), 1)?;
    /// assert_eq!(split.train.features.dim(), (36_178, 98));
    /// assert_eq!(split.test.group_names, ["male", "female"]);
    /// # Ok::<(), dp_data::DataError>(())
    /// ```
    fn split(&self, records: &Vec<AdultRecord>, options: &AdultOptions, seed: u64) -> Result<Split, DataError> {
        let AdultOptions { encoding, sampling, test_fraction, scaling_fit, group_by } = *options;
        let kept: Vec<(usize, &AdultRecord)> =
            records.iter().enumerate().filter(|(_, record)| encoding.keeps(record)).collect();
        let mut notes = cleaning_notes(records, encoding, kept.len());
        let parts = sampling.divide(records.len(), &kept, test_fraction, seed, &mut notes)?;
        notes.push(encoding.note().into());
        notes.push(scaling_fit.note().into());

        let [train, test] = parts.map(|rows| rows.into_iter().map(|row| &records[row]).collect::<Vec<&AdultRecord>>());
        let features = encoding.features();
        let scalings: Vec<_> = match scaling_fit {
            ScalingFit::Public => features.iter().map(Feature::declared).collect(),
            ScalingFit::TrainOnly => features.iter().map(|feature| feature.fit(&train)).collect(),
            ScalingFit::AllRecords => {
                let all = [&train[..], &test].concat();
                features.iter().map(|feature| feature.fit(&all)).collect()
            }
        };
        let names = Names {
            features: features.iter().map(|feature| feature.name.clone()).collect(),
            classes: schema::INCOME,
            groups: group_by.groups(),
            group_attribute: group_by.name(),
        };
        let encode = |records: &[&AdultRecord]| {
            Dataset::of(
                records,
                &names,
                |record, input| features[input].encode(scalings[input], record),
                |record| record.over_50k,
                |record| group_by.group_of(record),
            )
        };
        let constants = std::iter::once(scaling_fit.constant()).chain(sampling.constant()).collect();
        Ok(Split { train: encode(&train), test: encode(&test), validation: None, notes, constants })
    }

    fn is_table(&self) -> bool {
        true
    }

    /// Complete records (no `?`), every column under its published name but `fnlwgt`, which weights
    /// the census, and `education`, whose rank is `education-num`. The label `income` is `<=50K` or
    /// `>50K`.
    fn write_csv(&self, records: &Vec<AdultRecord>, out: &mut dyn Write) -> io::Result<usize> {
        export::write_csv(records, out)
    }
}

impl AdultTable {
    /// Your own files in Adult's format, plain or `.gz`: every value is checked against the
    /// documented categories and ranges, but no checksum is known.
    ///
    /// # Errors
    /// [`DataError::Io`], [`DataError::BrokenGzip`], [`DataError::EmptyFile`]; any row that breaks
    /// the schema.
    pub fn from_files<P: AsRef<Path>>(paths: &[P]) -> Result<Self, DataError> {
        let mut records = Vec::new();
        let mut files = Vec::new();
        for path in paths.iter().map(AsRef::as_ref) {
            let file_name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = file_name.strip_suffix(".gz").unwrap_or(&file_name).to_owned();
            let contents = verified_file::read_plain(path, &name)?;
            records.extend(parse::parse(&contents, path)?);
            files.push(FileRecord { name, sha256: sha256_hex(&contents), bytes: contents.len() as u64 });
        }
        let provenance = Provenance {
            name: "adult".into(),
            synthetic: false,
            source: "files given by name (not the published ones, or not compared with them)".into(),
            sha256_ok: false,
            digest: Provenance::digest_of(&files),
            n_records: records.len(),
            files,
            notes: Vec::new(),
        };
        Ok(Self { records, provenance })
    }
}

/// The generated census as text in the format of `adult.data`.
pub fn synthetic_text(seed: u64) -> String {
    synthetic::census(seed)
}

/// The attribute that defines the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupBy {
    /// Male, female.
    #[default]
    Sex,
    /// White, non-white.
    Race,
    /// Up to 37 years, older: 37 is the median of complete records.
    Age,
    /// The four intersections of sex and age.
    SexAndAge,
    /// The four intersections of sex and race.
    SexAndRace,
}

impl GroupBy {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sex => "sex",
            Self::Race => "race",
            Self::Age => "age",
            Self::SexAndAge => "sex and age",
            Self::SexAndRace => "sex and race",
        }
    }

    fn groups(self) -> &'static [&'static str] {
        match self {
            Self::Sex => &["male", "female"],
            Self::Race => &["white", "non-white"],
            Self::Age => &["younger", "older"],
            Self::SexAndAge => &["male, younger", "male, older", "female, younger", "female, older"],
            Self::SexAndRace => &["male, white", "male, non-white", "female, white", "female, non-white"],
        }
    }

    fn group_of(self, record: &AdultRecord) -> usize {
        let is = |attribute: Attribute, category: &str| {
            record.category(attribute).is_some_and(|index| attribute.categories()[index] == category)
        };
        usize::from(match self {
            Self::Sex => !is(Attribute::Sex, "Male"),
            Self::Race => !is(Attribute::Race, "White"),
            Self::Age => record.number(Number::Age) > 37.0,
            Self::SexAndAge => return 2 * Self::Sex.group_of(record) + Self::Age.group_of(record),
            Self::SexAndRace => return 2 * Self::Sex.group_of(record) + Self::Race.group_of(record),
        })
    }
}

/// How a table becomes a training and a test part.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdultOptions {
    /// The encoding of inputs.
    pub encoding: Encoding,
    /// The choice of records.
    pub sampling: Sampling,
    /// Share of the records that is held out.
    pub test_fraction: TestFraction,
    /// The source of the scaling of numbers.
    pub scaling_fit: ScalingFit,
    /// The attribute that makes groups. It does not affect the choice of records or the split.
    pub group_by: GroupBy,
}

impl AdultOptions {
    /// All complete records, 80/20, scaling by declared ranges, groups by sex.
    pub fn new(encoding: Encoding) -> Self {
        Self { encoding, ..Self::default() }
    }
}

/// Sentences about the records that were dropped before any sampling.
fn cleaning_notes(records: &[AdultRecord], encoding: Encoding, n_kept: usize) -> Vec<String> {
    let n_records = records.len();
    let n_complete = records.iter().filter(|record| record.is_complete()).count();
    if encoding.keeps_incomplete() {
        return vec![format!(
            "{} of {n_records} records have a `?`, which counts as a category.",
            n_records - n_complete
        )];
    }
    let mut notes =
        vec![format!("{n_complete} of {n_records} records are complete (no `?`); incomplete ones are dropped.")];
    if n_kept < n_complete {
        let n = n_complete - n_kept;
        notes.push(format!("{n} records with the top-coded capital gain 99,999 are dropped as outliers."));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(table: &AdultTable, options: &AdultOptions, seed: u64) -> Split {
        Adult.split(&table.records, options, seed).unwrap()
    }

    /// Every record but the changed one is encoded as before, to the last bit, whatever the changed
    /// one becomes: with declared ranges. With the papers' scaling it is not, and the split says
    /// so.
    #[test]
    fn a_record_moves_no_other_s_inputs() {
        let table = Adult.stand_in(SYNTHETIC_SEED).unwrap();
        let mut changed = table.clone();
        changed.records[100].numbers[Number::CapitalGain as usize] = 99_999.0;
        changed.records[100].numbers[Number::HoursPerWeek as usize] = 99.0;
        for encoding in [Encoding::Zhao, Encoding::Xu] {
            let rows_that_differ = |scaling_fit| {
                let options = AdultOptions { scaling_fit, ..AdultOptions::new(encoding) };
                let (before, after) = (split(&table, &options, 1), split(&changed, &options, 1));
                let pairs = before.train.features.rows().into_iter().zip(after.train.features.rows());
                (pairs.filter(|(a, b)| a != b).count(), before.given())
            };
            let (differ, given) = rows_that_differ(ScalingFit::Public);
            assert!(differ <= 1 && given.is_empty(), "{encoding}: {differ}");
            let (_, given) = rows_that_differ(ScalingFit::TrainOnly);
            assert_eq!(given, ["the scaling, which was fitted on the private records"]);
        }
        // One standard deviation is another one: all others move with it.
        let options = AdultOptions { scaling_fit: ScalingFit::AllRecords, ..AdultOptions::new(Encoding::Zhao) };
        let (before, after) = (split(&table, &options, 1), split(&changed, &options, 1));
        let moved = before.train.features.rows().into_iter().zip(after.train.features.rows()).filter(|(a, b)| a != b);
        assert!(moved.count() > before.train.len() / 2);
    }

    #[test]
    fn a_record_that_drops_out_moves_no_other() {
        let table = Adult.stand_in(SYNTHETIC_SEED).unwrap();
        let complete = table.records.iter().position(AdultRecord::is_complete).unwrap();
        let mut without = table.clone();
        without.records[complete].categories[0] = None;
        let options = AdultOptions::new(Encoding::Esipova);
        let (before, after) = (split(&table, &options, 3), split(&without, &options, 3));
        assert!(before.train.len() - after.train.len() <= 1 && before.test.len() - after.test.len() <= 1);
        // In order, the shorter part is the longer one less a record, or two that crossed the
        // border.
        let rows = |part: &Dataset| part.features.rows().into_iter().map(|row| row.to_vec()).collect::<Vec<_>>();
        let (a, b) = (rows(&before.train), rows(&after.train));
        let prefix = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let suffix = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
        assert!(prefix + suffix + 2 >= b.len(), "{prefix} + {suffix} of {}", b.len());
    }
}
