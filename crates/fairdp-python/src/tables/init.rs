//! A first configuration.

use std::collections::BTreeMap;

use fairdp::InitOptions;
use pyo3::prelude::*;

use crate::errors;

/// A configuration for a table, as text.
#[pyfunction]
#[pyo3(signature = (
    table, label, *, positive = None, groups = Vec::new(), group_as_input = false, unit = None, max_records_per_unit = None,
    weight = None, epsilon = None, delta = None, test_fraction = None, model = None, method = None, encoding = None,
    vectors = BTreeMap::new(), accept_uncovered = false))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python function")]
pub(super) fn init(
    py: Python<'_>,
    table: Vec<String>,
    label: String,
    positive: Option<String>,
    groups: Vec<String>,
    group_as_input: bool,
    unit: Option<String>,
    max_records_per_unit: Option<u64>,
    weight: Option<String>,
    epsilon: Option<f64>,
    delta: Option<f64>,
    test_fraction: Option<f64>,
    model: Option<String>,
    method: Option<String>,
    encoding: Option<String>,
    vectors: BTreeMap<String, Vec<String>>,
    accept_uncovered: bool,
) -> PyResult<String> {
    let options = InitOptions {
        label,
        positive,
        groups,
        group_as_input,
        unit,
        max_records_per_unit,
        weight,
        epsilon,
        delta,
        test_fraction,
        model,
        method,
        encoding,
        delimiter: None,
        quote: None,
        vectors,
        accept_uncovered,
        named: None,
        reading: None,
    };
    py.detach(|| fairdp::init(&table, &options)).map_err(errors::fairdp_error)
}

/// The δ of a table of so many records, where none is given.
#[pyfunction]
pub(super) fn default_delta(records: u64) -> f64 {
    fairdp::default_delta(records)
}
