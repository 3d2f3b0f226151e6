//! A linear layer on fixed features: clipping methods at the best point of a search, beside methods
//! that have nothing to select. `beyond`, `groups` and `combinations` train on these.

use anyhow::Context;
use dp_accounting::{Delta, Epsilon};
use dp_clipping::PresetParams;
use dp_linear::Goal;
use dp_train::{LearningRate, Loss, ModelConfig, OptimiserConfig};
use run_records::ExperimentResults;
use run_records::coordinate::{BOUND, RATE, coordinate};
use study_report::landscape::{Part, best_points};
use study_report::{Judged, Searched};

use super::zhao::VALIDATION;
use crate::run::conditioned::method_of;
use crate::run::data_setting::{DataSetting, EvaluationPart, Source, Splits};
use crate::run::experiment::{BatchCounting, BatchSize, Experiment, MethodSetting, NON_PRIVATE, Noise};
use crate::run::features::Features;

/// Where clipping methods are tried, or the first of these.
const RATES: [f64; 5] = [2.0, 8.0, 32.0, 128.0, 512.0];
const BOUNDS: [f64; 3] = [0.1, 0.5, LARGEST_GRADIENT];
/// How many rates and bounds: all, or fewer on images, where a point costs ten times as much.
pub(crate) const ALL_POINTS: (usize, usize) = (RATES.len(), BOUNDS.len());
pub(crate) const FEW_POINTS: (usize, usize) = (4, 2);
/// A gradient of a softmax on a row of norm 1 and its constant is no longer: the residual's √2
/// times the row's √2.
const LARGEST_GRADIENT: f64 = 2.0;
/// Full batches, as many for everyone.
pub(crate) const STEPS: u64 = 60;
/// Of the images, in a quick run.
pub(crate) const QUICK_SHARE: f64 = 0.05;

/// A data set with its features, and the methods that are searched for on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// The study, by which experiments are named.
    pub(crate) study: &'static str,
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) source: Source,
    pub(crate) features: Features,
    /// For a split without a grid: δ is Zhao's.
    pub(crate) delta: f64,
    /// What clipping methods are searched for, and everyone is judged by.
    pub(crate) judged: Judged,
    /// Clipping methods that rate and bound are searched for, and what they are called.
    pub(crate) searched: &'static [&'static str],
    pub(crate) called: &'static str,
    /// How many rates and bounds each is tried at.
    pub(crate) points: (usize, usize),
    /// Rates of the groups for `asc`, of which the largest is 1: written down from what is public of the
    /// groups, before any run.
    pub(crate) group_rates: Option<&'static [f64]>,
    /// Of every method, at its point.
    pub(crate) seeds: u32,
}

/// The method that draws groups at rates of their own.
pub(crate) const ASC: &str = "asc";
pub(crate) const ASC_BY_LOSS: &str = "asc-by-loss";
/// Limits of rates that follow losses, over the rate of the batches: half of it at equal losses.
const LIMITS_OF_RATES: [f64; 2] = [0.25, 1.0];

/// ε at which all are compared; one for a first look.
pub(crate) fn epsilons(quick: bool) -> &'static [f64] {
    if quick { &[1.0] } else { &[0.5, 1.0, 2.0, 4.0, 8.0] }
}

/// Conditioned training for a goal, which has nothing to select.
///
/// # Errors
/// If ε is not allowed.
pub(crate) fn conditioned(goal: Goal, epsilon: f64) -> anyhow::Result<MethodSetting> {
    let setting = MethodSetting {
        conditioned: Some(goal),
        ..MethodSetting::new(method_of(goal), LearningRate::Constant(1.0), PresetParams::default())
    };
    setting.within_by_pld(epsilon)
}

/// A method at the best of its points.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BestPoint {
    pub(crate) name: &'static str,
    pub(crate) rate: f64,
    pub(crate) bound: f64,
    pub(crate) group_rates: Option<&'static [f64]>,
}

/// What has nothing to select, at an ε and given the best points of what has.
pub(crate) type Unsearched = fn(epsilon: f64, best: &[BestPoint]) -> anyhow::Result<Vec<MethodSetting>>;

impl Setting {
    pub(crate) fn id(&self) -> String {
        format!("{}-{}", self.study, self.name)
    }

    fn grid_id(&self, epsilon: f64) -> String {
        format!("{}-{}-grid-{epsilon}", self.study, self.name)
    }

    /// ε at which rate and bound are searched for. On images a search takes minutes, and every
    /// second one is left out.
    fn searched_at(&self, quick: bool) -> &'static [f64] {
        if self.features == Features::Scattering && !quick { &[1.0, 4.0] } else { epsilons(quick) }
    }

    /// What the grids are searched for.
    pub(crate) fn searched_for(&self) -> Searched {
        Searched { experiment: self.id(), judged: self.judged, published: None }
    }

    /// Where clipping methods are tried.
    pub(crate) fn points(&self, quick: bool) -> (Vec<f64>, Vec<f64>) {
        let (rates, bounds) = self.points;
        let stride = if quick { 2 } else { 1 };
        let first_bound = stride - 1;
        (RATES[..rates].iter().copied().step_by(stride).collect(), BOUNDS[first_bound..bounds].to_vec())
    }

    /// A grid for each ε that is searched at.
    ///
    /// # Errors
    /// If a setting is refused.
    pub(crate) fn grids(&self, quick: bool) -> anyhow::Result<Vec<Experiment>> {
        self.searched_at(quick).iter().map(|&epsilon| self.grid(epsilon, quick)).collect()
    }

    /// Every clipping method at every point, judged by validation records.
    fn grid(&self, epsilon: f64, quick: bool) -> anyhow::Result<Experiment> {
        let (rates, bounds) = self.points(quick);
        let mut methods = Vec::new();
        for &rate in &rates {
            methods.push(method(NON_PRIVATE, rate, BOUNDS[0]).at(RATE, rate));
        }
        for name in self.searched {
            for &rate in &rates {
                for &bound in &bounds {
                    methods
                        .push(self.method(name, rate, bound).within_by_pld(epsilon)?.at(RATE, rate).at(BOUND, bound));
                }
            }
        }
        let title = format!("{}: {} at ε = {epsilon}, rate and bound searched for", self.title, self.called);
        let departures = vec![
            format!(
                "A fifth of the training part is held out for validation; heat maps and best points are computed on it. The search is not \
                 accounted for in ε: it favours {}.",
                self.called
            ),
            "One run a point.".to_owned(),
        ];
        self.experiment(self.grid_id(epsilon), title, VALIDATION, 1, methods, departures)
    }

    /// Every clipping method at its best point at every ε, and what has nothing to select, on the
    /// whole training part. `None` until a search has run.
    ///
    /// # Errors
    /// If a grid's results cannot be judged, or a setting is refused.
    pub(crate) fn best(
        &self,
        results: &[ExperimentResults],
        quick: bool,
        (title, unsearched): (&str, Unsearched),
        departures: &[&str],
    ) -> anyhow::Result<Option<Experiment>> {
        let mut methods: Vec<MethodSetting> = Vec::new();
        let mut chosen = Vec::new();
        for &epsilon in epsilons(quick) {
            let searched = nearest(self.searched_at(quick), epsilon);
            let Some(grid) = results.iter().find(|experiment| experiment.id == self.grid_id(searched)) else {
                continue;
            };
            let mut points = Vec::new();
            for best in best_points(grid, Part::Validation, self.judged)? {
                let rate = coordinate(best, RATE).context("a point of the grid has a rate")?;
                if best.base == NON_PRIVATE {
                    if methods.iter().all(|method| method.name != NON_PRIVATE) {
                        methods.insert(0, method(NON_PRIVATE, rate, BOUNDS[0]));
                        chosen.push(format!("{NON_PRIVATE}: rate {rate}"));
                    }
                    continue;
                }
                let name = self
                    .searched
                    .iter()
                    .find(|name| **name == best.base)
                    .with_context(|| format!("{} is no method of the grid", best.base))?;
                let bound = coordinate(best, BOUND).context("a point of the grid has a bound")?;
                let method = self.method(name, rate, bound);
                points.push(BestPoint { name, rate, bound, group_rates: method.group_rates });
                methods.push(method.within_by_pld(epsilon)?);
                chosen.push(format!("{name} at ε = {epsilon}: rate {rate}, bound {bound}"));
            }
            methods.extend(unsearched(epsilon, &points)?);
        }
        if chosen.is_empty() {
            return Ok(None);
        }
        let called = self.called;
        let mut all = vec![format!(
            "{}{} at the points with the greatest {} on validation records; the test part was held out of the search and is the same \
             for every seed, so that seeds differ in initial parameters, batches and noise. {}.",
            called[..1].to_uppercase(),
            &called[1..],
            self.judged.words(),
            chosen.join("; ")
        )];
        all.extend(departures.iter().map(|&departure| departure.to_owned()));
        let title = format!("{}: {title}", self.title);
        self.experiment(self.id(), title, EvaluationPart::Test, self.seeds, methods, all).map(Some)
    }

    /// A clipping method at a point of the grid, with the rates of the groups where it has them.
    pub(crate) fn method(&self, name: &'static str, rate: f64, bound: f64) -> MethodSetting {
        MethodSetting {
            group_rates: self.group_rates.filter(|_| name == ASC),
            limits_of_rates: (name == ASC_BY_LOSS).then_some(LIMITS_OF_RATES),
            ..method(name, rate, bound)
        }
    }

    /// These methods on these records and features.
    ///
    /// # Errors
    /// If δ is not allowed.
    pub(crate) fn experiment(
        &self,
        id: String,
        title: String,
        evaluation: EvaluationPart,
        seeds: u32,
        methods: Vec<MethodSetting>,
        departures: Vec<String>,
    ) -> anyhow::Result<Experiment> {
        let mut all = vec![
            "No table of a paper has these features: fixed transforms that look at no other record, rows of norm 1, one linear layer."
                .to_owned(),
            format!("Every method takes {STEPS} full batches with momentum 0.9."),
        ];
        all.extend(departures);
        Ok(Experiment {
            id,
            title,
            departures: all,
            data: DataSetting { features: self.features, evaluation, splits: Splits::First, ..self.source.into() },
            seeds,
            is_search: false,
            model: ModelConfig::LogisticRegression,
            loss: Loss::SoftmaxCrossEntropy,
            batch_size: BatchSize::Full,
            epochs: STEPS,
            begins: None,
            counting: BatchCounting::Exact,
            early_stopping: None,
            l2: 0.0,
            // Every method states its own ε.
            noise: Noise::WithinByPld(Epsilon::new(1.0)?),
            delta: Delta::new(self.delta)?,
            matches_dpsgd_budget: false,
            methods,
            published: None,
        })
    }
}

/// The nearest ratio, the smaller one of equals: more noise is the safer guess.
fn nearest(searched: &[f64], epsilon: f64) -> f64 {
    let distance = |candidate: f64| (candidate / epsilon).ln().abs();
    searched.iter().copied().min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap_or(epsilon)
}

/// A clipping method at a point of the grid.
pub(crate) fn method(name: &'static str, rate: f64, bound: f64) -> MethodSetting {
    let params = PresetParams { clip_norm: bound, upper_bound: Some(LARGEST_GRADIENT), ..PresetParams::default() };
    MethodSetting {
        optimiser: OptimiserConfig::Momentum { momentum: 0.9, nesterov: false },
        ..MethodSetting::new(name, LearningRate::Cosine { first: rate, last: 0.0 }, params)
    }
}

#[cfg(test)]
mod tests {
    use dp_clipping::registry;
    use dp_train::PublicFacts;

    use super::super::{beyond, groups};
    use super::*;
    use crate::run::plans::procedures;

    #[test]
    fn everyone_has_as_many_trials() {
        let facts = PublicFacts { n_records: 30_000, n_inputs: 167, n_classes: 2, n_groups: 2 };
        for (setting, trials) in beyond::settings(false).iter().zip([15, 15, 8, 8]) {
            let grid = setting.grid(1.0, false).unwrap();
            for name in setting.searched {
                assert!(registry::find(name).is_ok());
                assert_eq!(grid.methods.iter().filter(|method| method.name == *name).count(), trials, "{name}");
            }
            assert_eq!(procedures(&grid, facts, &[]).unwrap().len(), grid.methods.len());
        }
        for setting in groups::settings(false) {
            let grid = setting.grid(1.0, false).unwrap();
            let facts = PublicFacts { n_groups: setting.group_rates.map_or(2, <[f64]>::len), ..facts };
            assert_eq!(procedures(&grid, facts, &[]).unwrap().len(), grid.methods.len(), "{}", setting.name);
        }
    }

    /// All releases together spend what was asked for, whatever the goal.
    #[test]
    fn conditioned_training_spends_its_budget() {
        use dp_accounting::{Accountant, PldAccountant};
        for goal in beyond::OURS {
            let mut experiment = beyond::settings(false)[0].grid(1.0, false).unwrap();
            experiment.methods = vec![conditioned(goal, 2.0).unwrap()];
            let facts = PublicFacts { n_records: 30_000, n_inputs: 167, n_classes: 2, n_groups: 2 };
            let procedure = procedures(&experiment, facts, &[]).unwrap().remove(0);
            assert!(procedure.certified());
            let ledger = procedure.plan().ledger(STEPS).unwrap();
            let mut accountant = PldAccountant::new(dp_train::Plan::RELATION);
            ledger.compose_into(&mut accountant).unwrap();
            let epsilon = accountant.epsilon(experiment.delta).unwrap().epsilon.get();
            assert!(epsilon <= 2.0 + 1e-9 && epsilon > 2.0 - 1e-3, "{goal:?}: {epsilon}");
        }
    }
}
