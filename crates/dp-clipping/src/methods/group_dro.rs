//! Group DRO: hard clipping, then a weight per group that grows with the group's noisy mean loss, so
//! that training minimises the worst group's risk. Bound `C·max_k w_k`.
//!
//! **Source.** Sagawa et al. 2020, Algorithm 1; Zhou & Bassily 2024 for worst-group risk under privacy.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use crate::{ClipConfig, Controller, MethodEntry, ScaleRule, Weights};

/// `group-dro`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "group-dro",
    label: "Group DRO",
    summary: "hard clipping with weights that grow with the noisy mean losses of groups",
    source: "Sagawa et al. 2020, Alg. 1; Zhou & Bassily 2024",
    differs: "Sagawa draws one group per step, uniformly; here one Poisson batch serves all groups and a group's weight \
              multiplies its records, so that at equal weights every record counts as much. A step's weights follow \
              from the noisy counts and losses of earlier steps, and losses are clamped to a declared bound.",
    preset: |params| {
        ClipConfig::new(
            ScaleRule::Hard,
            Controller::Constant { threshold: params.clip_norm },
            Weights::Multiplicative {
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

    /// C = ½, L = 2, η = 1. The first step has the scales of DPSGD. Group 0: losses ½, 3/2, NaN and one
    /// of a blank, which counts nowhere: mean 2·(¼ + ¾ + 0)/3 = 2/3. Group 1: 5, clamped to 2.
    #[test]
    fn by_hand() {
        let params = PresetParams { clip_norm: 0.5, rate: Some(1.0), loss_bound: Some(2.0), ..PresetParams::default() };
        let mut method = noiseless(&ENTRY, &params, 6.0);
        let (norms, groups) = ([0.25, 1.0, 1.0, f64::NAN, 1.0], [0, 0, 0, 0, 1]);
        let batch = ClipBatch::new(&norms, &groups).with_losses(&[0.5, 1.5, f64::NAN, 1.0, 5.0][..]);
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let first = method.clip(&batch, &mut rng).unwrap();
        for (scale, expected) in first.scales.iter().zip([1.0, 0.5, 0.5, 0.0, 0.5]) {
            assert_close(*scale, expected);
        }
        assert_eq!((first.bound, first.group_bounds), (0.5, vec![0.5, 0.5]));
        let released: Vec<&[f64]> = first.queries.iter().map(|query| &*query.released).collect();
        assert_eq!(released, [&[3.0, 1.0][..], &[1.0, 1.0]]);
        assert!(first.queries.iter().all(|query| query.l2_sensitivity == 1.0));

        // Weights e^(2/3) and e², divided by their mean: 2/(1 + e^(4/3)) and 2/(1 + e^(−4/3)).
        let gap = (4.0_f64 / 3.0).exp();
        let (low, high) = (2.0 / (1.0 + gap), 2.0 / (1.0 + 1.0 / gap));
        let second = method.clip(&batch, &mut rng).unwrap();
        assert_close(second.scales[0], low);
        assert_close(second.scales[4], 0.5 * high);
        assert_close(second.bound, 0.5 * high);
        assert_close(second.group_bounds[0], 0.5 * low);
    }

    #[test]
    fn a_batch_without_losses_is_refused() {
        let mut method = noiseless(&ENTRY, &PresetParams::default(), 2.0);
        let error = method.clip(&ClipBatch::new(&[1.0], &[0]), &mut ChaCha20Rng::seed_from_u64(1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "losses = none: expected the loss of each record, which the weights `multiplicative` follow"
        );
        assert!(method.state()["steps"] == 0);
    }

    #[test]
    fn a_state_with_other_weights_is_refused() {
        let mut method = noiseless(&ENTRY, &PresetParams::default(), 2.0);
        let mut state = method.state();
        assert_eq!(state["weights"], serde_json::json!([1.0, 1.0]));
        state["weights"] = serde_json::json!([1.0]);
        assert_eq!(
            method.restore(&state).unwrap_err().to_string(),
            "state: its number of weights differs from the method's"
        );
        state["weights"] = serde_json::json!([1.0, 0.0]);
        assert_eq!(method.restore(&state).unwrap_err().to_string(), "weights = 0: expected numbers in [2^-30, 2^30]");
    }
}
