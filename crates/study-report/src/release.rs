//! The part of a study's results that its ε cover, apart from the diagnostics.

use run_records::mark::Mark;
use run_records::{PrivacyRecord, StudyResults, ThresholdRecord};
use serde::Serialize;

/// What may be released of a study, if its randomness is secret. The parameters themselves are not
/// kept by a study.
#[derive(Serialize)]
pub(super) struct Release<'a> {
    study: &'a str,
    /// False with a seed: the mechanisms are what their marks say, these runs are not private.
    private: bool,
    /// `QUICK`, `SYNTHETIC` or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<&'static str>,
    experiments: Vec<ExperimentRelease<'a>>,
    /// What is in `results.json` besides.
    #[serde(rename = "not_for_release")]
    diagnostics: [&'static str; 7],
}

#[derive(Serialize)]
struct ExperimentRelease<'a> {
    id: &'a str,
    title: &'a str,
    methods: Vec<MethodRelease<'a>>,
}

#[derive(Serialize)]
struct MethodRelease<'a> {
    method: &'a str,
    config: &'a serde_json::Value,
    privacy: &'a PrivacyRecord,
    /// Noisy thresholds over steps, of each run.
    thresholds: Vec<&'a [ThresholdRecord]>,
}

impl<'a> Release<'a> {
    /// Of the methods with a proof.
    pub(super) fn of(results: &'a StudyResults) -> Self {
        let methods = |methods: &'a [run_records::MethodResults]| {
            methods
                .iter()
                .filter_map(|method| Some((method, method.privacy.as_ref().filter(|privacy| privacy.certified)?)))
                .map(|(method, privacy)| MethodRelease {
                    method: &method.method,
                    config: &method.config,
                    privacy,
                    thresholds: method.runs.iter().map(|run| run.thresholds.as_slice()).collect(),
                })
                .collect()
        };
        Self {
            study: &results.study,
            private: results.private,
            mark: Mark::new(results.synthetic, results.quick).map(Mark::label),
            experiments: results
                .experiments
                .iter()
                .map(|experiment| ExperimentRelease {
                    id: &experiment.id,
                    title: &experiment.title,
                    methods: methods(&experiment.methods),
                })
                .collect(),
            diagnostics: [
                "training losses and gradient norms by group",
                "metrics on training, validation and test records",
                "numbers of non-finite gradients and of empty batches",
                "sizes of groups",
                "the number of trials of a search, and the trials that were not released",
                "running times",
                "methods without a proof, and the reference without privacy",
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_release_has_no_diagnostics() {
        let results = fixture::study();
        let json = serde_json::to_value(Release::of(&results)).unwrap();
        assert_eq!(json["private"], false);
        let method = &json["experiments"][0]["methods"][0];
        assert_eq!(method["method"], "dpsgd");
        assert_eq!(method["privacy"]["epsilons"][0]["mark"], "certified");
        let text = json.to_string();
        for diagnostic in ["gradient_norm", "n_non_finite", "n_train", "\"seconds\"", "\"accuracy\""] {
            assert!(!text.contains(diagnostic), "{diagnostic}");
        }
    }
}
