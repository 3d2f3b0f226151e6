//! ASC with rates that follow losses: groups of larger noisy mean loss are drawn more often and clipped
//! lower, so that the guarantee of every group is the same. Bound `C`, the threshold at the least rate.
//!
//! **Source.** Cairney-Leeming, Sanyal & Lampert 2026.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use crate::{ClipConfig, Controller, MethodEntry, ScaleRule, Weights};

/// `asc-by-loss`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "asc-by-loss",
    label: "ASC by loss",
    summary: "hard clipping; groups of larger noisy mean loss drawn more often and clipped lower, so that the guarantee of \
              every group is the same",
    source: "Cairney-Leeming, Sanyal & Lampert 2026",
    differs: "the counts and sums of losses that rates follow from are released with noise and charged in the same event; a \
              step's rates follow from earlier steps alone, by multiplicative weights, on a public list of rates; each \
              threshold is the largest that keeps the step's Rényi divergence at an order that is fixed beforehand. Rates are \
              the trainer's: without their limits all groups are drawn alike, and this is DPSGD with counts that nothing \
              follows.",
    preset: |params| {
        ClipConfig::new(
            ScaleRule::Hard,
            Controller::ByRate { threshold: params.clip_norm },
            Weights::RatesByLoss {
                rate: params.rate.unwrap_or(0.1),
                loss_bound: params.loss_bound.unwrap_or(1.0),
                count_noise: params.count_noise,
            },
        )
    },
};

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::ENTRY;
    use crate::{ClipBatch, PresetParams, methods::tests::*};

    /// C = ½, L = 2, η = 1, with the losses of `group-dro`'s test: means 2/3 and 2. The weights in the
    /// state follow them, scales and bound do not.
    #[test]
    fn by_hand() {
        let params = PresetParams { clip_norm: 0.5, rate: Some(1.0), loss_bound: Some(2.0), ..PresetParams::default() };
        let mut method = noiseless(&ENTRY, &params, 6.0);
        assert_eq!(method.state()["weights"], serde_json::json!([1.0, 1.0]));
        let (norms, groups) = ([0.25, 1.0, 1.0, f64::NAN, 1.0], [0, 0, 0, 0, 1]);
        let batch = ClipBatch::new(&norms, &groups).with_losses(&[0.5, 1.5, f64::NAN, 1.0, 5.0][..]);
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let gap = (4.0_f64 / 3.0).exp();
        for step in 1..=2 {
            let clipped = method.clip(&batch, &mut rng).unwrap();
            for (scale, expected) in clipped.scales.iter().zip([1.0, 0.5, 0.5, 0.0, 0.5]) {
                assert_close(*scale, expected);
            }
            assert_eq!((clipped.bound, clipped.group_bounds), (0.5, vec![0.5, 0.5]));
            let released: Vec<&[f64]> = clipped.queries.iter().map(|query| &*query.released).collect();
            assert_eq!(released, [&[3.0, 1.0][..], &[1.0, 1.0]]);
            let weight = |group: usize| method.state()["weights"][group].as_f64().unwrap();
            assert_close(weight(0), 2.0 / (1.0 + gap.powi(step)));
            assert_close(weight(1), 2.0 / (1.0 + gap.powi(-step)));
        }
        assert!(ENTRY.default_config().needs_losses() && ENTRY.default_config().needs_groups());
    }
}
