//! DPSGD-F: hard clipping with one threshold per group, raised with the group's noisy share of
//! clipped gradients.
//!
//! `C_k = C0·(1 + (m̃_k/b̃_k)/(m̃/B))`; see [`crate::controllers::per_group`]. Bound `max_k C_k`.
//!
//! **Source.** Xu 2021, Algorithm 2.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use crate::{ClipConfig, Controller, MethodEntry, ScaleRule, Weights};

/// `dpsgd-f`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "dpsgd-f",
    label: "DPSGD-F",
    summary: "hard clipping with a threshold per group from noisy counts of clipped gradients",
    source: "Xu 2021, Alg. 2; Esipova 2023, Alg. 3",
    differs: "As in Xu's text the noise scales with the largest threshold over all groups: Esipova's Alg. 3 prints C0, \
              and that code takes the largest among groups present in the batch, which is private. Counts are clamped \
              at 0 as in the published code; a group with no count, or no clipped gradient at all, gets C0. That code divides \
              a group's share by the mean of all groups' shares in place of the batch's, and takes the share of a group \
              without a count for 1: `share_of` chooses.",
    preset: |params| {
        ClipConfig::new(
            ScaleRule::Hard,
            Controller::PerGroup { base: params.clip_norm, share_of: params.share_of, count_noise: params.count_noise },
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
        let mut method = noiseless(&ENTRY, &PresetParams { clip_norm: 1.0, ..PresetParams::default() }, 6.0);
        let clipped = step(&mut *method, &[0.5, 0.5, 0.5, 4.0, 0.5, 4.0], &[0, 0, 0, 0, 1, 1]);
        // m = (1, 1), b = (4, 2), m/B = 1/3: C_0 = 1 + ¼·3 = 1.75, C_1 = 1 + ½·3 = 2.5.
        assert_eq!(clipped.thresholds, vec![1.75, 2.5]);
        assert_eq!((clipped.bound, clipped.group_bounds), (2.5, vec![1.75, 2.5]));
        for (scale, expected) in clipped.scales.iter().zip([1.0, 1.0, 1.0, 1.75 / 4.0, 1.0, 2.5 / 4.0]) {
            assert_close(*scale, expected);
        }
        assert_eq!(clipped.queries[0].released, vec![1.0, 1.0, 3.0, 1.0]);
    }

    #[test]
    fn a_group_without_records_still_bounds_the_noise() {
        let mut method = noiseless(&ENTRY, &PresetParams { clip_norm: 1.0, ..PresetParams::default() }, 2.0);
        let clipped = step(&mut *method, &[0.5, 0.5], &[0, 0]);
        assert_eq!((clipped.thresholds, clipped.bound), (vec![1.0, 1.0], 1.0));
    }
}
