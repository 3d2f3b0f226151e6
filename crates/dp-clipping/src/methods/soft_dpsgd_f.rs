//! Soft DPSGD-F: tanh scaling with DPSGD-F's threshold per group. Bound `max_k C_k`.
//!
//! **Source.** New here: the rule of Soleymani 2025 with the thresholds of Xu 2021, Algorithm 2.

use crate::{ClipConfig, Controller, MethodEntry, ScaleRule, Weights};

/// `soft-dpsgd-f`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "soft-dpsgd-f",
    label: "Soft DPSGD-F",
    summary: "tanh scaling with a threshold per group from noisy counts",
    source: "new; Soleymani 2025 with Xu 2021, Alg. 2",
    differs: "",
    preset: |params| {
        ClipConfig::new(
            ScaleRule::Tanh,
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
        let mut method = noiseless(&ENTRY, &PresetParams::default(), 6.0);
        let clipped = step(&mut *method, &[0.5, 0.5, 0.5, 4.0, 0.5, 4.0], &[0, 0, 0, 0, 1, 1]);
        // C = (1.75, 2.5) as for DPSGD-F.
        assert_close(clipped.scales[3], (1.75_f64 / 4.0).tanh());
        assert_close(clipped.scales[5], (2.5_f64 / 4.0).tanh());
        assert_eq!(clipped.bound, 2.5);
    }
}
