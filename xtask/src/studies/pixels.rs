//! Of the study `beyond`: the papers' methods and adjusted logits, with biases or without, on pixels,
//! where the model is a convolutional network.

use anyhow::Context;
use dp_accounting::{Delta, Epsilon};
use dp_clipping::PresetParams;
use dp_linear::Goal;
use dp_train::{LearningRate, Loss, ModelConfig, OptimiserConfig, ZhaoCnnLayout};
use run_records::ExperimentResults;
use run_records::coordinate::{RATE, coordinate};
use study_report::landscape::{Part, best_points};
use study_report::{Judged, Ranked, Searched};

use super::rivals::RIVALS;
use super::zhao::VALIDATION;
use crate::run::conditioned::{ADJUSTED, ADJUSTED_FAIR};
use crate::run::data_setting::{DataSetting, EvaluationPart, Source, Splits};
use crate::run::experiment::{Adjusted, BatchCounting, BatchSize, Experiment, MethodSetting, NON_PRIVATE, Noise};
use crate::run::images;

/// ε at which all are compared.
const EPSILONS: [f64; 2] = [1.0, 4.0];
/// ε at which rates are searched for.
const SEARCHED: f64 = 1.0;
/// Where each method is tried, at a bound of [`BOUND`]: four points.
const RATES: [f64; 4] = [0.125, 0.5, 2.0, 8.0];
const BOUND: f64 = 1.0;
/// Where training without clipping is tried: its gradients are longer.
const UNCLIPPED_RATES: [f64; 4] = [0.0125, 0.025, 0.05, 0.1];
const BATCH_SIZE: usize = 512;
const EPOCHS: u64 = 2;
const SEEDS: u32 = 3;

/// A data set whose pixels a network is trained on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Network {
    pub(crate) id: &'static str,
    /// Of the search.
    pub(crate) grid_id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) source: Source,
}

/// What rates are searched for, and what the results are judged by.
const JUDGED: Judged = Judged::WorstClass;

/// How the experiment is compared: its own are adjusted logits, with biases or without.
pub(crate) const fn ranked(experiment: &'static str, data: &'static str) -> Ranked {
    Ranked { experiment, data, recommended: ADJUSTED_FAIR, own: &[ADJUSTED, ADJUSTED_FAIR], judged: JUDGED }
}

impl Network {
    /// What is searched for.
    pub(crate) fn searched(&self) -> Searched {
        Searched { experiment: self.id.to_owned(), judged: JUDGED, published: None }
    }

    /// Every method of the papers at every rate, judged by validation records.
    pub(crate) fn grid(&self) -> anyhow::Result<Experiment> {
        let mut methods: Vec<MethodSetting> =
            UNCLIPPED_RATES.map(|rate| method(NON_PRIVATE, rate).at(RATE, rate)).into();
        for name in RIVALS {
            for rate in RATES {
                methods.push(method(name, rate).within_by_pld(SEARCHED)?.at(RATE, rate));
            }
        }
        let departures = vec![
            "A fifth of the training part is held out for validation; best points are computed on it. The search is not accounted for in \
             ε: it favours the papers' methods."
                .to_owned(),
            format!("One run a point, at ε = {SEARCHED}."),
        ];
        let title = format!("{}: the papers' methods, rate searched for", self.title);
        self.experiment(self.grid_id, title, VALIDATION, 1, methods, departures)
    }

    /// Every method at its best rate, and adjusted logits with biases or without at DPSGD's, on the
    /// whole training part.
    pub(crate) fn best(&self, results: &[ExperimentResults]) -> anyhow::Result<Option<Experiment>> {
        let Some(grid) = results.iter().find(|experiment| experiment.id == self.grid_id) else { return Ok(None) };
        let mut methods = Vec::new();
        let mut chosen = Vec::new();
        for best in best_points(grid, Part::Validation, JUDGED)? {
            let rate = coordinate(best, RATE).context("a point of the grid has a rate")?;
            if best.base == NON_PRIVATE {
                methods.push(method(NON_PRIVATE, rate));
                chosen.push(format!("{NON_PRIVATE}: rate {rate}"));
                continue;
            }
            let name = RIVALS
                .into_iter()
                .find(|name| *name == best.base)
                .with_context(|| format!("{} is no method of the grid", best.base))?;
            chosen.push(format!("{name}: rate {rate}"));
            for epsilon in EPSILONS {
                methods.push(method(name, rate).within_by_pld(epsilon)?);
                if name == "dpsgd" {
                    for goal in [Goal::WorstClass, Goal::EqualRecall] {
                        methods.push(adjusted(goal, rate).within_by_pld(epsilon)?);
                    }
                }
            }
        }
        let departures = vec![
            format!(
                "The papers' methods at the rates with the greatest {} on validation records at ε = {SEARCHED}; the test part was \
                 held out of the search and is the same for every seed. {}.",
                JUDGED.words(),
                chosen.join("; ")
            ),
            format!(
                "{ADJUSTED} is DPSGD at DPSGD's rate with noisy class priors in the loss, paid for within ε; {ADJUSTED_FAIR} also moves \
                 the biases of its classes by noisy right answers on training records, at 4.5 % of the budget. Neither had a search \
                 of its own."
            ),
        ];
        let title = format!("{}: the papers' methods and adjusted logits", self.title);
        self.experiment(self.id, title, EvaluationPart::Test, SEEDS, methods, departures).map(Some)
    }

    fn experiment(
        &self,
        id: &str,
        title: String,
        evaluation: EvaluationPart,
        seeds: u32,
        methods: Vec<MethodSetting>,
        departures: Vec<String>,
    ) -> anyhow::Result<Experiment> {
        let mut all = vec![
            format!(
                "The network is that of Zhao 2025, the training is not: {EPOCHS} epochs in Poisson batches of {BATCH_SIZE} with momentum \
                 0.9, where the paper has 50 epochs."
            ),
            format!("Every method starts from a bound of {BOUND}."),
        ];
        all.extend(departures);
        Ok(Experiment {
            id: id.to_owned(),
            title,
            departures: all,
            data: DataSetting { evaluation, splits: Splits::First, ..self.source.into() },
            seeds,
            is_search: false,
            model: ModelConfig::ZhaoCnn { image: images::SHAPE, layout: ZhaoCnnLayout::Text },
            loss: Loss::SoftmaxCrossEntropy,
            batch_size: BatchSize::Records(BATCH_SIZE),
            epochs: EPOCHS,
            begins: None,
            counting: BatchCounting::LoaderLength,
            early_stopping: None,
            l2: 0.0,
            // Every method states its own ε.
            noise: Noise::WithinByPld(Epsilon::new(1.0)?),
            delta: Delta::new(1e-5)?,
            matches_dpsgd_budget: false,
            methods,
            published: None,
        })
    }
}

/// A method at this rate.
fn method(name: &'static str, rate: f64) -> MethodSetting {
    let params = PresetParams { clip_norm: BOUND, ..PresetParams::default() };
    MethodSetting {
        optimiser: OptimiserConfig::Momentum { momentum: 0.9, nesterov: false },
        ..MethodSetting::new(name, LearningRate::Cosine { first: rate, last: 0.0 }, params)
    }
}

/// DPSGD at this rate with what a goal releases beside it.
fn adjusted(goal: Goal, rate: f64) -> MethodSetting {
    let name = if goal == Goal::EqualRecall { ADJUSTED_FAIR } else { ADJUSTED };
    MethodSetting { adjusted: Some(Adjusted { clipping: "dpsgd", goal }), ..method(name, rate) }
}

#[cfg(test)]
mod tests {
    use dp_accounting::{Accountant, LedgerEntry, PldAccountant};
    use dp_data::mnist::Collection;
    use dp_train::{Plan, PublicFacts};

    use super::*;
    use crate::run::plans::procedures;

    /// Counts, rounds of right answers and gradients together spend what was asked for.
    #[test]
    fn adjusted_logits_spend_their_budget() {
        let source = Source::Images { collection: Collection::Mnist, rare: None, share: None };
        let network = Network { id: "a", grid_id: "b", title: "MNIST", source };
        let mut experiment = network.grid().unwrap();
        for name in RIVALS {
            let trials = experiment.methods.iter().filter(|method| method.name == name).count();
            assert_eq!(trials, RATES.len(), "{name}");
        }
        experiment.methods =
            [Goal::WorstClass, Goal::EqualRecall].map(|goal| adjusted(goal, 0.5).within_by_pld(2.0).unwrap()).into();
        let facts = PublicFacts { n_records: 60_000, n_inputs: 784, n_classes: 10, n_groups: 10 };
        for (procedure, n_beside) in procedures(&experiment, facts, &[]).unwrap().iter().zip([1, 13]) {
            let steps = procedure.plan().config().batches.steps;
            let ledger = procedure.plan().ledger(steps).unwrap();
            assert_eq!(ledger.entries().iter().map(LedgerEntry::count).sum::<u64>(), steps + n_beside);
            let mut accountant = PldAccountant::new(Plan::RELATION);
            ledger.compose_into(&mut accountant).unwrap();
            let epsilon = accountant.epsilon(experiment.delta).unwrap().epsilon.get();
            assert!(epsilon <= 2.0 + 1e-9 && epsilon > 2.0 - 1e-3, "{epsilon}");
        }
    }
}
