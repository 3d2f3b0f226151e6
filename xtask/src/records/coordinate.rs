//! Where a method lies on a grid that was searched.

use super::{ExperimentResults, MethodResults};

/// Names of a grid's coordinates.
pub(crate) const RATE: &str = "rate";
pub(crate) const BOUND: &str = "bound";

/// A coordinate of a method.
pub(crate) fn coordinate(method: &MethodResults, name: &str) -> Option<f64> {
    method.coordinates.iter().find(|coordinate| coordinate.name == name).map(|coordinate| coordinate.value)
}

/// Whether an experiment is a grid rather than a comparison.
pub(crate) fn is_grid(experiment: &ExperimentResults) -> bool {
    experiment.methods.iter().any(|method| coordinate(method, RATE).is_some())
}
