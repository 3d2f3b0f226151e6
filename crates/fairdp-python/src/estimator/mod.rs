//! The base of `fairdp.FairDPClassifier`: training, predicting and checking, on tables in
//! memory.

pub(crate) mod columns;
mod fit;
mod model;
mod values;

use pyo3::prelude::*;

#[pymodule]
pub(crate) mod estimator {
    #[pymodule_export]
    use super::fit::{fit, total_epsilon, verify, with_fairness};
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::values::{distinct, places};
}
