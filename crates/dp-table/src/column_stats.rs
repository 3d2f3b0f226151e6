//! Statistics of a column, and the kind that follows from them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::date_format::DateFormat;
use crate::guess::{ColumnGuess, GuessedDate, GuessedImage, GuessedKind, GuessedVector, StrayTexts};
#[cfg(feature = "images")]
use crate::image_text::is_image;
#[cfg(feature = "images")]
use crate::images;
use crate::knots::Knots;
use crate::look_alikes::look_alikes;
use crate::markers::Markers;
use crate::number_format::NumberFormat;
use crate::reader::TableRow;
use crate::readings::{DateReading, NumberReading, Readings, plain_number};
use crate::schema::Bins;
use crate::text_hash::TextMap;
use crate::value::Value;
use crate::vector::{self, MOST_NUMBERS};

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

/// Different stray texts that are kept.
const MOST_STRAYS: usize = 20;

/// Seconds from 1970 to 1980 and to 2100.
const EPOCH: (f64, f64) = (315_532_800.0, 4_102_444_800.0);

/// Statistics of a column over the rows so far.
#[derive(Default)]
pub(crate) struct ColumnStats {
    /// Different texts with their counts, as long as there are not too many.
    texts: TextMap<KnownText>,
    /// Whether there were, or lists of numbers: their readings are counted one by one.
    has_more_texts: bool,
    missing: u64,
    /// Texts that may stand for missing values.
    markers: Vec<String>,
    range: Option<(f64, f64)>,
    numbers: u64,
    has_fractions: bool,
    words: u64,
    /// Those of the texts that are infinite numbers: values to declare, and no reason for categories.
    infinite: u64,
    /// Texts that no reading takes for a number or a date, with the line of the first.
    strays: Vec<String>,
    first_stray: Option<(PathBuf, usize)>,
    readings: Readings,
    vectors: Option<VectorStats>,
    /// Texts that look like images, and the size of the first.
    images: u64,
    image: Option<GuessedImage>,
    /// The number read last, and whether some number was not the one before plus 1.
    last: Option<f64>,
    is_no_counter: bool,
    /// The number of the last row; `None` where it had none.
    pub(crate) current: Option<f64>,
}

/// A text that was met before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownText {
    pub(crate) count: u64,
    /// The plain number that it is.
    pub(crate) number: Option<f64>,
}

/// Lists of numbers so far.
struct VectorStats {
    count: u64,
    length: usize,
    square: f64,
}

/// Numbers or dates that the texts of a column are.
struct Found {
    range: Option<(f64, f64)>,
    has_fractions: bool,
    /// Values that are none.
    strays: u64,
    /// Values that are.
    n: u64,
    format: NumberFormat,
    is_ambiguous: bool,
}

impl ColumnStats {
    pub(crate) fn add(&mut self, text: &str, markers: &Markers, row: &TableRow) {
        self.current = None;
        if markers.contain(text) {
            self.missing += 1;
            if !self.markers.iter().any(|marker| marker == text) {
                self.markers.push(text.to_owned());
            }
            return;
        }
        if !self.has_more_texts
            && let Some(known) = self.texts.get_mut(text)
        {
            known.count += 1;
            let number = known.number;
            self.infinite += u64::from(number.is_none() && is_infinite(text));
            return self.add_value(number);
        }
        let number = plain_number(text);
        self.infinite += u64::from(number.is_none() && is_infinite(text));
        self.add_value(number);
        let is_list = number.is_none() && text.starts_with('[') && self.add_vector(text);
        #[cfg(feature = "images")]
        let is_list = is_list || number.is_none() && self.add_image(text, row);
        let may_be_stray = number.is_none() && !is_list && self.strays.len() < MOST_STRAYS;
        if may_be_stray && !Readings::read(text) {
            self.add_stray(text, row);
        }
        // Lists and images are long, and each is another one.
        if is_list || self.has_more_texts || self.texts.len() == MOST_VALUES {
            self.has_more_texts = true;
            // They are kept no longer.
            self.readings.add_all(&std::mem::take(&mut self.texts));
            self.readings.add(text, number, 1);
        } else {
            self.texts.insert(text.to_owned(), KnownText { count: 1, number });
        }
    }

    fn add_value(&mut self, number: Option<f64>) {
        match number {
            Some(number) => self.add_number(number),
            None => self.words += 1,
        }
    }

    fn add_number(&mut self, number: f64) {
        let (low, high) = self.range.unwrap_or((number, number));
        self.range = Some((low.min(number), high.max(number)));
        self.numbers += 1;
        self.has_fractions |= number.fract() != 0.0;
        self.is_no_counter |= self.last.is_some_and(|last| number != last + 1.0);
        self.last = Some(number);
        self.current = self.last;
    }

    fn add_stray(&mut self, text: &str, row: &TableRow) {
        if self.strays.is_empty() {
            self.first_stray = Some((row.file().to_path_buf(), row.line()));
        }
        if !self.strays.iter().any(|stray| stray == text) {
            self.strays.push(text.to_owned());
        }
    }

    /// Counts a list of numbers; false for a text that is none.
    fn add_vector(&mut self, text: &str) -> bool {
        let mut numbers = Vec::new();
        if vector::parse(text, &mut numbers).is_none() {
            return false;
        }
        let square: f64 = numbers.iter().map(|number| number * number).sum();
        let stats = self.vectors.get_or_insert(VectorStats { count: 0, length: numbers.len(), square });
        if stats.length == numbers.len() {
            stats.count += 1;
            stats.square = stats.square.max(square);
        }
        true
    }

    /// Counts an image; false for a text that is none.
    #[cfg(feature = "images")]
    fn add_image(&mut self, text: &str, row: &TableRow) -> bool {
        if !is_image(text) {
            return false;
        }
        if self.images == 0 {
            let size = images::size_of(row, text);
            self.image =
                size.map(|size| GuessedImage { height: size.height, width: size.width, channels: size.channels });
        }
        self.images += 1;
        true
    }

    /// Rows with a value, and whether all of them are plain numbers, some with a fraction.
    pub(crate) fn is_real(&self) -> bool {
        self.words == 0 && self.numbers > 0 && self.has_fractions
    }

    fn plain(&self) -> Found {
        Found {
            range: self.range,
            has_fractions: self.has_fractions,
            strays: self.words,
            n: self.numbers,
            format: NumberFormat::default(),
            is_ambiguous: false,
        }
    }

    /// The numbers, in the format that most of them have.
    fn numbers(&self) -> Found {
        let Some(NumberReading { format, fit, lost, is_ambiguous }) = self.readings.numbers() else {
            return self.plain();
        };
        if fit.n <= lost {
            return self.plain();
        }
        let has_fractions = fit.has_fractions || self.has_fractions && format.thousands != Some('.');
        let (strays, n) = (self.words - fit.n + lost, self.numbers - lost + fit.n);
        Found { range: fit.range, has_fractions, strays, n, format, is_ambiguous }
    }

    pub(crate) fn guess(mut self, name: &str) -> ColumnGuess {
        self.readings.add_all(&self.texts);
        let total = self.numbers + self.words;
        let vector =
            self.vectors.as_ref().filter(|stats| stats.count == total && (2..=MOST_NUMBERS).contains(&stats.length));
        let vector = vector.map(|stats| GuessedVector { length: stats.length, norm: stats.square.sqrt() });
        let image = self.image.filter(|_| self.images == total);
        let dates = self.readings.dates().filter(|dates| is_rare(total - dates.fit.n, dates.fit.n, usize::MAX));
        let found = self.numbers();
        let mut values = (!self.has_more_texts).then(|| by_value(&self.texts));
        let holds_number = |(text, _): &(String, u64)| found.format.parse(text).is_some();
        let n_numbers =
            values.as_ref().map_or(usize::MAX, |values| values.iter().filter(|value| holds_number(value)).count());
        let finite_strays = found.strays.saturating_sub(self.infinite);
        let are_infinite = found.n > 0 && finite_strays == 0;
        let is_of_numbers =
            dates.is_none() && (found.strays == 0 || are_infinite || is_rare(finite_strays, found.n, n_numbers));
        if found.strays > 0 && is_of_numbers {
            values = values.map(|values| values.into_iter().filter(holds_number).collect());
        }
        if let Some(DateReading { format, .. }) = &dates {
            values = values.map(|values| values.into_iter().filter(|(text, _)| format.parse(text).is_some()).collect());
        }
        let distinct = values.as_ref().map(Vec::len);
        let range = found.range.filter(|_| is_of_numbers);
        let is_number = range.is_some_and(|(low, high)| has_bins(low, high, !found.has_fractions));
        let is_boolean = values.as_ref().is_some_and(|values| is_boolean(values));
        let is_counter = range.is_some() && self.words == 0 && !self.is_no_counter;
        let kind = match distinct {
            _ if vector.is_some() => GuessedKind::Vector,
            _ if image.is_some() => GuessedKind::Image,
            Some(0 | 1) => GuessedKind::Constant,
            Some(2) if is_boolean => GuessedKind::Boolean,
            Some(2) => GuessedKind::Category,
            _ if dates.is_some() => GuessedKind::Date,
            _ if name.starts_with(PANDAS_INDEX) || is_counter => GuessedKind::Text,
            _ if is_number && found.has_fractions => GuessedKind::Number,
            _ if is_number => GuessedKind::Integer,
            Some(3..=MOST_CATEGORIES) => GuessedKind::Category,
            _ => GuessedKind::Text,
        };
        let epoch = range.filter(|_| !found.has_fractions && found.strays == 0).and_then(epoch);
        let date = dates.as_ref().map(|dates| {
            let (low, high) = dates.range();
            GuessedDate { format: dates.format, low, high, is_ambiguous: dates.is_ambiguous }
        });
        let strays = dates.as_ref().map_or(found.strays, |dates| total - dates.fit.n);
        let is_nearly = dates.is_some() || are_infinite || is_rare(finite_strays, found.n, usize::MAX);
        ColumnGuess {
            name: name.to_owned(),
            kind,
            values: values.unwrap_or_default(),
            distinct,
            alike: look_alikes(self.texts.keys().map(String::as_str)),
            range,
            words: (is_nearly && strays > 0).then(|| StrayTexts {
                count: strays,
                of: total,
                first: self.strays.first().cloned().unwrap_or_default(),
                line: self.first_stray.as_ref().map_or(0, |(_, line)| *line),
                file: self.first_stray.map(|(file, _)| file),
                texts: self.strays,
            }),
            format: found.format,
            is_ambiguous: found.is_ambiguous,
            date,
            vector,
            image,
            epoch,
            missing: self.missing,
            markers: self.markers,
        }
    }
}

/// Whether a text is an infinite number, in any spelling.
fn is_infinite(text: &str) -> bool {
    text.len() <= LONGEST_INFINITY && text.parse().is_ok_and(f64::is_infinite)
}

/// Letters of `-infinity`; a long row of digits is none.
const LONGEST_INFINITY: usize = 9;

/// Whether texts are rare among numbers, of which this many differ.
fn is_rare(n_words: u64, n_numbers: u64, n_different: usize) -> bool {
    let is_rare = |per_word: u64| n_numbers > 0 && n_words.saturating_mul(per_word) <= n_numbers;
    NUMBERS_PER_WORD.iter().any(|(per_word, least)| is_rare(*per_word) && n_different >= *least)
}

/// Whether the values are two truth values, in order.
fn is_boolean(values: &[(String, u64)]) -> bool {
    let texts: Vec<&String> = values.iter().map(|(text, _)| text).collect();
    // Of truth values alone each has two meanings.
    texts.len() == 2 && Value::all_of(&texts).iter().all(|meanings| meanings.len() == 2)
}

/// The unit in which all of these numbers would be points in time of our days.
fn epoch((low, high): (f64, f64)) -> Option<DateFormat> {
    let is_in = |per_second: f64| low >= EPOCH.0 * per_second && high <= EPOCH.1 * per_second;
    match () {
        () if is_in(1.0) => Some(DateFormat::EpochSeconds),
        () if is_in(1e3) => Some(DateFormat::EpochMilliseconds),
        () => None,
    }
}

/// Different texts by their values, in order: each with its most frequent spelling and all its
/// counts.
fn by_value(texts: &TextMap<KnownText>) -> Vec<(String, u64)> {
    let mut spelled: Vec<(&String, u64)> = texts.iter().map(|(text, known)| (text, known.count)).collect();
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
        Bins::SignedLog(16) => Bins::SignedLog(32),
        bins => bins,
    };
    Knots::new("", low, high, &bins).is_ok()
}
