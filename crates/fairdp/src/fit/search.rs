//! The best of a random number of trials (Papernot and Steinke 2022).

use dp_accounting::TrialCount;
use dp_data::table::Schema;
use rand::Rng as _;

use super::candidates::Candidate;
use super::journal::Journal;
use super::training::{Trained, Training};
use crate::config::Decision;
use crate::error::{FairdpError, Result};
use crate::key::Key;
use crate::model::{Model, Pipeline};
use crate::parts::PartRows;
use crate::solver::exact::{Grid, sum_rows};
use crate::solver::rows::RowSource as _;
use crate::solver::{Prepared, Streams as _};

/// Trains and compares; only the best trial's model and candidate leave.
///
/// Every trial has a key of its own. A run that was killed begins its search again, with the same keys.
pub(super) fn search<'a>(
    training: &Training<'a>,
    trials: TrialCount,
    [rows, validation]: [&PartRows<'_>; 2],
    schema: &Schema,
    key: &Key,
    journal: &mut Journal<'_>,
) -> Result<(Trained, &'a Candidate)> {
    let candidates = &training.plan.candidates;
    // Released once, before the search.
    let prepared = training.prepare(&candidates[0], rows, key)?;
    let sigma = training.plan.release("score of the best trial")?.noise_multiplier;
    let std = sigma.get() * training.records_per_unit as f64;
    let n_trials = trials.quantile(key.stream("number of trials", 0).random::<f64>());
    let mut best: Option<(f64, Trained, &Candidate)> = None;
    for trial in 0..n_trials {
        journal.stage("a trial")?;
        let key = key.derived("trial", trial);
        let candidate = &candidates[key.stream("candidate", 0).random_range(0..candidates.len())];
        let trained = training.run(candidate, rows, &prepared, &key, None, journal)?;
        let exact = training.pool.install(|| score(&trained, &prepared, schema, validation))?;
        let noisy = Grid::new(1.0, validation.len()).release(vec![exact], std, &mut key.stream("score", 0))[0];
        if best.as_ref().is_none_or(|(score, ..)| noisy > *score) {
            best = Some((noisy, trained, candidate));
        }
    }
    let (_, trained, candidate) = best.ok_or_else(|| FairdpError::Refused("a search without trials".into()))?;
    Ok((trained, candidate))
}

/// `Σ (1 − ½ Σ_c (p_c − y_c)²)` over records, in steps of the grid: 1 less the Brier score, a proper one.
///
/// **Guarantee.** A record adds between 0 and 1, and one that was blanked nothing.
fn score(trained: &Trained, prepared: &Prepared, schema: &Schema, rows: &PartRows<'_>) -> Result<f64> {
    let pipeline = Pipeline::new(schema.clone(), prepared.priors.clone(), Decision::default());
    let model = Model::new(pipeline, trained.layers.clone())?;
    let grid = Grid::new(1.0, rows.len());
    let scratch = || vec![0.0; model.classes().len()];
    let sum = sum_rows(rows, 1, scratch, |probabilities, _, row, sum| {
        let features = row.columns.iter().map(|&column| column as usize).zip(row.values.iter().copied());
        model.probabilities(features, probabilities);
        let square = |(class, p): (usize, &f64)| (p - if class == row.label { 1.0 } else { 0.0 }).powi(2);
        let brier: f64 = probabilities.iter().enumerate().map(square).sum();
        sum[0] += grid.place((1.0 - 0.5 * brier).clamp(0.0, 1.0));
    })?;
    Ok(sum[0])
}
