//! The part of a study's results that its ε cover, apart from the diagnostics.

use run_records::mark::Mark;
use run_records::{PrivacyRecord, StudyResults};
use serde::Serialize;

use super::all_runs::{AllRuns, by_data};

/// What may be released of a study, if its randomness is secret. The parameters themselves are not
/// kept by a study.
///
/// Nothing in it is kept by run: whether a run failed depends on the records, so that one may not
/// read from the release how many did. The noisy thresholds, which ε covers for a run that ended,
/// are in `results.json`.
#[derive(Serialize)]
pub(super) struct Release<'a> {
    study: &'a str,
    /// False with a seed: the mechanisms are what their marks say, these runs are not private.
    private: bool,
    /// `QUICK`, `SYNTHETIC` or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<&'static str>,
    /// What all runs on one data set cost together.
    all_runs: Vec<AllRuns>,
    experiments: Vec<ExperimentRelease<'a>>,
    /// What is in `results.json` besides.
    #[serde(rename = "not_for_release")]
    diagnostics: [&'static str; 8],
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
}

impl<'a> Release<'a> {
    /// Of the methods with a proof.
    pub(super) fn of(results: &'a StudyResults) -> Self {
        let methods = |methods: &'a [run_records::MethodResults]| {
            methods
                .iter()
                .filter_map(|method| Some((method, method.privacy.as_ref().filter(|privacy| privacy.certified)?)))
                .map(|(method, privacy)| MethodRelease { method: &method.method, config: &method.config, privacy })
                .collect()
        };
        Self {
            study: &results.study,
            private: results.private,
            mark: Mark::new(results.synthetic, results.quick).map(Mark::label),
            all_runs: by_data(results),
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
                "which runs failed, and what each run released: its noisy thresholds",
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

    /// Nobody is to see how many runs failed.
    #[test]
    fn a_release_is_the_same_whether_runs_failed_or_not() {
        let whole = fixture::study();
        let mut failed = whole.clone();
        let method = &mut failed.experiments[0].methods[2];
        for run in method.runs.split_off(1) {
            let reason = "diverged".to_owned();
            method.failures.push(run_records::FailureRecord { index: run.index, reason });
        }
        let release = |results| serde_json::to_string(&Release::of(results)).unwrap();
        assert_eq!(release(&failed), release(&whole));
        assert!(release(&whole).contains(r#""all_runs":[{"data":["adult"]"#));
    }

    #[test]
    fn a_release_has_no_diagnostics() {
        let results = fixture::study();
        let json = serde_json::to_value(Release::of(&results)).unwrap();
        assert_eq!(json["private"], false);
        let method = &json["experiments"][0]["methods"][0];
        assert_eq!(method["method"], "dpsgd");
        assert_eq!(method["privacy"]["epsilons"][0]["mark"], "certified");
        let text = json.to_string();
        for diagnostic in ["gradient_norm", "n_non_finite", "n_train", "\"seconds\"", "\"accuracy\"", "thresholds\":"] {
            assert!(!text.contains(diagnostic), "{diagnostic}");
        }
    }
}
