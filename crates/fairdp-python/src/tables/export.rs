//! A release in the forms that others ask for.

use std::path::PathBuf;

use fairdp::Exported;
use pyo3::prelude::*;

use crate::errors;

/// An entry of the DP Deployments Registry, and what is missing in it.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
pub(super) fn registry_entry(py: Python<'_>, folder: PathBuf) -> PyResult<(String, Vec<String>)> {
    in_python(py.detach(|| fairdp::registry_entry(&folder)))
}

/// A model card of Hugging Face, and what is missing in it.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
pub(super) fn model_card(py: Python<'_>, folder: PathBuf) -> PyResult<(String, Vec<String>)> {
    in_python(py.detach(|| fairdp::model_card(&folder)))
}

fn in_python(exported: fairdp::Result<Exported>) -> PyResult<(String, Vec<String>)> {
    let exported = exported.map_err(errors::fairdp_error)?;
    Ok((exported.text, exported.missing))
}
