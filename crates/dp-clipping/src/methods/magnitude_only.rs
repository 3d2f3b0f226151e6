//! Magnitude error only: an analysis that keeps only clipping's effect on the sum's length,
//! `(‖ḡ_B‖/‖g_B‖)·g_B`, where `g_B` is the plain and `ḡ_B` the clipped sum. **Not certified**:
//! meant without noise.
//!
//! **Source.** Esipova 2023, Table 1.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use crate::{ClipConfig, Controller, Coupling, MethodEntry, ScaleRule, Weights};

/// `magnitude-only`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "magnitude-only",
    label: "Magnitude error only",
    summary: "an analysis of clipping's effect on the length of the sum alone",
    source: "Esipova 2023, Table 1",
    differs: "Not a private method: the unclipped sum enters.",
    preset: |params| ClipConfig {
        coupling: Coupling::MagnitudeOnly,
        ..ClipConfig::new(ScaleRule::Hard, Controller::Constant { threshold: params.clip_norm }, Weights::Uniform)
    },
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::methods::tests::*;

    #[test]
    fn by_hand() {
        let config = ENTRY.default_config();
        assert!(!config.certified());
        // g = (2, 0) and (0, 1), C = 1: plain sum (2, 1), clipped sum (1, 1); √2/√5·(2, 1).
        let mut sum = [1.0, 1.0];
        config.coupling.recombine(&mut sum, &[2.0, 1.0]);
        let ratio = (2.0_f64 / 5.0).sqrt();
        assert_close(sum[0], 2.0 * ratio);
        assert_close(sum[1], ratio);
    }
}
