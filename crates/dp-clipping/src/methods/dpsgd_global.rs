//! DPSGD-Global: every gradient scaled by `C0/Z`, those with a norm above `Z` dropped. Bound `C0`,
//! no count.
//!
//! **Source.** Bu et al. 2021; Esipova 2023, Algorithm 2.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use super::published_controllers;
use crate::{ClipConfig, Controller, MethodEntry, ScaleRule, Weights};

/// `dpsgd-global`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "dpsgd-global",
    label: "DPSGD-Global",
    summary: "all gradients scaled by C0/Z, those above Z dropped",
    source: "Bu et al. 2021; Esipova 2023, Alg. 2",
    differs: "The sum is divided by the expected batch size, as the published code does and its text does not.",
    preset: |params| {
        ClipConfig::new(
            ScaleRule::GlobalDrop { clip_norm: params.clip_norm },
            Controller::Constant { threshold: published_controllers::upper_bound(params) },
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
        let mut method = noiseless(&ENTRY, &params, 3.0);
        let clipped = step(&mut *method, &[1.0, 10.0, 10.1], &[0, 1, 0]);
        assert_close(clipped.scales[0], 0.05);
        assert_close(clipped.scales[1], 0.05);
        assert_eq!((clipped.scales[2], clipped.bound), (0.0, 0.5));
    }
}
