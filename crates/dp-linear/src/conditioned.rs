//! Private logistic, softmax and least-squares regression on blocks of columns that are centred and whitened first.
//!
//! 1. *Class counts* with noise: the intercepts start at the logarithms of the classes' shares. Of a
//!    number its [mean and spread](crate::Spread) in their place.
//! 2. *Mean and covariance* of every block with noise, see [`conditioning`](crate::conditioning).
//! 3. *Mean squares of the lengths* of whitened rows with noise, one per block: a block of `d`
//!    columns is brought to the mean square length `√d`. A small block then keeps most of its
//!    signal beside a large one, and a large one loses little.
//! 4. *Gradients over all records.* A row is shortened to the root of its mean square length, a
//!    residual to a public bound.
//!
//! All of them are Gaussian mechanisms on all records, so ε is in closed form: `μ² = Σ 1/σ²`. The
//! model is linear in the table's columns: the whitening becomes part of its weights.
//!
//! **Difference from [`Recipe`](crate::Recipe).** There every whitened row is divided by its norm, in
//! training and in prediction. Here it is not, so that the model stays linear and its weights can be
//! read; on scattering features of images that costs about 0.1 points of accuracy.

use dp_accounting::NoiseMultiplier;
use dp_engine::Grid;
use dp_engine::vector_math::vectorise;
use serde::{Deserialize, Serialize};

use crate::conditioning::{BlockNoise, BlockTransform, ColumnBlock};
use crate::descent::{self, Loss, State, logits};
use crate::error::{LinearError, Result};
use crate::exact::sum_rows;
use crate::exact_sum::ExactSum;
use crate::linear::Linear;
use crate::rows::{RowSource, SparseRow, square_of};
use crate::settings::Streams;
use crate::solver::Priors;
use crate::spread::Spread;
use crate::weight_noise::{self, Kind, WeightNoise};

/// Share of a step that the next one repeats.
const MOMENTUM: f64 = 0.9;
/// The steps for which the rate of the first one was found.
const RULE_STEPS: f64 = 60.0;
/// Bound on the norm of a softmax's residuals.
const SOFTMAX_RESIDUAL: f64 = 1.0;
/// Taken from every bound for the rounding of the arithmetic that keeps it.
const MARGIN: f64 = 1.0 / (1_u64 << 30) as f64;
/// Values that are multiplied and added side by side.
const LANES: usize = 8;
/// A length is taken to be at least this many standard deviations of its noise.
const LEAST: f64 = 2.0;

/// Noise of every release of a training on whitened blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConditionedSettings {
    /// Noise of each block's mean.
    pub means: NoiseMultiplier,
    /// Noise of each block's covariance.
    pub covariances: NoiseMultiplier,
    /// Noise of the mean square lengths of all blocks.
    pub lengths: NoiseMultiplier,
    /// Noise of each gradient.
    pub gradients: NoiseMultiplier,
    /// How many gradients there are.
    pub steps: u64,
    /// Records of one unit of privacy, at most.
    pub records_per_unit: u64,
}

impl ConditionedSettings {
    /// The same with next to no noise, and steps enough to converge: for comparison, never for
    /// release.
    ///
    /// # Errors
    /// None: the noise multiplier is in its range.
    pub fn without_noise(&self) -> Result<Self> {
        let little = NoiseMultiplier::new(1e-6)?;
        let (means, covariances, lengths, gradients) = (little, little, little, little);
        Ok(Self { means, covariances, lengths, gradients, steps: 4 * self.steps, ..self.clone() })
    }
}

/// What was released about a block, and the public number behind its lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ReleasedBlock<'a> {
    /// Mean of the block's values, divided by their largest norm.
    pub mean: &'a [f64],
    /// Less the mean, values are divided by this, and shortened to norm 1 in the covariance.
    pub radius: f64,
    /// `L`, row-major, with `L Lᵀ` the covariance with its ridge; `None` if its diagonal alone was
    /// released.
    pub covariance_factor: Option<&'a [f64]>,
    /// Mean square of the whitened rows' lengths.
    pub square_length: f64,
    /// The largest square of a length that counts in it.
    pub longest: f64,
}

/// The releases about the blocks of a table: what its rows are transformed by.
#[derive(Debug, Clone, PartialEq)]
pub struct WhitenedBlocks {
    blocks: Vec<BlockTransform>,
    /// Mean square length of a block's whitened rows.
    squares: Vec<f64>,
    priors: Priors,
    /// The model that the training corrects.
    start: Option<Linear>,
}

impl WhitenedBlocks {
    /// Releases mean and covariance of every block, and the lengths that follow, after what was
    /// released of the label.
    ///
    /// **Guarantee.** The sensitivity of each mean and covariance is 1. Lengths are between 0 and 1,
    /// one for each of `k` blocks, and their noise is for a sensitivity of `√k`.
    ///
    /// # Errors
    /// [`LinearError::InvalidParameter`] for a block without columns and for more than 2³³ records;
    /// [`LinearError::Train`] if a rank is gone.
    pub fn fit(
        rows: &impl RowSource,
        priors: Priors,
        blocks: &[ColumnBlock],
        settings: &ConditionedSettings,
        streams: &impl Streams,
    ) -> Result<Self> {
        let (records_per_unit, total) = (settings.records_per_unit as f64, priors.total);
        let noise = BlockNoise { mean: settings.means, covariance: settings.covariances, records_per_unit };
        let fitted =
            (0..).zip(blocks).map(|(index, block)| BlockTransform::fit(rows, total, block, noise, index, streams));
        let blocks = fitted.collect::<Result<Vec<_>>>()?;
        let whitened = blocks.iter().map(|block| block.apply(rows)).collect::<Result<Vec<_>>>()?;
        let grid = Grid::for_values(1.0, rows.len());
        let start = rows.share().start;
        let sum = sum_rows(
            rows,
            blocks.len(),
            || (),
            |(), index, row, sum| {
                for ((block, values), sum) in blocks.iter().zip(&whitened).zip(sum) {
                    let place = (index - start) * block.size();
                    let square: f64 = values[place..place + block.size()].iter().map(|&v| f64::from(v).powi(2)).sum();
                    *sum += grid.place(f64::from(row.weight) * (square / block.longest()).min(1.0));
                }
            },
        )?;
        let std = settings.lengths.get() * (blocks.len() as f64).sqrt().next_up() * records_per_unit;
        let released = streams.release("lengths", 0, ExactSum::new(grid, sum, std));
        let squares = released.iter().zip(&blocks).map(|(sum, block)| sum.max(LEAST * std) / total * block.longest());
        Ok(Self { squares: squares.collect(), blocks, priors, start: None })
    }

    /// The same for a training that starts from a model that was released before, on rows of this width, and
    /// corrects it.
    ///
    /// **Guarantee.** None of it changes: what a record adds to a gradient is bounded whatever the weights.
    ///
    /// # Errors
    /// [`LinearError::Mismatch`] for a model of other features or classes.
    pub fn starting_from(mut self, start: Linear, width: usize) -> Result<Self> {
        start.check_start(width, self.priors().len())?;
        self.start = Some(start);
        Ok(self)
    }

    /// What was released about each block.
    pub fn released(&self) -> impl Iterator<Item = ReleasedBlock<'_>> {
        self.blocks.iter().zip(&self.squares).map(|(block, square)| ReleasedBlock {
            mean: block.mean(),
            radius: block.radius(),
            covariance_factor: block.covariance_factor(),
            square_length: *square,
            longest: block.longest(),
        })
    }

    /// Shares of the classes; none of a number.
    pub fn priors(&self) -> &[f64] {
        &self.priors.priors
    }

    /// The square of the length that a block is brought to.
    fn target(block: &BlockTransform) -> f64 {
        (block.size() as f64).sqrt()
    }

    /// Factors that bring blocks to their lengths.
    fn scales(&self) -> impl Iterator<Item = f64> + '_ {
        self.blocks.iter().zip(&self.squares).map(|(block, square)| (Self::target(block) / square).sqrt())
    }

    /// The rows of this rank, scaled, `[share, width]`.
    fn rows(&self, rows: &impl RowSource) -> Result<Vec<f32>> {
        let width: usize = self.blocks.iter().map(BlockTransform::size).sum();
        let mut all = vec![0.0; rows.share().len() * width];
        let mut first = 0;
        for (block, scale) in self.blocks.iter().zip(self.scales()) {
            let values = block.apply(rows)?;
            for (all, values) in all.chunks_exact_mut(width).zip(values.chunks_exact(block.size())) {
                for (out, value) in all[first..].iter_mut().zip(values) {
                    *out = (f64::from(*value) * scale) as f32;
                }
            }
            first += block.size();
        }
        Ok(all)
    }

    /// Trains a model on these blocks; `progress` is called after every step with the state that the
    /// run can be continued from.
    ///
    /// # Errors
    /// [`LinearError::State`] for the state of another model; [`LinearError::Train`] if a rank is
    /// gone.
    pub fn train<E: From<LinearError>>(
        &self,
        rows: &impl RowSource,
        settings: &ConditionedSettings,
        streams: &impl Streams,
        saved: Option<State>,
        progress: &mut (dyn FnMut(&State) -> Result<(), E> + Send),
    ) -> Result<Linear, E> {
        let width: usize = self.blocks.iter().map(BlockTransform::size).sum();
        let square: f64 = self.blocks.iter().map(Self::target).sum();
        let row_bound = (square + 1.0).sqrt();
        let units = settings.records_per_unit as f64;
        let (loss, residual) = self.loss(settings, row_bound);
        let bound = residual * row_bound;
        let grid = Grid::for_values(bound, rows.len());
        let values = self.rows(rows)?;
        let std = settings.gradients.get() * bound * units;
        let first = self.first_rate(settings, square);
        let size = loss.offsets().len() * (width + 1);
        let start = self.start.as_ref().map(|start| loss.start(start));
        let descent = Descent { values: &values, width, loss, start, residual, row_bound, grid };
        let mut state = State::begin(saved, size, settings.steps)?;
        while state.step < settings.steps {
            let sum = descent.gradient(rows, &state.parameters)?;
            let gradient = streams.release("gradient", state.step, ExactSum::new(grid, sum, std));
            let rate = Self::rate(first, state.step, settings.steps);
            let now = state.parameters.iter().zip(&state.before).zip(&gradient);
            let next = now
                .map(|((now, before), gradient)| now + MOMENTUM * (now - before) - rate * gradient / self.priors.total);
            let next = next.collect();
            state.before = std::mem::replace(&mut state.parameters, next);
            state.step += 1;
            progress(&state)?;
        }
        Ok(self.fold(&state.parameters, rows.width(), &descent))
    }

    /// Bound on the residuals of a record, and what they are of.
    fn loss(&self, settings: &ConditionedSettings, row_bound: f64) -> (Loss, f64) {
        match self.priors.spread {
            None => {
                let residual = if self.priors().len() == 2 { descent::RESIDUAL_BOUND } else { SOFTMAX_RESIDUAL };
                (Loss::Classes { offsets: logits(self.priors()), weights: Vec::new() }, residual)
            }
            Some(spread) => {
                let units = settings.records_per_unit as f64;
                let one = settings.gradients.get() * units * row_bound / (settings.steps as f64).sqrt();
                let bound = Spread::bound(one * row_bound / self.priors.total);
                (Loss::Number { spread, bound }, bound)
            }
        }
    }

    /// How much noise the weights of a model have that was [trained](Self::train) on this.
    pub fn weight_noise(&self, settings: &ConditionedSettings) -> WeightNoise<'_> {
        let square: f64 = self.blocks.iter().map(Self::target).sum();
        let row_bound = (square + 1.0).sqrt();
        let (_, residual) = self.loss(settings, row_bound);
        let units = settings.records_per_unit as f64;
        let unit = self.priors.spread.map_or(1.0, |spread| spread.deviation);
        let noise = settings.gradients.get() * residual * row_bound * units / self.priors.total * unit;
        let first = self.first_rate(settings, square);
        let of = |(block, scale): (&'_ BlockTransform, f64)| {
            // The mean of the eigenvalues of a block's second moments, as its lengths say.
            let eigenvalue = Self::target(block) / block.size() as f64;
            let stds = descent::curvatures(self.priors()).into_iter().map(|curvature| {
                let rates = (0..settings.steps).map(|step| Self::rate(first, step, settings.steps));
                noise * scale * weight_noise::of_last(curvature * eigenvalue, rates, MOMENTUM)
            });
            stds.collect()
        };
        let blocks = self.blocks.iter().zip(self.scales());
        WeightNoise(Kind::Blocks(blocks.map(|(block, scale)| (block, of((block, scale)))).collect()))
    }

    /// Whether a column whose values are mostly 0, and never below, is too rare to be told from the noise.
    pub fn is_too_rare(&self, column: usize) -> bool {
        self.blocks.iter().find_map(|block| block.is_too_rare(column)).unwrap_or(false)
    }

    /// Released mean of a column.
    pub fn mean_of(&self, column: usize) -> Option<f64> {
        self.blocks.iter().find_map(|block| block.mean_of(column))
    }

    fn rate(first: f64, step: u64, steps: u64) -> f64 {
        let turn = std::f64::consts::PI * step as f64 / steps as f64;
        first * 0.5 * (1.0 + libm::cos(turn))
    }

    /// The rate of the first step: more where there is less noise, and none that could diverge.
    fn first_rate(&self, settings: &ConditionedSettings, square: f64) -> f64 {
        let units = settings.records_per_unit as f64;
        let mu = (settings.steps as f64).sqrt() / (settings.gradients.get() * units);
        let rule = (mu * self.priors.total).sqrt() / (1.8 * (square + 1.0)) * RULE_STEPS / settings.steps as f64;
        // A whitened block's largest eigenvalue is 1, times the square of its scale.
        let eigenvalue = 1.0 + self.scales().map(|scale| scale * scale).sum::<f64>();
        // The curvature of a number's loss is 1, that of a probability's a quarter at most.
        let curvature = if self.priors.spread.is_some() { 1.0 } else { 0.25 };
        (rule * 0.25 / curvature).min(1.0 / (curvature * eigenvalue))
    }

    /// A model on the table's columns.
    fn fold(&self, parameters: &[f64], width: usize, Descent { loss, start, .. }: &Descent<'_>) -> Linear {
        let own: usize = self.blocks.iter().map(BlockTransform::size).sum();
        let (mut all, mut intercepts) = (Vec::new(), Vec::new());
        for (row, offset) in parameters.chunks_exact(own + 1).zip(loss.offsets()) {
            let (mut weights, mut intercept, mut rest) = (vec![0.0; width], offset + row[own], row);
            for (block, scale) in self.blocks.iter().zip(self.scales()) {
                let (part, others) = rest.split_at(block.size());
                let part: Vec<f64> = part.iter().map(|weight| weight * scale).collect();
                intercept += block.fold(&part, &mut weights);
                rest = others;
            }
            all.push(weights);
            intercepts.push(intercept);
        }
        if let Some(start) = start {
            start.add_to(&mut all, &mut intercepts);
        }
        loss.linear(all, intercepts, self.priors())
    }
}

/// The fixed inputs of all steps.
struct Descent<'a> {
    values: &'a [f32],
    width: usize,
    loss: Loss,
    /// What is corrected.
    start: Option<Linear>,
    /// Bound on the residuals of a record.
    residual: f64,
    row_bound: f64,
    grid: Grid,
}

impl Descent<'_> {
    /// The sum of all records' bounded gradients, in steps of the grid; of each output the weights,
    /// then the intercept.
    fn gradient(&self, rows: &impl RowSource, parameters: &[f64]) -> Result<Vec<f64>> {
        let start = rows.share().start;
        let scratch = || vec![0.0; self.loss.offsets().len()];
        sum_rows(rows, parameters.len(), scratch, |residuals, index, row, sum| {
            let values = &self.values[(index - start) * self.width..][..self.width];
            self.add(values, row, parameters, residuals, sum);
        })
    }

    fn add(&self, values: &[f32], row: SparseRow<'_>, parameters: &[f64], residuals: &mut [f64], sum: &mut [f64]) {
        let square = square_of(values);
        let longest = self.row_bound * (1.0 - MARGIN);
        let shorten = (longest / (square + 1.0).sqrt()).min(1.0);
        let own = self.width + 1;
        for (output, (residual, (weights, offset))) in
            residuals.iter_mut().zip(parameters.chunks_exact(own).zip(self.loss.offsets())).enumerate()
        {
            let start = self.start.as_ref().map_or(0.0, |start| start.output(output, row));
            *residual = offset + start + weights[self.width] + dot(values, &weights[..self.width]);
        }
        let weight = f64::from(row.weight) * self.loss.residuals(residuals, row);
        let norm = residuals.iter().map(|residual| residual * residual).sum::<f64>().sqrt();
        let scale = weight * shorten * (self.residual / norm).min(1.0) * (1.0 - MARGIN);
        for (residual, sum) in residuals.iter().zip(sum.chunks_exact_mut(own)) {
            let scale = scale * residual;
            if scale.is_finite() {
                add_placed(self.grid, values, scale, &mut sum[..self.width]);
                sum[self.width] += self.grid.place(scale);
            }
        }
    }
}

/// In lanes, so that the loop vectorises.
fn dot(values: &[f32], weights: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let mut rest = 0.0;
    vectorise(
        #[inline(always)]
        || {
            let ((a, a_rest), (b, b_rest)) = (values.as_chunks::<LANES>(), weights.as_chunks::<LANES>());
            for (a, b) in a.iter().zip(b) {
                for (lane, (&a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
                    *lane += f64::from(a) * b;
                }
            }
            rest = a_rest.iter().zip(b_rest).map(|(&a, b)| f64::from(a) * b).sum();
        },
    );
    lanes.iter().sum::<f64>() + rest
}

/// Adds `factor · values` in steps of a grid. The products are below the bound of the grid, so
/// `trunc` places them as [`Grid::place`] does.
fn add_placed(grid: Grid, values: &[f32], factor: f64, sum: &mut [f64]) {
    let per_unit = grid.per_unit();
    vectorise(
        #[inline(always)]
        || {
            for (sum, &value) in sum.iter_mut().zip(values) {
                *sum += (factor * f64::from(value) * per_unit).trunc();
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::SparseBlock;

    struct Seeded;

    impl Streams for Seeded {
        fn stream(&self, purpose: &str, step: u64) -> rand_chacha::ChaCha20Rng {
            rand_chacha::rand_core::SeedableRng::seed_from_u64(purpose.len() as u64 + 1_000 * step)
        }
    }

    fn record(label: usize, target: f32) -> SparseRow<'static> {
        SparseRow { columns: &[], values: &[], label, target, weight: 1.0 }
    }

    /// A record's gradient, whatever the parameters, those of a start too, its row and its label.
    #[test]
    fn a_record_adds_its_bound_at_most() {
        let values: Vec<f32> =
            (0..40 * 3).map(|i| ((i * 7919 % 101) as f32 - 50.0) * if i < 3 { 1e6 } else { 0.05 }).collect();
        for n_outputs in [1, 4] {
            let residual = if n_outputs == 1 { descent::RESIDUAL_BOUND } else { SOFTMAX_RESIDUAL };
            let row_bound = 2.0;
            let grid = Grid::for_values(residual * row_bound, 40);
            let start = |intercept: f64| Linear {
                weights: vec![Vec::new(); n_outputs],
                intercepts: vec![intercept; n_outputs],
                priors: Vec::new(),
            };
            let starts = [None, Some(start(1e30)), Some(start(-7.0))];
            let scales = [0.0, 1.0, 1e3, f64::INFINITY, f64::NAN];
            for (start, scale) in starts.iter().flat_map(|start| scales.map(|scale| (start.clone(), scale))) {
                let loss = Loss::Classes { offsets: vec![0.1; n_outputs], weights: Vec::new() };
                let descent = Descent { values: &values, width: 3, loss, start, residual, row_bound, grid };
                let parameters: Vec<f64> = (0..n_outputs * 4).map(|i| (i as f64 - 5.0) * scale).collect();
                for (index, row) in values.chunks_exact(3).enumerate() {
                    let (mut residuals, mut sum) = (vec![0.0; n_outputs], vec![0.0; n_outputs * 4]);
                    let record = record(index % 2, 0.0);
                    descent.add(row, record, &parameters, &mut residuals, &mut sum);
                    let norm = sum.iter().map(|steps| (steps * grid.step()).powi(2)).sum::<f64>().sqrt();
                    assert!(norm <= residual * row_bound, "{index} {scale}: {norm}");
                    let whole = sum.iter().all(|steps| steps.fract() == 0.0);
                    assert!(whole, "{sum:?}");
                }
            }
        }
    }

    /// Two blocks, of which the second one has signal in a direction that hardly varies beside one
    /// that varies much: with little noise the model finds it, in the table's columns.
    #[test]
    fn a_direction_that_hardly_varies_is_found() {
        let n = 4_000;
        let mut block = SparseBlock::default();
        block.clear();
        for i in 0..n {
            let wave = |by: usize| ((i * by % 997) as f64 / 498.5 - 1.0) as f32;
            let (large, small) = (0.6 * wave(313), 0.02 * wave(571));
            let label = u32::from(small + 0.004 * wave(127) > 0.0);
            block.push_row(label, 1.0, |push| {
                push(0, 0.5 * wave(211));
                push(1, 0.5 + large);
                push(2, 0.5 + large + small);
                push(3, 0.3);
            });
        }
        let rows = (block, 4);
        let blocks = [(vec![0], 0.5), (vec![1, 2], 1.6)];
        let blocks = blocks.map(|(columns, norm)| ColumnBlock { name: "x".into(), columns, norm });
        let sigma = NoiseMultiplier::new(0.05).unwrap();
        let settings = ConditionedSettings {
            means: sigma,
            covariances: sigma,
            lengths: sigma,
            gradients: sigma,
            steps: 60,
            records_per_unit: 1,
        };
        let priors = Priors::of_classes(vec![0.5, 0.5], n as f64);
        let whitened = WhitenedBlocks::fit(&rows, priors, &blocks, &settings, &Seeded).unwrap();
        let linear = whitened.train::<LinearError>(&rows, &settings, &Seeded, None, &mut |_| Ok(())).unwrap();
        let right = (0..n).filter(|&index| {
            let row = rows.0.row(index);
            let weights = &linear.weights[0];
            let logit =
                linear.intercepts[0] + row.features().map(|(column, value)| weights[column] * value).sum::<f64>();
            usize::from(logit > 0.0) == row.label
        });
        let share = right.count() as f64 / n as f64;
        assert!(share > 0.9, "{share}");
    }
}
