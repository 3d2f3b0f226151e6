//! Bounded adaptive clipping: as [`super::unbounded_adaptive`], then `C ← max(C_LB, C)`. Bound 1.
//!
//! **Source.** Zhao 2025, Algorithm 2.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use super::published_controllers::{lower_bound, zhao};
use crate::{ClipConfig, MethodEntry, ScaleRule, Weights};

/// `bounded-adaptive`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "bounded-adaptive",
    label: "Bounded adaptive",
    summary: "normalised clipping at a threshold that follows a noisy count down to a lower bound",
    source: "Zhao 2025, Alg. 2",
    differs: "As for unbounded adaptive. Zhao tunes C_LB on a grid; without a given one it is a tenth of the first \
              threshold.",
    preset: |params| {
        ClipConfig::new(ScaleRule::Normalised, zhao(params, lower_bound(params, params.clip_norm)), Weights::Uniform)
    },
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::{PresetParams, methods::tests::*};

    #[test]
    fn by_hand() {
        let params = PresetParams { lower_bound: Some(0.95), ..PresetParams::default() };
        let mut method = noiseless(&ENTRY, &params, 4.0);
        // Nothing above: C ← max(0.95, exp(0.2·(0 − ½))) = max(0.95, 0.905).
        assert_eq!(step(&mut *method, &[0.5, 2.0], &[0, 1]).thresholds, vec![1.0]);
        let clipped = step(&mut *method, &[0.5, 2.0], &[0, 1]);
        assert_eq!((clipped.thresholds, clipped.bound), (vec![0.95], 1.0));
        assert_close(clipped.scales[0], 1.0 / 0.95);
    }
}
