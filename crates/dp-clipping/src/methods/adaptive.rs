//! Adaptive clipping: hard clipping at a threshold that follows a quantile of the norms. `C ←
//! C·exp(−η_C(b̃ − γ))` with `b̃` the noisy fraction of norms within `C`. Bound `C`.
//!
//! **Source.** Andrew et al. 2021; Soleymani 2025, Algorithm 2 without its red line.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use super::published_controllers;
use crate::{ClipConfig, MethodEntry, ScaleRule, Weights};

/// `adaptive`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "adaptive",
    label: "Adaptive",
    summary: "hard clipping at a threshold that follows a noisy quantile of the norms",
    source: "Andrew et al. 2021; Soleymani 2025, Alg. 2",
    differs: "Bits are centred as in Andrew (sensitivity 1/2); Soleymani's Alg. 2 sums raw bits. The count is divided \
              by the expected batch size.",
    preset: |params| ClipConfig::new(ScaleRule::Hard, published_controllers::andrew(params), Weights::Uniform),
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::{PresetParams, methods::tests::*};

    #[test]
    fn by_hand() {
        let mut method = noiseless(&ENTRY, &PresetParams::default(), 4.0);
        let clipped = step(&mut *method, &[0.5, 0.5, 0.5, 2.0], &[0, 1, 0, 1]);
        assert_close(clipped.scales[3], 0.5);
        // Three of four within: bits ½ + ½ + ½ − ½ = 1, b̃ = ¼ + ½ = ¾, C ← exp(−0.2·(¾ − ½)) =
        // exp(−0.05).
        assert_eq!((clipped.bound, clipped.queries[0].released[0]), (1.0, 1.0));
        assert_eq!(clipped.queries[0].l2_sensitivity, 0.5);
        let next = step(&mut *method, &[], &[]);
        assert!((next.thresholds[0] - (-0.05_f64).exp()).abs() < 1e-15);
    }

    #[test]
    fn a_lower_bound_holds() {
        let params = PresetParams { clip_norm: 1.0, lower_bound: Some(0.98), ..PresetParams::default() };
        let mut method = noiseless(&ENTRY, &params, 4.0);
        step(&mut *method, &[0.5, 0.5, 0.5, 2.0], &[0, 1, 0, 1]);
        assert_eq!(step(&mut *method, &[], &[]).thresholds, vec![0.98]);
        // As in Opacus, a bound above the first threshold takes effect with the first update.
        let mut method = noiseless(&ENTRY, &PresetParams { clip_norm: 0.1, lower_bound: Some(1.0), ..params }, 4.0);
        assert_eq!(step(&mut *method, &[0.5], &[0]).thresholds, vec![0.1]);
        assert_eq!(step(&mut *method, &[0.5], &[0]).thresholds, vec![1.0]);
    }
}
