//! A table as one Parquet row group.
//!
//! The column writers of the `parquet` crate are used as they are: without its `arrow` layer and
//! compression codecs it adds few dependencies, and tables of runs are small.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;
use anyhow::Context;

use crate::table::{Column, Kind, Value};

/// Writes rows with these columns; every column may be null.
///
/// # Errors
/// If `out` refuses.
pub(super) fn write(columns: &[Column], rows: &[Vec<Value>], out: &mut (impl Write + Send)) -> anyhow::Result<()> {
    let fields = columns.iter().map(|column| field(*column)).collect::<anyhow::Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("runs").with_fields(fields).build().context("the schema")?;
    let properties =
        Arc::new(WriterProperties::builder().set_created_by("cargo xtask results export".to_owned()).build());
    let mut file = SerializedFileWriter::new(out, Arc::new(schema), properties)?;
    let mut group = file.next_row_group()?;
    let mut index = 0;
    while let Some(mut writer) = group.next_column()? {
        let values = rows.iter().map(|row| &row[index]);
        match writer.untyped() {
            ColumnWriter::Int64ColumnWriter(typed) => {
                let (present, levels) = split(values, |value| match value {
                    Value::Integer(number) => Some(*number),
                    _ => None,
                });
                typed.write_batch(&present, Some(&levels), None)?;
            }
            ColumnWriter::DoubleColumnWriter(typed) => {
                let (present, levels) = split(values, |value| match value {
                    Value::Real(number) => Some(*number),
                    _ => None,
                });
                typed.write_batch(&present, Some(&levels), None)?;
            }
            ColumnWriter::ByteArrayColumnWriter(typed) => {
                let (present, levels) = split(values, |value| match value {
                    Value::Text(text) => Some(ByteArray::from(text.as_str())),
                    _ => None,
                });
                typed.write_batch(&present, Some(&levels), None)?;
            }
            _ => anyhow::bail!("column {index} has a type that was not asked for"),
        }
        writer.close()?;
        index += 1;
    }
    group.close()?;
    file.close()?;
    Ok(())
}

fn field((name, kind): Column) -> anyhow::Result<Arc<Type>> {
    let physical = match kind {
        Kind::Text => Physical::BYTE_ARRAY,
        Kind::Integer => Physical::INT64,
        Kind::Real => Physical::DOUBLE,
    };
    let text = (kind == Kind::Text).then_some(LogicalType::String);
    let field = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(text)
        .build()
        .with_context(|| format!("column {name}"))?;
    Ok(Arc::new(field))
}

/// The values that are there, and for each row whether it has one (definition level 1) or not (0).
fn split<'a, T>(values: impl Iterator<Item = &'a Value>, present: impl Fn(&Value) -> Option<T>) -> (Vec<T>, Vec<i16>) {
    let mut found = Vec::new();
    let levels = values
        .map(|value| match present(value) {
            Some(value) => {
                found.push(value);
                1
            }
            None => 0,
        })
        .collect();
    (found, levels)
}
