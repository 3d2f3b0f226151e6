//! The meaning of texts, as the library reads them from a table.

use std::path::Path;

use dp_table::{BadRows, Column, Encoding, Label, MemoryColumn, MemoryTable, Schema, TableError, TableFiles, TableRow};
use fairdp::FairdpError;
use pyo3::prelude::*;

use crate::errors;

/// The position of the declared value of a column that each text means; None where there is none.
#[pyfunction]
pub(super) fn places(
    py: Python<'_>,
    column: String,
    declared: Vec<String>,
    texts: Vec<String>,
) -> PyResult<Vec<Option<usize>>> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let found = py.detach(|| found(column, declared, texts));
    found.map_err(|error| errors::fairdp_error(FairdpError::from(error)))
}

/// The texts without those that mean the value of an earlier one.
#[pyfunction]
pub(super) fn distinct(py: Python<'_>, texts: Vec<String>) -> Vec<String> {
    py.detach(|| {
        if encoding("x", texts.clone()).is_ok() {
            return texts;
        }
        texts.into_iter().fold(Vec::new(), |mut kept, text| {
            kept.push(text);
            if encoding("x", kept.clone()).is_err() {
                kept.pop();
            }
            kept
        })
    })
}

fn found(column: String, declared: Vec<String>, texts: Vec<String>) -> Result<Vec<Option<usize>>, TableError> {
    let (n_declared, n_texts) = (declared.len(), texts.len());
    let encoding = encoding(&column, declared)?;
    let texts = MemoryColumn::Texts { levels: texts, positions: (0..n_texts as u32).collect() };
    let files = TableFiles::in_memory(MemoryTable::new("values", vec![(column, texts)])?);
    let mut reader = files.open()?;
    let mut encoder = encoding.encoder(reader.columns(), Path::new("values"))?;
    let (mut row, mut features) = (TableRow::default(), vec![0.0; encoding.width()]);
    let mut places = Vec::with_capacity(n_texts);
    while reader.read(&mut row)? {
        encoder.encode(&row, &mut features)?;
        places.push(features.iter().take(n_declared).position(|feature| *feature != 0.0));
    }
    Ok(places)
}

/// A table of one category.
fn encoding(column: &str, values: Vec<String>) -> Result<Encoding, TableError> {
    Encoding::new(&Schema {
        columns: vec![(column.to_owned(), Column::Category { values, other: true, missing: false })],
        label: Label::of_classes(format!("{column} label"), vec!["0".into(), "1".into()]),
        groups: Vec::new(),
        group_as_input: false,
        unit: None,
        weight: None,
        bad_rows: BadRows::Refuse,
        missing: vec![String::new()],
    })
}
