//! Watching a run without changing it.

/// One step, as an observer sees it.
///
/// Losses, norms and thresholds before noise are **not private**: they are diagnostics of a research run on data that the reader
/// may see, and must not be released.
#[derive(Debug)]
pub struct StepView<'a> {
    /// 0-based.
    pub step: u64,
    /// Group of each record of the batch.
    pub groups: &'a [usize],
    /// Loss of each record, before the update.
    pub losses: &'a [f64],
    /// Gradient norm of each record before clipping; empty where the run did not need it.
    pub norms: &'a [f64],
    /// Thresholds in force: one, one per group, or none without clipping.
    pub thresholds: &'a [f64],
    /// `S_k`: what one record of group `k` can add to the sum at most; empty without clipping. A function of released counts.
    pub group_bounds: &'a [f64],
    /// Norm of each group's mean gradient before clipping, where asked for; `None` for a group with no record in the batch.
    pub group_gradient_norms: Option<&'a [Option<f64>]>,
}

/// Receives what happens in a run.
pub trait Observer {
    /// Whether to compute each group's mean gradient at this step: it costs a further weighted sum per group.
    fn wants_group_gradients(&self, _step: u64) -> bool {
        false
    }

    /// After each step.
    fn on_step(&mut self, _view: &StepView<'_>) {}

    /// After the last step of each epoch (1-based), with the number of steps taken so far.
    fn on_epoch(&mut self, _epoch: u64, _steps: u64) {}
}

/// An observer that looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
