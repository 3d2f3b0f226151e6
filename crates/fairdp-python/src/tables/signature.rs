//! Who made a release.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::errors;

/// Makes a pair of keys, and returns their files: the secret and the public one.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
pub(super) fn keygen(out: PathBuf) -> PyResult<[PathBuf; 2]> {
    fairdp::generate_key(&out).map_err(errors::fairdp_error)
}

/// Signs a release that holds, and returns the signature's file.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
pub(super) fn sign(py: Python<'_>, folder: PathBuf, key: PathBuf) -> PyResult<PathBuf> {
    py.detach(|| fairdp::sign(&folder, &key)).map_err(errors::fairdp_error)
}
