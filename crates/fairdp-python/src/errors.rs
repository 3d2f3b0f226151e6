//! The Rust errors as Python exceptions: one class per crate, with the Rust text.

use dp_accounting::AccountingError as RustAccountingError;
use dp_clipping::ClipError as RustClipError;
use fair_metrics::MetricError as RustMetricError;
use fairdp::FairdpError;
use pyo3::exceptions::PyValueError;
use pyo3::{PyErr, create_exception};

create_exception!(fairdp, AccountingError, PyValueError, "An accounting question has no answer.");
create_exception!(fairdp, ClipError, PyValueError, "A clipping method cannot work with these arguments.");
create_exception!(fairdp, FairDPError, PyValueError, "A table was refused, a run stopped or a release does not hold.");
create_exception!(fairdp, MetricError, PyValueError, "A metric cannot be computed from these arguments.");

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn accounting_error(error: RustAccountingError) -> PyErr {
    AccountingError::new_err(error.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn clip_error(error: RustClipError) -> PyErr {
    ClipError::new_err(error.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn fairdp_error(error: FairdpError) -> PyErr {
    FairDPError::new_err(error.in_full())
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn metric_error(error: RustMetricError) -> PyErr {
    MetricError::new_err(error.to_string())
}
