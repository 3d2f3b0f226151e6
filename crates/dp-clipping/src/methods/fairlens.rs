//! FairLens: DPSGD on the gradient of a regularised loss. **Not certified.**
//!
//! The regulariser R1 is a function of the whole batch: one record moves every other record's
//! gradient, and clipping each of them no longer bounds the sum's sensitivity. It is a baseline;
//! its ε is nominal.
//!
//! **Source.** Tran et al. 2021; Esipova 2023, Algorithm 4.
//!
//! **Differs.** Listed in [`crate::registry`], from this method's entry.

use crate::{ClipConfig, Controller, Coupling, MethodEntry, ScaleRule, Weights};

/// `fairlens`
pub(crate) const ENTRY: MethodEntry = MethodEntry {
    name: "fairlens",
    label: "FairLens",
    summary: "hard clipping of the gradient of a loss with two fairness regularisers",
    source: "Tran et al. 2021; Esipova 2023, Alg. 4",
    differs: "Not certified: the published privacy claim does not hold, because the regulariser couples the records of \
              a batch. Esipova's code configures it but does not implement it. In the gradient of its regulariser R1 the \
              clipping factors count as constants; R1 is the mean over pairs of groups and R2 the mean over groups. The trainer \
              that printed the paper's rows does otherwise: `fairlens_form` chooses.",
    preset: |params| {
        let [gamma_1, gamma_2] = params.fairlens_weights.unwrap_or([1.0, 1.0]);
        ClipConfig {
            coupling: Coupling::Fairlens { gamma_1, gamma_2, form: params.fairlens_form },
            ..ClipConfig::new(ScaleRule::Hard, Controller::Constant { threshold: params.clip_norm }, Weights::Uniform)
        }
    },
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::{PresetParams, methods::tests::*};

    #[test]
    fn by_hand() {
        let config = ENTRY.default_config();
        assert!(!config.certified() && config.needs_groups());
        let clipped = step(&mut *noiseless(&ENTRY, &PresetParams::default(), 4.0), &[2.0], &[0]);
        assert_close(clipped.scales[0], 0.5);
    }
}
