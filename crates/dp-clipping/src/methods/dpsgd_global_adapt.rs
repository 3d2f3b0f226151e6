//! DPSGD-Global-Adapt: every gradient scaled by `C0/Z`, those above `Z` clipped to `C0`; `Z`
//! follows the noisy number of gradients above `τZ`: `Z ← Z·exp(b̃ − η_Z)`. Bound `C0`.
//!
//! **Source.** Esipova 2023, Algorithm 2 with the parentheses.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use super::published_controllers;
use crate::{ClipConfig, MethodEntry, ScaleRule, Weights};

/// `dpsgd-global-adapt`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "dpsgd-global-adapt",
    label: "DPSGD-Global-Adapt",
    summary: "all gradients scaled by C0/Z, those above Z clipped to C0, with Z following a noisy count",
    source: "Esipova 2023, Alg. 2",
    differs: "The count is divided by the expected batch size; text and code divide by the realised one, which is \
              private.",
    preset: |params| {
        ClipConfig::new(
            ScaleRule::GlobalClip { clip_norm: params.clip_norm },
            published_controllers::esipova(params, 0.0),
            Weights::Uniform,
        )
    },
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::{PresetParams, methods::tests::*};

    #[test]
    fn by_hand() {
        let params =
            PresetParams { clip_norm: 0.5, upper_bound: Some(10.0), tolerance: Some(0.7), ..PresetParams::default() };
        let mut method = noiseless(&ENTRY, &params, 4.0);
        let clipped = step(&mut *method, &[1.0, 8.0, 20.0], &[0, 1, 0]);
        // ½/10, ½/10, ½/20.
        for (scale, expected) in clipped.scales.iter().zip([0.05, 0.05, 0.025]) {
            assert_close(*scale, expected);
        }
        // Above 0.7·10: two of the expected four. Z ← 10·exp(½ − 0.1).
        assert_eq!(clipped.queries[0].released, vec![2.0]);
        let next = step(&mut *method, &[], &[]);
        assert!((next.thresholds[0] - 10.0 * 0.4_f64.exp()).abs() < 1e-12);
    }
}
