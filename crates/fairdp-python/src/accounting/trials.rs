//! How often a search runs.

use pyo3::prelude::*;

use crate::count::Count;
use crate::errors;

/// Distribution of the number of runs of a search that releases only its best result.
#[pyclass(frozen, eq, from_py_object, module = "fairdp.accounting")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TrialCount(pub(crate) dp_accounting::TrialCount);

#[pymethods]
impl TrialCount {
    /// Truncated negative binomial: `shape` 0 is the logarithmic, 1 the geometric distribution.
    #[staticmethod]
    fn negative_binomial(shape: f64, gamma: f64) -> PyResult<Self> {
        dp_accounting::TrialCount::negative_binomial(shape, gamma).map(Self).map_err(errors::accounting_error)
    }

    /// Truncated negative binomial with a given mean.
    #[staticmethod]
    fn negative_binomial_with_mean(shape: f64, mean: f64) -> PyResult<Self> {
        dp_accounting::TrialCount::negative_binomial_with_mean(shape, mean).map(Self).map_err(errors::accounting_error)
    }

    /// Poisson: no run at all is possible.
    #[staticmethod]
    fn poisson(mean: f64) -> PyResult<Self> {
        dp_accounting::TrialCount::poisson(mean).map(Self).map_err(errors::accounting_error)
    }

    /// Expected number of runs.
    #[getter]
    fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// Natural logarithm of the probability of `count` runs.
    fn log_probability(&self, count: Count) -> f64 {
        self.0.log_probability(count.0)
    }

    /// Number of runs at a quantile: with a secret uniform number in [0, 1), a sample.
    fn quantile(&self, py: Python<'_>, uniform: f64) -> u64 {
        py.detach(|| self.0.quantile(uniform))
    }

    fn __repr__(&self) -> String {
        format!("<TrialCount: {}>", self.0)
    }
}
