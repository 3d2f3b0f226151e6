//! DPSGD: hard clipping at a constant threshold. `s_i = min(1, C/‖g_i‖)`, bound `C`, no count.
//!
//! **Source.** Abadi et al. 2016; Xu 2021, Algorithm 1.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use crate::{ClipConfig, Controller, MethodEntry, ScaleRule, Weights};

/// `dpsgd`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "dpsgd",
    label: "DPSGD",
    summary: "hard clipping at a constant threshold",
    source: "Abadi et al. 2016; Xu 2021, Alg. 1",
    differs: "The sum is divided by the expected batch size; the papers divide by the realised one, which is private \
              under Poisson sampling.",
    preset: |params| {
        ClipConfig::new(ScaleRule::Hard, Controller::Constant { threshold: params.clip_norm }, Weights::Uniform)
    },
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::{PresetParams, methods::tests::*};

    #[test]
    fn by_hand() {
        let mut method = noiseless(&ENTRY, &PresetParams { clip_norm: 0.5, ..PresetParams::default() }, 4.0);
        let clipped = step(&mut *method, &[0.0, 0.25, 2.0, f64::INFINITY], &[0, 1, 0, 1]);
        // min(1, ½/¼) = 1; min(1, ½/2) = ¼.
        assert_eq!(clipped.scales[..2], [1.0, 1.0]);
        assert_close(clipped.scales[2], 0.25);
        assert_eq!((clipped.scales[3], clipped.n_non_finite), (0.0, 1));
        assert_eq!((clipped.bound, clipped.queries.len()), (0.5, 0));
    }
}
