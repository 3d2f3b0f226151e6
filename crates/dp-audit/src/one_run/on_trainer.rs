//! The attack on a trainer of `dp-train`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use dp_clipping::serde_json::Value;
use dp_clipping::{AdvanceScale, ClipBatch, ClipError, ClipMethod, Clipped, MethodState};
use dp_engine::hook::{self, Substitute};
use dp_train::{Plan, Result, TrainError, Trainer};
use rand::CryptoRng;

use super::attack::{Attack, Fault, Participation};

impl Attack {
    /// Does the work, such as a trainer's run, with this attack on its steps. Kinds of canaries are the
    /// plan's groups: each is drawn at its group's rate, and adds what its group's bound is at the step.
    ///
    /// The run is no longer one that the ledger has: canaries are in its sums.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the plan is not private; those of the work.
    pub fn on_trainer<R>(
        self: &Arc<Self>,
        plan: &Plan,
        trainer: &mut Trainer<'_>,
        work: impl FnOnce(&mut Trainer<'_>) -> R,
    ) -> Result<R> {
        let privacy = plan.config().privacy.as_ref();
        let privacy =
            privacy.ok_or_else(|| TrainError::mismatch("plan of an attacked run", "a private one", "another"))?;
        let step = Arc::new(Mutex::new(Step::default()));
        let inner = privacy.clipping.build(plan.context())?;
        trainer.replace_method(Box::new(Observed { inner, step: Arc::clone(&step) }));
        let watch = Watch {
            attack: Arc::clone(self),
            sigma: privacy.noise_multiplier.get(),
            std: RefCell::new(0.0),
            plan: plan.clone(),
            step,
        };
        Ok(hook::with(Some(Rc::new(watch)), || work(trainer)))
    }
}

/// What a method made of a step.
#[derive(Debug, Default)]
struct Step {
    /// Parts of its bound that it gives to groups.
    shares: Vec<f64>,
    /// The weights of groups that it came with, if it carries any.
    weights: Option<Vec<f64>>,
}

/// A method whose bounds of groups, and weights, are noted.
#[derive(Debug)]
struct Observed {
    inner: Box<dyn ClipMethod>,
    step: Arc<Mutex<Step>>,
}

impl ClipMethod for Observed {
    fn clip(&mut self, batch: &ClipBatch<'_>, rng: &mut dyn CryptoRng) -> std::result::Result<Clipped, ClipError> {
        let weights = MethodState::from_value(&self.inner.state()).ok().and_then(|state| state.weights);
        let clipped = self.inner.clip(batch, rng)?;
        let shares = clipped.group_bounds.iter().map(|bound| bound / clipped.bound).collect();
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = Step { shares, weights };
        Ok(clipped)
    }

    fn scale_in_advance(&self, group: usize) -> Option<AdvanceScale> {
        self.inner.scale_in_advance(group)
    }

    fn state(&self) -> Value {
        self.inner.state()
    }

    fn restore(&mut self, state: &Value) -> std::result::Result<(), ClipError> {
        self.inner.restore(state)
    }
}

/// What the steps ask.
struct Watch {
    attack: Arc<Attack>,
    sigma: f64,
    /// Of the step's noise as the plan has it.
    std: RefCell<f64>,
    plan: Plan,
    step: Arc<Mutex<Step>>,
}

impl Watch {
    /// How records of a group enter the step.
    fn participation(&self, group: usize) -> Participation {
        let step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        let of_method = step.shares.get(group).copied().unwrap_or(1.0);
        match self.plan.rates_at(step.weights.as_deref()) {
            Some(rates) => Participation { rate: rates[group].rate.get(), share: rates[group].share * of_method },
            None => Participation { rate: self.plan.config().batches.sampling_rate.get(), share: of_method },
        }
    }
}

impl Substitute for Watch {
    fn watches_sums(&self) -> bool {
        true
    }

    fn adds_to_sum(&self, sum: &[f64], std: f64, grid: f64) -> Vec<i64> {
        *self.std.borrow_mut() = std;
        let of_kind = |group: usize| self.participation(group);
        let mut added = vec![0; sum.len()];
        for (weight, value) in self.attack.before_noise(sum, std / self.sigma, &of_kind) {
            // Towards zero, as every record is.
            added[weight] = (value / grid) as i64;
        }
        added
    }

    fn noise_std(&self, std: f64) -> f64 {
        Fault::std(self.attack.fault(), std)
    }

    fn saw(&self, noisy: &[f64]) {
        self.attack.after_noise(noisy, *self.std.borrow());
    }
}
