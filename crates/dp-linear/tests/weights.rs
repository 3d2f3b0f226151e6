//! Weights of records and of classes in the loss.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use dp_accounting::NoiseMultiplier;
use dp_linear::{FeatureFacts, Linear, LinearError, Objective, Prepared, RowSource, Settings, SparseBlock, SparseRow};
use dp_linear::{Streams, prepare, train};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::ops::Range;

const WIDTH: usize = 3;

struct Rows {
    block: SparseBlock,
    is_weighted: bool,
}

impl RowSource for Rows {
    fn len(&self) -> usize {
        self.block.len()
    }

    fn width(&self) -> usize {
        WIDTH
    }

    fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    fn visit(&self, range: Range<usize>, visit: &mut dyn FnMut(usize, SparseRow<'_>)) {
        range.for_each(|index| visit(index, self.block.row(index)));
    }
}

struct Seeded(u64);

impl Streams for Seeded {
    fn stream(&self, purpose: &str, step: u64) -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(self.0 ^ (purpose.len() as u64) << 32 ^ step)
    }
}

const FACTS: FeatureFacts = FeatureFacts { constant: (2, 0.5), squares: 0.5, largest_eigenvalue: 3.0 };

fn settings(sigma: f64, objective: Objective) -> Settings {
    let sigma = NoiseMultiplier::new(sigma).unwrap();
    Settings { counts: sigma, squares: sigma, gradients: sigma, steps: 800, records_per_unit: 1, objective }
}

/// Two inputs of which one tells the class of three records in four.
fn push(block: &mut SparseBlock, i: usize, weight: f32) {
    let (a, b) = ([-0.5, 0.5][i % 2], [-0.5, 0.1, 0.4][i % 3]);
    let label = u32::from((a > 0.0) != ((i / 6) % 4 == 3));
    block.push_row(label, weight, |feature| {
        feature(0, a);
        feature(1, b);
        feature(2, 0.5);
    });
}

fn fitted(rows: &Rows, settings: &Settings, seed: u64) -> (Prepared, Linear) {
    let streams = Seeded(seed);
    let prepared = prepare(rows, 2, FACTS, settings, &streams).unwrap();
    let linear = train::<LinearError>(rows, &prepared, FACTS, settings, &streams, None, &mut |_| Ok(())).unwrap();
    (prepared, linear)
}

/// A record of half the weight is half a record: a table in which every other record is there twice
/// is the one in which the others have half the weight.
#[test]
fn a_weight_is_a_share_of_a_record() {
    let (mut weighted, mut repeated) = (SparseBlock::default(), SparseBlock::default());
    for i in 0..6_000 {
        let is_heavy = i % 11 < 5;
        push(&mut weighted, i, if is_heavy { 1.0 } else { 0.5 });
        (0..=usize::from(is_heavy)).for_each(|_| push(&mut repeated, i, 1.0));
    }
    let settings = settings(1e-6, Objective::Population);
    let (a, of_weights) = fitted(&Rows { block: weighted, is_weighted: true }, &settings, 1);
    let n = repeated.len() as f64;
    let (b, of_copies) = fitted(&Rows { block: repeated, is_weighted: false }, &settings, 2);
    assert!((a.total - n / 2.0).abs() < 1e-3 && b.total == n, "{} {n}", a.total);
    assert!((a.priors[0] - b.priors[0]).abs() < 1e-6);
    for (a, b) in of_weights.weights[0].iter().zip(&of_copies.weights[0]) {
        // The penalty on weights is one over the number of records.
        assert!((a - b).abs() < 2e-3 * b.abs().max(1.0), "{of_weights:?} {of_copies:?}");
    }
}

/// In a loss where classes count equally a model without inputs answers one half, and probabilities
/// are those of the population afterwards.
#[test]
fn classes_may_count_equally() {
    let mut block = SparseBlock::default();
    // One in ten; the input says which with an odds ratio of 9.
    for i in 0..10_000 {
        let label = u32::from(i % 10 == 0);
        let agrees = (i / 10) % 4 != 0;
        let a = if (label == 1) == agrees { 0.5 } else { -0.5 };
        block.push_row(label, 1.0, |feature| {
            feature(0, a);
            feature(2, 0.5);
        });
    }
    let rows = Rows { block, is_weighted: false };
    let [population, equal] = [Objective::Population, Objective::EqualClasses].map(|objective| {
        let (_, linear) = fitted(&rows, &settings(1e-6, objective), 3);
        let logit = |a: f64| linear.intercepts[0] + a * linear.weights[0][0] + 0.5 * linear.weights[0][2];
        [logit(-0.5), logit(0.5)]
    });
    // The model is right, so both losses have one minimum: 1/9 · (1/3 or 3).
    for logits in [population, equal] {
        for (logit, odds) in logits.iter().zip([1.0 / 27.0, 1.0 / 3.0]) {
            assert!((logit - f64::ln(odds)).abs() < 0.02, "{population:?} {equal:?}");
        }
    }
}

/// Whatever a weight is, a record moves a sum by no more than one of weight 1 would.
#[test]
fn weights_have_their_bounds() {
    let mut block = SparseBlock::default();
    for weight in [-3.0, f32::NAN, 7.0, f32::INFINITY, 0.25] {
        push(&mut block, 0, weight);
    }
    let found: Vec<f32> = (0..5).map(|index| block.row(index).weight).collect();
    assert_eq!(found, [0.0, 0.0, 1.0, 1.0, 0.25]);
}

/// With all weights at 1 the sums are those without weights, but for the grid of the counts.
#[test]
fn noise_is_that_of_one_record() {
    let mut block = SparseBlock::default();
    (0..2_000).for_each(|i| push(&mut block, i, 1.0));
    let (with, _) = fitted(&Rows { block: block.clone(), is_weighted: true }, &settings(5.0, Objective::Population), 9);
    let (without, _) = fitted(&Rows { block, is_weighted: false }, &settings(5.0, Objective::Population), 9);
    // One draw of the same stream: rounded to other grids, it is the same noise.
    assert!((with.total - 2_000.0).abs() < 6.0 * 5.0 * 2_f64.sqrt() && without.total == 2_000.0);
    assert!((with.priors[1] - without.priors[1]).abs() < 0.02, "{with:?} {without:?}");
}
