//! What a method releases beside its gradients, and what each release takes of its budget.

use fair_report::number;
use run_records::PrivacyRecord;
use serde_json::Value;

/// Gaussian noise on a sum, once or in several rounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Release {
    pub(super) name: &'static str,
    pub(super) noise_multiplier: f64,
    rounds: u64,
}

/// The releases of conditioned and of adjusted training, in order; empty for other methods.
pub(super) fn beside_the_gradients(config: &Value) -> Vec<Release> {
    let conditioning = &config["conditioning"];
    let recall = &config["recall_biases"];
    let rounds = recall["rounds"].as_u64().unwrap_or(0);
    [
        ("mean of the inputs", &conditioning["mean"], 1),
        ("covariance of the inputs", &conditioning["covariance"], 1),
        ("counts of the classes", &config["class_counts"], 1),
        ("counts of right answers by class", &recall["noise_multiplier"], rounds),
    ]
    .into_iter()
    .filter_map(|(name, value, rounds)| Some(Release { name, noise_multiplier: value.as_f64()?, rounds }))
    .collect()
}

/// Shares of `μ² = Σ 1/σ²`, which is what releases of all records share.
pub(super) struct Shares {
    /// `None` where batches are sampled: μ² then is no measure.
    total: Option<f64>,
    gradients: f64,
}

impl Shares {
    pub(super) fn of(releases: &[Release], privacy: &PrivacyRecord) -> Self {
        let gradients = match (privacy.steps, privacy.noise_multiplier) {
            (Some(steps), Some(multiplier)) => steps as f64 / multiplier.powi(2),
            _ => 0.0,
        };
        let beside: f64 = releases.iter().map(Release::precision).sum();
        let is_shared = !releases.is_empty() && gradients > 0.0 && privacy.sampling_rate == Some(1.0);
        Self { total: is_shared.then_some(beside + gradients), gradients }
    }

    pub(super) fn of_release(&self, release: &Release) -> String {
        let rounds = if release.rounds > 1 { format!(", {} rounds", release.rounds) } else { String::new() };
        format!("{rounds}{}", self.words(release.precision()))
    }

    pub(super) fn of_gradients(&self) -> String {
        self.words(self.gradients)
    }

    fn words(&self, part: f64) -> String {
        self.total
            .map_or_else(String::new, |total| format!(", {} % of the budget", number::fixed(100.0 * part / total, 1)))
    }
}

impl Release {
    fn precision(&self) -> f64 {
        self.rounds as f64 / self.noise_multiplier.powi(2)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture;

    /// Noise 2, 1, 4 and 2 over four steps: μ² = 1/4 + 1 + 1/16 + 4/4.
    #[test]
    fn shares_by_hand() {
        let config = json!({"conditioning": {"mean": 2.0, "covariance": 1.0}, "class_counts": 4.0});
        let releases = beside_the_gradients(&config);
        let mut privacy = fixture::study().experiments[0].methods[1].privacy.clone().unwrap();
        (privacy.steps, privacy.noise_multiplier, privacy.sampling_rate) = (Some(4), Some(2.0), Some(1.0));
        let shares = Shares::of(&releases, &privacy);
        let words: Vec<String> = releases.iter().map(|release| shares.of_release(release)).collect();
        assert_eq!(words, [", 10.8 % of the budget", ", 43.2 % of the budget", ", 2.7 % of the budget"]);
        assert_eq!(shares.of_gradients(), ", 43.2 % of the budget");
        privacy.sampling_rate = Some(0.1);
        assert_eq!(Shares::of(&releases, &privacy).of_gradients(), "");
        assert!(beside_the_gradients(&json!({"loss": "softmax-cross-entropy"})).is_empty());
    }
}
