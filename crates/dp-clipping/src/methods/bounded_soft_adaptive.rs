//! Bounded soft adaptive: tanh scaling with Zhao's bounded controller, relative to the threshold:
//! `s_i = tanh(C/(‖g_i‖ + 1e-6))/C`. Bound 1.
//!
//! **Source.** New here: the rule of Soleymani 2025 in the normalised form of Zhao 2025,
//! Algorithm 2.

use super::published_controllers::{lower_bound, zhao};
use crate::{ClipConfig, MethodEntry, ScaleRule, Weights};

/// `bounded-soft-adaptive`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "bounded-soft-adaptive",
    label: "Bounded soft adaptive",
    summary: "normalised tanh scaling at a threshold that follows a noisy count down to a lower bound",
    source: "new; Soleymani 2025 with Zhao 2025, Alg. 2",
    differs: "",
    preset: |params| {
        ClipConfig::new(
            ScaleRule::GlobalTanh { clip_norm: 1.0 },
            zhao(params, lower_bound(params, params.clip_norm)),
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
        let mut method = noiseless(&ENTRY, &PresetParams { clip_norm: 0.5, ..PresetParams::default() }, 4.0);
        let clipped = step(&mut *method, &[1.0], &[0]);
        assert_close(clipped.scales[0], 2.0 * 0.5_f64.tanh());
        assert_eq!(clipped.bound, 1.0);
    }
}
