//! DPSGD normalised: `s_i = min(1/C, 1/‖g_i‖)`, bound 1, no count. Zhao's "constant" clipping.
//!
//! **Source.** De et al. 2022; Zhao 2025, Algorithm 1.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use crate::{ClipConfig, Controller, MethodEntry, ScaleRule, Weights};

/// `dpsgd-normalised`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "dpsgd-normalised",
    label: "DPSGD normalised",
    summary: "every gradient scaled by min(1/C, 1/norm)",
    source: "De et al. 2022; Zhao 2025, Alg. 1",
    differs: "The published code uses 1/(norm + 1e-6) and divides by the realised batch size; here the factor is the \
              text's and the sum is divided by the expected size.",
    preset: |params| {
        ClipConfig::new(ScaleRule::Normalised, Controller::Constant { threshold: params.clip_norm }, Weights::Uniform)
    },
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::{PresetParams, methods::tests::*};

    #[test]
    fn by_hand() {
        let mut method = noiseless(&ENTRY, &PresetParams { clip_norm: 0.5, ..PresetParams::default() }, 4.0);
        let clipped = step(&mut *method, &[0.25, 2.0], &[0, 1]);
        // min(1/½, 1/¼) = 2; min(1/½, 1/2) = ½.
        assert_close(clipped.scales[0], 2.0);
        assert_close(clipped.scales[1], 0.5);
        assert_eq!(clipped.bound, 1.0);
    }
}
