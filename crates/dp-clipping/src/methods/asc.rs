//! ASC: groups are drawn at rates of their own, and one that is drawn more often is clipped lower, so
//! that the guarantee of every group is the same. Bound `C`, the threshold of the group that is drawn
//! least often.
//!
//! **Source.** Cairney-Leeming, Sanyal & Lampert 2026.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use crate::{ClipConfig, Controller, MethodEntry, ScaleRule, Weights};

/// `asc`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "asc",
    label: "ASC",
    summary: "hard clipping; groups drawn more often are clipped lower, so that the guarantee of every group is the same",
    source: "Cairney-Leeming, Sanyal & Lampert 2026",
    differs: "rates are public and the same in every step, where the paper's follow the losses of groups (`asc-by-loss`); \
              thresholds are the largest that keep the guarantee of every group, by privacy loss distributions of the whole run. \
              Rates are the trainer's: without them all groups are drawn alike, and this is DPSGD.",
    preset: |params| {
        ClipConfig::new(ScaleRule::Hard, Controller::ByRate { threshold: params.clip_norm }, Weights::Uniform)
    },
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::{PresetParams, methods::tests::*};

    /// C = ½, as the trainer asks for it: a norm of 2 in a group that has a quarter of the threshold is
    /// one of 8 here. Both scales bound the gradient: ½/8 of 2 is ⅛ = C/4.
    #[test]
    fn by_hand() {
        let mut method = noiseless(&ENTRY, &PresetParams { clip_norm: 0.5, ..PresetParams::default() }, 2.0);
        let clipped = step(&mut *method, &[2.0, 2.0 / 0.25, f64::NAN], &[0, 1, 1]);
        for (scale, expected) in clipped.scales.iter().zip([0.25, 0.0625, 0.0]) {
            assert_close(*scale, expected);
        }
        assert_eq!((clipped.bound, clipped.queries.len()), (0.5, 0));
        assert!(ENTRY.default_config().needs_groups());
    }
}
