//! A method's answer.

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;

/// One noisy count that was released on a batch.
#[pyclass(frozen, get_all, eq, from_py_object, module = "fairdp.clipping")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CountQuery {
    /// The counted quantity.
    name: String,
    /// Standard deviation of the noise over `l2_sensitivity`.
    noise_multiplier: f64,
    /// Largest change when one record is added or removed.
    l2_sensitivity: f64,
    /// The noisy values; empty for a planned query.
    released: Vec<f64>,
}

impl CountQuery {
    pub(crate) fn of(query: &dp_clipping::CountQuery) -> Self {
        let dp_clipping::CountQuery { name, noise_multiplier, l2_sensitivity, released, .. } = query.clone();
        Self { name, noise_multiplier, l2_sensitivity, released }
    }
}

#[pymethods]
impl CountQuery {
    fn __repr__(&self) -> String {
        let Self { name, noise_multiplier, released, .. } = self;
        format!("CountQuery(name='{name}', noise_multiplier={noise_multiplier}, released={released:?})")
    }
}

/// A method's answer to one batch: `scales, bound, queries = clipped`.
#[pyclass(frozen, get_all, module = "fairdp.clipping")]
pub(crate) struct Clipped {
    /// Factor of each record's gradient; 0 for a norm that is not finite.
    scales: Py<PyArray1<f64>>,
    /// Sensitivity of the scaled sum when one record is added or removed.
    bound: f64,
    /// Every noisy count made on this batch.
    queries: Vec<CountQuery>,
    /// The bound for the records of each group.
    group_bounds: Vec<f64>,
    /// Thresholds in force at this step.
    thresholds: Vec<f64>,
    /// Records whose norm was not finite. Not private.
    n_non_finite: usize,
    /// Records whose scale broke the bound and was lowered. Not private.
    n_capped: usize,
}

impl Clipped {
    pub(crate) fn of(py: Python<'_>, clipped: dp_clipping::Clipped) -> Self {
        Self {
            scales: clipped.scales.to_pyarray(py).unbind(),
            bound: clipped.bound,
            queries: clipped.queries.iter().map(CountQuery::of).collect(),
            group_bounds: clipped.group_bounds,
            thresholds: clipped.thresholds,
            n_non_finite: clipped.n_non_finite,
            n_capped: clipped.n_capped,
        }
    }
}

#[pymethods]
impl Clipped {
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        (self.scales.clone_ref(py), self.bound, self.queries.clone())
            .into_pyobject(py)?
            .as_any()
            .try_iter()
            .map(Bound::into_any)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let n = self.scales.bind(py).as_any().len().unwrap_or(0);
        format!("<Clipped: {n} records (not private), bound {}, {} queries>", self.bound, self.queries.len())
    }
}
