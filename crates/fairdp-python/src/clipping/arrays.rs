//! Arrays from Python, as vectors. They are short: one number for each record.

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;

use crate::errors::ClipError;

/// The numbers of an array.
pub(crate) fn values(array: &Bound<'_, PyArray1<f64>>) -> PyResult<Vec<f64>> {
    Ok(array.try_readonly()?.as_array().to_vec())
}

/// Groups of `n` records: the array, or group 0 for all.
pub(crate) fn groups(groups: Option<&Bound<'_, PyArray1<i64>>>, n: usize) -> PyResult<Vec<usize>> {
    let Some(groups) = groups else { return Ok(vec![0; n]) };
    let index = |(record, &group): (usize, &i64)| {
        usize::try_from(group)
            .map_err(|_| ClipError::new_err(format!("groups[{record}] = {group}: expected at least 0")))
    };
    groups.try_readonly()?.as_array().iter().enumerate().map(index).collect()
}
