//! A method all of whose parts are from outside of the crate, and wrong.

use dp_clipping::{
    ClipConfig, Controller, CountNoise, MethodEntry, Own, OwnBound, OwnController, OwnRule, OwnWeights, PresetParams,
    PublicContext, ScaleRule, Weights, registry,
};

/// Rules that are wrong in every way, by a parameter.
#[derive(Debug)]
pub(crate) struct Wrong;

impl OwnRule for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["how"]
    }
    fn scale(&self, norm: f64, threshold: f64, parameters: &[f64]) -> f64 {
        match parameters[0] as u8 {
            // Three times the bound from some norm on.
            0 => 3.0 * (threshold / norm).min(1.0),
            1 => f64::NAN,
            2 => -1.0,
            3 => f64::INFINITY,
            _ => (threshold / norm).powi(2).min(1.0),
        }
    }
}

pub(crate) fn wrong(how: u8) -> ScaleRule {
    ScaleRule::Own { rule: Own::rule(&Wrong, &[f64::from(how)]), bound: OwnBound::Threshold }
}

/// Counts each record at an index beyond its counts, and moves the threshold to what is no number.
#[derive(Debug)]
pub(crate) struct Astray;

impl OwnController for Astray {
    fn name(&self) -> &'static str {
        "astray"
    }
    fn n_counts(&self, n_groups: usize) -> usize {
        n_groups
    }
    fn needs_groups(&self) -> bool {
        true
    }
    fn counted(&self, norm: f64, group: usize, threshold: f64, _: &[f64]) -> Option<usize> {
        Some(if norm > threshold { group } else { usize::MAX })
    }
    fn next(&self, _: f64, released: &[f64], _: &PublicContext, _: &[f64]) -> f64 {
        if released[0] < 2.0 { 0.25 } else { f64::NAN }
    }
}

/// Adds twice as much as it may, and returns weights for one group that are no numbers.
#[derive(Debug)]
pub(crate) struct Heavy;

impl OwnWeights for Heavy {
    fn name(&self) -> &'static str {
        "heavy"
    }
    fn n_counts(&self, _: usize) -> usize {
        1
    }
    fn needs_losses(&self) -> bool {
        true
    }
    fn counted(&self, _: f64, loss: f64, _: usize, _: &[f64]) -> Option<(usize, f64)> {
        Some((0, 2.0 * loss))
    }
    fn next(&self, weights: &[f64], released: &[f64], _: &PublicContext, _: &[f64]) -> Vec<f64> {
        vec![if released[0] < 1.0 { 2.0 * weights[0] } else { f64::NAN }]
    }
}

pub(crate) const NONE: CountNoise = CountNoise::Multiplier(0.0);

pub(crate) fn all_wrong(params: &PresetParams) -> ClipConfig {
    let controller =
        Controller::Own { controller: Own::controller(&Astray, &[]), initial: params.clip_norm, count_noise: NONE };
    let weights = Weights::Own { weights: Own::weights(&Heavy, &[]), count_noise: NONE };
    ClipConfig::new(wrong(0), controller, weights)
}

pub(crate) const ALL_WRONG: MethodEntry = MethodEntry {
    name: "all-wrong",
    label: "All wrong",
    summary: "parts that are wrong",
    source: "a test",
    differs: "",
    preset: all_wrong,
};

/// Registers it, once in this process.
pub(crate) fn all_wrong_entry() -> &'static MethodEntry {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| registry::register(ALL_WRONG).unwrap());
    registry::find("all-wrong").unwrap()
}
