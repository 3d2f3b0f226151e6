//! JSON forms, and pickles made of them.

use pyo3::prelude::*;
use serde::{Serialize, de::DeserializeOwned};

use crate::errors::AccountingError;

/// The result of `__reduce__`: a function, and its arguments.
pub(crate) type Reduced = (Py<PyAny>, (String,));

/// The JSON form of a value.
pub(crate) fn to_json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| AccountingError::new_err(error.to_string()))
}

/// The value of a JSON form.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| AccountingError::new_err(error.to_string()))
}

/// A pickle: the class's own `from_json`, and the JSON form of the object.
pub(crate) fn reduce(object: &Bound<'_, PyAny>, json: String) -> PyResult<Reduced> {
    Ok((object.get_type().getattr("from_json")?.unbind(), (json,)))
}
