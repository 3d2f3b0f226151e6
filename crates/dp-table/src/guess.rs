//! A proposal for a schema, read from the records.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::error::TableError;
use crate::header::counts_columns;
use crate::knots::Knots;
use crate::look_alikes::{LookAlikes, look_alikes};
use crate::reader::{Row, TableReader};
use crate::schema::{Bins, Column};
use crate::value::Value;

/// Texts that usually stand for a missing value. A guess treats them as missing.
pub const MISSING_MARKERS: [&str; 9] = ["", "?", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"];

/// How pandas names an index that it reads as a column.
const PANDAS_INDEX: &str = "Unnamed: 0";

/// Different texts of a column that are kept; a column with more is no category.
const MOST_VALUES: usize = 1_000;

/// The most values of a category that is proposed as an input.
const MOST_CATEGORIES: usize = 100;

/// A column with some texts still counts as numeric if at most one value in `.0` is a text and it
/// has at least `.1` different numbers. Few numbers among more texts may be codes, such as 1, 2, 3
/// and `unknown`.
const NUMBERS_PER_WORD: [(u64, usize); 2] = [(100, 2), (20, 10)];

/// Findings about a table. All of them are taken from private records: a schema made from them must
/// say so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guess {
    /// Rows that could be read.
    pub rows: u64,
    /// Rows that could not be read, because of their number of fields or their encoding.
    pub broken: u64,
    /// Broken rows that are not UTF-8 text.
    pub not_utf8: u64,
    /// The first that could not be read, with its file and line.
    pub first_broken: Option<String>,
    /// By column, in the table's order.
    pub columns: Vec<ColumnGuess>,
}

/// Findings about a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Texts in a column of which nearly all values are numbers.
    pub words: Option<StrayTexts>,
    /// Whether every value that is no number would be one without its commas, and there are such.
    pub has_commas: bool,
    /// Rows in which the value is missing.
    pub missing: u64,
    /// Texts that were taken for missing values.
    pub markers: Vec<String>,
}

/// Texts in a column of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrayTexts {
    /// How many.
    pub count: u64,
    /// Number of values in the column.
    pub of: u64,
    /// The first of them.
    pub first: String,
    /// Its line in its file.
    pub line: usize,
}

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuessedKind {
    /// Whole numbers, more than two different ones.
    Integer,
    /// Numbers, more than two different ones.
    Number,
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
        let mut columns: Vec<ColumnStats> = reader.columns().iter().map(|_| ColumnStats::new()).collect();
        let (mut rows, mut broken, mut not_utf8, mut first_broken) = (0, 0, 0, None);
        let mut row = Row::default();
        loop {
            match reader.read(&mut row) {
                Ok(true) => {
                    rows += 1;
                    columns.iter_mut().zip(row.fields()).for_each(|(stats, text)| stats.add(text, row.line()));
                }
                Ok(false) => break,
                // Nothing can be read of it.
                Err(TableError::EmptyLine { .. }) => {}
                Err(error) if error.is_of_one_row() => {
                    broken += 1;
                    not_utf8 += u64::from(matches!(error, TableError::NotUtf8 { .. }));
                    first_broken.get_or_insert_with(|| error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        let columns = columns.into_iter().zip(reader.columns()).map(|(stats, name)| stats.guess(name)).collect();
        Ok(Self { rows, broken, not_utf8, first_broken, columns })
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
        let found = |marker: &&str| self.columns.iter().any(|column| column.markers.iter().any(|text| text == marker));
        MISSING_MARKERS
            .iter()
            .filter(|marker| marker.is_empty() || found(marker))
            .map(|&marker| marker.to_owned())
            .collect()
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
        match (self.kind, self.range) {
            (GuessedKind::Integer | GuessedKind::Number, Some((low, high))) => Column::Number {
                low,
                high,
                bins: Bins::for_bounds(low, high, self.kind == GuessedKind::Integer),
                missing: (self.missing > 0).then_some(low),
            },
            (GuessedKind::Category, _) => Column::Category {
                values: self.values.iter().map(|(value, _)| value.clone()).collect(),
                other: true,
                missing: self.missing > 0,
            },
            _ => Column::Dropped,
        }
    }
}

/// Statistics of a column over the rows so far.
struct ColumnStats {
    /// Different texts with their counts; `None` once there were too many.
    texts: Option<HashMap<String, u64>>,
    /// Texts that may stand for missing values, by their position among the markers.
    markers: [u64; MISSING_MARKERS.len()],
    range: Option<(f64, f64)>,
    numbers: u64,
    has_fractions: bool,
    words: Option<StrayTexts>,
    /// Texts that would be numbers without their commas.
    with_commas: u64,
    /// The number read last, and whether some number was not the one before plus 1.
    last: Option<f64>,
    is_no_counter: bool,
}

impl ColumnStats {
    fn new() -> Self {
        Self {
            texts: Some(HashMap::new()),
            markers: [0; MISSING_MARKERS.len()],
            range: None,
            numbers: 0,
            has_fractions: false,
            words: None,
            with_commas: 0,
            last: None,
            is_no_counter: false,
        }
    }

    fn add(&mut self, text: &str, line: usize) {
        if let Some(marker) = MISSING_MARKERS.iter().position(|marker| *marker == text) {
            self.markers[marker] += 1;
            return;
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => {
                let (low, high) = self.range.unwrap_or((number, number));
                self.range = Some((low.min(number), high.max(number)));
                self.numbers += 1;
                self.has_fractions |= number.fract() != 0.0;
                self.is_no_counter |= self.last.is_some_and(|last| number != last + 1.0);
                self.last = Some(number);
            }
            _ => {
                let words =
                    self.words.get_or_insert_with(|| StrayTexts { count: 0, of: 0, first: text.to_owned(), line });
                words.count += 1;
                let is_number = text.contains(',') && text.replace(',', "").parse().is_ok_and(f64::is_finite);
                self.with_commas += u64::from(is_number);
            }
        }
        let Some(texts) = &mut self.texts else { return };
        if let Some(count) = texts.get_mut(text) {
            *count += 1;
        } else if texts.len() < MOST_VALUES {
            texts.insert(text.to_owned(), 1);
        } else {
            self.texts = None;
        }
    }

    fn guess(self, name: &str) -> ColumnGuess {
        let mut values = self.texts.as_ref().map(by_value);
        let n_words = self.words.as_ref().map_or(0, |words| words.count);
        let holds_number = |(text, _): &(String, u64)| text.parse().is_ok_and(f64::is_finite);
        let n_numbers =
            values.as_ref().map_or(usize::MAX, |values| values.iter().filter(|value| holds_number(value)).count());
        let is_rare = |per_word: u64| n_words.saturating_mul(per_word) <= self.numbers;
        let is_of_numbers =
            n_words == 0 || NUMBERS_PER_WORD.iter().any(|(per_word, least)| is_rare(*per_word) && n_numbers >= *least);
        if n_words > 0 && is_of_numbers {
            values = values.map(|values| values.into_iter().filter(holds_number).collect());
        }
        let is_nearly_of_numbers = NUMBERS_PER_WORD.iter().any(|(per_word, _)| is_rare(*per_word));
        let distinct = values.as_ref().map(Vec::len);
        let range = self.range.filter(|_| is_of_numbers);
        let is_number = range.is_some_and(|(low, high)| has_bins(low, high, !self.has_fractions));
        let kind = match distinct {
            Some(0 | 1) => GuessedKind::Constant,
            Some(2) => GuessedKind::Category,
            _ if name.starts_with(PANDAS_INDEX) || range.is_some() && !self.is_no_counter => GuessedKind::Text,
            _ if is_number && self.has_fractions => GuessedKind::Number,
            _ if is_number => GuessedKind::Integer,
            Some(3..=MOST_CATEGORIES) => GuessedKind::Category,
            _ => GuessedKind::Text,
        };
        let texts = self.texts.unwrap_or_default();
        let markers = MISSING_MARKERS.iter().zip(self.markers).filter(|(_, count)| *count > 0);
        ColumnGuess {
            name: name.to_owned(),
            kind,
            values: values.unwrap_or_default(),
            distinct,
            alike: look_alikes(texts.keys().map(String::as_str)),
            range,
            words: self
                .words
                .filter(|_| is_nearly_of_numbers)
                .map(|words| StrayTexts { of: self.numbers + n_words, ..words }),
            has_commas: n_words > 0 && self.with_commas == n_words,
            missing: self.markers.iter().sum(),
            markers: markers.map(|(marker, _)| (*marker).to_owned()).collect(),
        }
    }
}

/// Different texts by their values, in order: each with its most frequent spelling and all its
/// counts.
fn by_value(texts: &HashMap<String, u64>) -> Vec<(String, u64)> {
    let mut spelled: Vec<(&String, u64)> = texts.iter().map(|(text, count)| (text, *count)).collect();
    // The shorter one of two that are equally frequent.
    spelled.sort_unstable_by_key(|(text, count)| (std::cmp::Reverse(*count), text.len(), *text));
    let names: Vec<&String> = spelled.iter().map(|(text, _)| *text).collect();
    let mut values: BTreeMap<Value<'_>, (&String, u64)> = BTreeMap::new();
    for (mut meanings, (text, count)) in Value::all_of(&names).into_iter().zip(&spelled) {
        // The number, of one that is a truth value too.
        values.entry(meanings.swap_remove(0)).or_insert((text, 0)).1 += count;
    }
    values.into_values().map(|(text, count)| (text.clone(), count)).collect()
}

/// Whether single precision tells the bins that would be proposed apart, and twice as many.
fn has_bins(low: f64, high: f64, integer: bool) -> bool {
    let bins = match Bins::for_bounds(low, high, integer) {
        Bins::Equal(16) => Bins::Equal(32),
        Bins::Log(16) => Bins::Log(32),
        bins => bins,
    };
    Knots::new("", low, high, &bins).is_ok()
}
