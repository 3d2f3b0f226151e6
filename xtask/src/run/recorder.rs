//! An observer that keeps what the report plots.

use dp_train::{Observer, StepView, TrainError};
use indicatif::ProgressBar;
use run_records::{EpochRecord, ThresholdRecord, extended};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Points a threshold's curve is drawn from, at most.
const THRESHOLD_POINTS: u64 = 200;
/// Evaluations of the groups' mean gradients in an epoch, about.
const GRADIENTS_PER_EPOCH: u64 = 10;
/// Steps from one to the next at least: each costs as much as a step.
const STEPS_PER_GRADIENT: u64 = 10;

/// A running mean.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Mean {
    #[serde(with = "extended")]
    sum: f64,
    n: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.n += 1;
    }

    fn take(&mut self) -> Option<f64> {
        let mean = (self.n > 0).then(|| self.sum / self.n as f64);
        *self = Self::default();
        mean
    }
}

/// Means by group over the current epoch.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct GroupMeans {
    loss: Mean,
    norm: Mean,
    clipped_norm: Mean,
    mean_gradient: Mean,
}

/// Between a run's name and how far it is.
const EPOCH: &str = ", epoch ";

/// Collects epoch means and thresholds, and moves the progress bar.
pub(crate) struct Recorder {
    gradient_every: u64,
    threshold_every: u64,
    bar: ProgressBar,
    /// The run, as the bar calls it.
    name: String,
    n_epochs: u64,
    /// What the run has shown so far.
    pub(crate) seen: Seen,
}

/// What a recorder keeps: everything of it that a checkpoint must hold.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// The current epoch.
    groups: Vec<GroupMeans>,
    /// Records drawn so far.
    n_records: u64,
    /// One per epoch so far.
    pub(crate) epochs: Vec<EpochRecord>,
    /// Thresholds so far, thinned.
    pub(crate) thresholds: Vec<ThresholdRecord>,
    /// What one record of each group could add to the sum, at every step; empty without clipping.
    #[serde(with = "extended")]
    pub(crate) group_bounds: Vec<Vec<f64>>,
}

impl Recorder {
    /// A recorder of a run with this many groups, steps and epochs.
    pub(crate) fn new(n_groups: usize, steps: u64, epochs: u64, bar: ProgressBar) -> Self {
        let message = bar.message();
        Self {
            name: message.split(EPOCH).next().unwrap_or_default().to_owned(),
            n_epochs: epochs,
            gradient_every: (steps / epochs / GRADIENTS_PER_EPOCH).max(STEPS_PER_GRADIENT),
            threshold_every: steps.div_ceil(THRESHOLD_POINTS).max(1),
            bar,
            seen: Seen { groups: vec![GroupMeans::default(); n_groups], ..Seen::default() },
        }
    }

    fn show_epoch(&self) {
        let n = self.seen.epochs.len();
        self.bar.set_message(format!("{}{EPOCH}{n} of {}", self.name, self.n_epochs));
    }
}

impl Observer for Recorder {
    fn wants_group_gradients(&self, step: u64) -> bool {
        step.is_multiple_of(self.gradient_every)
    }

    fn on_step(&mut self, view: &StepView<'_>) {
        let seen = &mut self.seen;
        for (&group, &loss) in view.groups.iter().zip(view.losses) {
            seen.groups[group].loss.add(loss);
        }
        for (&group, &norm) in view.groups.iter().zip(view.norms) {
            seen.groups[group].norm.add(norm);
        }
        if !view.thresholds.is_empty() {
            for ((&group, &norm), &scale) in view.groups.iter().zip(view.norms).zip(view.scales) {
                // A gradient that is not finite has scale 0.
                seen.groups[group].clipped_norm.add(if scale > 0.0 { scale * norm } else { 0.0 });
            }
        }
        for (means, norm) in seen.groups.iter_mut().zip(view.group_gradient_norms.unwrap_or_default()) {
            if let Some(norm) = norm {
                means.mean_gradient.add(*norm);
            }
        }
        if !view.thresholds.is_empty() && view.step.is_multiple_of(self.threshold_every) {
            seen.thresholds.push(ThresholdRecord { step: view.step, values: view.thresholds.to_vec() });
        }
        if !view.group_bounds.is_empty() {
            seen.group_bounds.push(view.group_bounds.to_vec());
        }
        seen.n_records += view.groups.len() as u64;
        self.bar.inc(view.groups.len() as u64);
    }

    fn on_epoch(&mut self, epoch: u64, steps: u64) {
        let mut record = EpochRecord {
            epoch: epoch as usize,
            step: steps,
            loss: Vec::new(),
            gradient_norm: Vec::new(),
            clipped_gradient_norm: Vec::new(),
            mean_gradient_norm: Vec::new(),
        };
        for means in &mut self.seen.groups {
            record.loss.push(means.loss.take());
            record.gradient_norm.push(means.norm.take());
            record.clipped_gradient_norm.push(means.clipped_norm.take());
            record.mean_gradient_norm.push(means.mean_gradient.take());
        }
        self.seen.epochs.push(record);
        self.show_epoch();
    }

    fn memory(&self) -> dp_train::Result<Value> {
        serde_json::to_value(&self.seen).map_err(|error| unfit(&error))
    }

    fn remember(&mut self, memory: Value) -> dp_train::Result<()> {
        self.seen = serde_json::from_value(memory).map_err(|error| unfit(&error))?;
        self.bar.inc(self.seen.n_records);
        self.show_epoch();
        Ok(())
    }
}

fn unfit(error: &serde_json::Error) -> TrainError {
    TrainError::Mismatch {
        what: "what a checkpoint holds of a run's records".to_owned(),
        expected: "means, thresholds and bounds".to_owned(),
        got: error.to_string(),
    }
}
