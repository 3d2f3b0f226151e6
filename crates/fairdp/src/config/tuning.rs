//! `[tuning]`: settings that are chosen on the records, within the budget.

use dp_linear::Objective;
use dp_table::declaration::{EntryError, Names};
use fair_decisions::Mode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{MethodChoice, ModelEntry, ModelKind};

/// `[tuning]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TuningEntry {
    /// Expected number of trials, above 1 and at most 1,000; their number is drawn, and secret.
    pub mean_trials: f64,
    /// Share of the training records on which trials are compared, above 0 and at most 0.5; 0.1
    /// unless given.
    pub validation: Option<f64>,
    /// What trials are compared by: the probabilities of all records unless given.
    #[serde(default)]
    pub goal: TuningGoal,
    /// The accuracy below which a trial's score falls by as much as it lacks, above 0 and below 1; with
    /// `goal = "worst-group"`.
    pub min_accuracy: Option<f64>,
    /// The recipes of trials: each trial draws one, all with the same probability.
    pub candidate: Vec<CandidateEntry>,
}

/// `tuning.goal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TuningGoal {
    /// 1 less the Brier score, over all records.
    #[default]
    Probabilities,
    /// The balanced accuracy of the group that is served worst.
    WorstGroup,
}

/// `[[tuning.candidate]]`: what `[model]` and `[method]` would say.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CandidateEntry {
    /// As `model.kind`.
    #[serde(default)]
    pub kind: ModelKind,
    /// As `model.hidden`.
    pub hidden: Option<Vec<usize>>,
    /// As `model.objective`.
    #[serde(default)]
    #[schemars(with = "Names<Objective>")]
    pub objective: Objective,
    /// As `[method]`.
    #[serde(default)]
    pub method: MethodChoice,
    /// As the mode of `fairness`, whose limits and positive class are those of `[fairness]`; with `goal =
    /// "worst-group"`. Where a candidate has one, each trial releases its own scores and has its own thresholds.
    #[schemars(with = "Option<Names<Mode>>")]
    pub fairness: Option<Mode>,
}

impl TuningEntry {
    /// Share of the training records on which trials are compared.
    pub(crate) fn fraction(&self) -> f64 {
        self.validation.unwrap_or(0.1)
    }

    /// Whether trials have thresholds of their own.
    pub(crate) fn has_modes(&self) -> bool {
        self.candidate.iter().any(|candidate| candidate.fairness.is_some())
    }

    pub(super) fn check(&self) -> Result<(), EntryError> {
        let (mean, fraction) = (self.mean_trials, self.fraction());
        if !(mean > 1.0 && mean <= 1_000.0) {
            return Err(EntryError::value("tuning.mean_trials", mean, "above 1, at most 1000"));
        }
        if !(fraction > 0.0 && fraction <= 0.5) {
            return Err(EntryError::value("tuning.validation", fraction, "above 0, at most 0.5"));
        }
        if let Some(floor) = self.min_accuracy {
            if self.goal != TuningGoal::WorstGroup {
                let message = "tuning.min_accuracy: expected with goal = \"worst-group\", whose scores fall below it";
                return Err(EntryError::new("tuning.min_accuracy", message));
            }
            if !(floor > 0.0 && floor < 1.0) {
                return Err(EntryError::value("tuning.min_accuracy", floor, "above 0, below 1"));
            }
        }
        if self.has_modes() && self.goal != TuningGoal::WorstGroup {
            let message = "tuning.candidate: fairness is expected with goal = \"worst-group\": the probabilities that trials are \
                           compared by else do not depend on it";
            return Err(EntryError::new("tuning.goal", message));
        }
        if self.candidate.len() < 2 {
            let message = format!("tuning.candidate has {} entries: expected at least 2", self.candidate.len());
            return Err(EntryError::new("tuning.candidate", message));
        }
        Ok(())
    }
}

impl CandidateEntry {
    /// The model of this candidate.
    pub(crate) fn model(&self) -> ModelEntry {
        ModelEntry { kind: self.kind, hidden: self.hidden.clone(), objective: self.objective, ..ModelEntry::default() }
    }
}

/// A fault in a candidate, whose keys replace `[model]` and `[method]`.
pub(super) fn of_candidate(error: &EntryError, index: usize) -> EntryError {
    let inner = error.place.strip_prefix("model.").unwrap_or(&error.place);
    let place = format!("tuning.candidate.{index}.{inner}");
    EntryError { place, message: format!("tuning.candidate number {}: {}", index + 1, error.message) }
}
