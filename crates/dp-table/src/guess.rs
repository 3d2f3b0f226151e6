//! A proposal for a schema, read from the records.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::column_stats::ColumnStats;
use crate::date_format::DateFormat;
use crate::error::TableError;
use crate::guessed_vectors::VectorColumns;
use crate::header::counts_columns;
use crate::look_alikes::LookAlikes;
use crate::markers::Markers;
use crate::number_format::NumberFormat;
use crate::reader::{TableReader, TableRow};
use crate::schema::{Bins, Column};
use crate::value::Value;
use crate::vector::VectorBound;

/// Texts that usually stand for a missing value, in small and capital letters alike but for `None`.
/// A guess treats them as missing.
pub const MISSING_MARKERS: [&str; 10] = ["", "?", "NA", "N/A", "#N/A", "<NA>", "NaN", "NaT", "NULL", "None"];

/// Findings about a table. All of them are taken from private records: a schema made from them must
/// say so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Guess {
    /// Rows that could be read.
    pub rows: u64,
    /// Rows that could not be read, because of their number of fields or their encoding.
    pub broken: u64,
    /// Broken rows that are not UTF-8 text.
    pub not_utf8: u64,
    /// The first that could not be read, with its file and line.
    pub first_broken: Option<String>,
    /// Lines without anything, which are not among the broken rows.
    pub empty_lines: Option<EmptyLines>,
    /// By column, in the table's order.
    pub columns: Vec<ColumnGuess>,
    /// Vectors whose numbers are columns.
    pub vectors: Vec<GuessedVectorColumns>,
}

/// Columns whose names are a prefix with a number, and that look like one vector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GuessedVectorColumns {
    /// The prefix and a `*`: what a schema calls them.
    pub name: String,
    /// Their positions among the columns.
    pub columns: Vec<usize>,
    /// Their numbers.
    pub vector: GuessedVector,
    /// Rows without any of them.
    pub missing: u64,
}

/// Findings about vectors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GuessedVector {
    /// Numbers of each.
    pub length: usize,
    /// The largest norm.
    pub norm: f64,
}

/// Findings about images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GuessedImage {
    /// Rows of pixels of the first image.
    pub height: usize,
    /// Pixels in a row.
    pub width: usize,
    /// Values of a pixel.
    pub channels: usize,
}

/// Findings about dates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GuessedDate {
    /// How they are written.
    pub format: DateFormat,
    /// The first day.
    pub low: String,
    /// The day behind the last one.
    pub high: String,
    /// Whether day and month may be the other way round: no day is beyond 12.
    pub is_ambiguous: bool,
}

/// Findings about a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ColumnGuess {
    /// Its name.
    pub name: String,
    /// The kind of its values.
    pub kind: GuessedKind,
    /// Its different values in their order ([`Value`]) with their counts, each in its most frequent
    /// spelling. Missing values, and texts among numbers, are left out. Empty if there are more
    /// than a thousand texts.
    pub values: Vec<(String, u64)>,
    /// How many different values there are; `None` if more than a thousand texts.
    pub distinct: Option<usize>,
    /// Its texts that look alike, spellings of one value included.
    pub alike: Vec<LookAlikes>,
    /// The smallest and the largest number, if all values are numbers, or nearly all of many.
    pub range: Option<(f64, f64)>,
    /// Texts in a column of which nearly all values are numbers, or dates.
    pub words: Option<StrayTexts>,
    /// How the numbers are written.
    pub format: NumberFormat,
    /// Whether a sign that was taken to stand between thousands may be a decimal sign: three digits
    /// stand behind every one.
    pub is_ambiguous: bool,
    /// The dates, if all values are dates, or nearly all of many.
    pub date: Option<GuessedDate>,
    /// The vectors, if all values are lists of one length.
    pub vector: Option<GuessedVector>,
    /// The size of the first image, if all values are images.
    pub image: Option<GuessedImage>,
    /// Whether all numbers would be points in time between 1980 and 2100, in this format.
    pub epoch: Option<DateFormat>,
    /// Rows in which the value is missing.
    pub missing: u64,
    /// Texts that were taken for missing values.
    pub markers: Vec<String>,
}

/// Lines without anything, such as one at the end of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmptyLines {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: usize,
    /// Its file, of a table of several files.
    pub file: Option<PathBuf>,
}

/// Texts in a column of numbers or dates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StrayTexts {
    /// How many.
    pub count: u64,
    /// Number of values in the column.
    pub of: u64,
    /// The first of them.
    pub first: String,
    /// Its line in its file.
    pub line: usize,
    /// Its file, of a table of several files.
    pub file: Option<PathBuf>,
    /// Different ones, at most twenty, in the order in which they were met.
    pub texts: Vec<String>,
}

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuessedKind {
    /// Whole numbers, more than two different ones.
    Integer,
    /// Numbers, more than two different ones.
    Number,
    /// Two values that are truth values, or 1 and 0.
    Boolean,
    /// Dates, more than two different ones.
    Date,
    /// Lists of numbers, all of one length.
    Vector,
    /// Images, by the endings of their paths or as a file holds them.
    Image,
    /// Texts of which there are at most a hundred, or two numbers, or up to a hundred that single
    /// precision does not tell apart.
    Category,
    /// More different texts, row numbers, an index that pandas named, or numbers that single
    /// precision does not tell apart: names, identifiers, notes.
    Text,
    /// One value, or none.
    Constant,
}

impl Guess {
    /// Reads a table to its end. Memory is bounded by the columns, not by the rows.
    ///
    /// # Errors
    /// As [`TableReader::read`]. Errors of one row are counted instead.
    pub fn of(reader: &mut TableReader) -> Result<Self, TableError> {
        let markers = Markers::new(&MISSING_MARKERS);
        let mut columns: Vec<ColumnStats> = reader.columns().iter().map(|_| ColumnStats::default()).collect();
        let mut vectors = VectorColumns::of(reader.columns());
        let (mut rows, mut broken, mut not_utf8, mut first_broken) = (0, 0, 0, None);
        let mut row = TableRow::default();
        let mut empty_lines: Option<EmptyLines> = None;
        let has_files = reader.n_files() > 1;
        loop {
            match reader.read(&mut row) {
                Ok(true) => {
                    rows += 1;
                    columns.iter_mut().zip(row.fields()).for_each(|(stats, text)| stats.add(text, &markers, &row));
                    for vector in &mut vectors {
                        vector.add(&columns);
                    }
                }
                Ok(false) => break,
                // Nothing can be read of it.
                Err(TableError::EmptyLine { path, line }) => {
                    let file = has_files.then_some(path);
                    empty_lines.get_or_insert(EmptyLines { count: 0, first: line, file }).count += 1;
                }
                Err(error) if error.is_of_one_row() => {
                    broken += 1;
                    not_utf8 += u64::from(matches!(error, TableError::NotUtf8 { .. }));
                    first_broken.get_or_insert_with(|| error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        let vectors = vectors.into_iter().filter_map(|vector| vector.guess(&columns)).collect();
        let mut columns: Vec<ColumnGuess> =
            columns.into_iter().zip(reader.columns()).map(|(stats, name)| stats.guess(name)).collect();
        if !has_files {
            columns.iter_mut().filter_map(|column| column.words.as_mut()).for_each(|words| words.file = None);
        }
        Ok(Self { rows, broken, not_utf8, first_broken, empty_lines, columns, vectors })
    }

    /// Names of columns that are among their columns' values, or numbers in their range, where this
    /// holds for more than half of the columns: the first line is a record then, not a header.
    pub fn names_like_values(&self) -> Vec<&str> {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        let found: Vec<&str> =
            self.columns.iter().filter(|column| column.has_a_value_for_a_name()).map(|column| &*column.name).collect();
        if 2 * found.len() > self.columns.len() && !counts_columns(&names) { found } else { Vec::new() }
    }

    /// All texts that were taken for missing values in any column, with the empty one first.
    pub fn markers(&self) -> Vec<String> {
        let mut found = vec![String::new()];
        for marker in self.columns.iter().flat_map(|column| &column.markers) {
            if !found.contains(marker) {
                found.push(marker.clone());
            }
        }
        found
    }
}

impl GuessedVector {
    /// As a column: with the norm found; 1 where it is as good as that.
    pub fn column(&self, missing: bool) -> Column {
        // Zeros alone have any norm.
        let is_one = self.norm == 0.0 || (0.99..=1.01).contains(&self.norm);
        let norm = if is_one { 1.0 } else { self.norm.clamp(f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)) };
        Column::Vector { length: self.length, bound: VectorBound::Norm(norm), missing }
    }
}

impl GuessedImage {
    /// As a column: with the size found, or the nearest that features are made for.
    pub fn column(self, missing: bool) -> Column {
        let Self { height, width, channels } = self;
        let is_usual = |side: &usize| (8..=128).contains(side);
        if [height, width].iter().all(is_usual) && [1, 3].contains(&channels) {
            return Column::Image { height, width, channels, resize: false, missing, pixels: false };
        }
        let factor = (64.0 / height.max(width) as f64).min(1.0);
        let [height, width] = [height, width].map(|side| ((side as f64 * factor).round() as usize).max(8));
        let channels = if channels < 3 { 1 } else { 3 };
        Column::Image { height, width, channels, resize: true, missing, pixels: false }
    }
}

impl ColumnGuess {
    fn has_a_value_for_a_name(&self) -> bool {
        let name = Value::of(&self.name);
        let number = self.name.parse().ok();
        self.values.iter().any(|(value, _)| Value::of(value) == name)
            || self.range.zip(number).is_some_and(|((low, high), number): (_, f64)| (low..=high).contains(&number))
    }

    /// The column as an input: numbers with the bounds found, categories with the values found and
    /// an `other`; texts and constants dropped.
    pub fn column(&self) -> Column {
        if let (GuessedKind::Date, Some(date)) = (self.kind, &self.date) {
            return Column::Date {
                low: date.low.clone(),
                high: date.high.clone(),
                bins: Bins::Equal(16),
                missing: self.missing > 0,
                format: date.format,
                parts: Vec::new(),
            };
        }
        if let (GuessedKind::Vector, Some(vector)) = (self.kind, self.vector) {
            return vector.column(self.missing > 0);
        }
        if let (GuessedKind::Image, Some(image)) = (self.kind, self.image) {
            return image.column(self.missing > 0);
        }
        match (self.kind, self.range) {
            (GuessedKind::Integer | GuessedKind::Number, Some((low, high))) => Column::Number {
                low,
                high,
                bins: Bins::for_bounds(low, high, self.kind == GuessedKind::Integer),
                missing: (self.missing > 0).then_some(low),
                format: self.format.clone(),
            },
            (GuessedKind::Boolean, _) if self.values.len() == 2 => {
                Column::Boolean { values: [0, 1].map(|place| self.values[place].0.clone()), missing: self.missing > 0 }
            }
            (GuessedKind::Category, _) => Column::Category {
                values: self.values.iter().map(|(value, _)| value.clone()).collect(),
                other: true,
                missing: self.missing > 0,
            },
            _ => Column::Dropped,
        }
    }
}
