//! Names of things, as in the JSON forms.

use pyo3::prelude::*;
use serde::de::DeserializeOwned;

use crate::errors::AccountingError;

/// The thing of this name.
pub(crate) fn named<T: DeserializeOwned>(parameter: &str, name: &str) -> PyResult<T> {
    let value = serde_json::Value::String(name.to_owned());
    serde_json::from_value(value).map_err(|error| AccountingError::new_err(format!("{parameter}: {error}")))
}

/// The name of this thing.
pub(crate) fn name_of(thing: &impl serde::Serialize) -> String {
    match serde_json::to_value(thing) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}
