//! Unbounded adaptive clipping: normalised clipping at a threshold that follows the noisy fraction
//! of norms above `τC`, `C ← C·exp(η_C(b̃ − γ))`. Bound 1. The threshold can vanish; see
//! [`super::bounded_adaptive`].
//!
//! **Source.** Zhao 2025, Algorithm 2 with `C_LB = 0`.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use super::published_controllers;
use crate::{ClipConfig, MethodEntry, ScaleRule, Weights};

/// `unbounded-adaptive`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "unbounded-adaptive",
    label: "Unbounded adaptive",
    summary: "normalised clipping at a threshold that follows a noisy count and may vanish",
    source: "Zhao 2025, Alg. 2 with C_LB = 0",
    differs: "The published code uses 1/(norm + 1e-6), the realised batch size, and B/10 for the count's noise \
              multiplier; here the text's factor, the expected size and 10 times the gradient's multiplier.",
    preset: |params| ClipConfig::new(ScaleRule::Normalised, published_controllers::zhao(params, 0.0), Weights::Uniform),
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::{PresetParams, methods::tests::*};

    #[test]
    fn by_hand() {
        let mut method = noiseless(&ENTRY, &PresetParams::default(), 4.0);
        let clipped = step(&mut *method, &[0.5, 2.0, 2.5, 4.0], &[0, 1, 0, 1]);
        // C = 1: scales 1, ½, 0.4, ¼; above 2.5·C: one of four. C ← exp(0.2·(¼ − ½)) = exp(−0.05).
        for (scale, expected) in clipped.scales.iter().zip([1.0, 0.5, 0.4, 0.25]) {
            assert_close(*scale, expected);
        }
        assert_eq!((clipped.bound, clipped.queries[0].released[0]), (1.0, 1.0));
        let next = step(&mut *method, &[], &[]);
        assert!((next.thresholds[0] - (-0.05_f64).exp()).abs() < 1e-15);
    }
}
