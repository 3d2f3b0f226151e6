//! One Parquet file, read by a few thousand rows of all columns at a time.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, Once};

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, Int96};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use crate::date_format;
use crate::error::TableError;
use crate::image_text::BYTES;
use crate::parquet_file::ParquetFile;
use crate::parquet_list::List;
use crate::parquet_pages::SoundPages;
use crate::reader::{LONGEST_RECORD, StoredAs, TableRow};

/// Rows that are read ahead.
const BATCH: usize = 2048;

pub(crate) struct ParquetSource {
    reader: SerializedFileReader<ParquetFile>,
    path: Arc<Path>,
    columns: Vec<String>,
    meanings: Vec<Meaning>,
    /// By column, of those that are lists.
    lists: Vec<Option<List>>,
    /// By column, whether it stores numbers.
    numbers: Arc<[bool]>,
    next_group: usize,
    /// Rows of the open group that are not read yet, and its columns.
    left: usize,
    open: Vec<ColumnReader>,
    /// Rows that were read ahead, by column; the next one to hand out.
    ahead: Vec<BatchColumn>,
    n_ahead: usize,
    next_ahead: usize,
    n_rows: usize,
}

/// The meaning of a column's numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Meaning {
    /// Themselves, or UTF-8 text.
    Plain,
    /// Bytes of which nothing says that they are text; where they are not, they are images.
    Bytes,
    /// An unsigned integer.
    Unsigned,
    /// An integer, or a big-endian one of any length, times this power of ten.
    Decimal { scale: usize },
    /// An integer that counts this many to the second, of a time of day.
    Seconds { per_second: f64 },
    /// An integer that counts days since 1970.
    Days,
    /// An integer that counts this many to the second since 1970, in UTC or local time.
    Instant { per_second: i64, is_utc: bool },
}

impl ParquetSource {
    pub(crate) fn open(path: &Path) -> Result<Self, TableError> {
        let file = whole_file::open(path).map_err(TableError::io("read", path))?;
        let refuse = |reason: String| TableError::File { path: path.into(), reason };
        let reader = caught(|| SerializedFileReader::new(ParquetFile(file)).map_err(|error| unreadable(&error)))
            .map_err(refuse)?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let mut columns = Vec::with_capacity(schema.num_columns());
        let mut meanings = Vec::with_capacity(schema.num_columns());
        let mut lists = Vec::with_capacity(schema.num_columns());
        let mut numbers = Vec::with_capacity(schema.num_columns());
        for column in schema.columns() {
            let name = column.path().string();
            let list = List::of(column);
            let is_flat = column.max_def_level() <= 1 && column.path().parts().len() == 1;
            if list.is_none() && (column.max_rep_level() > 0 || !is_flat) {
                let reason = "columns must be flat, or lists of FLOAT or DOUBLE";
                return Err(refuse(format!("has a column `{name}` that is nested; {reason}")));
            }
            let name = if list.is_some() { column.path().parts()[0].clone() } else { name };
            let is_text = column.physical_type() == Physical::BYTE_ARRAY;
            let meaning = meaning(column).ok_or_else(|| {
                let logical = column.logical_type_ref().map(|logical| format!("{logical:?}"));
                let found = logical.unwrap_or_else(|| column.physical_type().to_string());
                let read = "booleans, integers, FLOAT, DOUBLE, decimals, texts, dates and times";
                refuse(format!("has a column `{name}` of the type {found}; those that are read: {read}"))
            })?;
            numbers.push(match meaning {
                Meaning::Plain => list.is_none() && !is_text,
                Meaning::Unsigned | Meaning::Decimal { .. } | Meaning::Seconds { .. } => true,
                Meaning::Bytes | Meaning::Days | Meaning::Instant { .. } => false,
            });
            columns.push(name.trim().to_owned());
            meanings.push(meaning);
            lists.push(list);
        }
        if columns.is_empty() {
            return Err(TableError::EmptyFile { path: path.into() });
        }
        let ahead = columns.iter().map(|_| BatchColumn::Written(Texts::default())).collect();
        Ok(Self {
            reader,
            path: path.into(),
            columns,
            meanings,
            lists,
            numbers: numbers.into(),
            next_group: 0,
            left: 0,
            open: Vec::new(),
            ahead,
            n_ahead: 0,
            next_ahead: 0,
            n_rows: 0,
        })
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    pub(crate) fn stored_as(&self, column: usize) -> StoredAs {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let is_flat = self.lists.get(column) == Some(&None);
        let (Some(Meaning::Plain), true) = (self.meanings.get(column), is_flat) else {
            return StoredAs::Text;
        };
        match schema.column(column).physical_type() {
            Physical::BOOLEAN => StoredAs::Truth,
            Physical::INT32 | Physical::INT64 => StoredAs::Integer,
            Physical::FLOAT | Physical::DOUBLE => StoredAs::Number,
            Physical::INT96 | Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => StoredAs::Text,
        }
    }

    /// Number of rows, as the file says.
    pub(crate) fn rows(&self) -> Result<u64, TableError> {
        let rows = self.reader.metadata().file_metadata().num_rows();
        let mut groups = self.reader.metadata().row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
        let in_groups = groups.try_fold(0_u64, |sum, rows| sum.checked_add(rows?));
        in_groups.filter(|&n| u64::try_from(rows) == Ok(n)).ok_or_else(|| {
            let reason = format!("has {rows} rows by its footer, and another number in its row groups");
            TableError::File { path: self.path.to_path_buf(), reason }
        })
    }

    /// The part of its rows that was read.
    pub(crate) fn share(&self) -> Option<f64> {
        let rows = self.rows().ok().filter(|rows| *rows > 0)?;
        Some(self.n_rows as f64 / rows as f64)
    }

    /// Passes over rows of a file of which none was read yet: over whole row groups unread, and in
    /// the next one page by page.
    pub(crate) fn skip(&mut self, mut n: usize) -> Result<(), TableError> {
        let reader = &self.reader;
        let rows_of = |group: usize| reader.metadata().row_groups().get(group).map(|group| group.num_rows() as usize);
        while let Some(rows) = rows_of(self.next_group).filter(|rows| *rows <= n) {
            self.next_group += 1;
            (self.n_rows, n) = (self.n_rows + rows, n - rows);
        }
        if n == 0 {
            return Ok(());
        }
        let skipped = caught(|| {
            self.open_group()?;
            for (reader, name) in self.open.iter_mut().zip(&self.columns) {
                let found = skip(reader, n).map_err(|error| unreadable(&error))?;
                if found != n {
                    return Err(format!("column `{name}` is shorter than its row group"));
                }
            }
            Ok(())
        });
        skipped.map_err(|reason| TableError::File { path: self.path.to_path_buf(), reason })?;
        (self.n_rows, self.left) = (self.n_rows + n, self.left.saturating_sub(n));
        Ok(())
    }

    pub(crate) fn read(&mut self, row: &mut TableRow) -> Result<bool, TableError> {
        if !Arc::ptr_eq(&row.file, &self.path) {
            row.file = Arc::clone(&self.path);
            row.numbers = Arc::clone(&self.numbers);
        }
        row.line = self.n_rows + 1;
        row.fields.clear();
        self.next(row).map_err(|reason| {
            // Nothing more comes from this file.
            (self.left, self.next_group) = (0, usize::MAX);
            (self.n_ahead, self.next_ahead) = (0, 0);
            TableError::File { path: self.path.to_path_buf(), reason }
        })
    }

    fn next(&mut self, row: &mut TableRow) -> Result<bool, String> {
        if self.next_ahead == self.n_ahead {
            caught(|| self.read_ahead())?;
            if self.n_ahead == 0 {
                return Ok(false);
            }
        }
        for (column, name) in self.ahead.iter().zip(&self.columns) {
            let text =
                column.get(self.next_ahead).map_err(|reason| format!("column `{name}`, row {}: {reason}", row.line))?;
            if row.fields.as_slice().len() + text.len() > LONGEST_RECORD as usize {
                return Err(format!("row {}: more than 64 MiB", row.line));
            }
            row.fields.push_field(&text);
        }
        self.next_ahead += 1;
        self.n_rows += 1;
        Ok(true)
    }

    /// Fills `ahead` from the open group, or from the next one that has rows.
    fn read_ahead(&mut self) -> Result<(), String> {
        (self.n_ahead, self.next_ahead) = (0, 0);
        while self.left == 0 {
            if self.next_group >= self.reader.num_row_groups() {
                return Ok(());
            }
            self.open_group()?;
        }
        let n = self.left.min(BATCH);
        for (index, reader) in self.open.iter_mut().enumerate() {
            let name = &self.columns[index];
            let ahead = match self.lists[index] {
                Some(list) => list.read(reader, n),
                None => read_column(reader, self.meanings[index], n),
            };
            let ahead = ahead.map_err(|reason| format!("column `{name}`, row {}: {reason}", self.n_rows + 1))?;
            if ahead.len() != n {
                return Err(format!("column `{name}` is shorter than its row group"));
            }
            self.ahead[index] = ahead;
        }
        self.left -= n;
        self.n_ahead = n;
        Ok(())
    }

    fn open_group(&mut self) -> Result<(), String> {
        let group = self.reader.get_row_group(self.next_group).map_err(|error| unreadable(&error))?;
        self.left = usize::try_from(group.metadata().num_rows()).map_err(|_| "has a negative number of rows")?;
        let schema = group.metadata().schema_descr_ptr();
        self.open = (0..self.columns.len())
            .map(|column| {
                let pages = group.get_column_page_reader(column).map_err(|error| unreadable(&error))?;
                let column = schema.column(column);
                let pages = SoundPages::of(&column, pages);
                Ok(get_column_reader(column, Box::new(pages)))
            })
            .collect::<Result<_, String>>()?;
        self.next_group += 1;
        Ok(())
    }
}

thread_local! {
    /// Whether this thread is in the reader of Parquet.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The reader panics on some damaged pages: an error like any other, and nothing on standard error.
fn caught<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !INSIDE.get() {
                before(info);
            }
        }));
    });
    INSIDE.set(true);
    // A read that panicked is not continued.
    let found = panic::catch_unwind(AssertUnwindSafe(read));
    INSIDE.set(false);
    found.unwrap_or_else(|_| Err("cannot be read as Parquet: a page is damaged".into()))
}

fn unreadable(error: &ParquetError) -> String {
    format!("cannot be read as Parquet: {error}")
}

/// `None` for types that are no numbers, texts or points in time.
fn meaning(column: &ColumnDescriptor) -> Option<Meaning> {
    let scale = || usize::try_from(column.type_scale()).ok().filter(|&scale| scale <= 100);
    match column.logical_type_ref() {
        Some(LogicalType::Decimal(_)) => return scale().map(|scale| Meaning::Decimal { scale }),
        Some(LogicalType::Timestamp(time)) => {
            let per_second = per_second(time.unit);
            return Some(Meaning::Instant { per_second, is_utc: time.is_adjusted_to_u_t_c });
        }
        Some(LogicalType::Time(time)) => {
            return Some(Meaning::Seconds { per_second: per_second(time.unit) as f64 });
        }
        Some(LogicalType::Date) => return Some(Meaning::Days),
        Some(LogicalType::Integer(integer)) if !integer.is_signed => return Some(Meaning::Unsigned),
        Some(
            LogicalType::String
            | LogicalType::Enum
            | LogicalType::Json
            | LogicalType::Integer(_)
            | LogicalType::Unknown,
        )
        | None => {}
        Some(_) => return None,
    }
    match (column.converted_type(), column.physical_type()) {
        (ConvertedType::DECIMAL, _) => scale().map(|scale| Meaning::Decimal { scale }),
        (ConvertedType::DATE, _) => Some(Meaning::Days),
        // This older type is that of a time in UTC.
        (ConvertedType::TIMESTAMP_MILLIS, _) => Some(Meaning::Instant { per_second: 1_000, is_utc: true }),
        (ConvertedType::TIMESTAMP_MICROS, _) => Some(Meaning::Instant { per_second: 1_000_000, is_utc: true }),
        (ConvertedType::TIME_MILLIS, _) => Some(Meaning::Seconds { per_second: 1e3 }),
        (ConvertedType::TIME_MICROS, _) => Some(Meaning::Seconds { per_second: 1e6 }),
        (ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64, _) => {
            Some(Meaning::Unsigned)
        }
        (ConvertedType::NONE, Physical::BYTE_ARRAY) => Some(Meaning::Bytes),
        (ConvertedType::BSON | ConvertedType::INTERVAL, _) | (_, Physical::FIXED_LEN_BYTE_ARRAY) => None,
        _ => Some(Meaning::Plain),
    }
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::MILLIS => 1_000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000_000_000,
    }
}

/// Values of one column that were read ahead.
pub(crate) enum BatchColumn {
    /// Numbers and lists, written as texts.
    Written(Texts),
    /// Texts where the file has them: thousands of rows may share a long one.
    Shared { values: Vec<Option<ByteArray>>, may_be_bytes: bool },
}

impl BatchColumn {
    fn len(&self) -> usize {
        match self {
            Self::Written(texts) => texts.ends.len(),
            Self::Shared { values, .. } => values.len(),
        }
    }

    fn get(&self, index: usize) -> Result<Cow<'_, str>, String> {
        match self {
            Self::Written(texts) => Ok(texts.get(index).into()),
            Self::Shared { values, may_be_bytes } => match &values[index] {
                Some(value) => match str::from_utf8(value.data()) {
                    Ok(text) => Ok(text.into()),
                    Err(_) if *may_be_bytes => Ok(format!("{BYTES}{}", hex::encode(value.data())).into()),
                    Err(_) => Err("not UTF-8 text".into()),
                },
                None => Ok("".into()),
            },
        }
    }
}

/// Texts, one behind the other.
#[derive(Default)]
pub(crate) struct Texts {
    pub(crate) text: String,
    ends: Vec<usize>,
}

impl Texts {
    fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }

    /// Closes the text that was written to.
    pub(crate) fn end(&mut self) {
        self.ends.push(self.text.len());
    }
}

fn skip(reader: &mut ColumnReader, n: usize) -> Result<usize, ParquetError> {
    match reader {
        ColumnReader::BoolColumnReader(reader) => reader.skip_records(n),
        ColumnReader::Int32ColumnReader(reader) => reader.skip_records(n),
        ColumnReader::Int64ColumnReader(reader) => reader.skip_records(n),
        ColumnReader::Int96ColumnReader(reader) => reader.skip_records(n),
        ColumnReader::FloatColumnReader(reader) => reader.skip_records(n),
        ColumnReader::DoubleColumnReader(reader) => reader.skip_records(n),
        ColumnReader::ByteArrayColumnReader(reader) => reader.skip_records(n),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => reader.skip_records(n),
    }
}

fn read_column(reader: &mut ColumnReader, meaning: Meaning, n: usize) -> Result<BatchColumn, String> {
    match reader {
        ColumnReader::BoolColumnReader(reader) => written(reader, n, |value, text| {
            text.push_str(if *value { "true" } else { "false" });
            Ok(())
        }),
        ColumnReader::Int32ColumnReader(reader) => written(reader, n, |value, text| {
            let unsigned = meaning == Meaning::Unsigned;
            integer(if unsigned { i128::from(value.cast_unsigned()) } else { i128::from(*value) }, meaning, text)
        }),
        ColumnReader::Int64ColumnReader(reader) => written(reader, n, |value, text| {
            let unsigned = meaning == Meaning::Unsigned;
            integer(if unsigned { i128::from(value.cast_unsigned()) } else { i128::from(*value) }, meaning, text)
        }),
        ColumnReader::Int96ColumnReader(reader) => {
            written(reader, n, |value: &Int96, text| instant(value.to_nanos(), 1_000_000_000, false, text))
        }
        ColumnReader::FloatColumnReader(reader) => written(reader, n, |value, text| {
            // The shortest decimal of the single, which is what a reader of the table sees.
            if !value.is_nan() {
                text.push_str(&value.to_string());
            }
            Ok(())
        }),
        ColumnReader::DoubleColumnReader(reader) => written(reader, n, |value, text| {
            real(*value, text);
            Ok(())
        }),
        ColumnReader::ByteArrayColumnReader(reader) => {
            if let Meaning::Decimal { scale } = meaning {
                return written(reader, n, |value, text| long_decimal(value.data(), scale, text));
            }
            let mut shared = Vec::with_capacity(n);
            values(reader, n, |value| {
                shared.push(value.cloned());
                Ok(())
            })?;
            Ok(BatchColumn::Shared { values: shared, may_be_bytes: meaning == Meaning::Bytes })
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) => match meaning {
            Meaning::Decimal { scale } => written(reader, n, |value, text| long_decimal(value.data(), scale, text)),
            _ => Err("no decimal number".into()),
        },
    }
}

/// Reads `n` values, each written as text by `write`; nulls are empty texts.
fn written<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    n: usize,
    write: impl Fn(&T::T, &mut String) -> Result<(), String>,
) -> Result<BatchColumn, String> {
    let mut texts = Texts::default();
    values(reader, n, |value| {
        if let Some(value) = value {
            write(value, &mut texts.text)?;
        }
        texts.end();
        Ok(())
    })?;
    Ok(BatchColumn::Written(texts))
}

/// Hands on `n` values, or all that there are; nulls are `None`.
fn values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    n: usize,
    mut take: impl FnMut(Option<&T::T>) -> Result<(), String>,
) -> Result<(), String> {
    let (mut present, mut levels) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let mut left = n;
    while left > 0 {
        present.clear();
        levels.clear();
        let (n_records, _, _) =
            reader.read_records(left, Some(&mut levels), None, &mut present).map_err(|error| error.to_string())?;
        if n_records == 0 {
            return Ok(());
        }
        let mut present = present.iter();
        // A column that has no nulls has no levels.
        for index in 0..n_records {
            let is_null = levels.get(index).is_some_and(|level| *level == 0);
            take(if is_null { None } else { Some(present.next().ok_or("fewer values than rows")?) })?;
        }
        left = left.saturating_sub(n_records);
    }
    Ok(())
}

fn integer(value: i128, meaning: Meaning, text: &mut String) -> Result<(), String> {
    match meaning {
        Meaning::Days => return instant(value as i64 * 86_400, 1, false, text),
        Meaning::Instant { per_second, is_utc } => return instant(value as i64, per_second, is_utc, text),
        Meaning::Decimal { scale } => decimal(value, scale, text),
        Meaning::Seconds { per_second } => real(value as f64 / per_second, text),
        Meaning::Plain | Meaning::Bytes | Meaning::Unsigned => text.push_str(&value.to_string()),
    }
    Ok(())
}

/// A point in time as pandas and polars write it to a text.
fn instant(value: i64, per_second: i64, is_utc: bool, text: &mut String) -> Result<(), String> {
    let found = date_format::text_of(value, per_second, is_utc).ok_or_else(|| {
        format!("{value} of {per_second} to the second since 1970 is no date of the years −9999 to 9999")
    })?;
    text.push_str(&found);
    Ok(())
}

/// NaN is a missing value.
fn real(value: f64, text: &mut String) {
    if !value.is_nan() {
        text.push_str(&value.to_string());
    }
}

/// A big-endian integer of any length as a decimal.
fn long_decimal(value: &[u8], scale: usize, text: &mut String) -> Result<(), String> {
    if value.len() > 16 {
        return Err(format!("a decimal of {} bytes, at most 16 are supported", value.len()));
    }
    let negative = value.first().is_some_and(|byte| byte & 0x80 != 0);
    let unscaled = value.iter().fold(if negative { -1i128 } else { 0 }, |sum, byte| sum << 8 | i128::from(*byte));
    decimal(unscaled, scale, text);
    Ok(())
}

/// Digits with a point before the last `scale` of them.
fn decimal(value: i128, scale: usize, text: &mut String) {
    if value < 0 {
        text.push('-');
    }
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    text.push_str(whole);
    if scale > 0 {
        text.push('.');
        text.push_str(fraction);
    }
}
