//! A clipping method at a point of a grid of learning rates and bounds.

use dp_clipping::PresetParams;
use dp_train::LearningRate;

use super::experiment::MethodSetting;

/// A strategy at a point of the grid. `bound` is `C` of constant clipping and the lower bound of
/// bounded adaptive clipping.
pub(crate) fn strategy(name: &'static str, rate: f64, bound: Option<f64>) -> MethodSetting {
    let mut params = PresetParams { clip_norm: 1.0, ..PresetParams::default() };
    match bound {
        Some(bound) if name == "dpsgd-normalised" => params.clip_norm = bound,
        bound => params.lower_bound = bound,
    }
    MethodSetting::new(name, LearningRate::Constant(rate), params)
}
