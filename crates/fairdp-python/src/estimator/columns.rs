//! Columns as Python hands them over.

use dp_table::{MemoryColumn, MemoryTable};
use fairdp::FairdpError;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::errors;

/// Numbers; texts as a list of those that occur with one position per record; or sparse numbers: their
/// count, the number of most of them, the rows of the others and these.
#[derive(FromPyObject)]
pub(crate) enum Column<'py> {
    Numbers(PyReadonlyArray1<'py, f64>),
    Texts(Vec<String>, PyReadonlyArray1<'py, u32>),
    Sparse(usize, f64, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>),
}

/// A table with the name `X`.
pub(crate) fn table(columns: Vec<(String, Column<'_>)>) -> PyResult<MemoryTable> {
    let column = |(name, column): (String, Column<'_>)| {
        let values = match column {
            Column::Numbers(values) => MemoryColumn::Numbers(values.as_array().to_vec()),
            Column::Texts(levels, positions) => {
                MemoryColumn::Texts { levels, positions: positions.as_array().to_vec() }
            }
            Column::Sparse(len, fill, rows, values) => {
                let (rows, values) = (rows.as_array().to_vec(), values.as_array().to_vec());
                MemoryColumn::Sparse { len, fill, rows, values }
            }
        };
        (name, values)
    };
    let columns = columns.into_iter().map(column).collect();
    MemoryTable::new("X", columns).map_err(|error| errors::fairdp_error(FairdpError::from(error)))
}
