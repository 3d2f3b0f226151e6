//! Naive re-weighting: hard clipping, then a weight `θ_k = (B/K)/b̃_k` from noisy group sizes.
//! Bound `C0·max_k θ_k`.
//!
//! **Source.** Xu 2021, Algorithm 3.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use crate::{ClipConfig, Controller, MethodEntry, ScaleRule, Weights};

/// `naive`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "naive",
    label: "Naive",
    summary: "hard clipping with every group weighted by its inverse noisy size",
    source: "Xu 2021, Alg. 3",
    differs: "The expected batch size replaces the fixed one, and a noisy group size below 1 is clamped to 1, which \
              the paper leaves open.",
    preset: |params| {
        ClipConfig::new(
            ScaleRule::Hard,
            Controller::Constant { threshold: params.clip_norm },
            Weights::Naive { count_noise: params.count_noise },
        )
    },
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::{PresetParams, methods::tests::*};

    #[test]
    fn by_hand() {
        let mut method = noiseless(&ENTRY, &PresetParams { clip_norm: 0.5, ..PresetParams::default() }, 6.0);
        let clipped = step(&mut *method, &[0.25, 1.0, 0.25, 1.0, 0.25, 1.0], &[0, 0, 0, 0, 1, 1]);
        // θ_0 = 3/4, θ_1 = 3/2; scales θ·min(1, ½/‖g‖).
        for (scale, expected) in clipped.scales.iter().zip([0.75, 0.375, 0.75, 0.375, 1.5, 0.75]) {
            assert_close(*scale, expected);
        }
        assert_eq!((clipped.bound, clipped.group_bounds), (0.75, vec![0.375, 0.75]));
        assert_eq!(clipped.queries[0].released, vec![4.0, 2.0]);
    }
}
