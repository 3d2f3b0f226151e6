//! Bounded Global-Adapt: [`super::dpsgd_global_adapt`] whose `Z` stops at a lower bound. Bound
//! `C0`.
//!
//! **Source.** New here: Esipova 2023, Algorithm 2 with the lower bound of Zhao 2025, which Zhao
//! proposes for anything adaptive.

use super::published_controllers::{esipova, lower_bound, upper_bound};
use crate::{ClipConfig, MethodEntry, ScaleRule, Weights};

/// `bounded-global-adapt`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "bounded-global-adapt",
    label: "Bounded Global-Adapt",
    summary: "Global-Adapt whose Z stops at a lower bound",
    source: "new; Esipova 2023, Alg. 2 with Zhao 2025's lower bound",
    differs: "",
    preset: |params| {
        ClipConfig::new(
            ScaleRule::GlobalClip { clip_norm: params.clip_norm },
            esipova(params, lower_bound(params, upper_bound(params))),
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
        let params = PresetParams { upper_bound: Some(10.0), lower_bound: Some(9.5), ..PresetParams::default() };
        let mut method = noiseless(&ENTRY, &params, 4.0);
        // Nothing above: Z ← max(9.5, 10·exp(−0.1)) = max(9.5, 9.05).
        step(&mut *method, &[1.0], &[0]);
        let clipped = step(&mut *method, &[1.0], &[0]);
        assert_eq!((clipped.thresholds, clipped.bound), (vec![9.5], 1.0));
        assert_close(clipped.scales[0], 1.0 / 9.5);
    }
}
