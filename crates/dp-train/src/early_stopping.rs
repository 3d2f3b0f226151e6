//! Stopping when validation no longer improves.

use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};

/// Stops a run when the mean loss of the validation records has not fallen for some epochs, and takes it back to its best epoch.
///
/// **Guarantee.** The validation records must be public, or be left out of what the guarantee covers: the stopping time and the choice of
/// epoch depend on them without noise. They are never the test set, and never records that are trained on. For the training
/// records the stopped run is a function of the released parameters, but the number of steps is then itself an outcome, so the
/// ledger is charged with every step of the plan, taken or not: ε is that of the whole plan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlyStopping {
    /// Epochs in a row without improvement after which the run stops, at least 1.
    pub patience: u64,
    /// A loss counts as better if it is lower by more than this, in nats; at least 0.
    #[serde(default)]
    pub min_improvement: f64,
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

/// What early stopping remembers of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Patience {
    /// Lowest mean validation loss so far, and the parameters that had it.
    pub(crate) best: Option<(f64, Vec<f64>)>,
    /// Epochs since.
    pub(crate) epochs_without: u64,
    /// Whether the run has stopped.
    pub(crate) stopped: bool,
}

impl Patience {
    /// Takes note of an epoch; `parameters` are read where it is the best so far. A loss that is no number is no improvement.
    pub(crate) fn note(
        &mut self,
        rule: &EarlyStopping,
        loss: f64,
        parameters: impl FnOnce() -> Result<Vec<f64>>,
    ) -> Result<()> {
        let is_better = match &self.best {
            None => loss.is_finite(),
            Some((best, _)) => loss < best - rule.min_improvement,
        };
        if is_better {
            self.best = Some((loss, parameters()?));
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
        let rule = EarlyStopping { patience: 2, min_improvement: 0.1 };
        let mut patience = Patience::default();
        // Better; not better by enough; better than the best by enough; worse; not a number: two in a row.
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
    fn a_run_that_never_has_a_loss_stops_without_a_best_epoch() {
        let mut patience = Patience::default();
        patience.note(&EarlyStopping { patience: 1, min_improvement: 0.0 }, f64::INFINITY, || Ok(Vec::new())).unwrap();
        assert_eq!((patience.best, patience.stopped), (None, true));
    }
}
