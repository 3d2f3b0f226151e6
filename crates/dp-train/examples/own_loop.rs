//! A training loop of one's own, with its ledger: batches, per-sample norms, clipped sums, noise.
//!
//! Two things are left to [`dp_train::Trainer`], which you should prefer: it charges for the rounding
//! of sums (here in `f64`, about 1e-13 of the bound), and it keeps records whose gradient is not
//! finite out of the products.
//!
//! ```sh
//! cargo run --release -p dp-train --example own_loop
//! ```

use std::error::Error;

use dp_engine::noise::StepNoise;
use dp_train::dp_accounting::{
    Delta, DpEvent, Ledger, NeighbouringRelation, NoiseMultiplier, SamplingRate, Scope, Statement,
};
use dp_train::{DType, Device, Engine, Loss, ModelConfig, PoissonSampler, PublicFacts, Purpose, Randomness, Records};

const FACTS: PublicFacts = PublicFacts { n_records: 2_000, n_inputs: 2, n_classes: 2, n_groups: 1 };
const CLIP_NORM: f64 = 0.5;
const LEARNING_RATE: f64 = 2.0;
const STEPS: u64 = 60;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // Points on a circle; the upper half is class 1.
    let features: Vec<f32> = (0..FACTS.n_records).flat_map(|i| [(i as f32).cos(), (i as f32).sin()]).collect();
    let labels: Vec<u32> = features.chunks(2).map(|x| u32::from(x[1] > 0.0)).collect();
    let records = Records::new(&features, &labels, &vec![0; labels.len()], FACTS, DType::F64, &Device::Cpu)?;

    let (rate, sigma) = (SamplingRate::new(0.05)?, NoiseMultiplier::new(1.0)?);
    let step = DpEvent::gaussian(sigma).poisson_sampled(rate);
    let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);

    // Each stream is handed out once.
    let randomness = Randomness::from_os()?;
    let mut sampling = randomness.stream(Purpose::Sampling, 0, 0)?;
    let mut noise = randomness.stream(Purpose::Noise, 0, 0)?;
    let sampler = PoissonSampler::new(FACTS.n_records, rate)?;
    let mut engine = Engine::new(&ModelConfig::LogisticRegression, Loss::BceWithLogits, &records, &Device::Cpu)?;
    let gradient = engine.zero_gradient()?;
    let mut batch = Vec::new();
    for _ in 0..STEPS {
        sampler.next_batch(&mut sampling, &mut batch);
        let norms = engine.differentiate_for_norms(&records, &batch)?;
        let scales: Vec<f64> = norms.iter().map(|norm| (CLIP_NORM / norm).min(1.0)).collect();
        engine.weighted_sum(&scales, &gradient, false)?;
        let mut sum = gradient.to_vec()?;
        // Recorded before anything of the step is used.
        ledger.record(&step, 1)?;
        StepNoise::draw(&mut noise, sigma.get() * CLIP_NORM).add_f64(0, &mut sum);
        // Divided by the expected batch size: the size of the batch is private.
        let rate = LEARNING_RATE / (rate.get() * FACTS.n_records as f64);
        let parameters = engine.model().parameters();
        let moved: Vec<f64> = parameters.to_vec()?.iter().zip(sum).map(|(value, sum)| value - rate * sum).collect();
        parameters.set(&moved)?;
    }

    let scope = Scope::of("one person's record", ["the parameters after every step"]);
    let statement = Statement::new(&ledger, Delta::new(1e-5)?, scope)?;
    println!("{statement}");
    assert!(statement.epsilon.epsilon().get() < 5.0);
    let n_right = engine.model().predict(&features)?.iter().zip(&labels).filter(|(a, b)| a == b).count();
    assert!(n_right > 1_800, "{n_right}");
    Ok(())
}
