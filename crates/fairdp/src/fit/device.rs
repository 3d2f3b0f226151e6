//! The device on which a run trains.

use dp_train::{Device, DeviceName, TrainError};

use super::FitPlan;
use crate::error::{FairdpError, Result};
use crate::recipe::Method;

/// The kind of device: each rounds in its own way.
pub(super) fn kind(name: DeviceName) -> &'static str {
    match name {
        DeviceName::Cpu => "cpu",
        DeviceName::Cuda(_) => "cuda",
        DeviceName::CudaInTf32(_) => "cuda-tf32",
    }
}

/// The device of this name, for a run of this plan.
///
/// # Errors
/// [`FairdpError::InvalidParameter`] for a CUDA device on which nothing would be trained, or which
/// this program cannot use.
pub(super) fn open(name: DeviceName, plan: &FitPlan) -> Result<Device> {
    let invalid = |expected: String| FairdpError::invalid("device", name, expected);
    let is_used = plan.candidates.iter().any(|candidate| matches!(candidate.recipe.method, Method::Sgd(_)));
    if name != DeviceName::Cpu && !is_used {
        let expected = "cpu for the additive model with method \"auto\", whose sums are exact there; networks \
                        (model.kind = \"mlp\" and \"network\") and methods by name are trained on a GPU";
        return Err(invalid(expected.into()));
    }
    name.open().map_err(|error| match error {
        TrainError::InvalidParameter { expected, .. } => invalid(expected),
        error => invalid(format!("a CUDA device that can be used: {error}")),
    })
}
