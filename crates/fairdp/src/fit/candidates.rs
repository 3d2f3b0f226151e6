//! The noise of everything that may be trained, so that all of it stays within the budget.

use dp_accounting::{
    Accountant as _, Calibration, Delta, DpEvent, Epsilon, NoiseMultiplier, PldAccountant, RdpAccountant, TrialCount,
};
use dp_linear::{GaussianBudget, steps_for};
use fair_decisions::Mode;

use crate::account::RELATION;
use crate::config::{Config, TuningEntry};
use crate::error::Result;
use crate::planned::Planned;
use crate::recipe::{Method, Recipe, SgdMethod};
use crate::subset::Subset;

/// Steps of conditioned training: whitened rows need few.
const CONDITIONED_STEPS: u64 = 60;

/// Purposes of a search's release on training records.
const GRADIENTS: &str = "gradients of the best trial";
const GRADIENTS_AND_SCORES: &str = "gradients and scores of the best trial";

/// Something that may be trained, with its noise.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) recipe: Recipe,
    /// The model, for people, and why this one.
    pub(crate) model: String,
    /// The method, for people, and why this one.
    pub(crate) method: String,
    /// Of one step's gradients.
    pub(crate) noise_multiplier: NoiseMultiplier,
    pub(crate) steps: u64,
    /// What its thresholds are chosen by.
    pub(crate) fairness: Mode,
    /// Of the scores that a trial releases for its thresholds, where trials have their own.
    pub(crate) scores: Option<NoiseMultiplier>,
}

/// What is public of a fit besides its candidates.
pub(super) struct Limits<'a> {
    pub(super) config: &'a Config,
    pub(super) budget: GaussianBudget,
    pub(super) n_records: usize,
    /// Share of the gradients in the budget.
    pub(super) share: f64,
    /// Share of the scores that each trial of a search releases.
    pub(super) scores: f64,
    /// The other releases on training records.
    pub(super) others: &'a [Planned],
}

impl Limits<'_> {
    /// The one thing that is trained, and its release.
    pub(super) fn single(&self) -> Result<(Candidate, Planned)> {
        let config = self.config;
        let mut recipe = config.recipe()?;
        let steps = self.steps(&recipe);
        let planned = match &recipe.method {
            Method::FullDescent(_) | Method::Conditioned { .. } => {
                Planned::gaussian(self.budget, Subset::Training, "gradients", self.share, steps)?
            }
            Method::Sgd(named) => {
                let (named, planned) = self.calibrated(named)?;
                recipe.method = Method::Sgd(Box::new(named));
                planned
            }
        };
        let (model, method) = (recipe.model_text(config.model.kind), recipe.method_text());
        let candidate = Candidate {
            recipe,
            model,
            method,
            noise_multiplier: planned.noise_multiplier,
            steps,
            fairness: config.fairness.mode,
            scores: None,
        };
        Ok((candidate, planned))
    }

    fn steps(&self, recipe: &Recipe) -> u64 {
        match &recipe.method {
            Method::FullDescent(_) => steps_for(self.n_records),
            Method::Conditioned { .. } => CONDITIONED_STEPS,
            Method::Sgd(named) => named.steps,
        }
    }

    /// The steps of a method by name: with the least noise that keeps them and the other releases
    /// within the budget. The method has the thresholds of groups that follow from it.
    fn calibrated(&self, named: &SgdMethod) -> Result<(SgdMethod, Planned)> {
        let mut spent = PldAccountant::new(RELATION);
        self.others.iter().try_for_each(|release| spent.compose(&release.event, release.count))?;
        let (n_groups, per_unit) = (self.config.n_groups(), self.config.records_per_unit());
        let (epsilon, delta) = self.target()?;
        let calibration = Calibration::of_remaining_budget(spent.clone(), epsilon, delta)?;
        let noise_multiplier = calibration.noise_multiplier(|sigma| {
            // Noise for which that of the counts is out of range is no candidate.
            named.calibrated_event(sigma, n_groups, per_unit, delta).unwrap_or(DpEvent::NonPrivate)
        })?;
        let named = named.clone().with_shares(noise_multiplier, n_groups, &spent, delta)?;
        let (event, count) = named.releases(noise_multiplier, n_groups, per_unit)?;
        let planned = Planned {
            part: Subset::Training,
            purpose: "gradients".into(),
            share: self.share,
            count,
            noise_multiplier,
            event,
        };
        Ok((named, planned))
    }

    fn target(&self) -> Result<(Epsilon, Delta)> {
        Ok((Epsilon::new(self.config.privacy.epsilon)?, Delta::new(self.config.privacy.delta)?))
    }

    /// All candidates of a search, its training and its comparisons.
    ///
    /// A trial draws a candidate without a look at the records, trains it on training records and
    /// compares it on validation records, which no other part has. So a training record meets the
    /// best of all trainings, and a validation record the best of all comparisons (Papernot and
    /// Steinke 2022, Theorem 2): each part may spend the whole budget. Every candidate's noise is
    /// what it would need alone, times a factor that all share.
    pub(super) fn search(&self, tuning: &TuningEntry) -> Result<(Vec<Candidate>, [Planned; 2])> {
        let recipes = self.config.candidates(tuning)?;
        let trials = trials(tuning)?;
        let (epsilon, delta) = self.target()?;
        let alone = |recipe: &Recipe| -> Result<f64> {
            let calibration = Calibration::new(RELATION, epsilon, delta)?.with_relative_tolerance(1e-4)?;
            let sigma =
                calibration.noise_multiplier(|sigma| self.trial(recipe, sigma, None).unwrap_or(DpEvent::NonPrivate))?;
            Ok(sigma.get())
        };
        let alone = recipes.iter().map(alone).collect::<Result<Vec<f64>>>()?;
        let scores = if self.scores > 0.0 { Some(self.budget.noise_multiplier(self.scores, 1)?.get()) } else { None };
        let scores = |factor: f64| scores.map(|sigma| NoiseMultiplier::new(sigma * factor)).transpose();
        let event = |factor: f64| -> Result<DpEvent> {
            let scores = scores(factor)?;
            let one =
                |(recipe, sigma): (&Recipe, &f64)| self.trial(recipe, NoiseMultiplier::new(sigma * factor)?, scores);
            Ok(DpEvent::OneOf(recipes.iter().zip(&alone).map(one).collect::<Result<_>>()?).best_of(trials))
        };
        let mut spent = RdpAccountant::new(RELATION);
        self.others.iter().try_for_each(|release| spent.compose(&release.event, release.count))?;
        let calibration = Calibration::of_remaining_budget(spent, epsilon, delta)?.with_relative_tolerance(1e-6)?;
        let factor = calibration.noise_multiplier(|factor| event(factor.get()).unwrap_or(DpEvent::NonPrivate))?;
        let training = Planned {
            part: Subset::Training,
            purpose: if self.scores > 0.0 { GRADIENTS_AND_SCORES } else { GRADIENTS }.into(),
            share: self.share,
            count: 1,
            noise_multiplier: factor,
            event: event(factor.get())?,
        };
        let compare = |sigma| DpEvent::gaussian(sigma).best_of(trials);
        let sigma = Calibration::new(RELATION, epsilon, delta)?.noise_multiplier(compare)?;
        let validation = Planned {
            part: Subset::Validation,
            purpose: "score of the best trial".into(),
            share: 1.0,
            count: 1,
            noise_multiplier: sigma,
            event: compare(sigma),
        };
        let candidate = |((recipe, alone), entry): ((Recipe, f64), &crate::config::CandidateEntry)| {
            let fairness = entry.fairness.unwrap_or(self.config.fairness.mode);
            let decisions = entry.fairness.map_or(String::new(), |mode| format!("; fairness {}", mode.name()));
            Ok(Candidate {
                model: format!("{}; one of {} candidates", recipe.model_text(entry.kind), tuning.candidate.len()),
                method: recipe.method_text() + &decisions,
                fairness,
                scores: scores(factor.get())?,
                noise_multiplier: NoiseMultiplier::new(alone * factor.get())?,
                steps: self.steps(&recipe),
                recipe,
            })
        };
        let candidates = recipes.into_iter().zip(alone).zip(&tuning.candidate).map(candidate);
        Ok((candidates.collect::<Result<_>>()?, [training, validation]))
    }

    /// All steps of one candidate, and its scores.
    fn trial(&self, recipe: &Recipe, sigma: NoiseMultiplier, scores: Option<NoiseMultiplier>) -> Result<DpEvent> {
        let (event, count) = match &recipe.method {
            Method::FullDescent(_) | Method::Conditioned { .. } => (DpEvent::gaussian(sigma), self.steps(recipe)),
            Method::Sgd(named) => named.releases(sigma, self.config.n_groups(), self.config.records_per_unit())?,
        };
        let steps = event.repeated(count);
        Ok(match scores {
            Some(scores) => DpEvent::Composed(vec![steps, DpEvent::gaussian(scores)]),
            None => steps,
        })
    }
}

/// How many trials there are: geometric, so that there is one at least.
pub(super) fn trials(tuning: &TuningEntry) -> Result<TrialCount> {
    Ok(TrialCount::negative_binomial(1.0, 1.0 / tuning.mean_trials)?)
}
