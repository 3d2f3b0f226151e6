//! Where a method lies on a grid that was searched, and what is drawn of an experiment.

use crate::{ExperimentResults, MethodResults};

/// The name of a grid's learning rate.
pub const RATE: &str = "rate";
/// The name of a grid's clipping bound.
pub const BOUND: &str = "bound";

/// A coordinate of a method.
pub fn coordinate(method: &MethodResults, name: &str) -> Option<f64> {
    method.coordinates.iter().find(|coordinate| coordinate.name == name).map(|coordinate| coordinate.value)
}

/// Whether an experiment is a grid rather than a comparison.
pub fn is_grid(experiment: &ExperimentResults) -> bool {
    experiment.methods.iter().any(|method| coordinate(method, RATE).is_some())
}

/// Of more methods, curves over epochs and steps are not drawn: nobody compares so many panels.
const MAX_PANELS: usize = 30;

/// Whether a report draws what its methods went through while they were trained, over epochs and
/// steps.
pub fn has_curves(experiment: &ExperimentResults) -> bool {
    !is_grid(experiment) && experiment.methods.len() <= MAX_PANELS
}
