//! The file of predictions: CSV, or Parquet where its name ends so.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

/// Rows of one row group.
const GROUP: usize = 65_536;

/// Rows on their way to a file: `row` from 1, `prediction`, `p_<class>` for every class. Without an
/// answer all but the first are empty; in Parquet they are null.
pub(crate) enum Predictions<'a, W: Write + Send> {
    Csv { lines: csv::Writer<W>, classes: &'a [String], fields: Vec<String> },
    Parquet { file: SerializedFileWriter<W>, classes: &'a [String], kept: RowGroup },
}

/// Rows of the row group that is filled.
#[derive(Default)]
pub(crate) struct RowGroup {
    rows: Vec<i64>,
    /// For every row 1 if it has an answer, else 0.
    levels: Vec<i16>,
    predictions: Vec<ByteArray>,
    /// By class.
    probabilities: Vec<Vec<f64>>,
}

impl<'a, W: Write + Send> Predictions<'a, W> {
    pub(crate) fn new(path: &Path, classes: &'a [String], out: W) -> io::Result<Self> {
        let names = ["row".to_owned(), "prediction".to_owned()].into_iter();
        let names: Vec<String> = names.chain(classes.iter().map(|class| format!("p_{class}"))).collect();
        let is_parquet = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
        if !is_parquet {
            let mut lines = csv::Writer::from_writer(out);
            lines.write_record(&names)?;
            return Ok(Self::Csv { lines, classes, fields: Vec::new() });
        }
        let field = |(place, name): (usize, &String)| {
            let (physical, text) = match place {
                0 => (Physical::INT64, None),
                1 => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                _ => (Physical::DOUBLE, None),
            };
            let field = Type::primitive_type_builder(name, physical)
                .with_repetition(if place == 0 { Repetition::REQUIRED } else { Repetition::OPTIONAL })
                .with_logical_type(text)
                .build();
            field.map(Arc::new)
        };
        let fields = names.iter().enumerate().map(field).collect::<Result<_, _>>().map_err(refused)?;
        let schema = Type::group_type_builder("predictions").with_fields(fields).build().map_err(refused)?;
        let properties = Arc::new(WriterProperties::builder().set_created_by("fairdp predict".to_owned()).build());
        let file = SerializedFileWriter::new(out, Arc::new(schema), properties).map_err(refused)?;
        Ok(Self::Parquet { file, classes, kept: RowGroup::default() })
    }

    /// A row's class, as a position, and the probabilities of all; `None` if it has no answer.
    pub(crate) fn push(&mut self, row: u64, answer: Option<(usize, &[f64])>) -> io::Result<()> {
        match self {
            Self::Csv { lines, classes, fields } => {
                fields.clear();
                fields.push(row.to_string());
                match answer {
                    Some((class, probabilities)) => {
                        fields.push(classes[class].clone());
                        fields.extend(probabilities.iter().map(f64::to_string));
                    }
                    None => fields.resize(classes.len() + 2, String::new()),
                }
                Ok(lines.write_record(&*fields)?)
            }
            Self::Parquet { file, classes, kept } => {
                kept.rows.push(row.cast_signed());
                kept.levels.push(i16::from(answer.is_some()));
                kept.probabilities.resize(classes.len(), Vec::new());
                if let Some((class, probabilities)) = answer {
                    kept.predictions.push(ByteArray::from(classes[class].as_str()));
                    for (column, probability) in kept.probabilities.iter_mut().zip(probabilities) {
                        column.push(*probability);
                    }
                }
                if kept.rows.len() < GROUP { Ok(()) } else { kept.write(file).map_err(refused) }
            }
        }
    }

    pub(crate) fn end(self) -> io::Result<()> {
        match self {
            Self::Csv { mut lines, .. } => lines.flush(),
            Self::Parquet { mut file, mut kept, .. } => {
                if !kept.rows.is_empty() {
                    kept.write(&mut file).map_err(refused)?;
                }
                file.close().map(drop).map_err(refused)
            }
        }
    }
}

impl RowGroup {
    fn write<W: Write + Send>(&mut self, file: &mut SerializedFileWriter<W>) -> Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        column::<Int64Type, W>(&mut group, &self.rows, None)?;
        column::<ByteArrayType, W>(&mut group, &self.predictions, Some(&self.levels))?;
        for values in &self.probabilities {
            column::<DoubleType, W>(&mut group, values, Some(&self.levels))?;
        }
        group.close()?;
        self.rows.clear();
        self.levels.clear();
        self.predictions.clear();
        self.probabilities.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    if let Some(mut writer) = group.next_column()? {
        writer.typed::<T>().write_batch(values, levels, None)?;
        writer.close()?;
    }
    Ok(())
}

fn refused(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
