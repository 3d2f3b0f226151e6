//! The stages of a step before its noise, within reach of an audit.

use dp_clipping::{ClipMethod, CountQuery, MethodState};
use dp_engine::{Records, hook};

use super::fixed_counts::{FixedCounts, FixedStep, exact_counts};
use super::{StepSum, Trainer};
use crate::error::{Result, TrainError};

/// A step up to its noise. Computed from the records: **nothing of it is private**.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BeforeNoise {
    /// `Σ s_i g_i`, `[params]`: what the noise is added to.
    pub sum: Vec<f64>,
    /// The sensitivity that the noise is scaled to.
    pub bound: f64,
    /// Norm of each record's gradient as the clipping method saw it, `[batch]`.
    pub norms: Vec<f64>,
    /// Scale of each record's gradient, `[batch]`.
    pub scales: Vec<f64>,
    /// Loss of each record, `[batch]`.
    pub losses: Vec<f64>,
    /// The counts of the step without their noise, each with its declared sensitivity.
    pub counts: Vec<CountQuery>,
}

impl<'a> Trainer<'a> {
    /// The same trainer on other records, with their public facts: a neighbour's.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the public facts of the records differ from the plan's.
    pub fn on_records<'b>(self, records: &'b Records) -> Result<Trainer<'b>>
    where
        'a: 'b,
    {
        if records.facts() != self.plan.facts() {
            let (expected, got) = (format!("{:?}", self.plan.facts()), format!("{:?}", records.facts()));
            return Err(TrainError::mismatch("records of the plan", expected, got));
        }
        let mut trainer: Trainer<'b> = self;
        (trainer.records, trainer.control.digests) = (records, None);
        Ok(trainer)
    }

    /// Puts another clipping method in the place of the plan's.
    pub fn replace_method(&mut self, method: Box<dyn ClipMethod>) {
        self.method = Some(method);
    }

    /// Draws the batch that the next step would take: record numbers in ascending order.
    pub fn draw_batch(&mut self) -> Vec<usize> {
        let mut batch = Vec::new();
        self.batching.sampler.next_batch(&mut self.streams.sampling, &mut batch);
        batch
    }

    /// The step on this batch up to its noise, by the code of [`Trainer::step`]. The parameters
    /// stay as they are; the ledger does not. Where groups have rates of their own every candidate stays.
    ///
    /// **Shapes.** `batch` holds record numbers in ascending order, without repeats.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the plan is not private; the errors of [`Trainer::step`].
    pub fn before_noise(&mut self, batch: &[usize], fixed: &FixedStep) -> Result<BeforeNoise> {
        let plan = self.plan;
        let Some(privacy) = &plan.config().privacy else {
            return Err(TrainError::mismatch("plan of an audited step", "a private one", "one without privacy"));
        };
        let config = privacy.clipping;
        let (steps, threshold, weights) = (self.counts.steps, fixed.threshold, fixed.weights.clone());
        let state = MethodState { config, steps, threshold, weights };
        let fixed_counts = FixedCounts::new(plan.context(), &state, &fixed.released)?;
        let method = self.method.replace(hook::method(Box::new(fixed_counts)));
        self.engine.set_dropout(Some(fixed.dropout));
        let moved = self.move_rates();
        if let Some(by_group) = &mut self.by_group {
            by_group.keep_all(batch.len());
        }
        let formed = moved.and_then(|()| self.clipped_sum(batch, false));
        self.method = method;
        let (pass, weighting) = formed?;
        let seen = self.by_group.as_ref().map(|by_group| by_group.norms(&pass));
        Ok(BeforeNoise {
            sum: self.exact_sum()?,
            bound: self.sensitivity(weighting.bound),
            counts: exact_counts(plan.context(), &state, &pass.clip_batch(seen.as_deref()))?,
            norms: pass.norms,
            scales: weighting.scales,
            losses: pass.losses,
        })
    }

    /// The gradient of a step whose noise an audit makes.
    pub(super) fn privatise_by_hook(&mut self, std: f64) -> Result<()> {
        let exact = self.exact_sum()?;
        let (n_ranks, rng) = (self.execution.ranks.size(), &mut self.streams.noise.0);
        let noisy = hook::ask(|other| Some(other.noisy(&exact, std, n_ranks, rng))).unwrap_or_default();
        let normaliser = self.plan.expected_batch_size();
        let gradient: Vec<f64> = noisy.into_iter().map(|value| f64::from(value) / normaliser).collect();
        match &mut self.buffers.sum {
            StepSum::Clipped(sum) => Ok(sum.gradient()?.set(&gradient)?),
            StepSum::Plain(_) => Err(TrainError::mismatch("sum of a certified step", "a clipped sum", "another")),
        }
    }

    /// What an audit adds to a step's sum, in steps of its grid, and the standard deviation that it lets
    /// the noise have: nothing, and what was asked for, unless it watches.
    pub(super) fn watched_sum(&mut self, std: f64) -> Result<(f64, Vec<i64>)> {
        if !hook::holds(|other| other.watches_sums()) {
            return Ok((std, Vec::new()));
        }
        let exact = self.exact_sum()?;
        let grid = self.clipped()?.grid().step();
        let watched = hook::ask(|other| Some((other.noise_std(std), other.adds_to_sum(&exact, std, grid))));
        Ok(watched.unwrap_or((std, Vec::new())))
    }

    /// Shows a step's sum with its noise to an audit that watches.
    pub(super) fn show_noisy_sum(&mut self) -> Result<()> {
        if hook::holds(|other| other.watches_sums()) {
            let mut noisy = self.clipped()?.gradient()?.to_vec()?;
            let normaliser = self.plan.expected_batch_size();
            for value in &mut noisy {
                *value *= normaliser;
            }
            hook::ask(|other| {
                other.saw(&noisy);
                None::<()>
            });
        }
        Ok(())
    }

    /// The sum as the noise meets it. It stops the step where it is not finite, as that does.
    fn exact_sum(&mut self) -> Result<Vec<f64>> {
        match &mut self.buffers.sum {
            StepSum::Clipped(sum) => {
                let values = sum.values(&*self.execution.ranks)?;
                if sum.is_finite() { Ok(values) } else { Err(TrainError::Diverged { step: self.counts.steps }) }
            }
            StepSum::Plain(sum) => Ok(sum.to_vec()?),
        }
    }
}
