//! A private logistic regression on a table in memory, at ε = 2.

use dp_linear::dp_accounting::{Delta, DpEvent, Epsilon, Ledger, NeighbouringRelation};
use dp_linear::rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use dp_linear::{
    FeatureFacts, GaussianBudget, LinearError, Objective, Settings, SparseBlock, Streams, prepare, sigmoid, train,
};

/// Noise that nobody else can repeat: a key from the operating system, and a stream for each use.
struct Keyed([u8; 32]);

impl Streams for Keyed {
    fn stream(&self, purpose: &str, step: u64) -> ChaCha20Rng {
        // Purpose and step number the stream: no two uses share one.
        let number = ["class counts", "feature squares", "gradient"].iter().position(|name| *name == purpose);
        let mut rng = ChaCha20Rng::from_seed(self.0);
        rng.set_stream(((number.unwrap_or(3) as u64) << 48) | step);
        rng
    }
}

pub(crate) fn main() -> Result<(), LinearError> {
    // A constant and two features in [-1, 1]; the class is the sign of their difference.
    let feature = |i: usize, step: usize| ((i * step) % 201) as f32 / 100.0 - 1.0;
    let records: Vec<([f32; 3], u32)> =
        (0..5_000).map(|i| [1.0, feature(i, 37), feature(i, 91)]).map(|x| (x, u32::from(x[1] > x[2]))).collect();
    let mut block = SparseBlock::default();
    for (x, label) in &records {
        block.push_row(*label, 1.0, |push| {
            for (column, &value) in x.iter().enumerate() {
                push(column, value);
            }
        });
    }
    let rows = (block, 3);
    // Public: the range of the features. Two of them add at most √2 to the squares of squares.
    let facts = FeatureFacts { constant: (0, 1.0), squares: 2_f64.sqrt(), largest_eigenvalue: 3.0 };

    let delta = Delta::new(1e-5)?;
    let budget = GaussianBudget::new(Epsilon::new(2.0)?, delta)?;
    let settings = Settings {
        counts: budget.noise_multiplier(0.05, 1)?,
        squares: budget.noise_multiplier(0.05, 1)?,
        gradients: budget.noise_multiplier(0.9, 60)?,
        steps: 60,
        records_per_unit: 1,
        objective: Objective::Population,
    };
    let streams = Keyed(dp_linear::dp_clipping::rand::random());
    let prepared = prepare(&rows, 2, facts, &settings, &streams)?;
    let model = train(&rows, &prepared, facts, &settings, &streams, None, &mut |_| Ok::<(), LinearError>(()))?;

    let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);
    ledger.record(&DpEvent::gaussian(settings.counts), 1)?;
    ledger.record(&DpEvent::gaussian(settings.squares), 1)?;
    ledger.record(&DpEvent::gaussian(settings.gradients), settings.steps)?;
    let spent = ledger.epsilon(delta)?.epsilon.get();

    let is_right = |(x, label): &&([f32; 3], u32)| {
        let logit: f64 =
            x.iter().zip(&model.weights[0]).map(|(x, w)| f64::from(*x) * w).sum::<f64>() + model.intercepts[0];
        (sigmoid(logit) > 0.5) == (*label == 1)
    };
    let n_right = records.iter().filter(is_right).count();
    println!("{n_right} of {} right at an epsilon of at most {spent:.3}", records.len());
    assert!(n_right > 4_500 && spent <= 2.0);
    Ok(())
}
