//! Whole numbers.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::AccountingError;

/// A whole number in [0, 2⁶⁴). Python's own conversion would raise an `OverflowError` for others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for Count {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        object.extract::<u64>().map(Self).map_err(|error| {
            if error.is_instance_of::<PyOverflowError>(object.py()) {
                AccountingError::new_err(format!("{} is not a count, expected a whole number in [0, 2^64)", *object))
            } else {
                error
            }
        })
    }
}
