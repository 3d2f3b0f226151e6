//! Common parts of the two sets of hospital records: CSV tables that a credentialed user
//! places, and three parts with equal shares of each outcome.

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use crate::csv_rows::CsvRows;
use crate::error::DataError;
use crate::loaded::Loaded;
use crate::locator::DataLocator;
use crate::manifest::Manifest;
use crate::provenance::Provenance;
use crate::split::{self, Stream};
use crate::stand_in_files::gzip;

/// Rows of a table on disk or in memory.
pub(crate) type Rows = CsvRows<Box<dyn Read>>;

/// Opens a table by its place in the list.
pub(crate) type Open<'a> = &'a dyn Fn(usize) -> Result<Rows, DataError>;

/// Tables in CSV, read as streams and joined.
pub(crate) struct Hospital<R: 'static> {
    pub(crate) name: &'static str,
    pub(crate) manifest: &'static str,
    /// Published names without `.gz`.
    pub(crate) tables: &'static [&'static str],
    /// The table by which a folder is recognised.
    pub(crate) marker: &'static str,
    /// Records from the tables, and their number before any is dropped.
    pub(crate) join: fn(Open<'_>) -> Result<(R, usize), DataError>,
    /// The contents of generated tables.
    pub(crate) generate: fn(u64) -> Vec<String>,
    /// The generated records, in words.
    pub(crate) generated: &'static str,
    /// The seed of the records that stand in for files that are nowhere.
    pub(crate) seed: u64,
}

impl<R> Hospital<R> {
    /// Reads files that a credentialed user placed. Checksums come from PhysioNet's
    /// `SHA256SUMS.txt`, where that lies beside.
    pub(crate) fn load(&self, locator: &DataLocator) -> Result<Loaded<R>, DataError> {
        let manifest = Manifest::parse(self.name, self.manifest)?;
        let marker = format!("{}.gz", self.marker);
        locator.read_placed(
            &manifest,
            &[&marker, self.marker],
            |placed| {
                let path = |table: &&str| placed.any_of(&[&format!("{table}.gz"), table], &manifest.name);
                let paths = self.tables.iter().map(path).collect::<Result<Vec<_>, _>>()?;
                let files = paths.iter().map(|path| placed.digest(path)).collect::<Result<Vec<_>, _>>()?;
                let (records, n_records) = (self.join)(&|table| {
                    let expected = placed.published_records(&manifest, self.tables[table]);
                    Ok(CsvRows::open(&paths[table])?.expecting(expected))
                })?;
                Ok(Loaded { records, provenance: placed.provenance(&manifest, files, n_records) })
            },
            || self.stand_in(self.seed),
        )
    }

    /// Its texts pass through the parser of real files.
    pub(crate) fn stand_in(&self, seed: u64) -> Result<Loaded<R>, DataError> {
        let texts = (self.generate)(seed);
        let (records, n_records) = (self.join)(&|table| {
            let path = format!("synthetic {}", self.tables[table]);
            CsvRows::new(Box::new(Cursor::new(texts[table].clone())), Path::new(&path))
        })?;
        let contents = texts.concat();
        let provenance = Provenance::generated(self.name, self.generated, seed, contents.as_bytes(), n_records);
        Ok(Loaded { records, provenance })
    }

    pub(crate) fn write_stand_in(&self, folder: &Path, seed: u64) -> Result<Vec<PathBuf>, DataError> {
        let files = self.tables.iter().zip((self.generate)(seed)).map(|(table, text)| {
            let name = format!("{table}.gz");
            let contents = gzip(text.as_bytes(), &name)?;
            Ok((name, contents))
        });
        let files = files.collect::<Result<Vec<_>, DataError>>()?;
        Manifest::parse(self.name, self.manifest)?.write_stand_in(folder, files)
    }
}

/// Training, validation and test part, 70, 10 and 20 % of each outcome, and a sentence with their
/// sizes in `unit`s. `labels` has position and outcome of each record that takes part.
pub(crate) fn parts(n_positions: usize, labels: &[(usize, u32)], seed: u64, unit: &str) -> ([Vec<usize>; 3], String) {
    let parts = split::stratified(n_positions, labels, 0.1, 0.2, &mut split::stream(seed, Stream::Split));
    let [train, validation, test] = parts.each_ref().map(Vec::len);
    let note = format!("Stratified split: {train} training, {validation} validation and {test} test {unit}.");
    (parts, note)
}
