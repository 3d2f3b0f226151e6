//! The file of predictions: delimited text or Parquet.

use std::io::{self, Write};
use std::sync::Arc;

use dp_table::StoredAs;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::output_format::{OutputFormat, TextOutput};

/// Rows of one row group.
const GROUP: usize = 65_536;

/// Rows on their way to a file. In text a value that is not there is empty; in Parquet it is null.
pub(crate) enum Predictions<W: Write + Send> {
    Text(Box<csv::Writer<TextOutput<W>>>),
    Parquet { file: Box<SerializedFileWriter<W>>, columns: Vec<Column>, rows: usize },
}

/// One value of a row.
pub(crate) enum Cell<'a> {
    /// Not there.
    Empty,
    Integer(i64),
    Number(f64),
    /// In a column of another type the text of such a value; empty if there is none.
    Text(&'a str),
}

/// Values of the row group that is filled.
pub(crate) struct Column {
    values: Values,
    /// For every row 1 if it has a value, else 0.
    levels: Vec<i16>,
}

enum Values {
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Truths(Vec<bool>),
    Texts(Vec<ByteArray>),
}

impl<W: Write + Send> Predictions<W> {
    /// An output with these columns. A text file has them as texts, whatever their type.
    pub(crate) fn new(format: OutputFormat, columns: &[(String, StoredAs)], out: W) -> io::Result<Self> {
        if let OutputFormat::Text { delimiter, compression } = format {
            let out = TextOutput::new(out, compression)?;
            let mut lines = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
            lines.write_record(columns.iter().map(|(name, _)| name)).map_err(unwrapped)?;
            return Ok(Self::Text(Box::new(lines)));
        }
        let field = |(name, stored_as): &(String, StoredAs)| {
            let (physical, text) = match stored_as {
                StoredAs::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                StoredAs::Integer => (Physical::INT64, None),
                StoredAs::Number => (Physical::DOUBLE, None),
                StoredAs::Truth => (Physical::BOOLEAN, None),
            };
            let field = Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(text)
                .build();
            field.map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<_, _>>().map_err(refused)?;
        let schema = Type::group_type_builder("predictions").with_fields(fields).build().map_err(refused)?;
        let properties = Arc::new(WriterProperties::builder().set_created_by("fairdp predict".to_owned()).build());
        let file = Box::new(SerializedFileWriter::new(out, Arc::new(schema), properties).map_err(refused)?);
        let columns = columns.iter().map(|(_, stored_as)| Column::new(*stored_as)).collect();
        Ok(Self::Parquet { file, columns, rows: 0 })
    }

    /// One value for each column.
    pub(crate) fn push<'c>(&mut self, cells: impl Iterator<Item = Cell<'c>>) -> io::Result<()> {
        match self {
            Self::Text(lines) => {
                for cell in cells {
                    match cell {
                        Cell::Empty => lines.write_field(""),
                        Cell::Integer(value) => lines.write_field(value.to_string()),
                        Cell::Number(value) => lines.write_field(value.to_string()),
                        Cell::Text(text) => lines.write_field(text),
                    }
                    .map_err(unwrapped)?;
                }
                lines.write_record(None::<&[u8]>).map_err(unwrapped)
            }
            Self::Parquet { file, columns, rows } => {
                columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(&cell));
                *rows += 1;
                if *rows < GROUP {
                    return Ok(());
                }
                *rows = 0;
                write_group(file, columns).map_err(refused)
            }
        }
    }

    pub(crate) fn end(self) -> io::Result<()> {
        match self {
            Self::Text(lines) => lines.into_inner().map_err(csv::IntoInnerError::into_error)?.end(),
            Self::Parquet { mut file, mut columns, rows } => {
                if rows > 0 {
                    write_group(&mut file, &mut columns).map_err(refused)?;
                }
                file.close().map(drop).map_err(refused)
            }
        }
    }
}

impl Column {
    fn new(stored_as: StoredAs) -> Self {
        let values = match stored_as {
            StoredAs::Text => Values::Texts(Vec::new()),
            StoredAs::Integer => Values::Integers(Vec::new()),
            StoredAs::Number => Values::Numbers(Vec::new()),
            StoredAs::Truth => Values::Truths(Vec::new()),
        };
        Self { values, levels: Vec::new() }
    }

    fn push(&mut self, cell: &Cell<'_>) {
        fn kept<T>(values: &mut Vec<T>, value: Option<T>) -> bool {
            let n = values.len();
            values.extend(value);
            values.len() > n
        }
        let is_there = match (&mut self.values, cell) {
            (Values::Texts(texts), Cell::Text(text)) if !text.is_empty() => kept(texts, Some(ByteArray::from(*text))),
            (Values::Integers(values), Cell::Integer(value)) => kept(values, Some(*value)),
            (Values::Integers(values), Cell::Text(text)) => kept(values, text.parse().ok()),
            (Values::Numbers(values), Cell::Number(value)) => kept(values, Some(*value)),
            (Values::Numbers(values), Cell::Text(text)) => kept(values, text.parse().ok()),
            (Values::Truths(values), Cell::Text(text)) => kept(values, text.parse().ok()),
            _ => false,
        };
        self.levels.push(i16::from(is_there));
    }
}

fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &mut [Column],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for Column { values, levels } in columns {
        match values {
            Values::Integers(values) => write_column::<Int64Type, W>(&mut group, values, levels)?,
            Values::Numbers(values) => write_column::<DoubleType, W>(&mut group, values, levels)?,
            Values::Truths(values) => write_column::<BoolType, W>(&mut group, values, levels)?,
            Values::Texts(values) => write_column::<ByteArrayType, W>(&mut group, values, levels)?,
        }
    }
    group.close().map(drop)
}

fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &mut Vec<T::T>,
    levels: &mut Vec<i16>,
) -> Result<(), ParquetError> {
    if let Some(mut writer) = group.next_column()? {
        writer.typed::<T>().write_batch(values, Some(levels), None)?;
        writer.close()?;
    }
    values.clear();
    levels.clear();
    Ok(())
}

/// The error of the system, whose kind says whether a reader is gone.
fn unwrapped(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

fn refused(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
