//! DP-PSAC, a clipping rule that `dp-clipping` does not have: `s = C/(‖g‖ + r/(‖g‖ + r))`, bound `C`.
//!
//! Large gradients are normalised, as in automatic clipping. Small ones keep about their length: no
//! scale is above `C/(2√r − r)`, 1.9 C at r = 0.1, where automatic clipping goes up to 100 C.
//!
//! **Source.** Xia et al. 2023, "Differentially private learning with per-sample adaptive clipping".

use dp_clipping::{
    ClipConfig, ClipError, Controller, MethodEntry, Own, OwnBound, OwnRule, ScaleRule, Weights, registry,
};

/// `r`.
const R: f64 = 0.1;

/// The rule: a function of a norm and a threshold, and nothing else.
#[derive(Debug)]
struct Psac;

impl OwnRule for Psac {
    fn name(&self) -> &'static str {
        "psac"
    }

    fn parameters(&self) -> &'static [&'static str] {
        &["r"]
    }

    fn scale(&self, norm: f64, threshold: f64, parameters: &[f64]) -> f64 {
        let r = parameters[0];
        threshold / (norm + r / (norm + r))
    }
}

/// The rule with its bound, which is declared as data: no norm was seen yet.
pub fn rule() -> ScaleRule {
    ScaleRule::Own { rule: Own::rule(&Psac, &[R]), bound: OwnBound::Threshold }
}

/// Makes `dp-psac` known to this program: to configurations, audits, `fairdp` and studies.
///
/// # Errors
/// If a method of this name is known already.
pub fn register() -> Result<(), ClipError> {
    registry::register(MethodEntry {
        name: "dp-psac",
        label: "DP-PSAC",
        summary: "per-sample adaptive clipping at a constant threshold",
        source: "Xia et al. 2023",
        differs: "The sum is divided by the expected batch size.",
        preset: |params| {
            ClipConfig::new(rule(), Controller::Constant { threshold: params.clip_norm }, Weights::Uniform)
        },
    })
}

// By hand: at C = 1 and r = 0.1 a norm of 0.9 has the scale 1/(0.9 + 0.1/1) = 1, and a norm of 0 has 1/(0.1/0.1) = 1.
#[test]
fn by_hand() {
    assert!((rule().scale(0.9, 1.0) - 1.0).abs() < 1e-12 && (rule().scale(0.0, 1.0) - 1.0).abs() < 1e-12);
}
