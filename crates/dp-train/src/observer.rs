//! Watching a run without changing it.

use crate::engine::Evaluation;

/// One step, as an observer sees it.
///
/// **Shapes.** `groups` and `losses` `[batch]`, `norms` `[batch]` or empty, in the same order; `group_bounds` and
/// `group_gradient_norms` `[n_groups]`.
///
/// Losses, norms and thresholds before noise are **not private**: they are diagnostics of a research run on data that the reader
/// may see, and must not be released.
#[derive(Debug)]
pub struct StepView<'a> {
    /// 0-based.
    pub step: u64,
    /// Group of each record of the batch.
    pub groups: &'a [usize],
    /// Loss of each record in nats, before the update; not finite where a record is not.
    pub losses: &'a [f64],
    /// Gradient norm of each record before clipping; empty where the run did not need it.
    pub norms: &'a [f64],
    /// Thresholds in force: one, one per group, or none without clipping.
    pub thresholds: &'a [f64],
    /// `S_k`: what one record of group `k` can add to the sum at most; empty without clipping. A function of released counts.
    pub group_bounds: &'a [f64],
    /// Norm of each group's mean gradient before clipping, where asked for; `None` for a group with no
    /// record in the batch; records whose gradient is not finite do not count.
    pub group_gradient_norms: Option<&'a [Option<f64>]>,
}

/// Receives what happens in a run. Nothing it does changes the run.
///
/// **Example**
/// ```
/// use dp_train::{Observer, StepView};
///
/// /// Mean loss of each batch; `None` for an empty one.
/// struct MeanLosses(Vec<Option<f64>>);
///
/// impl Observer for MeanLosses {
///     fn on_step(&mut self, view: &StepView<'_>) {
///         let n = view.losses.len();
///         self.0.push((n > 0).then(|| view.losses.iter().sum::<f64>() / n as f64));
///     }
/// }
///
/// let mut means = MeanLosses(Vec::new());
/// let step = |losses| StepView {
///     step: 0, groups: &[0, 0], losses, norms: &[], thresholds: &[], group_bounds: &[], group_gradient_norms: None,
/// };
/// means.on_step(&step(&[1.0, 2.0]));
/// means.on_step(&step(&[]));
/// assert_eq!(means.0, [Some(1.5), None]);
/// ```
pub trait Observer {
    /// Whether to compute each group's mean gradient at this step: it costs a further weighted sum per group.
    fn wants_group_gradients(&self, _step: u64) -> bool {
        false
    }

    /// After each step.
    fn on_step(&mut self, _view: &StepView<'_>) {}

    /// After each epoch (1-based) of a run with validation records: what the model says about each of them, in their order.
    fn on_validation(&mut self, _epoch: u64, _validation: &Evaluation) {}

    /// After the last step of each epoch (1-based), with the number of steps taken so far.
    fn on_epoch(&mut self, _epoch: u64, _steps: u64) {}
}

/// An observer that looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
