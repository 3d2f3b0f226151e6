//! Stopping when validation no longer improves.

use dp_engine::{Evaluation, Records};
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};

/// Stops a run when what it says of the validation records has not become better for some epochs,
/// and takes it back to its best epoch.
///
/// **Guarantee.** Conditional on the validation records: the stopping time and the choice of epoch
/// depend on them without noise. So they must be public, or left out of the guarantee. They are never
/// the test set, and never records that are trained on. For the training records the stopped run is
/// a function of the released parameters, but the number of steps is then itself an outcome, so the
/// ledger is charged with every step of the plan, taken or not: ε is that of the whole plan.
///
/// **Example**
/// ```
/// use dp_train::{BatchPlan, EarlyStopping, LearningRate, Loss, ModelConfig, Plan, PublicFacts, StoppingCriterion, TrainConfig};
/// let facts = PublicFacts { n_records: 1_000, n_inputs: 4, n_classes: 3, n_groups: 1 };
/// let (batches, rate) = (BatchPlan::exact(facts, 100, 20)?, LearningRate::Constant(0.1));
/// let rule = EarlyStopping { patience: 3, min_improvement: 0.0, criterion: StoppingCriterion::Loss };
/// let config = TrainConfig {
///     early_stopping: Some(rule),
///     ..TrainConfig::new(ModelConfig::LogisticRegression, Loss::SoftmaxCrossEntropy, batches, rate)
/// };
/// assert_eq!(Plan::new(config, facts)?.conditions(), ["the validation records that decide when to stop"]);
/// # Ok::<(), dp_train::TrainError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlyStopping {
    /// Epochs in a row without improvement after which the run stops, at least 1.
    pub patience: u64,
    /// An epoch is better only if it improves the criterion by more than this, in the criterion's
    /// unit; at least 0.
    #[serde(default)]
    pub min_improvement: f64,
    /// The figure that is watched.
    #[serde(default)]
    pub criterion: StoppingCriterion,
}

/// The figure on the validation records that an epoch is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StoppingCriterion {
    /// Mean loss, in nats.
    #[default]
    Loss,
    /// F1 of the second of two classes; with more classes, the mean of theirs. As a fraction.
    F1,
}

impl StoppingCriterion {
    /// The figure of an epoch: the lower, the better.
    pub(crate) fn figure(self, evaluation: &Evaluation, validation: &Records) -> f64 {
        match self {
            Self::Loss => evaluation.losses.iter().sum::<f64>() / evaluation.losses.len() as f64,
            Self::F1 => -f1(&evaluation.predictions, validation.labels(), validation.facts().n_classes),
        }
    }
}

/// F1 of the second of two classes, or the mean over more. A class that neither is nor is predicted
/// counts 0.
fn f1(predictions: &[u32], labels: &[u32], n_classes: usize) -> f64 {
    let of_class = |class: usize| {
        let count = |records: &[u32]| records.iter().filter(|&&other| other as usize == class).count();
        let pairs = predictions.iter().zip(labels);
        let right = pairs.filter(|(predicted, label)| predicted == label && **label as usize == class).count();
        // 2·TP / (2·TP + FP + FN): TP + FP are predicted, TP + FN are there.
        2.0 * right as f64 / (count(predictions) + count(labels)).max(1) as f64
    };
    match n_classes {
        2 => of_class(1),
        n => (0..n).map(of_class).sum::<f64>() / n as f64,
    }
}

impl EarlyStopping {
    pub(crate) fn validate(&self) -> Result<()> {
        if self.patience == 0 {
            return Err(TrainError::invalid("early_stopping.patience", 0, "at least 1"));
        }
        if !(self.min_improvement.is_finite() && self.min_improvement >= 0.0) {
            let value = self.min_improvement;
            return Err(TrainError::invalid("early_stopping.min_improvement", value, "a finite number of at least 0"));
        }
        Ok(())
    }
}

/// The state of early stopping in a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Patience {
    /// Best figure of the criterion so far, the lower the better, and the parameters that had it.
    pub(crate) best: Option<(f64, Vec<f64>)>,
    /// Epochs since.
    pub(crate) epochs_without: u64,
    /// Whether the run has stopped.
    pub(crate) stopped: bool,
}

impl Patience {
    /// Takes note of an epoch; `parameters` are read where it is the best so far. A figure that is
    /// no number is no improvement.
    pub(crate) fn note(
        &mut self,
        rule: &EarlyStopping,
        figure: f64,
        parameters: impl FnOnce() -> Result<Vec<f64>>,
    ) -> Result<()> {
        let is_better = match &self.best {
            None => figure.is_finite(),
            Some((best, _)) => figure < best - rule.min_improvement,
        };
        if is_better {
            self.best = Some((figure, parameters()?));
            self.epochs_without = 0;
        } else {
            self.epochs_without += 1;
            self.stopped = self.epochs_without >= rule.patience;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_counts_epochs_since_the_best() {
        let rule = EarlyStopping { patience: 2, min_improvement: 0.1, criterion: StoppingCriterion::Loss };
        let mut patience = Patience::default();
        // Better; not better by enough; better than the best by enough; worse; not a number: two in
        // a row.
        for (epoch, (loss, best)) in
            [(1.0, 1.0), (0.95, 1.0), (0.8, 0.8), (0.9, 0.8), (f64::NAN, 0.8)].into_iter().enumerate()
        {
            assert!(!patience.stopped, "{epoch}");
            patience.note(&rule, loss, || Ok(vec![epoch as f64])).unwrap();
            assert_eq!(patience.best.as_ref().unwrap().0, best);
        }
        assert!(patience.stopped);
        assert_eq!(patience.best, Some((0.8, vec![2.0])));
    }

    #[test]
    fn f1_by_hand() {
        // Two right of three predicted and four there: 2·2/(3 + 4).
        let (predicted, labels) = ([1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 1, 0]);
        assert!((f1(&predicted, &labels, 2) - 4.0 / 7.0).abs() < 1e-12);
        // The first of three classes has 2·1/(3 + 2); the last occurs nowhere.
        assert!((f1(&predicted, &labels, 3) - (2.0 / 5.0 + 4.0 / 7.0) / 3.0).abs() < 1e-12);
        assert_eq!(f1(&[0, 0], &[0, 0], 2), 0.0);
    }

    #[test]
    fn a_run_that_never_has_a_loss_stops_without_a_best_epoch() {
        let mut patience = Patience::default();
        let rule = EarlyStopping { patience: 1, min_improvement: 0.0, criterion: StoppingCriterion::Loss };
        patience.note(&rule, f64::INFINITY, || Ok(Vec::new())).unwrap();
        assert_eq!((patience.best, patience.stopped), (None, true));
    }
}
