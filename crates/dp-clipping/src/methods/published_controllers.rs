//! The geometric controllers as their papers set them.

use crate::{
    Controller, PresetParams,
    controllers::{Bits, Counted},
};

/// Andrew 2021: the fraction within the threshold, target γ = ½ (the median), rate 0.2, centred
/// bits; no lower bound unless one is given.
pub(super) fn andrew(params: &PresetParams) -> Controller {
    Controller::Geometric {
        initial: params.clip_norm,
        target: params.target.unwrap_or(0.5),
        tolerance: params.tolerance.unwrap_or(1.0),
        rate: params.rate.unwrap_or(0.2),
        lower_bound: params.lower_bound.unwrap_or(0.0),
        counted: Counted::Within,
        bits: Bits::Centred,
        count_noise: params.count_noise,
    }
}

/// Zhao 2025: the fraction above τ = 2.5 times the threshold, target γ = ½, rate 0.2, raw bits.
pub(super) fn zhao(params: &PresetParams, lower_bound: f64) -> Controller {
    Controller::Geometric {
        initial: params.clip_norm,
        target: params.target.unwrap_or(0.5),
        tolerance: params.tolerance.unwrap_or(2.5),
        rate: params.rate.unwrap_or(0.2),
        lower_bound,
        counted: Counted::Above,
        bits: Bits::Raw,
        count_noise: params.count_noise,
    }
}

/// Esipova 2023: `Z ← Z·exp(b̃ − η_Z)` with the fraction above τZ, η_Z = 0.1, raw bits.
pub(super) fn esipova(params: &PresetParams, lower_bound: f64) -> Controller {
    Controller::Geometric {
        initial: upper_bound(params),
        target: params.target.unwrap_or(0.1),
        tolerance: params.tolerance.unwrap_or(1.0),
        rate: params.rate.unwrap_or(1.0),
        lower_bound,
        counted: Counted::Above,
        bits: Bits::Raw,
        count_noise: params.count_noise,
    }
}

/// First upper bound `Z`: Esipova's 50 for the tabular data sets.
pub(super) fn upper_bound(params: &PresetParams) -> f64 {
    params.upper_bound.unwrap_or(50.0)
}

/// The lower bound, by default a tenth of the first threshold.
pub(super) fn lower_bound(params: &PresetParams, initial: f64) -> f64 {
    params.lower_bound.unwrap_or(initial / 10.0)
}
