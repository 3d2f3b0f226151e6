//! Answers for a table in files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fairdp::{NewTableOptions, PredictOptions};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors;

/// Writes answers to a file, and returns counts and remarks as JSON.
#[pyfunction]
#[pyo3(signature = (folder, table, out, *, keep = Vec::new(), explain = 0, strict = false, encoding = None,
    vectors = BTreeMap::new()))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python function")]
pub(super) fn predict(
    py: Python<'_>,
    folder: PathBuf,
    table: Vec<String>,
    out: PathBuf,
    keep: Vec<String>,
    explain: usize,
    strict: bool,
    encoding: Option<String>,
    vectors: BTreeMap<String, Vec<String>>,
) -> PyResult<String> {
    let read_as = NewTableOptions { encoding, vectors, ..NewTableOptions::default() };
    let options = PredictOptions { is_strict: strict, keep, reasons: explain, table: read_as };
    let predicted = py.detach(|| fairdp::predict(&folder, &table, &out, &options)).map_err(errors::fairdp_error)?;
    serde_json::to_string(&predicted).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
