//! Fixed soft clipping: `s_i = tanh(C/(‖g_i‖ + 1e-6))` at a constant threshold. Bound `C`, no
//! count.
//!
//! **Source.** Soleymani 2025, Algorithm 3.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use crate::{ClipConfig, Controller, MethodEntry, ScaleRule, Weights};

/// `fixed-soft`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "fixed-soft",
    label: "Fixed soft clipping",
    summary: "tanh scaling at a constant threshold",
    source: "Soleymani 2025, Alg. 3",
    differs: "The sum is divided by the expected batch size.",
    preset: |params| {
        ClipConfig::new(ScaleRule::Tanh, Controller::Constant { threshold: params.clip_norm }, Weights::Uniform)
    },
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::{PresetParams, methods::tests::*};

    #[test]
    fn by_hand() {
        let mut method = noiseless(&ENTRY, &PresetParams::default(), 4.0);
        let clipped = step(&mut *method, &[1.1, 1.2], &[0, 1]);
        // The paper's example: tanh(0.91) ≈ 0.72 and tanh(0.83) ≈ 0.68.
        assert!((clipped.scales[0] - 0.72).abs() < 5e-3 && (clipped.scales[1] - 0.68).abs() < 5e-3);
        assert_close(clipped.scales[0], (1.0 / 1.100_001_f64).tanh());
        assert_eq!((clipped.bound, clipped.queries.len()), (1.0, 0));
    }
}
