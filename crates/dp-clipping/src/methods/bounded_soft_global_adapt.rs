//! Bounded soft Global-Adapt: [`super::soft_global_adapt`] whose `Z` stops at a lower bound. Bound
//! `C0`.
//!
//! **Source.** New here: the rule of Soleymani 2025, the controller of Esipova 2023 and the lower
//! bound of Zhao 2025 together.

use super::published_controllers::{esipova, lower_bound, upper_bound};
use crate::{ClipConfig, MethodEntry, ScaleRule, Weights};

/// `bounded-soft-global-adapt`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "bounded-soft-global-adapt",
    label: "Bounded soft Global-Adapt",
    summary: "Global-Adapt with a tanh limit whose Z stops at a lower bound",
    source: "new; Soleymani 2025, Esipova 2023 and Zhao 2025 together",
    differs: "",
    preset: |params| {
        ClipConfig::new(
            ScaleRule::GlobalTanh { clip_norm: params.clip_norm },
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
        step(&mut *method, &[1.0], &[0]);
        let clipped = step(&mut *method, &[19.0], &[0]);
        assert_eq!(clipped.thresholds, vec![9.5]);
        assert_close(clipped.scales[0], 0.5_f64.tanh() / 9.5);
    }
}
