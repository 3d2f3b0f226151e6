//! Automatic clipping: `s_i = C/(‖g_i‖ + 0.01)`, bound `C`, no threshold to tune (`C` only
//! rescales), no count.
//!
//! **Source.** Bu et al. 2023, "Automatic clipping", AUTO-S.

use crate::{ClipConfig, Controller, MethodEntry, ScaleRule, Weights};

/// `automatic`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "automatic",
    label: "Automatic",
    summary: "every gradient normalised, with a stability constant",
    source: "Bu et al. 2023, AUTO-S",
    differs: "",
    preset: |params| {
        ClipConfig::new(
            ScaleRule::Automatic { stability: 0.01 },
            Controller::Constant { threshold: params.clip_norm },
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
        let mut method = noiseless(&ENTRY, &PresetParams::default(), 4.0);
        let clipped = step(&mut *method, &[0.0, 0.99, 1.99], &[0, 1, 0]);
        // 1/0.01, 1/1, 1/2.
        for (scale, expected) in clipped.scales.iter().zip([100.0, 1.0, 0.5]) {
            assert_close(*scale, expected);
        }
        assert_eq!(clipped.bound, 1.0);
    }
}
