//! A clipping method whose noisy counts were released before.

use dp_clipping::{
    AdvanceScale, ClipBatch, ClipError, ClipMethod, Clipped, CountNoise, CountQuery, MethodState, PublicContext,
};
use dp_engine::{DropoutKey, hook};
use rand::{CryptoRng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde_json::Value;

use crate::error::{Result, TrainError};
use crate::plan::Plan;

/// The method of a configuration in a given state, at a step whose counts were released before: the
/// sensitivity of the sum is a statement given these.
#[derive(Debug)]
pub(super) struct FixedCounts {
    context: PublicContext,
    state: MethodState,
    released: Vec<Vec<f64>>,
    /// Knows the scales that need no counts.
    method: Box<dyn ClipMethod>,
}

impl FixedCounts {
    /// # Errors
    /// [`TrainError::Clipping`](crate::TrainError::Clipping) if the threshold or a weight is out of
    /// range, or given to a method without memory.
    pub(super) fn new(context: &PublicContext, state: &MethodState, released: &[Vec<f64>]) -> Result<Self> {
        let mut method = state.config.build(context)?;
        method.restore(&state.to_value())?;
        Ok(Self { context: *context, state: state.clone(), released: released.to_vec(), method })
    }
}

impl ClipMethod for FixedCounts {
    fn clip(&mut self, batch: &ClipBatch<'_>, _: &mut dyn CryptoRng) -> Result<Clipped, ClipError> {
        self.state.config.replay(&self.context, &self.state, batch, &self.released)
    }

    fn scale_in_advance(&self, group: usize) -> Option<AdvanceScale> {
        self.method.scale_in_advance(group)
    }

    fn state(&self) -> Value {
        self.state.to_value()
    }

    fn restore(&mut self, state: &Value) -> Result<(), ClipError> {
        self.method.restore(state)?;
        self.state = MethodState::from_value(state)?;
        Ok(())
    }
}

/// The counts that a method makes on a batch, exact, each with its declared sensitivity.
///
/// # Errors
/// The errors of [`ClipMethod::clip`].
pub(super) fn exact_counts(
    context: &PublicContext,
    state: &MethodState,
    batch: &ClipBatch<'_>,
) -> Result<Vec<CountQuery>> {
    let config = state.config.with_count_noise(CountNoise::Multiplier(0.0));
    let mut method = config.build(context)?;
    method.restore(&MethodState { config, ..state.clone() }.to_value())?;
    // Multiplied by 0: what is drawn does not matter.
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    Ok(hook::method(method).clip(batch, &mut rng)?.queries)
}

/// The public and released values of a step. A neighbour must share them to be compared with the
/// step.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedStep {
    /// The threshold that the clipping method carries from step to step; `None` where it carries
    /// none.
    pub threshold: Option<f64>,
    /// The weights of groups that it carries, `[n_groups]`; `None` where it carries none.
    pub weights: Option<Vec<f64>>,
    /// The noisy counts of this step as they were released, in the order of the method's queries.
    pub released: Vec<Vec<f64>>,
    /// The key of the dropout masks.
    pub dropout: DropoutKey,
}

impl FixedStep {
    /// The first step of a plan: its method's initial threshold and weights, `value()` for every
    /// count, and masks that follow from `dropout`.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the plan is not private; [`TrainError::Clipping`] if the method
    /// was refused.
    pub fn first(plan: &Plan, dropout: u64, value: impl FnMut() -> f64) -> Result<Self> {
        let Some(privacy) = &plan.config().privacy else {
            return Err(TrainError::mismatch("plan of an audited step", "a private one", "one without privacy"));
        };
        Self::at(plan, &MethodState::from_value(&privacy.clipping.build(plan.context())?.state())?, dropout, value)
    }

    /// [`Self::first`] with another state of a method, that of a later step or of another
    /// configuration.
    ///
    /// # Errors
    /// [`TrainError::Clipping`] if the method or its state was refused.
    pub fn at(plan: &Plan, state: &MethodState, dropout: u64, mut value: impl FnMut() -> f64) -> Result<Self> {
        let shapes = exact_counts(plan.context(), state, &ClipBatch::new(&[], &[]).with_losses(&[][..]))?;
        let released = shapes.iter().map(|query| query.released.iter().map(|_| value()).collect()).collect();
        let dropout = DropoutKey::draw(&mut ChaCha20Rng::seed_from_u64(dropout));
        Ok(Self { threshold: state.threshold, weights: state.weights.clone(), released, dropout })
    }
}

#[cfg(test)]
mod tests {
    use dp_clipping::registry;

    use super::*;

    /// DPSGD-F at base threshold 1, norms 0.5 and 3 in group 0, 2 in group 1: one within and one
    /// above, none and one.
    #[test]
    fn exact_counts_by_hand() {
        let config = registry::find("dpsgd-f").unwrap().default_config();
        let context = PublicContext { n_groups: 2, expected_batch_size: 3.0, noise_multiplier: 1.0 };
        let state = MethodState { config, steps: 0, threshold: None, weights: None };
        let counts = exact_counts(&context, &state, &ClipBatch::new(&[0.5, 3.0, 2.0], &[0, 0, 1])).unwrap();
        let mut released: Vec<f64> = counts.iter().flat_map(|query| query.released.clone()).collect();
        released.sort_by(f64::total_cmp);
        assert_eq!(released, [0.0, 1.0, 1.0, 1.0]);
        assert_eq!(counts[0].l2_sensitivity, 1.0);
    }

    /// Fixed counts give the scales of the step that released them.
    #[test]
    fn fixed_counts_give_the_scales_of_the_step_that_released_them() {
        let context = PublicContext { n_groups: 2, expected_batch_size: 3.0, noise_multiplier: 1.0 };
        let batch =
            ClipBatch::new(&[0.5, 3.0, f64::NAN, 2.0], &[0, 1, 1, 0]).with_losses(&[0.1, 2.0, 0.5, f64::NAN][..]);
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        for entry in registry::methods() {
            let mut method = entry.default_config().build(&context).unwrap();
            let state = MethodState::from_value(&method.state()).unwrap();
            let clipped = method.clip(&batch, &mut rng).unwrap();
            let released: Vec<Vec<f64>> = clipped.queries.iter().map(|query| query.released.clone()).collect();
            let mut fixed = FixedCounts::new(&context, &state, &released).unwrap();
            assert_eq!(fixed.clip(&batch, &mut rng).unwrap(), clipped, "{}", entry.name);
        }
    }
}
