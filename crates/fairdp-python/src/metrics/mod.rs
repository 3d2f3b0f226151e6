//! `fairdp.metrics`: rates of binary decisions by group, as Fairlearn defines them.

mod frame;
mod records;

use pyo3::prelude::*;

#[pymodule]
pub(crate) mod metrics {
    #[pymodule_export]
    use super::frame::Frame;
    #[pymodule_export]
    use super::records::Records;
}
