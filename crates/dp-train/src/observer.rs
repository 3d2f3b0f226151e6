//! Watching a run without changing it.

use dp_clipping::MethodState;
use dp_engine::Evaluation;
use serde_json::Value;

use crate::error::{Result, TrainError};

/// The state of a run before a step: copies, so that nothing done to them changes the run.
///
/// With a certified method the parameters and thresholds are what a private run has released so
/// far.
#[derive(Debug, Clone, Copy)]
pub struct StepState<'a> {
    /// 0-based step that starts here.
    pub step: u64,
    /// Step size of this step.
    pub learning_rate: f64,
    /// Parameters, `[n_params]`.
    pub parameters: &'a [f64],
    /// Clipping method; `None` without privacy.
    pub method: Option<&'a MethodState>,
}

/// One step, as an observer sees it.
///
/// **Shapes.** `groups`, `losses` and `scales` `[batch]`, `norms` `[batch]` or empty, in the same
/// order; `group_bounds` and `group_gradient_norms` `[n_groups]`.
///
/// Losses, norms and thresholds before noise are **not private**: they are diagnostics of a
/// research run on data that the reader may see, and must not be released.
#[derive(Default)]
#[non_exhaustive]
pub struct StepView<'a> {
    /// 0-based.
    pub step: u64,
    /// Group of each record of the batch.
    pub groups: &'a [usize],
    /// Loss of each record in nats, before the update; not finite where a record is not.
    pub losses: &'a [f64],
    /// Gradient norm of each record before clipping; empty where the run did not need it.
    pub norms: &'a [f64],
    /// Factor of each record's gradient in the sum; 0 where the gradient is not finite.
    pub scales: &'a [f64],
    /// Thresholds in force: one, one per group, or none without clipping.
    pub thresholds: &'a [f64],
    /// `S_k`: what one record of group `k` can add to the sum at most; empty without clipping. A
    /// function of released counts.
    pub group_bounds: &'a [f64],
    /// Norm of each group's mean gradient before clipping, where asked for; `None` for a group with
    /// no record in the batch; records whose gradient is not finite do not count.
    pub group_gradient_norms: Option<&'a [Option<f64>]>,
}

/// The step alone: the rest is not private.
impl std::fmt::Debug for StepView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepView").field("step", &self.step).finish_non_exhaustive()
    }
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
/// let mut step = StepView::default();
/// step.losses = &[1.0, 2.0];
/// means.on_step(&step);
/// means.on_step(&StepView::default());
/// assert_eq!(means.0, [Some(1.5), None]);
/// ```
pub trait Observer {
    /// Whether to compute each group's mean gradient at this step: it costs a further weighted sum
    /// per group.
    fn wants_group_gradients(&self, _step: u64) -> bool {
        false
    }

    /// Whether to be shown the state before this step: it costs a copy of the parameters.
    fn wants_state(&self, _step: u64) -> bool {
        false
    }

    /// Before each step whose state is wanted.
    ///
    /// # Errors
    /// An error stops the run.
    fn before_step(&mut self, _state: &StepState<'_>) -> Result<()> {
        Ok(())
    }

    /// After each step.
    fn on_step(&mut self, _view: &StepView<'_>) {}

    /// After each epoch (1-based) of a run with validation records: what the model says about each
    /// of them, in their order.
    fn on_validation(&mut self, _epoch: u64, _validation: &Evaluation) {}

    /// After the last step of each epoch (1-based), with the number of steps taken so far.
    fn on_epoch(&mut self, _epoch: u64, _steps: u64) {}

    /// The observer's memory so far, for the run's checkpoint; `null` if it has none.
    ///
    /// # Errors
    /// If it cannot be written as JSON. An error stops the run.
    fn memory(&self) -> Result<Value> {
        Ok(Value::Null)
    }

    /// Takes up what [`Self::memory`] gave when the checkpoint was written that the run goes on
    /// from. Called before the first step, and only if that was not `null`.
    ///
    /// # Errors
    /// If it is not such a memory. An error stops the run.
    fn remember(&mut self, _memory: Value) -> Result<()> {
        Ok(())
    }
}

/// Two observers of one run. Each may be shown what only the other asked for.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn wants_group_gradients(&self, step: u64) -> bool {
        self.0.wants_group_gradients(step) || self.1.wants_group_gradients(step)
    }

    fn wants_state(&self, step: u64) -> bool {
        self.0.wants_state(step) || self.1.wants_state(step)
    }

    fn before_step(&mut self, state: &StepState<'_>) -> Result<()> {
        self.0.before_step(state)?;
        self.1.before_step(state)
    }

    fn on_step(&mut self, view: &StepView<'_>) {
        self.0.on_step(view);
        self.1.on_step(view);
    }

    fn on_validation(&mut self, epoch: u64, validation: &Evaluation) {
        self.0.on_validation(epoch, validation);
        self.1.on_validation(epoch, validation);
    }

    fn on_epoch(&mut self, epoch: u64, steps: u64) {
        self.0.on_epoch(epoch, steps);
        self.1.on_epoch(epoch, steps);
    }

    fn memory(&self) -> Result<Value> {
        Ok(match (self.0.memory()?, self.1.memory()?) {
            (Value::Null, Value::Null) => Value::Null,
            (first, second) => Value::Array(vec![first, second]),
        })
    }

    fn remember(&mut self, memory: Value) -> Result<()> {
        let Value::Array(both) = memory else {
            return Err(TrainError::mismatch("memory of two observers", "a list", "another value"));
        };
        let [first, second]: [Value; 2] = both
            .try_into()
            .map_err(|both: Vec<Value>| TrainError::mismatch("memory of two observers", "2 values", both.len()))?;
        if !first.is_null() {
            self.0.remember(first)?;
        }
        if !second.is_null() {
            self.1.remember(second)?;
        }
        Ok(())
    }
}

/// An observer that may not be there.
impl<O: Observer> Observer for Option<O> {
    fn wants_group_gradients(&self, step: u64) -> bool {
        self.as_ref().is_some_and(|observer| observer.wants_group_gradients(step))
    }

    fn wants_state(&self, step: u64) -> bool {
        self.as_ref().is_some_and(|observer| observer.wants_state(step))
    }

    fn before_step(&mut self, state: &StepState<'_>) -> Result<()> {
        self.as_mut().map_or(Ok(()), |observer| observer.before_step(state))
    }

    fn on_step(&mut self, view: &StepView<'_>) {
        if let Some(observer) = self {
            observer.on_step(view);
        }
    }

    fn on_validation(&mut self, epoch: u64, validation: &Evaluation) {
        if let Some(observer) = self {
            observer.on_validation(epoch, validation);
        }
    }

    fn on_epoch(&mut self, epoch: u64, steps: u64) {
        if let Some(observer) = self {
            observer.on_epoch(epoch, steps);
        }
    }

    fn memory(&self) -> Result<Value> {
        self.as_ref().map_or(Ok(Value::Null), Observer::memory)
    }

    fn remember(&mut self, memory: Value) -> Result<()> {
        self.as_mut().map_or(Ok(()), |observer| observer.remember(memory))
    }
}

/// An observer that looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
