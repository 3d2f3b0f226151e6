//! The attack on a trainer of `dp-train`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use dp_accounting::SamplingRate;
use dp_clipping::serde_json::Value;
use dp_clipping::{AdvanceScale, ClipBatch, ClipError, ClipMethod, Clipped};
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
        let shares = Arc::new(Mutex::new(Vec::new()));
        let inner = privacy.clipping.build(plan.context())?;
        trainer.replace_method(Box::new(Observed { inner, shares: Arc::clone(&shares) }));
        let of_groups = if let Some(sampling) = &plan.config().group_sampling {
            let of_group = |(rate, share): (&SamplingRate, f64)| Participation { rate: rate.get(), share };
            sampling.rates.iter().zip(sampling.all_shares()).map(of_group).collect()
        } else {
            let rate = plan.config().batches.sampling_rate.get();
            vec![Participation { rate, share: 1.0 }; plan.facts().n_groups]
        };
        let watch = Watch {
            attack: Arc::clone(self),
            sigma: privacy.noise_multiplier.get(),
            std: RefCell::new(0.0),
            of_groups,
            shares,
        };
        Ok(hook::with(Some(Rc::new(watch)), || work(trainer)))
    }
}

/// A method whose bounds of groups are noted.
#[derive(Debug)]
struct Observed {
    inner: Box<dyn ClipMethod>,
    shares: Arc<Mutex<Vec<f64>>>,
}

impl ClipMethod for Observed {
    fn clip(&mut self, batch: &ClipBatch<'_>, rng: &mut dyn CryptoRng) -> std::result::Result<Clipped, ClipError> {
        let clipped = self.inner.clip(batch, rng)?;
        let shares = clipped.group_bounds.iter().map(|bound| bound / clipped.bound).collect();
        *self.shares.lock().unwrap_or_else(PoisonError::into_inner) = shares;
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
    /// How records of the plan's groups enter a step under the whole bound of the method.
    of_groups: Vec<Participation>,
    /// Parts of its bound that the method gives to groups in this step.
    shares: Arc<Mutex<Vec<f64>>>,
}

impl Substitute for Watch {
    fn watches_sums(&self) -> bool {
        true
    }

    fn adds_to_sum(&self, sum: &[f64], std: f64, grid: f64) -> Vec<i64> {
        *self.std.borrow_mut() = std;
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kind = |group: usize| {
            let planned = self.of_groups[group];
            Participation { share: planned.share * shares.get(group).copied().unwrap_or(1.0), ..planned }
        };
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
