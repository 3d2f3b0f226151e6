//! Accelerated descent with noisy gradients over all records, and the mean of its later half.

use dp_engine::Grid;
use dp_engine::vector_math::vectorise;
use serde::{Deserialize, Serialize};

use crate::error::{LinearError, Result};
use crate::exact::sum_several;
use crate::exact_sum::ExactSum;
use crate::linear::Linear;
use crate::rows::{RowSource, SparseRow};
use crate::scales::{FeatureFacts, Scales};
use crate::settings::{Objective, Settings, Streams};
use crate::solver::Prepared;
use crate::spread::Spread;
use crate::weight_noise::{self, Kind, WeightNoise};

/// Largest share of a step that the next one repeats.
const MOST_MOMENTUM: f64 = 0.9;
/// Variance of what one feature contributes to the logits, in advance.
const PRIOR_VARIANCE: f64 = 0.7;
/// The same to a number, in standard deviations; found on training folds of generated tables.
const PRIOR_VARIANCE_OF_NUMBER: f64 = 0.3;
/// Share of that variance where a training corrects a model that is there: in advance, too.
const CORRECTION: f64 = 0.1;
/// Variance of a number's residuals, in advance: of its own.
const RESIDUAL_VARIANCE: f64 = 0.5;
/// Bound on the weighted residual of two classes, which would be at most 1 without weights. A record
/// whose answer is certain weighs less, whatever its label, so that no group's rare answers are cut and
/// probabilities stay right; the noise is half of what it would be. Source: the weights of
/// proper losses (Buja, Stuetzle and Shen 2005).
pub(crate) const RESIDUAL_BOUND: f64 = 0.5;
/// Share of the largest class variance `π(1 − π)` that a trained model's residuals have.
const RESIDUAL: f64 = 0.5;
/// Taken from every bound for the rounding of the arithmetic that keeps it.
const MARGIN: f64 = 1.0 / (1_u64 << 30) as f64;

/// Where a run is. With the run's key it is all that is needed to continue it, and as secret as the
/// noise.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Steps taken.
    pub step: u64,
    pub(crate) parameters: Vec<f64>,
    pub(crate) before: Vec<f64>,
    sum: Vec<f64>,
}

/// Without the parameters, which are as secret as the noise.
impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("step", &self.step).finish_non_exhaustive()
    }
}

impl State {
    /// The first state of a run, or the one that it is continued from.
    pub(crate) fn begin(saved: Option<Self>, n_parameters: usize, n_steps: u64) -> Result<Self> {
        let zeros = || vec![0.0; n_parameters];
        let first = || Ok(Self { step: 0, parameters: zeros(), before: zeros(), sum: zeros() });
        saved.map_or_else(first, |state| state.checked(n_parameters, n_steps))
    }

    /// Refuses where another run was.
    fn checked(self, n_parameters: usize, n_steps: u64) -> Result<Self> {
        let lengths = [&self.parameters, &self.before, &self.sum].map(Vec::len);
        if lengths != [n_parameters; 3] || self.step > n_steps {
            let problem = format!(
                "is of another model: {lengths:?} parameters after step {}, and this run has {n_parameters} and {n_steps} \
                 steps; start it again in another folder",
                self.step
            );
            return Err(LinearError::State(problem));
        }
        Ok(self)
    }
}

/// How fast a run goes: from public numbers and released class shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Learning rate.
    pub rate: f64,
    /// Share of a step that the next one repeats.
    pub momentum: f64,
    /// Weight of the penalty on squares.
    pub ridge: f64,
}

impl Pace {
    /// `noise`: that of the whole run's mean gradient in one direction, on features of mean
    /// square 1; `total` is the weight of all records.
    pub fn of(noise: f64, total: f64, width: usize, priors: &[f64], facts: FeatureFacts) -> Self {
        let variance = RESIDUAL * priors.iter().map(|prior| prior * (1.0 - prior)).fold(0.0, f64::max);
        // The noise of a logit.
        let in_logits = noise * (width as f64).sqrt() / variance;
        Self {
            momentum: (MOST_MOMENTUM - 0.3 * in_logits).clamp(0.0, MOST_MOMENTUM),
            ridge: (1.0 / total + noise * noise / variance) / PRIOR_VARIANCE,
            // The curvature of a loss is its residuals' variance: small where all classes but one
            // are rare. Steps of four over the eigenvalue are stable whatever it is.
            rate: (0.19 / (2.0 * variance)).clamp(1.0, 4.0) / facts.largest_eigenvalue,
        }
    }

    /// The same of a number, in units of its standard deviation: the curvature of its loss is 1.
    pub fn of_number(noise: f64, total: f64, width: usize, facts: FeatureFacts) -> Self {
        let in_predictions = noise * (width as f64).sqrt();
        Self {
            momentum: (MOST_MOMENTUM - 0.3 * in_predictions).clamp(0.0, MOST_MOMENTUM),
            ridge: (RESIDUAL_VARIANCE / total + noise * noise) / PRIOR_VARIANCE_OF_NUMBER,
            rate: facts.largest_eigenvalue.recip(),
        }
    }
}

/// What the outputs of a model are compared with.
pub(crate) enum Loss {
    Classes {
        /// Logits of a model without features.
        offsets: Vec<f64>,
        /// Weight of a record of each class, at most 1; of classes without one 1.
        weights: Vec<f64>,
    },
    Number {
        spread: Spread,
        /// Bound on a residual.
        bound: f64,
    },
}

impl Loss {
    /// What each output is without features.
    pub(crate) fn offsets(&self) -> &[f64] {
        match self {
            Self::Classes { offsets, .. } => offsets,
            Self::Number { .. } => &[0.0],
        }
    }

    /// Outputs become residuals; the weight of the record beside its own.
    pub(crate) fn residuals(&self, outputs: &mut [f64], row: SparseRow<'_>) -> f64 {
        match self {
            Self::Classes { weights, .. } => {
                residuals(outputs, row.label);
                weights.get(row.label).copied().unwrap_or(1.0)
            }
            Self::Number { spread, bound } => {
                if let [output] = outputs {
                    *output = spread.residual(*output, row.target).clamp(-bound, *bound);
                }
                1.0
            }
        }
    }

    /// A model as a start, in units of these outputs and less what its class shares say.
    pub(crate) fn start(&self, start: &Linear) -> Linear {
        let mut start = start.clone();
        match self {
            Self::Classes { .. } => {
                for (intercept, logit) in start.intercepts.iter_mut().zip(logits(&start.priors)) {
                    *intercept -= logit;
                }
            }
            Self::Number { spread: Spread { mean, deviation }, .. } => {
                for weight in start.weights.iter_mut().flatten() {
                    *weight /= deviation;
                }
                for intercept in &mut start.intercepts {
                    *intercept = (*intercept - mean) / deviation;
                }
            }
        }
        start
    }

    /// A model of these outputs' weights and intercepts, in units of the label.
    pub(crate) fn linear(&self, mut weights: Vec<Vec<f64>>, mut intercepts: Vec<f64>, priors: &[f64]) -> Linear {
        if let Self::Number { spread: Spread { mean, deviation }, .. } = self {
            for weight in weights.iter_mut().flatten() {
                *weight *= deviation;
            }
            for intercept in &mut intercepts {
                *intercept = mean + deviation * *intercept;
            }
        }
        Linear { weights, intercepts, priors: priors.to_vec() }
    }
}

/// The fixed inputs of all steps.
struct Descent<'a> {
    width: usize,
    scales: &'a Scales,
    loss: Loss,
    /// What is corrected.
    start: Option<Linear>,
    grid: Grid,
}

/// Rows whose squares and outputs are summed in step: each sum waits for its last addition, and the order
/// of its terms is fixed.
const IN_STEP: usize = 2;

/// Buffers of one thread.
#[derive(Clone)]
struct Scratch {
    /// The features of each row, scaled.
    scaled: [Vec<f64>; IN_STEP],
    /// A row's gradient, in steps of the grid.
    placed: Vec<f64>,
    residuals: Vec<f64>,
}

impl Scratch {
    fn new(n_outputs: usize) -> Self {
        Self { scaled: [const { Vec::new() }; IN_STEP], placed: Vec::new(), residuals: vec![0.0; n_outputs] }
    }
}

/// Sums over the scaled features of a row.
#[derive(Clone, Copy, Default)]
struct Sums {
    square: f64,
    /// The first output, of the features alone.
    output: f64,
}

/// The shares of the classes in the loss, the weight of a record of each, and that of all records.
fn weighing(objective: Objective, priors: &[f64], total: f64) -> (Vec<f64>, Vec<f64>, f64) {
    match objective {
        Objective::Population => (priors.to_vec(), vec![1.0; priors.len()], total),
        Objective::EqualClasses => {
            let least = priors.iter().copied().fold(f64::INFINITY, f64::min);
            let n = priors.len() as f64;
            (vec![1.0 / n; priors.len()], priors.iter().map(|prior| least / prior).collect(), n * least * total)
        }
    }
}

/// Logits of a model that answers these shares.
pub(crate) fn logits(priors: &[f64]) -> Vec<f64> {
    match priors {
        [negative, positive] => vec![(positive / negative).ln()],
        _ => priors.iter().map(|prior| prior.ln()).collect(),
    }
}

/// How a run goes: from what was released first and public numbers.
struct Course {
    loss: Loss,
    /// Bound on the residuals of a record.
    residual: f64,
    /// Weight of all records in the loss.
    total: f64,
    pace: Pace,
}

impl Course {
    fn of(prepared: &Prepared, width: usize, facts: FeatureFacts, settings: &Settings) -> Self {
        // The noise of the whole run's mean gradient in one direction.
        let noise = |residual: f64, total: f64| {
            noise_of_step(&prepared.scales, residual, settings) / (settings.steps as f64).sqrt() / total
        };
        let mut course = match prepared.spread {
            None => {
                let (shares, weights, total) = weighing(settings.objective, &prepared.priors, prepared.total);
                // A softmax's residuals have a norm of at most √2; weights are at most 1.
                let residual = if shares.len() == 2 { RESIDUAL_BOUND } else { std::f64::consts::SQRT_2 };
                let pace = Pace::of(noise(residual, total), total, width, &shares, facts);
                Self { loss: Loss::Classes { offsets: logits(&shares), weights }, residual, total, pace }
            }
            Some(spread) => {
                let total = prepared.total;
                let bound = Spread::bound(noise(1.0, total) * (width as f64).sqrt());
                let pace = Pace::of_number(noise(bound, total), total, width, facts);
                Self { loss: Loss::Number { spread, bound }, residual: bound, total, pace }
            }
        };
        if prepared.start.is_some() {
            course.pace.ridge /= CORRECTION;
        }
        course
    }
}

/// Standard deviation of the noise of a step's sum of gradients, each of at most this residual.
fn noise_of_step(scales: &Scales, residual: f64, settings: &Settings) -> f64 {
    settings.gradients.get() * (residual * scales.row_bound) * settings.records_per_unit as f64
}

/// What the prior on a weight adds to its curvature. The prior is on what a feature contributes where it
/// is fully there, whatever its frequency.
fn shrink(column: usize, scales: &Scales, ridge: f64, facts: FeatureFacts) -> f64 {
    let factor = scales.factors[column] * facts.constant.1;
    if column == facts.constant.0 { 0.0 } else { ridge * factor * factor }
}

/// The curvature of the loss in each output, in a direction of mean square 1.
pub(crate) fn curvatures(priors: &[f64]) -> Vec<f64> {
    match priors {
        [] => vec![1.0],
        [_, positive] => vec![RESIDUAL * positive * (1.0 - positive)],
        _ => priors.iter().map(|prior| RESIDUAL * prior * (1.0 - prior)).collect(),
    }
}

/// The noise of the weights of a model that was trained so.
pub(crate) fn weight_noise(prepared: &Prepared, facts: FeatureFacts, settings: &Settings) -> WeightNoise<'static> {
    let Prepared { priors, spread, scales, .. } = prepared;
    let width = scales.factors.len();
    let Course { residual, total, pace, .. } = Course::of(prepared, width, facts, settings);
    let noise = noise_of_step(scales, residual, settings) / total * spread.map_or(1.0, |spread| spread.deviation);
    let (shares, ..) = weighing(settings.objective, priors, total);
    let of = |curvature: f64| {
        let of_column = |column: usize| {
            let factor = scales.factors[column];
            let curvature = curvature * scales.mean_squares[column].max(0.0) * factor * factor;
            let shrink = shrink(column, scales, pace.ridge, facts);
            let paces = [pace.rate, pace.momentum];
            noise * factor * weight_noise::of_averaged(curvature, shrink, paces, settings.steps)
        };
        (0..width).map(of_column).collect()
    };
    WeightNoise(Kind::Weights(curvatures(&shares).into_iter().map(of).collect()))
}

pub(crate) fn descend<E: From<LinearError>>(
    rows: &impl RowSource,
    prepared: &Prepared,
    facts: FeatureFacts,
    settings: &Settings,
    streams: &impl Streams,
    saved: Option<State>,
    progress: &mut (dyn FnMut(&State) -> Result<(), E> + Send),
) -> Result<Linear, E> {
    let Prepared { priors, spread, scales, start, .. } = prepared;
    let width = rows.width();
    let Course { loss, residual, total, pace } = Course::of(prepared, width, facts, settings);
    let bound = residual * scales.row_bound;
    let grid = Grid::for_values(bound, rows.len());
    let std = noise_of_step(scales, residual, settings);
    let start = start.as_ref().map(|start| loss.start(start));
    let descent = Descent { width, scales, loss, start, grid };
    let Pace { rate, momentum, ridge } = pace;

    let size = descent.loss.offsets().len() * width;
    let mut state = State::begin(saved, size, settings.steps)?;
    while state.step < settings.steps {
        let ahead: Vec<f64> =
            state.parameters.iter().zip(&state.before).map(|(now, before)| now + momentum * (now - before)).collect();
        let sum = descent.gradient(rows, &ahead)?;
        let gradient = streams.release("gradient", state.step, ExactSum::new(descent.grid, sum, std));
        state.before = std::mem::take(&mut state.parameters);
        state.parameters = (0..size)
            .map(|i| {
                // The prior is on what a feature contributes where it is fully there, whatever its
                // frequency.
                let shrink = shrink(i % width, scales, ridge, facts);
                // Where the ridge alone would overshoot, it ends at 0.
                (ahead[i] - rate * gradient[i] / total) / (1.0 + rate * shrink)
            })
            .collect();
        state.step += 1;
        if 2 * state.step > settings.steps {
            for (sum, value) in state.sum.iter_mut().zip(&state.parameters) {
                *sum += value;
            }
        }
        progress(&state)?;
    }
    let averaged = settings.steps - settings.steps / 2;
    let mut weights: Vec<Vec<f64>> = state
        .sum
        .chunks_exact(width)
        .map(|row| row.iter().zip(&scales.factors).map(|(sum, factor)| sum / averaged as f64 * factor).collect())
        .collect();
    // The shares of the classes in the population, whatever they were in the loss.
    let mut intercepts = if spread.is_some() { vec![0.0] } else { logits(priors) };
    if let Some(start) = &descent.start {
        start.add_to(&mut weights, &mut intercepts);
    }
    Ok(descent.loss.linear(weights, intercepts, priors))
}

impl Descent<'_> {
    /// The sum of all records' bounded gradients, in steps of the grid.
    fn gradient(&self, rows: &impl RowSource, parameters: &[f64]) -> Result<Vec<f64>> {
        let scratch = || Scratch::new(self.loss.offsets().len());
        sum_several(rows, parameters.len(), scratch, |scratch, _, rows, sum| self.add(rows, parameters, scratch, sum))
    }

    /// Adds the gradients of rows.
    fn add(&self, rows: &[SparseRow<'_>], weights: &[f64], scratch: &mut Scratch, sum: &mut [f64]) {
        vectorise(
            #[inline(always)]
            || {
                for some in rows.chunks(IN_STEP) {
                    let mut rows = [SparseRow::BLANK; IN_STEP];
                    rows[..some.len()].copy_from_slice(some);
                    let sums = self.scale(rows, weights, &mut scratch.scaled);
                    for (at, row) in rows.into_iter().enumerate().filter(|(_, row)| !row.is_blank()) {
                        self.add_row(row, at, sums[at], weights, scratch, sum);
                    }
                }
            },
        );
    }

    /// Scales the features of rows, and sums them in step.
    #[expect(clippy::inline_always, reason = "compiled for the instructions of the closure that calls it")]
    #[inline(always)]
    fn scale(
        &self,
        rows: [SparseRow<'_>; IN_STEP],
        weights: &[f64],
        scaled: &mut [Vec<f64>; IN_STEP],
    ) -> [Sums; IN_STEP] {
        let (factors, weights) = (&self.scales.factors[..self.width], &weights[..self.width]);
        let term = |column: u32, value: f32, scaled: &mut f64, sums: &mut Sums| {
            let value = f64::from(value) * factors[column as usize];
            *scaled = value;
            sums.square += value * value;
            sums.output += weights[column as usize] * value;
        };
        for (scaled, row) in scaled.iter_mut().zip(rows) {
            scaled.resize(row.columns.len(), 0.0);
        }
        let shortest = rows.iter().map(|row| row.columns.len()).min().unwrap_or(0);
        let columns = rows.map(|row| &row.columns[..shortest]);
        let values = rows.map(|row| &row.values[..shortest]);
        let places = scaled.each_mut().map(|scaled| &mut scaled[..shortest]);
        let mut sums = [Sums::default(); IN_STEP];
        for at in 0..shortest {
            for (row, sums) in sums.iter_mut().enumerate() {
                term(columns[row][at], values[row][at], &mut places[row][at], sums);
            }
        }
        for ((row, scaled), sums) in rows.iter().zip(scaled).zip(&mut sums) {
            let rest = row.columns.iter().zip(row.values).zip(scaled).skip(shortest);
            rest.for_each(|((&column, &value), scaled)| term(column, value, scaled, sums));
        }
        sums
    }

    /// Adds the gradient of the row that was scaled at this place.
    #[expect(clippy::inline_always, reason = "compiled for the instructions of the closure that calls it")]
    #[inline(always)]
    fn add_row(
        &self,
        row: SparseRow<'_>,
        place_of_row: usize,
        sums: Sums,
        weights: &[f64],
        scratch: &mut Scratch,
        sum: &mut [f64],
    ) {
        let Scratch { scaled, placed, residuals } = scratch;
        let scaled = &scaled[place_of_row];
        residuals[0] = sums.output;
        let later = weights[self.width..].chunks_exact(self.width);
        for (residual, weights) in residuals[1..].iter_mut().zip(later) {
            *residual = row.columns.iter().zip(scaled).map(|(&j, value)| weights[j as usize] * value).sum();
        }
        for (output, residual) in residuals.iter_mut().enumerate() {
            let start = self.start.as_ref().map_or(0.0, |start| start.output(output, row));
            *residual += self.loss.offsets()[output] + start;
        }
        let longest = self.scales.row_bound * (1.0 - MARGIN);
        let shorten = if sums.square > longest * longest { longest / sums.square.sqrt() } else { 1.0 };
        let weight = f64::from(row.weight) * self.loss.residuals(residuals, row);
        placed.resize(row.columns.len(), 0.0);
        for (residual, sum) in residuals.iter().zip(sum.chunks_exact_mut(self.width)) {
            let scale = residual * weight * shorten * (1.0 - MARGIN);
            if scale.is_finite() {
                for (placed, value) in placed.iter_mut().zip(scaled) {
                    *placed = place(self.grid, scale * value);
                }
                for (&j, placed) in row.columns.iter().zip(&*placed) {
                    sum[j as usize] += placed;
                }
            }
        }
    }
}

/// [`Grid::place`] for code compiled for processors that truncate by an instruction.
#[inline(always)]
fn place(grid: Grid, value: f64) -> f64 {
    const LARGEST: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
    let steps = value * grid.per_unit();
    if steps.abs() < LARGEST { steps.trunc() } else { 0.0 }
}

/// Logits become probabilities less the label, of two classes weighted to at most
/// [`RESIDUAL_BOUND`].
pub(crate) fn residuals(logits: &mut [f64], label: usize) {
    if let [logit] = logits {
        let target = if label == 1 { 1.0 } else { 0.0 };
        let probability = sigmoid(*logit);
        // The weight depends on the prediction alone, so the residual's mean is 0 where the
        // probability is the true one.
        *logit = (probability - target) * RESIDUAL_BOUND / probability.max(1.0 - probability);
        return;
    }
    softmax(logits);
    if let Some(residual) = logits.get_mut(label) {
        *residual -= 1.0;
    }
}

/// `1/(1 + e⁻ᶻ)` without overflow.
pub fn sigmoid(logit: f64) -> f64 {
    let e = libm::exp(-logit.abs());
    let share = if logit >= 0.0 { 1.0 } else { e };
    share / (1.0 + e)
}

/// Probabilities in the place of logits.
pub fn softmax(logits: &mut [f64]) {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for logit in &mut *logits {
        *logit = libm::exp(*logit - largest);
        total += *logit;
    }
    for value in logits {
        *value /= total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bounded residual, whose mean is 0 where the probability is the true one: whatever the
    /// class, rare or common.
    #[test]
    fn bounded_residuals_leave_probabilities_right() {
        for logit in [-40.0, -6.0, -1.0, 0.0, 0.5, 3.0, 40.0] {
            let [negative, positive] = [0, 1].map(|label| {
                let mut residual = [logit];
                residuals(&mut residual, label);
                residual[0]
            });
            assert!(negative.abs() <= RESIDUAL_BOUND && positive.abs() <= RESIDUAL_BOUND, "{logit}");
            let mean = sigmoid(logit) * positive + sigmoid(-logit) * negative;
            assert!(mean.abs() < 1e-15, "{logit}: {mean}");
        }
        // A quarter: (¼ − 1) · ½ / ¾, and ¼ · ½ / ¾.
        let mut residual = [-f64::ln(3.0)];
        residuals(&mut residual, 1);
        assert!((residual[0] + 0.5).abs() < 1e-15, "{residual:?}");
    }

    /// By truncation as by way of an integer; zeros have either sign.
    #[test]
    fn values_are_placed_as_on_the_grid() {
        let grid = Grid::for_values(1.0, 1_000_000);
        for value in [0.0, 1.0, -1.0, 0.3, -0.3, 1e-9, -1e-9, 1e-300, -1e-300, 1e300, -1e300, f64::INFINITY, f64::NAN] {
            let mut placed = f64::NAN;
            vectorise(
                #[inline(always)]
                || placed = place(grid, value),
            );
            assert!(placed == grid.place(value), "{value}: {placed}");
        }
    }

    /// What a record adds to a gradient of a number's loss has at most its bound as its norm, whatever
    /// the weights, those of a start too, its row and its target.
    #[test]
    fn a_number_adds_its_bound_at_most() {
        const WEIGHTS: [[f64; 3]; 4] = [[0.0; 3], [1.0, -2.0, 9.0], [1e300, -1e300, 1e300], [f64::NAN; 3]];
        let scales = Scales { factors: vec![3.0, 1e4, 1.0], row_bound: 1.5, mean_squares: vec![1.0; 3], least: 0.0 };
        let (spread, bound) = (Spread { mean: 0.2, deviation: 0.01 }, 1.7);
        let most = bound * scales.row_bound;
        let grid = Grid::for_values(most, 1_000);
        let far = Linear { weights: vec![vec![1e30, -1e30, 9.0]], intercepts: vec![-1e30], priors: Vec::new() };
        let descents = [None, Some(far)].map(|start| {
            let loss = Loss::Number { spread, bound };
            Descent { width: 3, scales: &scales, loss, start, grid }
        });
        for (descent, weights) in descents.iter().flat_map(|descent| WEIGHTS.map(|weights| (descent, weights))) {
            for target in [-1.0, 0.2, 1.0] {
                for values in [[0.1_f32, 0.0, 0.5], [-1.0, 1.0, 1.0], [0.0, 1e-3, 0.5]] {
                    let row = SparseRow { columns: &[0, 1, 2], values: &values, label: 0, target, weight: 1.0 };
                    let mut scratch = Scratch::new(1);
                    let mut sum = [0.0; 3];
                    descent.add(&[row], &weights, &mut scratch, &mut sum);
                    let norm = sum.iter().map(|steps| (steps * grid.step()).powi(2)).sum::<f64>().sqrt();
                    assert!(norm <= most, "{weights:?} {target} {values:?}: {norm}");
                }
            }
        }
    }

    /// Rows add what each of them adds alone, bit for bit: of any lengths, blank ones too.
    #[test]
    fn rows_in_step_add_what_each_adds_alone() {
        const WIDTH: usize = 40;
        let scales = Scales {
            factors: (1..=WIDTH).map(|j| (j as f64).sqrt()).collect(),
            row_bound: 5.0,
            mean_squares: vec![1.0; WIDTH],
            least: 0.0,
        };
        let columns: Vec<u32> = (0..WIDTH as u32).collect();
        let values: Vec<f32> = (0..WIDTH).map(|j| (j as f32 * 0.7).sin()).collect();
        let lengths = [40, 3, 0, 17, 17, 1, 0];
        let rows = lengths.map(|n| SparseRow {
            columns: &columns[..n],
            values: &values[..n],
            label: n % 3,
            target: 0.0,
            weight: 0.7,
        });
        for n_outputs in [1, 3] {
            let loss = Loss::Classes { offsets: vec![0.1; n_outputs], weights: vec![1.0, 0.5, 0.8] };
            let grid = Grid::for_values(10.0, rows.len());
            let descent = Descent { width: WIDTH, scales: &scales, loss, start: None, grid };
            let weights: Vec<f64> = (0..n_outputs * WIDTH).map(|j| (j as f64 * 0.3).cos()).collect();
            let sum = |some: &[SparseRow<'_>]| {
                let mut sum = vec![0.0; weights.len()];
                descent.add(some, &weights, &mut Scratch::new(n_outputs), &mut sum);
                sum
            };
            let mut alone = vec![0.0; weights.len()];
            for row in rows {
                alone.iter_mut().zip(sum(&[row])).for_each(|(sum, value)| *sum += value);
            }
            assert!(alone.iter().any(|steps| *steps != 0.0));
            assert_eq!(sum(&rows), alone);
        }
    }

    #[test]
    fn the_state_of_another_model_is_refused() {
        let state = |n: usize, step| State { step, parameters: vec![0.0; n], before: vec![0.0; n], sum: vec![0.0; n] };
        assert_eq!(state(4, 100).checked(4, 100).unwrap(), state(4, 100));
        let message = state(3, 7).checked(4, 100).unwrap_err().to_string();
        assert!(
            message.contains("of another model: [3, 3, 3] parameters after step 7, and this run has 4"),
            "{message}"
        );
        assert!(state(4, 101).checked(4, 100).is_err());
        assert!(State { sum: Vec::new(), ..state(4, 1) }.checked(4, 100).is_err());
    }
}
