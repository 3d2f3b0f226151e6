//! Numbers as targets.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use dp_accounting::NoiseMultiplier;
use dp_linear::conditioning::ColumnBlock;
use dp_linear::{
    ConditionedSettings, FeatureFacts, LinearError, Objective, RowSource as _, Settings, SparseBlock, State, Streams,
    WhitenedBlocks, number_priors, prepare, train,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

struct Seeded(u64);

impl Streams for Seeded {
    fn stream(&self, purpose: &str, step: u64) -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(self.0 ^ (purpose.len() as u64) << 32 ^ step)
    }
}

const FACTS: FeatureFacts = FeatureFacts { constant: (2, 0.5), squares: 0.5, largest_eigenvalue: 3.0 };

/// `y = 0.1 + 0.6 a − 0.4 b` and a little that nobody knows.
fn rows(n: usize) -> (SparseBlock, usize) {
    let mut block = SparseBlock::default();
    for i in 0..n {
        let wave = |by: usize| ((i * by % 997) as f64 / 996.0 - 0.5) as f32;
        let (a, b) = (wave(313), wave(571));
        block.push_number(0.1 + 0.6 * a - 0.4 * b + 0.02 * wave(127), 1.0, |feature| {
            feature(0, a);
            feature(1, b);
            feature(2, 0.5);
        });
    }
    (block, 3)
}

fn settings(sigma: f64) -> Settings {
    let sigma = NoiseMultiplier::new(sigma).unwrap();
    let objective = Objective::Population;
    Settings { counts: sigma, squares: sigma, gradients: sigma, steps: 100, records_per_unit: 1, objective }
}

/// Share of the variance that a model explains.
fn r2(rows: &(SparseBlock, usize), weights: &[f64], intercept: f64) -> f64 {
    let (mut errors, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for index in 0..rows.len() {
        let row = rows.0.row(index);
        let target = f64::from(row.target);
        let answer = intercept + row.features().map(|(column, value)| weights[column] * value).sum::<f64>();
        errors += (answer - target).powi(2);
        sum += target;
        squares += target * target;
    }
    1.0 - errors / (squares - sum * sum / rows.len() as f64)
}

#[test]
fn a_line_is_found_and_noise_costs_what_it_says() {
    let rows = rows(20_000);
    for (sigma, least) in [(1e-6, 0.995), (3.7, 0.98)] {
        let (settings, streams) = (settings(sigma), Seeded(7));
        let prepared = prepare(&rows, 0, FACTS, &settings, &streams).unwrap();
        assert!(prepared.priors.is_empty() && prepared.spread.is_some());
        let linear = train::<LinearError>(&rows, &prepared, FACTS, &settings, &streams, None, &mut |_| Ok(())).unwrap();
        let found = r2(&rows, &linear.weights[0], linear.intercepts[0]);
        assert!(found > least, "{sigma}: {found}");
    }
}

/// A run that is taken up in its middle ends as one that was not interrupted.
#[test]
fn a_run_is_continued_bit_for_bit() {
    let (rows, settings, streams) = (rows(3_000), settings(2.0), Seeded(3));
    let prepared = prepare(&rows, 0, FACTS, &settings, &streams).unwrap();
    let mut middle: Option<State> = None;
    let whole = train::<LinearError>(&rows, &prepared, FACTS, &settings, &streams, None, &mut |state| {
        if state.step == 60 {
            middle = Some(state.clone());
        }
        Ok(())
    });
    assert!(middle.is_some());
    let rest = train::<LinearError>(&rows, &prepared, FACTS, &settings, &streams, middle, &mut |_| Ok(()));
    assert_eq!(whole.unwrap(), rest.unwrap());
}

#[test]
fn whitened_blocks_find_a_line_too() {
    let rows = rows(20_000);
    let block = ColumnBlock { name: "x".into(), columns: vec![0, 1], norm: 0.75 };
    for (sigma, least) in [(0.01, 0.985), (3.7, 0.97)] {
        let sigma = NoiseMultiplier::new(sigma).unwrap();
        let own = ConditionedSettings {
            means: sigma,
            covariances: sigma,
            lengths: sigma,
            gradients: sigma,
            steps: 60,
            records_per_unit: 1,
        };
        let streams = Seeded(11);
        let priors = number_priors(&rows, sigma, 1, &streams).unwrap();
        let whitened = WhitenedBlocks::fit(&rows, priors, std::slice::from_ref(&block), &own, &streams).unwrap();
        let linear = whitened.train::<LinearError>(&rows, &own, &streams, None, &mut |_| Ok(())).unwrap();
        let found = r2(&rows, &linear.weights[0], linear.intercepts[0]);
        assert!(found > least, "{}: {found}", sigma.get());
    }
}
