//! SoftAdaClip: tanh scaling at a threshold that follows a quantile of the norms, as
//! [`super::adaptive`]. Bound `C`.
//!
//! **Source.** Soleymani 2025, Algorithm 2.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use super::published_controllers;
use crate::{ClipConfig, MethodEntry, ScaleRule, Weights};

/// `soft-adaptive`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "soft-adaptive",
    label: "SoftAdaClip",
    summary: "tanh scaling at a threshold that follows a noisy quantile of the norms",
    source: "Soleymani 2025, Alg. 2",
    differs: "Bits are centred as in Andrew (sensitivity 1/2) so that it differs from Adaptive by the rule alone; \
              Soleymani sums raw bits. The text calls the count both the fraction within and above the threshold: \
              within is what the update needs.",
    preset: |params| ClipConfig::new(ScaleRule::Tanh, published_controllers::andrew(params), Weights::Uniform),
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::{PresetParams, methods::tests::*};

    #[test]
    fn by_hand() {
        let mut method = noiseless(&ENTRY, &PresetParams::default(), 2.0);
        let clipped = step(&mut *method, &[1.1, 1.2], &[0, 1]);
        assert!((clipped.scales[0] - 0.72).abs() < 5e-3 && (clipped.scales[1] - 0.68).abs() < 5e-3);
        // None within: bits −½ − ½, b̃ = −½ + ½ = 0, C ← exp(−0.2·(0 − ½)) = exp(0.1).
        assert_eq!(clipped.queries[0].released[0], -1.0);
        assert!((step(&mut *method, &[], &[]).thresholds[0] - 0.1_f64.exp()).abs() < 1e-15);
    }
}
