//! Whether there are enough records for a model that says something.

use std::path::Path;

use super::FitPlan;
use crate::config::Config;
use crate::error::{FairdpError, Result};
use crate::thresholds::least_records;

/// Noise in a logit, in standard deviations of a typical one, beyond which a model would say
/// nothing.
const DROWNED: f64 = 20.0;

/// Of the training part.
pub(super) struct Size {
    pub(super) n_records: usize,
    /// Of one unit.
    pub(super) max_records: u64,
    /// Features.
    pub(super) width: usize,
}

impl Size {
    /// Refuses a run whose model would be noise, and says what would do.
    pub(super) fn refuse_drowned(&self, place: (&Config, &Path), plan: &FitPlan) -> Result<()> {
        let noise = self.in_logits(plan);
        if noise <= DROWNED {
            return Ok(());
        }
        let factor = noise / DROWNED;
        let epsilon = self.least_epsilon(place, &|plan| self.in_logits(plan) <= DROWNED);
        Err(FairdpError::Refused(format!(
            "{} training records are too few for {} features at ε = {}: the noise would be {noise:.0} times a logit. About {:.0} \
             training records{epsilon}, or {:.0} features (fewer columns or bins) would do",
            self.n_records,
            self.width,
            plan.epsilon,
            self.n_records as f64 * factor,
            (self.width as f64 / factor).floor().max(1.0)
        )))
    }

    /// Refuses thresholds by group where no group could have one of its own, and says what would
    /// do.
    pub(super) fn refuse_short(&self, place: (&Config, &Path), plan: &FitPlan) -> Result<()> {
        let least = |plan: &FitPlan| -> Result<usize> {
            let planned = plan.release("scores by group and class")?;
            Ok(least_records(planned.noise_multiplier, self.max_records))
        };
        let needed = least(plan)?;
        if self.n_records >= needed {
            return Ok(());
        }
        let epsilon = self.least_epsilon(place, &|plan| least(plan).is_ok_and(|needed| self.n_records >= needed));
        Err(FairdpError::Refused(format!(
            "fairness: {} training records are too few for thresholds by group at ε = {}: two groups need {needed} at least. So \
             many{epsilon}, or fairness = \"none\" would do",
            self.n_records, plan.epsilon
        )))
    }

    /// The noise of the gradients in a logit, of the worst candidate.
    fn in_logits(&self, plan: &FitPlan) -> f64 {
        let of = |candidate: &super::Candidate| {
            let rate = candidate.choice.sampling_rate();
            let one = candidate.noise_multiplier.get() / (candidate.steps as f64).sqrt() / rate;
            // A row's length is about the root of the number of features; a balanced class has a
            // variance of a quarter, halved.
            one * self.max_records as f64 * self.width as f64 / (self.n_records.max(1) as f64 * 0.125)
        };
        plan.candidates.iter().map(of).fold(0.0, f64::max)
    }

    /// An ε at which a plan would do, in words: to a tenth, upwards; nothing beyond a hundred.
    fn least_epsilon(&self, (config, path): (&Config, &Path), is_enough: &dyn Fn(&FitPlan) -> bool) -> String {
        let does = |epsilon: f64| {
            let mut config = config.clone();
            config.privacy.epsilon = epsilon;
            FitPlan::new(&config, path, self.n_records).is_ok_and(|plan| is_enough(&plan))
        };
        let (mut low, mut high) = (config.privacy.epsilon, 2.0 * config.privacy.epsilon);
        while !does(high) {
            if high > 100.0 {
                return String::new();
            }
            (low, high) = (high, 2.0 * high);
        }
        while high - low > 0.05 * high {
            let middle = 0.5 * (low + high);
            if does(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        format!(", or ε = {:.1}", (10.0 * high).ceil() / 10.0)
    }
}
