//! The candidates of a search, tried and compared.

use dp_accounting::TrialCount;
use dp_linear::{Streams as _, Trial};
use dp_table::Schema;
use rand::Rng as _;
use serde::{Deserialize, Serialize};

use super::candidates::Candidate;
use super::decisions::with_thresholds;
use super::journal::Journal;
use super::tables::TableSubset;
use super::training::{Before, Trained, Training};
use crate::config::Config;
use crate::error::{FairdpError, Result};
use crate::key::NoiseKey;
use crate::model::{FittedModel, Layer, Pipeline};
use crate::subsets::SubsetRows;

/// The records of a search.
#[derive(Clone, Copy)]
pub(super) struct Searched<'a> {
    pub(super) config: &'a Config,
    /// Those that are trained on.
    pub(super) training: TableSubset<'a>,
    /// The same for a solver.
    pub(super) rows: &'a SubsetRows<'a>,
    /// Those on which trials are compared.
    pub(super) validation: &'a SubsetRows<'a>,
}

/// What is released of a search.
pub(super) struct Chosen<'a> {
    pub(super) candidate: &'a Candidate,
    /// The key of its noise.
    pub(super) key: NoiseKey,
}

/// Trains and compares; only the best trial's model and candidate leave.
///
/// Every trial has a key of its own. A run that was killed begins its search again, with the same
/// keys. Of several ranks each makes whole trials, side by side, where there are enough of them;
/// else they share each. A trial comes to the same bits either way.
pub(super) fn search<'a>(
    training: &Training<'a>,
    trials: TrialCount,
    records: Searched<'_>,
    schema: &Schema,
    key: &NoiseKey,
    journal: &mut Journal<'_>,
) -> Result<(Trained, Before, Chosen<'a>)> {
    let Searched { rows, validation, .. } = records;
    let trials = Trial::number_of(trials, &mut key.draws("number of trials", 0));
    let ranks = &training.ranks;
    // Released once, before the search.
    let prepared = training.prepare(&training.plan.candidates[0], rows, key)?;
    let is_shared = ranks.size() > 1 && trials >= ranks.size() as u64;
    let found = if is_shared {
        let (rows, validation) = (&rows.alone(), &validation.alone());
        let records = Searched { rows, validation, ..records };
        let alone = Search { training: &training.alone(), prepared: &prepared, records, schema, key };
        let mine = (ranks.rank() as u64..trials).step_by(ranks.size());
        let best = alone.best(mine, journal)?;
        let bits = serde_json::to_vec(&best.map(TrialBits::from)).map_err(FairdpError::json("the trials of a rank"))?;
        let all = ranks.gather(bits)?;
        let all = all.iter().map(|best| serde_json::from_slice(best));
        let all: serde_json::Result<Vec<Option<TrialBits>>> = all.collect();
        let all = all.map_err(FairdpError::json("the trials of a rank"))?;
        all.into_iter().flatten().map(|bits| bits.trial(&prepared.priors)).reduce(Trial::better)
    } else {
        Search { training, prepared: &prepared, records, schema, key }.best(0..trials, journal)?
    };
    let best = found.ok_or_else(|| FairdpError::Internal("a search without trials".into()))?;
    let key = key.derived("trial", best.number);
    let candidate = candidate(training, &key);
    Ok((best.made, prepared, Chosen { candidate, key }))
}

/// A trial as ranks tell each other: numbers by their bits.
#[derive(Serialize, Deserialize)]
struct TrialBits {
    number: u64,
    score: u64,
    /// Weights and biases of each layer.
    layers: Vec<[Vec<u32>; 2]>,
}

impl From<Trial<Trained>> for TrialBits {
    fn from(Trial { number, score, made }: Trial<Trained>) -> Self {
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect();
        let layers = made.layers.into_iter().map(|Layer { weights, biases }| [bits(weights), bits(biases)]);
        Self { number, score: score.to_bits(), layers: layers.collect() }
    }
}

impl TrialBits {
    fn trial(self, priors: &[f64]) -> Trial<Trained> {
        let values = |bits: Vec<u32>| bits.into_iter().map(f32::from_bits).collect();
        let layers =
            self.layers.into_iter().map(|[weights, biases]| Layer { weights: values(weights), biases: values(biases) });
        let made = Trained { layers: layers.collect(), priors: priors.to_vec(), network: None };
        Trial { number: self.number, score: f64::from_bits(self.score), made }
    }
}

struct Search<'a> {
    training: &'a Training<'a>,
    prepared: &'a Before,
    records: Searched<'a>,
    schema: &'a Schema,
    key: &'a NoiseKey,
}

impl Search<'_> {
    /// What a trial answers with, if it is the best: with thresholds of groups where trials have their own.
    fn model(&self, trained: &Trained, candidate: &Candidate, key: &NoiseKey) -> Result<FittedModel> {
        let decision = self.training.decision(&candidate.recipe);
        let pipeline = Pipeline::new(self.schema.clone(), self.prepared.priors.clone(), decision);
        let mut model = FittedModel::new(pipeline, trained.layers.clone())?;
        if let Some(noise) = candidate.scores {
            let Searched { config, training, .. } = self.records;
            with_thresholds(&mut model, config, candidate.fairness, training, noise, &mut key.stream("scores", 0))?;
        }
        Ok(model)
    }

    /// The best of the trials of these numbers.
    fn best(&self, numbers: impl Iterator<Item = u64>, journal: &mut Journal<'_>) -> Result<Option<Trial<Trained>>> {
        let Self { training, prepared, records: Searched { rows, validation, .. }, .. } = *self;
        let sigma = training.plan.release("score of the best trial")?.noise_multiplier;
        let std = sigma.get() * training.records_per_unit as f64;
        let mut best: Option<Trial<Trained>> = None;
        for number in numbers {
            journal.stage("a trial")?;
            let key = self.key.derived("trial", number);
            let candidate = candidate(training, &key);
            let trained = training.run(candidate, rows, prepared, &key, None, journal)?;
            let model = self.model(&trained, candidate, &key)?;
            let rng = &mut key.stream("score", 0);
            let score = training.pool.install(|| training.goal.score(&model, validation, std, rng))?;
            let trial = Trial { number, score, made: trained };
            best = Some(match best {
                Some(best) => best.better(trial),
                None => trial,
            });
        }
        Ok(best)
    }
}

/// What the trial of this key trains.
fn candidate<'a>(training: &Training<'a>, key: &NoiseKey) -> &'a Candidate {
    let candidates = &training.plan.candidates;
    &candidates[key.draws("candidate", 0).random_range(0..candidates.len())]
}
