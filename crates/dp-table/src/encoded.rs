//! A whole table as codes in a memory-mapped file.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::ops::Range;
use std::path::Path;

use csv::StringRecord;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use whole_file::{Readers, WholeFile, parent};

use crate::codes::{BLANK, Layout};
use crate::counts::TableCounts;
use crate::encoding::{Binding, Encoding};
use crate::error::TableError;
use crate::files::TableFiles;
use crate::map::Map;
use crate::peers::Peers;
use crate::reader::{TableReader, TableRow};
use crate::row_index::RowIndex;
use crate::rows_digest::{DigestSum, RowHasher, RowsDigest};
use crate::schema::{BadRows, Schema};

/// First bytes of a kept file, with the version of its layout.
const MAGIC: [u8; 8] = *b"dptable3";
/// Magic, number of rows, digest of the schema, digest of the rows.
const HEADER: usize = 8 + 8 + 32 + 32;
/// Rows that are read before they are encoded by all threads, and their bytes; rows that one of the
/// threads encodes at a time.
const CHUNK: usize = 16_384;
const CHUNK_BYTES: usize = 64 << 20;
const PIECE: usize = 1_024;

/// The place of the codes.
#[derive(Debug, Clone, Copy)]
pub enum EncodedFile<'a> {
    /// In this folder, under no name: nothing of it is left when the process ends, however it ends.
    Temporary(&'a Path),
    /// The same, and a copy in this file, which appears whole or not at all and stays; for this
    /// user alone (mode 0600). It is a copy of private records. The table that was made does not
    /// read it: whatever becomes of the file, every pass over the table has the rows as they were
    /// read.
    Kept(&'a Path),
}

/// A table whose rows were read, checked and encoded once.
///
/// It holds what the schema makes of the rows as codes, in a file that the operating system maps
/// into memory and may drop from it; features are formed when rows are gathered. Rows keep the
/// order of the files. A row that was dropped keeps its number and has no features at all: every
/// one is 0, the constant too.
#[derive(Debug)]
pub struct EncodedTable {
    encoding: Encoding,
    map: Map,
    /// Number of rows of the whole table.
    rows: usize,
    /// The rows of this process.
    held: Range<usize>,
    digest: String,
    /// Digest of all rows as they were read; `None` for a kept file.
    rows_digest: Option<RowsDigest>,
}

/// Counts and digests of the part of a table that one process encoded.
#[derive(Serialize, Deserialize)]
struct EncodedPart {
    counts: TableCounts,
    sum: DigestSum,
    rows: RowsDigest,
}

impl EncodedTable {
    /// Reads and encodes a table. Memory does not grow with its length.
    ///
    /// # Errors
    /// - of the schema: [`TableError::Schema`], [`TableError::MissingColumn`], [`TableError::File`]
    ///   for a column that is not declared;
    /// - of a row, unless such rows are dropped: [`TableError::WrongArity`],
    ///   [`TableError::NotUtf8`], [`TableError::InvalidNumber`], [`TableError::UnknownCategory`],
    ///   [`TableError::MissingValue`], [`TableError::EmptyLine`];
    /// - of a row that would be dropped and whose unit cannot be read: [`TableError::NoUnit`];
    /// - of a file: as [`TableReader::read`]; [`TableError::EmptyFile`] without rows;
    ///   [`TableError::File`] if every row was dropped;
    /// - [`TableError::Io`] if the codes cannot be written.
    pub fn create(
        files: &TableFiles,
        schema: &Schema,
        place: EncodedFile<'_>,
    ) -> Result<(Self, TableCounts), TableError> {
        let (table, EncodedPart { counts, .. }) =
            Self::read(files.open()?, schema, place, 0, &files.paths()[0], |counts| {
                if counts.rows == 0 {
                    return Err(TableError::EmptyFile { path: files.paths()[0].clone() });
                }
                if counts.dropped == counts.rows {
                    let first = counts.examples.first().cloned().unwrap_or_default();
                    let reason = format!("has no row that fits its schema; the first one: {first}");
                    return Err(TableError::File { path: files.paths()[0].clone(), reason });
                }
                Ok(())
            })?;
        Ok((table, counts))
    }

    /// Reads and encodes this process's part of a table that several read together
    /// ([`RowIndex::part`]), to a file in this folder under no name. The counts and the digest are
    /// cover all rows.
    ///
    /// `None` on every process if one of them has an error, or if no row fits. Reading the whole
    /// table then gives the error that a process alone would have.
    ///
    /// # Errors
    /// [`TableError::Io`] if the processes cannot tell each other what they found.
    pub fn create_part(
        files: &TableFiles,
        schema: &Schema,
        folder: &Path,
        index: &RowIndex,
        peers: &Peers<'_>,
    ) -> Result<Option<(Self, TableCounts)>, TableError> {
        let rows = index.part(peers);
        let read = Self::read_rows(files, schema, folder, index, rows.clone()).ok();
        let (mine, part) = read.filter(|(table, _)| table.held == rows).unzip();
        let parts: Option<Vec<EncodedPart>> = peers.exchange(&part, &files.paths()[0])?.into_iter().collect();
        let (Some(mine), Some(parts)) = (mine, parts) else { return Ok(None) };
        let (mut counts, mut sum, mut rows) = (mine.encoding.counts(), DigestSum::default(), RowsDigest::default());
        for part in &parts {
            counts.add(&part.counts);
            sum = sum.plus(part.sum);
            rows = rows.plus(part.rows);
        }
        if counts.dropped == counts.rows {
            return Ok(None);
        }
        let (digest, rows_digest) = (identity(schema, sum), Some(rows));
        Ok(Some((Self { rows: index.rows(), digest, rows_digest, ..mine }, counts)))
    }

    /// Reads other rows of the same table from its files. All processes together must ask for all
    /// rows, each once.
    ///
    /// # Errors
    /// The errors of [`create`](Self::create); [`TableError::Changed`] if the rows differ from the
    /// first reading.
    pub fn other_rows(
        &self,
        files: &TableFiles,
        folder: &Path,
        index: &RowIndex,
        rows: Range<usize>,
        peers: &Peers<'_>,
    ) -> Result<Self, TableError> {
        let read = Self::read_rows(files, self.encoding.schema(), folder, index, rows);
        // A process with an error tells the others, which wait for its digest.
        let mine = read.as_ref().ok().map(|(_, part)| (part.rows, part.sum));
        let all = peers.exchange(&mine, &files.paths()[0])?;
        let (other, _) = read?;
        // The codes too: they have the images, of which a row has the paths alone.
        let none = (RowsDigest::default(), DigestSum::default());
        let found = all.iter().try_fold(none, |(rows, sum), part| {
            let (more_rows, more) = (*part)?;
            Some((rows.plus(more_rows), sum.plus(more)))
        });
        let is_same =
            |(rows, sum)| Some(rows) == self.rows_digest && identity(self.encoding.schema(), sum) == self.digest;
        if !found.is_some_and(is_same) {
            return Err(TableError::Changed { path: files.paths()[0].clone() });
        }
        Ok(Self { rows: self.rows, digest: self.digest.clone(), rows_digest: self.rows_digest, ..other })
    }

    fn read_rows(
        files: &TableFiles,
        schema: &Schema,
        folder: &Path,
        index: &RowIndex,
        rows: Range<usize>,
    ) -> Result<(Self, EncodedPart), TableError> {
        let first = rows.start;
        let reader = files.open_rows(index, rows)?;
        Self::read(reader, schema, EncodedFile::Temporary(folder), first, &files.paths()[0], |_| Ok(()))
    }

    /// Encodes what a reader reads, and keeps it if that is accepted; `path` is for messages.
    fn read(
        mut reader: TableReader,
        schema: &Schema,
        place: EncodedFile<'_>,
        first: usize,
        path: &Path,
        accept: impl Fn(&TableCounts) -> Result<(), TableError>,
    ) -> Result<(Self, EncodedPart), TableError> {
        let encoding = Encoding::new(schema)?;
        let binding = encoding.bind(reader.columns(), path)?;
        let (folder, kept) = match place {
            EncodedFile::Temporary(folder) => (folder, None),
            EncodedFile::Kept(path) => {
                // Refused before any work.
                let file = WholeFile::create(path, Readers::Owner).map_err(TableError::io("write", path))?;
                (parent(path), Some((path, file)))
            }
        };
        let file = tempfile::tempfile_in(folder).map_err(TableError::io("write to", folder))?;
        let part = write(&encoding, &binding, &mut reader, first, &file)?;
        accept(&part.counts)?;
        let map = Map::new(&file).map_err(TableError::io("map", path))?;
        if let Some((path, file)) = kept {
            file.write_bytes(&map).map_err(TableError::io("write", path))?;
        }
        let rows = part.counts.rows as usize;
        let digest = identity(schema, part.sum);
        let rows_digest = Some(part.rows);
        Ok((Self { encoding, map, rows, held: first..first + rows, digest, rows_digest }, part))
    }

    /// Opens a file that was kept, for the schema with which it was written. Nobody may change it
    /// while the table is in use: its digest is compared here alone.
    ///
    /// # Errors
    /// [`TableError::Io`]; [`TableError::File`] for a file of another schema or version, and for a
    /// damaged one.
    pub fn open(path: &Path, schema: &Schema) -> Result<Self, TableError> {
        let refuse = |reason: &str| TableError::File { path: path.into(), reason: reason.into() };
        let encoding = Encoding::new(schema)?;
        let file = whole_file::open(path).map_err(TableError::io("read", path))?;
        let map = Map::new(&file).map_err(TableError::io("map", path))?;
        if map.len() < HEADER || map[..8] != MAGIC {
            return Err(refuse("is not an encoded table of this version"));
        }
        if map[16..48] != schema_digest(schema)[..] {
            return Err(refuse("was encoded with another schema"));
        }
        let rows = map[8..16].iter().rev().fold(0_u64, |rows, byte| rows << 8 | u64::from(*byte)) as usize;
        let codes = &map[HEADER..];
        let stride = encoding.layout().stride();
        let sum = DigestSum::of_codes(0, codes, stride);
        if rows.checked_mul(stride) != Some(codes.len()) || map[48..80] != sum.bytes() {
            return Err(refuse("is damaged: its rows do not have their digest"));
        }
        Ok(Self { encoding, map, rows, held: 0..rows, digest: identity(schema, sum), rows_digest: None })
    }

    /// Number of rows of the whole table, dropped ones included.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The numbers of the rows that are here: all, unless it is the part of one of several
    /// processes.
    pub fn held(&self) -> Range<usize> {
        self.held.clone()
    }

    /// Number of features.
    pub fn width(&self) -> usize {
        self.encoding.width()
    }

    /// The encoding of its rows.
    pub fn encoding(&self) -> &Encoding {
        &self.encoding
    }

    /// A name for every feature.
    pub fn feature_names(&self) -> Vec<String> {
        self.encoding.feature_names()
    }

    /// A digest of schema and codes in hexadecimal digits: equal for tables that train the same
    /// model, whatever part of the rows is here.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// A digest of all rows as they were read, whatever part of them is here; `None` for a table
    /// that was opened from a kept file.
    pub fn rows_digest(&self) -> Option<RowsDigest> {
        self.rows_digest
    }

    /// Whether the row was dropped. Its label and group are then 0 and all its features are.
    pub fn is_blank(&self, row: usize) -> bool {
        Layout::label(self.codes(row)) == BLANK
    }

    /// The row's class, as a position in the declared ones.
    pub fn label(&self, row: usize) -> u32 {
        match Layout::label(self.codes(row)) {
            BLANK => 0,
            label => u32::from(label),
        }
    }

    /// The number to predict, by its place in its declared range: from -1 to 1. 0 of a dropped row, and
    /// where classes are predicted.
    pub fn target(&self, row: usize) -> f32 {
        self.encoding.layout().target(self.codes(row))
    }

    /// The row's group, as a position in [`Encoding::groups`].
    pub fn group(&self, row: usize) -> u32 {
        u32::from(Layout::group(self.codes(row)))
    }

    /// The row's part in a sum, from 0 to 1: its weight divided by the largest one; 1 where no weight
    /// is declared.
    pub fn weight(&self, row: usize) -> f32 {
        self.encoding.layout().weight(self.codes(row))
    }

    /// A number that rows of one unit share: of its text where a unit is declared, otherwise the
    /// row's. A dropped row has its unit's.
    pub fn unit(&self, row: usize) -> u64 {
        self.encoding.layout().unit(self.codes(row)).unwrap_or(row as u64)
    }

    /// Fills the features of these rows.
    ///
    /// **Shapes.** `out`: `[rows, width]`, row by row.
    ///
    /// **Guarantee.** The Euclidean norm of every row is at most 1, and a row's features depend on
    /// this row alone.
    ///
    /// # Panics
    /// For a row that is not here, and for a slice of another length.
    pub fn gather(&self, rows: &[usize], out: &mut [f32]) {
        assert_eq!(out.len(), rows.len() * self.width(), "one value per row and feature");
        out.fill(0.0);
        for (row, features) in rows.iter().zip(out.chunks_exact_mut(self.width())) {
            self.for_each_feature(*row, |feature, value| features[feature] = value);
        }
    }

    /// Calls `feature` with the position and value of each feature of a row that may differ from zero, in
    /// ascending order: [`Encoding::most_entries`] of them, or none of a row that was dropped. The same
    /// values as by [`gather`](Self::gather), without most of the zeros.
    ///
    /// # Panics
    /// For a row that is not here.
    pub fn for_each_feature(&self, row: usize, mut feature: impl FnMut(usize, f32)) {
        if self.is_blank(row) {
            return;
        }
        let n = self.encoding.most_entries();
        let (mut columns, mut values) = (vec![0; n], vec![0.0; n]);
        self.expand(&[row], &mut columns, &mut values);
        for (column, value) in columns.into_iter().zip(values) {
            feature(column as usize, value);
        }
    }

    /// The same features of several rows. A row that was dropped has zeros alone.
    ///
    /// **Shapes.** `columns` and `values`: `[rows, most_entries]`, row by row and in ascending order.
    ///
    /// # Panics
    /// For a row that is not here, and for slices of another length.
    pub fn expand(&self, rows: &[usize], columns: &mut [u32], values: &mut [f32]) {
        let room = self.encoding.most_entries();
        assert_eq!([columns.len(), values.len()], [rows.len() * room; 2], "one place for each feature");
        let codes: Vec<&[u8]> = rows.iter().map(|&row| self.codes(row)).collect();
        self.encoding.expand(&codes, columns, values);
        for (codes, values) in codes.iter().zip(values.chunks_exact_mut(room)) {
            if Layout::label(codes) == BLANK {
                values.fill(0.0);
            }
        }
    }

    fn codes(&self, row: usize) -> &[u8] {
        let stride = self.encoding.layout().stride();
        let place = row - self.held.start;
        &self.map[HEADER + place * stride..HEADER + (place + 1) * stride]
    }
}

/// Writes header and rows, of which the first one has this number.
fn write(
    encoding: &Encoding,
    binding: &Binding,
    reader: &mut TableReader,
    mut first: usize,
    file: &File,
) -> Result<EncodedPart, TableError> {
    let failed = || TableError::io("write", "encoded table");
    let stride = encoding.layout().stride();
    let mut out = BufWriter::with_capacity(1 << 20, file);
    out.write_all(&[0; HEADER]).map_err(failed())?;
    let hasher = RowHasher::new(reader.columns());
    let (mut sum, mut as_read) = (DigestSum::default(), RowsDigest::default());
    let mut counts = encoding.counts();
    let mut chunk: Vec<Read> = (0..CHUNK).map(|_| (TableRow::default(), None)).collect();
    let mut codes = vec![0; CHUNK * stride];
    loop {
        let (n, is_last) = fill(reader, &mut chunk)?;
        let codes = &mut codes[..n * stride];
        let pieces = chunk[..n].par_chunks_mut(PIECE).zip(codes.par_chunks_mut(PIECE * stride)).enumerate();
        let later: Vec<Result<EncodedPart, TableError>> = pieces
            .map(|(piece, (read, codes))| {
                let first = first + piece * PIECE;
                let digests = read.iter().enumerate().map(|(at, (row, _))| hasher.digest((first + at) as u64, row));
                let rows = digests.fold(RowsDigest::default(), RowsDigest::plus);
                let counts = encode(encoding, binding, read, codes)?;
                Ok(EncodedPart { counts, sum: DigestSum::of_codes(first, codes, stride), rows })
            })
            .collect();
        for later in later {
            let later = later?;
            counts.add(&later.counts);
            sum = sum.plus(later.sum);
            as_read = as_read.plus(later.rows);
        }
        first += n;
        out.write_all(codes).map_err(failed())?;
        if is_last {
            break;
        }
    }
    out.rewind().map_err(failed())?;
    let schema = encoding.schema();
    for part in [&MAGIC[..], &counts.rows.to_le_bytes(), &schema_digest(schema), &sum.bytes()] {
        out.write_all(part).map_err(failed())?;
    }
    out.flush().map_err(failed())?;
    drop(out);
    Ok(EncodedPart { counts, sum, rows: as_read })
}

/// A row, and why it could not be read.
type Read = (TableRow, Option<TableError>);

/// Reads as many rows as there is room for. Returns how many there were, and whether they are the
/// last ones.
fn fill(reader: &mut TableReader, chunk: &mut [Read]) -> Result<(usize, bool), TableError> {
    // The room that long rows took is not kept.
    for (row, _) in chunk.iter_mut().filter(|(row, _)| row.fields.as_slice().len() > CHUNK_BYTES / CHUNK) {
        row.fields = StringRecord::new();
    }
    let mut bytes = 0;
    for (n, (row, wrong)) in chunk.iter_mut().enumerate() {
        if bytes > CHUNK_BYTES {
            return Ok((n, false));
        }
        *wrong = None;
        match reader.read(row) {
            Ok(true) => {}
            Ok(false) => return Ok((n, true)),
            Err(error) if error.is_of_one_row() => *wrong = Some(error),
            Err(error) => return Err(error),
        }
        bytes += row.fields.as_slice().len();
    }
    Ok((chunk.len(), false))
}

fn encode(
    encoding: &Encoding,
    binding: &Binding,
    rows: &mut [Read],
    codes: &mut [u8],
) -> Result<TableCounts, TableError> {
    let mut counts = encoding.counts();
    for ((row, wrong), codes) in rows.iter_mut().zip(codes.chunks_exact_mut(encoding.layout().stride())) {
        codes.fill(0);
        let stored = match wrong.take() {
            Some(error) => Err(error),
            None => encoding.store(row, binding, codes),
        };
        match (stored, encoding.schema().bad_rows) {
            (Ok(outcome), _) => counts.accept(&outcome),
            (Err(error), BadRows::Refuse) => return Err(error),
            (Err(error), BadRows::Drop) => {
                counts.refuse(&encoding.blank(row, binding, codes, error)?);
            }
        }
    }
    Ok(counts)
}

fn schema_digest(schema: &Schema) -> [u8; 32] {
    // Names and numbers always have a JSON text.
    Sha256::digest(serde_json::to_vec(schema).unwrap_or_default()).into()
}

fn identity(schema: &Schema, rows: DigestSum) -> String {
    hex::encode(Sha256::new().chain_update(schema_digest(schema)).chain_update(rows.bytes()).finalize())
}
