//! `fairdp.accounting`.

use pyo3::prelude::*;

#[pymodule]
pub(crate) mod accounting {}
