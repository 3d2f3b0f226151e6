//! Public numbers of a table, and whether they are enough for a model that says something.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use super::{FitPlan, SCORES, refuse_delta};
use crate::config::{ColumnKind, Config, TuningEntry, UnitRows};
use crate::error::{FairdpError, Result};
use fair_decisions::{CumulativeCounts, Mode, PrefixSums, ScoreCells};

/// Noise in a logit, in standard deviations of a typical one, beyond which a model would say
/// nothing.
const DROWNED: f64 = 20.0;
/// The same in a number, in standard deviations of the label.
const DROWNED_NUMBER: f64 = 2.5;
/// Advice to spend a larger ε than this would be none.
const LARGEST_EPSILON: f64 = 10.0;
/// A model of fewer features, the constant one among them, is no advice.
const FEWEST_FEATURES: f64 = 3.0;

/// The public size of a table. It is the same for every key, so a plan and its fit agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSize {
    /// Records of the training table that are used: of a unit no more than its most.
    pub records: usize,
    /// Records of a separate test table.
    pub test_records: Option<usize>,
    /// The most features: private bounds may have fewer edges.
    pub features: usize,
}

impl Display for TableSize {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} records of {} features", self.records, self.features)?;
        match self.test_records {
            Some(n) => write!(f, ", {n} in the test table"),
            None => Ok(()),
        }
    }
}

impl TableSize {
    /// Training records to be expected: which records a part has is drawn by a fit's own key.
    pub(super) fn n_training(&self, config: &Config) -> usize {
        let test = if config.test.files.is_some() { 0.0 } else { config.test.fraction.unwrap_or(0.0) };
        let validation = config.tuning.as_ref().map_or(0.0, TuningEntry::fraction);
        (self.records as f64 * (1.0 - test) * (1.0 - validation)).round() as usize
    }

    /// Test records to be expected.
    pub(super) fn n_test(&self, config: &Config) -> usize {
        let share = config.test.fraction.unwrap_or(0.0);
        self.test_records.unwrap_or((self.records as f64 * share).round() as usize)
    }

    /// Refuses what would not be private, or not be worth having, of a plan for this table.
    pub(super) fn check(&self, config: &Config, path: &Path, plan: &FitPlan) -> Result<()> {
        refuse_delta(plan.delta, self.records.max(self.test_records.unwrap_or(0)))?;
        self.refuse_drowned(config, path, plan)?;
        if config.fairness.mode == Mode::None { Ok(()) } else { Self::refuse_short(config, path, plan) }
    }

    /// Refuses a run whose model would be noise, with remedies.
    fn refuse_drowned(&self, config: &Config, path: &Path, plan: &FitPlan) -> Result<()> {
        let (most, of_what) = if config.label.is_number() {
            (DROWNED_NUMBER, "the label's standard deviation")
        } else {
            (DROWNED, "a logit")
        };
        let noise = self.in_answers(config, plan);
        if noise <= most {
            return Ok(());
        }
        let factor = noise / most;
        let n = (plan.n_training as f64 * factor).ceil();
        let mut advice = vec![format!("About {n:.0} training records")];
        if plan.delta >= 1.0 / n {
            advice[0].push_str(&format!(" with privacy.delta below {:.0e}", 1.0 / n));
        }
        advice.extend(least_epsilon(config, path, plan.n_training, &|plan| self.in_answers(config, plan) <= most));
        let features = (self.features as f64 / factor).floor();
        let has_images = config.column.iter().any(|column| column.kind == ColumnKind::Image);
        if features >= FEWEST_FEATURES && !has_images {
            advice.push(format!("{features:.0} features (fewer columns or bins)"));
        }
        Err(FairdpError::TooFewRecords {
            n_training: plan.n_training,
            used: of_units(config),
            purpose: format!("{} features", self.features),
            epsilon: plan.epsilon,
            reason: format!("the noise would be {noise:.0} times {of_what}"),
            advice,
        })
    }

    /// Refuses thresholds by group if no group could have its own threshold, with remedies.
    fn refuse_short(config: &Config, path: &Path, plan: &FitPlan) -> Result<()> {
        let least = |plan: &FitPlan| -> Result<usize> {
            let (sums, planned) = (PrefixSums::new(), plan.release(SCORES)?);
            let std = sums.noise_std(planned.noise_multiplier.get(), config.counted_per_unit());
            let counts = CumulativeCounts::expected(&ScoreCells::of_classes(1, config.label.classes.len()), std);
            // Two groups, each with records of the positive class and of others.
            Ok((4.0 * counts.enough_records(&sums)).ceil() as usize)
        };
        let (needed, n) = (least(plan)?, plan.n_training);
        if n >= needed {
            return Ok(());
        }
        let mut advice = vec![format!("{needed} training records")];
        advice.extend(least_epsilon(config, path, n, &|plan| least(plan).is_ok_and(|needed| n >= needed)));
        advice.push("fairness = \"none\"".to_owned());
        Err(FairdpError::TooFewRecords {
            n_training: n,
            used: of_units(config),
            purpose: "thresholds by group".into(),
            epsilon: plan.epsilon,
            reason: format!("two groups need {needed} at least"),
            advice,
        })
    }

    /// The noise of the gradients in a logit or a number, of the worst candidate.
    fn in_answers(&self, config: &Config, plan: &FitPlan) -> f64 {
        let of = |candidate: &super::Candidate| {
            let rate = candidate.recipe.sampling_rate();
            let one = candidate.noise_multiplier.get() / (candidate.steps as f64).sqrt() / rate;
            // A row's length is about the root of the number of features; a balanced class has a
            // variance of a quarter, halved, and a number has 1, in its own units.
            let variance = if config.label.is_number() { 1.0 } else { 0.125 };
            one * config.records_per_unit() as f64 * self.features as f64 / (plan.n_training.max(1) as f64 * variance)
        };
        plan.candidates.iter().map(of).fold(0.0, f64::max)
    }
}

/// A note on how many records of a unit are used.
fn of_units(config: &Config) -> String {
    let Some(unit) = &config.unit else { return String::new() };
    match unit.rows {
        UnitRows::First => format!(" (of each value of `{}` at most {} are used)", unit.column, unit.most()),
        UnitRows::Mean => format!(" (each value of `{}` is one, the mean of its rows)", unit.column),
    }
}

/// An ε at which a plan would do, in words: to a tenth, upwards; nothing beyond the largest.
fn least_epsilon(
    config: &Config,
    path: &Path,
    n_records: usize,
    is_enough: &dyn Fn(&FitPlan) -> bool,
) -> Option<String> {
    let does = |epsilon: f64| {
        let mut config = config.clone();
        config.privacy.epsilon = epsilon;
        FitPlan::new(&config, path, n_records).is_ok_and(|plan| is_enough(&plan))
    };
    let (mut low, mut high) = (config.privacy.epsilon, LARGEST_EPSILON);
    if low >= high || !does(high) {
        return None;
    }
    while high - low > 0.02 * high {
        let middle = 0.5 * (low + high);
        if does(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    let upwards = ((10.0 * high).ceil() / 10.0).min(LARGEST_EPSILON);
    Some(format!("ε = {upwards:.1}"))
}
