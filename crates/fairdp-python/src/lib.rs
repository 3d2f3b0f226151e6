//! The Rust part of the Python package `fairdp`: see the package's README and its type stubs.

mod accounting;
mod audit;
mod clipping;
mod count;
mod errors;
mod estimator;
mod interruptible;
mod json;
mod metrics;
mod names;
mod running;
mod tables;

use pyo3::prelude::*;

/// The compiled part of the package. Its modules under `python/fairdp` are what users import.
#[pymodule]
mod _fairdp {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::accounting::accounting;
    #[pymodule_export]
    use crate::audit::audit;
    #[pymodule_export]
    use crate::clipping::clipping;
    #[pymodule_export]
    use crate::errors::{AccountingError, ClipError, FairDPError, MetricError};
    #[pymodule_export]
    use crate::estimator::estimator;
    #[pymodule_export]
    use crate::metrics::metrics;
    #[pymodule_export]
    use crate::tables::tables;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
