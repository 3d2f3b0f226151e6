//! A training that is replayed, and its table.

use std::ops::Range;

use dp_accounting::NoiseMultiplier;
use dp_linear::conditioning::{ColumnBlock, MOST_WHITENED};
use dp_linear::{
    ConditionedSettings, FeatureFacts, Linear, LinearError, Objective, Priors, RecallBiases, RecallBiasesConfig,
    RowSource, Settings, SparseBlock, SparseRow, WhitenedBlocks, class_priors, number_priors, prepare, train,
};
use dp_train::{Result, TrainError};
use rand::Rng as _;
use rand_chacha::rand_core::CryptoRng;

use super::LinearRelease;
use super::tape::Tape;

/// Features that are not always 0, in two blocks of three, and the constant one.
const WIDTH: usize = 7;
const CONSTANT: f32 = 0.4;
/// Bound on the norm of the squares of a row's features.
const SQUARES: f64 = 1.0;
/// Gradients of a training, and rounds of biases.
const STEPS: u64 = 3;
const ROUNDS: u64 = 2;
/// Bounds on the norms of the blocks.
const NORMS: [f64; 2] = [1.0, 0.6];

/// A training on a small table.
#[derive(Debug)]
pub(super) struct Case {
    /// Classes; 0 for a number.
    n_classes: usize,
    shape: Shape,
    is_weighted: bool,
    objective: Objective,
    noise: f64,
    /// Records of the unit, which come last.
    n_of_unit: usize,
    records: Vec<Record>,
    /// Weights and intercepts of the released model that the training corrects, if any.
    start: Option<(Vec<Vec<f64>>, Vec<f64>)>,
}

/// How the features enter the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Scaled,
    Whitened,
    /// The second block has so many columns, nearly all of which are 0, that its diagonal is released.
    Long,
}

impl Shape {
    fn width(self) -> usize {
        if self == Self::Long { WIDTH + MOST_WHITENED } else { WIDTH }
    }
}

#[derive(Debug, Clone)]
struct Record {
    features: [f32; WIDTH],
    label: u32,
    target: f32,
    weight: f32,
}

impl Record {
    fn draw(n_classes: usize, is_weighted: bool, rng: &mut dyn CryptoRng) -> Self {
        let mut features: [f32; WIDTH] = std::array::from_fn(|_| rng.random_range(-1.0..1.0_f32));
        // Some rows have one feature alone, and some are longer than all bounds or no numbers.
        match rng.random_range(0..6) {
            0 => features = std::array::from_fn(|j| if j == 1 { 1.0 } else { 0.0 }),
            1 => features.iter_mut().for_each(|value| *value *= 1e3),
            2 => features[rng.random_range(0..WIDTH - 1)] = [f32::NAN, f32::INFINITY, 1e30][rng.random_range(0..3)],
            3 => features.iter_mut().for_each(|value| *value *= 1e-3),
            _ => features.iter_mut().for_each(|value| *value *= 0.5),
        }
        features[WIDTH - 1] = CONSTANT;
        Self {
            features,
            label: rng.random_range(0..n_classes.max(2) as u32),
            target: [-1.0, 1.0, 7.0, rng.random_range(-1.0..1.0)][rng.random_range(0..4)],
            weight: if is_weighted { [1.0, 0.3, 2.0, f32::NAN][rng.random_range(0..4)] } else { 1.0 },
        }
    }
}

struct Rows {
    block: SparseBlock,
    width: usize,
    is_weighted: bool,
}

impl RowSource for Rows {
    fn len(&self) -> usize {
        self.block.len()
    }

    fn width(&self) -> usize {
        self.width
    }

    fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    fn visit(&self, range: Range<usize>, visit: &mut dyn FnMut(usize, SparseRow<'_>)) {
        range.for_each(|index| visit(index, self.block.row(index)));
    }
}

impl Case {
    /// The case of this number: all kinds of training come in turn.
    pub(super) fn draw(index: u64, rng: &mut dyn CryptoRng) -> Self {
        let n_classes = [2, 0, 4][index as usize % 3];
        let shape = match index / 3 % 8 {
            1 | 3 | 5 => Shape::Whitened,
            7 => Shape::Long,
            _ => Shape::Scaled,
        };
        let is_weighted = rng.random_bool(0.4);
        let is_equal = rng.random_bool(0.5) && shape == Shape::Scaled && n_classes > 0;
        let n_of_unit = [1, 1, 3][rng.random_range(0..3)];
        let n_others = rng.random_range(0..12);
        let mut records: Vec<Record> = (0..=n_others).map(|_| Record::draw(n_classes, is_weighted, rng)).collect();
        // Equal records of a unit move sums most.
        let unit = records[n_others].clone();
        records.extend(std::iter::repeat_n(unit, n_of_unit - 1));
        let objective = if is_equal { Objective::EqualClasses } else { Objective::Population };
        let noise = [0.3, 1.0, 5.0][rng.random_range(0..3)];
        let start = rng.random_bool(0.5).then(|| start(n_classes, shape.width(), rng));
        Self { n_classes, shape, is_weighted, objective, noise, n_of_unit, records, start }
    }

    /// The claimed noise multiplier of every release.
    pub(super) fn noise_multiplier(&self) -> f64 {
        self.noise
    }

    /// The kind of the releases of a purpose.
    pub(super) fn kind(&self, purpose: &str) -> Option<LinearRelease> {
        let is_number = self.n_classes == 0;
        Some(match purpose {
            "class counts" => LinearRelease::ClassCounts,
            "label moments" => LinearRelease::LabelMoments,
            "feature squares" => LinearRelease::MeanSquares,
            "mean" => LinearRelease::BlockMean,
            "covariance" if self.shape == Shape::Long => LinearRelease::BlockDiagonal,
            "covariance" => LinearRelease::BlockCovariance,
            "lengths" => LinearRelease::Lengths,
            "gradient" => match (self.shape, is_number) {
                (Shape::Scaled, false) => LinearRelease::Gradient,
                (Shape::Scaled, true) => LinearRelease::NumberGradient,
                (_, false) => LinearRelease::WhitenedGradient,
                (_, true) => LinearRelease::WhitenedNumberGradient,
            },
            "right answers" => LinearRelease::RightAnswers,
            _ => return None,
        })
    }

    /// Columns whose covariances are released together.
    fn blocks(&self) -> Vec<ColumnBlock> {
        let block = |name: &str, columns, norm| ColumnBlock { name: name.to_owned(), columns, norm };
        match self.shape {
            Shape::Long => vec![block("long", (0..self.shape.width()).filter(|&j| j != WIDTH - 1).collect(), NORMS[0])],
            _ => vec![block("first", vec![0, 1, 2], NORMS[0]), block("second", vec![3, 4, 5], NORMS[1])],
        }
    }

    fn rows(&self, is_there: bool) -> Rows {
        let mut block = SparseBlock::default();
        let first_of_unit = self.records.len() - self.n_of_unit;
        for (index, record) in self.records.iter().enumerate() {
            let features = |push: &mut dyn FnMut(usize, f32)| {
                if is_there || index < first_of_unit {
                    record.features.iter().enumerate().for_each(|(column, &value)| push(column, value));
                }
            };
            if self.n_classes == 0 {
                block.push_number(record.target, record.weight, features);
            } else {
                block.push_row(record.label, record.weight, features);
            }
        }
        Rows { block, width: self.shape.width(), is_weighted: self.is_weighted }
    }

    /// Trains with the unit, or with blanked records in its place.
    pub(super) fn run(&self, is_there: bool, plant: Option<LinearRelease>, tape: &Tape) -> Result<()> {
        let rows = self.rows(is_there);
        let done = match self.shape {
            Shape::Scaled => self.train_scaled(&rows, plant, tape),
            Shape::Whitened | Shape::Long => self.train_whitened(&rows, plant, tape),
        };
        done.map_err(|error| TrainError::invalid("a training that is replayed", error, "no error"))
    }

    /// The noise multiplier of a purpose: half of the claimed one for the kind with the fault.
    fn noise(&self, purpose: &str, plant: Option<LinearRelease>) -> dp_linear::Result<NoiseMultiplier> {
        let is_planted = plant.is_some() && self.kind(purpose) == plant;
        Ok(NoiseMultiplier::new(if is_planted { 0.5 * self.noise } else { self.noise })?)
    }

    fn train_scaled(&self, rows: &Rows, plant: Option<LinearRelease>, tape: &Tape) -> dp_linear::Result<()> {
        let facts = FeatureFacts {
            constant: (WIDTH - 1, f64::from(CONSTANT)),
            squares: SQUARES,
            largest_eigenvalue: WIDTH as f64,
        };
        let settings = Settings {
            counts: self.noise(self.first(), plant)?,
            squares: self.noise("feature squares", plant)?,
            gradients: self.noise("gradient", plant)?,
            steps: STEPS,
            records_per_unit: self.n_of_unit as u64,
            objective: self.objective,
        };
        let mut prepared = prepare(rows, self.n_classes, facts, &settings, tape)?;
        if let Some(start) = self.start()? {
            prepared = prepared.starting_from(start)?;
        }
        train::<LinearError>(rows, &prepared, facts, &settings, tape, None, &mut |_| Ok(()))?;
        Ok(())
    }

    fn start(&self) -> dp_linear::Result<Option<Linear>> {
        let Some((weights, intercepts)) = self.start.clone() else { return Ok(None) };
        let priors = vec![1.0 / self.n_classes as f64; self.n_classes];
        Linear::new(weights, intercepts, priors).map(Some)
    }

    /// The purpose of the first release.
    fn first(&self) -> &'static str {
        if self.n_classes == 0 { "label moments" } else { "class counts" }
    }

    fn train_whitened(&self, rows: &Rows, plant: Option<LinearRelease>, tape: &Tape) -> dp_linear::Result<()> {
        let (units, noise) = (self.n_of_unit as u64, self.noise(self.first(), plant)?);
        let priors = match self.n_classes {
            0 => number_priors(rows, noise, units, tape)?,
            n_classes => class_priors(rows, n_classes, noise, units, tape)?,
        };
        let settings = ConditionedSettings {
            means: self.noise("mean", plant)?,
            covariances: self.noise("covariance", plant)?,
            lengths: self.noise("lengths", plant)?,
            gradients: self.noise("gradient", plant)?,
            steps: STEPS,
            records_per_unit: units,
        };
        let Priors { total, .. } = priors;
        let mut whitened = WhitenedBlocks::fit(rows, priors, &self.blocks(), &settings, tape)?;
        if let Some(start) = self.start()? {
            whitened = whitened.starting_from(start, rows.width)?;
        }
        let model = whitened.train::<LinearError>(rows, &settings, tape, None, &mut |_| Ok(()))?;
        if self.n_classes > 0 {
            let noise_multiplier = self.noise("right answers", plant)?;
            let config = RecallBiasesConfig { rounds: ROUNDS, noise_multiplier, step: 1.0, share: 1.0 };
            RecallBiases::of_model(&config, &model, rows, total, units, tape)?;
        }
        Ok(())
    }
}

/// Weights and intercepts of a model that was released before, small or huge.
fn start(n_classes: usize, width: usize, rng: &mut dyn CryptoRng) -> (Vec<Vec<f64>>, Vec<f64>) {
    let n_outputs = if n_classes > 2 { n_classes } else { 1 };
    let size = [0.1, 3.0, 1e4][rng.random_range(0..3)];
    let mut values = |n: usize| (0..n).map(|_| rng.random_range(-size..size)).collect::<Vec<f64>>();
    ((0..n_outputs).map(|_| values(width)).collect(), values(n_outputs))
}
