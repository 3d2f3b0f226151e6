//! Soft Global-Adapt: the tanh form of [`super::dpsgd_global_adapt`], `s_i = (C0/Z)·tanh(Z/(‖g_i‖ +
//! 1e-6))`. Bound `C0`.
//!
//! **Source.** New here: SoftAdaClip's rule (Soleymani 2025) with the controller of Esipova 2023,
//! Algorithm 2, which Soleymani proposes as future work.

use super::published_controllers;
use crate::{ClipConfig, MethodEntry, ScaleRule, Weights};

/// `soft-global-adapt`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "soft-global-adapt",
    label: "Soft Global-Adapt",
    summary: "all gradients scaled by C0/Z with a tanh limit, with Z following a noisy count",
    source: "new; Soleymani 2025 with Esipova 2023, Alg. 2",
    differs: "",
    preset: |params| {
        ClipConfig::new(
            ScaleRule::GlobalTanh { clip_norm: params.clip_norm },
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
        let params = PresetParams { clip_norm: 0.5, upper_bound: Some(10.0), ..PresetParams::default() };
        let mut method = noiseless(&ENTRY, &params, 4.0);
        let clipped = step(&mut *method, &[5.0, 20.0], &[0, 1]);
        // 0.05·tanh(2) and 0.05·tanh(½), up to the 1e-6 in the denominator.
        assert_close(clipped.scales[0], 0.05 * 2.0_f64.tanh());
        assert_close(clipped.scales[1], 0.05 * 0.5_f64.tanh());
        // One above Z of the expected four: Z ← 10·exp(¼ − 0.1).
        assert!((step(&mut *method, &[], &[]).thresholds[0] - 10.0 * 0.15_f64.exp()).abs() < 1e-12);
        assert_eq!(clipped.bound, 0.5);
    }
}
