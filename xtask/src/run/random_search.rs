//! A search for hyper-parameters within a method's guarantee ([`Trial`]): trials at random points of
//! a grid.
//!
//! **Guarantee.** A trial trains on the training part; it counts right and wrong answers of each
//! class on the validation part and adds Gaussian noise to each count (one record changes one of
//! them, by one). Both parts are of the private records, and a record is in one of them. So a trial
//! costs a record the training or the counting, at each Rényi order the dearer, and the dearest
//! over the grid's batch sizes, which differ in their steps: the point is drawn without a look at
//! the data. The trial with the greatest noisy macro accuracy is released, with its point and score.
//! Like that of a method's counts, the noise of these is rounded exactly to a public grid.
//!
//! **Source.** The grid and macro accuracy are those of Zhao 2025, 4.3 and A.4.2.

use anyhow::{Context, ensure};
use dp_accounting::{Calibration, DpEvent, Epsilon, NoiseMultiplier, TrialCount};
use dp_clipping::noise::StepNoise;
use dp_clipping::registry;
use dp_linear::Trial;
use dp_train::{LearningRate, Plan, PublicFacts, TrainConfig};
use fair_metrics::macro_accuracy;
use rand::seq::IndexedRandom;
use rand::{CryptoRng, Rng};
use run_records::{MetricsRecord, TrialRecord};
use serde_json::json;

use super::evaluation::Failure;
use super::experiment::{BatchSize, Experiment, MethodSetting, Noise};
use super::plans;
use super::strategy::strategy;
use super::training::TrainedModel;

/// What a search draws from, and how often.
#[derive(Debug, Clone)]
pub(crate) struct RandomSearch {
    /// Learning rates.
    pub(crate) rates: Vec<f64>,
    /// Bounds; empty for a method that has none.
    pub(crate) bounds: Vec<f64>,
    /// Expected batch sizes; one of more than all records is all records.
    pub(crate) batch_sizes: Vec<usize>,
    /// ε of one trial.
    pub(crate) epsilon: Epsilon,
    /// Distribution of the number of trials.
    pub(crate) trials: TrialCount,
}

/// A point of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    rate: f64,
    bound: Option<f64>,
    /// Index of the batch size.
    batch_size: usize,
}

/// A search with a checked plan for each batch size.
pub(crate) struct SearchPlan {
    strategy: &'static str,
    search: RandomSearch,
    /// One for each batch size. Noise and steps follow from it; rate and bound, which change
    /// neither, are those of the first point.
    plans: Vec<Plan>,
    /// Noise multiplier of the counts of answers.
    score_noise: NoiseMultiplier,
}

impl SearchPlan {
    /// Calibrates the noise of every trial.
    ///
    /// # Errors
    /// If the grid is empty, or a plan is refused.
    pub(crate) fn new(
        experiment: &Experiment,
        setting: &MethodSetting,
        search: &RandomSearch,
        facts: PublicFacts,
        given: &[String],
    ) -> anyhow::Result<Self> {
        let &rate = search.rates.first().context("a search needs a learning rate")?;
        ensure!(!search.batch_sizes.is_empty(), "a search needs a batch size");
        let plan = |&batch_size: &usize| {
            let mut point = strategy(setting.name, rate, search.bounds.first().copied());
            point.noise = Some(Noise::Within(search.epsilon));
            point.batches = Some((BatchSize::Records(batch_size.min(facts.n_records)), experiment.epochs));
            plans::plan_of(experiment, &point, facts, given, &[])
        };
        let calibration = Calibration::new(Plan::RELATION, search.epsilon, experiment.delta)?;
        Ok(Self {
            strategy: setting.name,
            search: search.clone(),
            plans: search.batch_sizes.iter().map(plan).collect::<anyhow::Result<_>>()?,
            score_noise: calibration.noise_multiplier(DpEvent::gaussian)?,
        })
    }

    /// What the whole search releases.
    pub(crate) fn event(&self) -> DpEvent {
        let mut alternatives: Vec<DpEvent> = self.plans.iter().map(Plan::event).collect();
        alternatives.push(DpEvent::gaussian(self.score_noise));
        DpEvent::OneOf(alternatives).best_of(self.search.trials)
    }

    /// What the guarantee of every trial is conditional on.
    pub(crate) fn conditions(&self) -> &[String] {
        self.plans[0].conditions()
    }

    /// Whether every trial has a proven guarantee.
    pub(crate) fn certified(&self) -> bool {
        self.plans.iter().all(Plan::certified)
    }

    /// Everything that decides its result and its privacy.
    ///
    /// # Errors
    /// If a configuration cannot be serialised.
    pub(crate) fn config(&self) -> anyhow::Result<serde_json::Value> {
        let RandomSearch { rates, bounds, epsilon, trials, .. } = &self.search;
        let trainings: Vec<&TrainConfig> = self.plans.iter().map(Plan::config).collect();
        Ok(json!({
            "search": {
                "rates": rates, "bounds": bounds, "epsilon_of_a_trial": epsilon.get(), "trials": serde_json::to_value(trials)?,
                "noise_multiplier_of_scores": self.score_noise.get(),
            },
            "trainings": serde_json::to_value(trainings)?,
        }))
    }

    /// Of one trial.
    pub(crate) fn epsilon_of_a_trial(&self) -> f64 {
        self.search.epsilon.get()
    }

    /// Expected number of trials.
    pub(crate) fn mean_trials(&self) -> f64 {
        self.search.trials.mean()
    }

    /// Points of the grid.
    pub(crate) fn n_points(&self) -> usize {
        self.search.rates.len() * self.search.bounds.len().max(1) * self.plans.len()
    }

    /// Of the counts of answers.
    pub(crate) fn score_noise(&self) -> NoiseMultiplier {
        self.score_noise
    }

    /// Of the trials with the first batch size.
    pub(crate) fn first_plan(&self) -> &Plan {
        &self.plans[0]
    }

    /// Records that a search will draw, about.
    pub(crate) fn expected_records(&self) -> f64 {
        let of_trial = |plan: &Plan| plan.expected_batch_size() * plan.config().batches.steps as f64;
        self.mean_trials() * self.plans.iter().map(of_trial).sum::<f64>() / self.plans.len() as f64
    }

    /// The trials of one search: how many, and where, with their plans.
    ///
    /// # Errors
    /// If a plan is refused.
    pub(crate) fn draw(&self, rng: &mut impl Rng) -> anyhow::Result<Vec<DrawnTrial>> {
        let n_trials = Trial::number_of(self.search.trials, rng);
        (0..n_trials)
            .map(|_| {
                let point = Point {
                    rate: *self.search.rates.choose(rng).context("a grid without rates")?,
                    bound: self.search.bounds.choose(rng).copied(),
                    batch_size: rng.random_range(0..self.plans.len()),
                };
                Ok(DrawnTrial { plan: self.plan_at(point)?, point })
            })
            .collect()
    }

    fn plan_at(&self, point: Point) -> anyhow::Result<Plan> {
        let calibrated = &self.plans[point.batch_size];
        let mut config = calibrated.config().clone();
        config.learning_rate = LearningRate::Constant(point.rate);
        if let Some(privacy) = &mut config.privacy {
            let setting = strategy(self.strategy, point.rate, point.bound);
            privacy.clipping = (registry::find(self.strategy)?.preset)(&setting.params);
        }
        let plan = Plan::new(config, calibrated.facts())?.with_conditions(calibrated.conditions());
        ensure!(plan.event() == calibrated.event(), "{point:?}: its privacy is not that of its batch size");
        Ok(plan)
    }

    /// The noisy macro accuracy of a model on the validation records.
    ///
    /// # Errors
    /// If there are no validation records. A loss that is not finite is no error but a [`Failure`].
    pub(crate) fn score(
        &self,
        model: &mut TrainedModel<'_>,
        rng: &mut impl CryptoRng,
    ) -> anyhow::Result<Result<f64, Failure>> {
        let metrics = match model.validation()? {
            Ok(metrics) => metrics.context("a search needs validation records")?,
            Err(failure) => return Ok(Err(failure)),
        };
        let noise = StepNoise::draw(rng, self.score_noise.get());
        noisy_macro_accuracy(&metrics, |counts| noise.add_f64(0, counts)).map(Ok)
    }
}

/// A trial that is to be made.
pub(crate) struct DrawnTrial {
    pub(crate) plan: Plan,
    point: Point,
}

impl DrawnTrial {
    /// What is kept of it; no score if it diverged.
    pub(crate) fn record(&self, score: Option<f64>) -> TrialRecord {
        let Point { rate, bound, .. } = self.point;
        TrialRecord { rate, bound, batch_size: self.plan.expected_batch_size(), score }
    }
}

/// The mean over classes of right answers over answers, both counted with noise: `release` adds it
/// to all counts, right answers first.
fn noisy_macro_accuracy(metrics: &MetricsRecord, release: impl FnOnce(&mut [f64])) -> anyhow::Result<f64> {
    let classes = || metrics.class_recall.iter().zip(&metrics.class_sizes);
    let right = classes().map(|(recall, &size)| recall.unwrap_or(0.0) * size as f64);
    let wrong = classes().map(|(recall, &size)| (1.0 - recall.unwrap_or(0.0)) * size as f64);
    // Counts are whole numbers, whatever a share of them was rounded to.
    let mut counts: Vec<f64> = right.chain(wrong).map(f64::round).collect();
    release(&mut counts);
    let (right, wrong) = counts.split_at(counts.len() / 2);
    let recalls: Vec<Option<f64>> = right
        .iter()
        .zip(wrong)
        .map(|(right, wrong)| {
            let (right, wrong) = (right.max(0.0), wrong.max(0.0));
            // A class whose counts vanish in the noise tells nothing for or against a model.
            Some(if right + wrong > 0.0 { right / (right + wrong) } else { 0.0 })
        })
        .collect();
    macro_accuracy(&recalls).context("macro accuracy needs a class")
}

#[cfg(test)]
mod tests {
    use run_records::GroupMetrics;

    use super::*;

    fn metrics(class_recall: Vec<Option<f64>>, class_sizes: Vec<usize>) -> MetricsRecord {
        let overall = GroupMetrics { n: class_sizes.iter().sum(), accuracy: None, loss: None };
        MetricsRecord { overall, groups: Vec::new(), class_recall, class_sizes, group_recalls: Vec::new() }
    }

    #[test]
    fn a_score_is_made_of_noisy_counts() {
        let two = metrics(vec![Some(0.9), Some(0.5)], vec![100, 20]);
        let exact = noisy_macro_accuracy(&two, |_| ()).unwrap();
        assert!((exact - 0.7).abs() < 1e-12);
        let add = |noise: [f64; 4]| {
            move |counts: &mut [f64]| counts.iter_mut().zip(noise).for_each(|(count, noise)| *count += noise)
        };
        // 90 + 2 right, 10 − 1 wrong; 10 + 4 right, 10 + 0 wrong: (92/101 + 14/24)/2.
        let noisy = noisy_macro_accuracy(&two, add([2.0, 4.0, -1.0, 0.0]));
        assert!((noisy.unwrap() - f64::midpoint(92.0 / 101.0, 14.0 / 24.0)).abs() < 1e-12);
        // Negative counts are none, and a class without records has noise, too.
        let none = noisy_macro_accuracy(&metrics(vec![Some(1.0), None], vec![3, 0]), add([-5.0; 4])).unwrap();
        assert!(none.abs() < 1e-12);
    }
}
