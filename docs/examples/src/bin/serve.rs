//! A private network, trained once and then shared by four threads that answer at the same time.

use std::thread;

use dp_accounting::{Delta, NoiseMultiplier};
use dp_clipping::{PresetParams, registry};
use dp_train::{
    Activation, BatchPlan, DType, Device, Execution, LearningRate, Loss, ModelConfig, Plan, PrivacyConfig, PublicFacts,
    Randomness, Records, TrainConfig, Trainer, Unobserved,
};

const N: usize = 4_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Points on a circle in two groups; the upper half is class 1.
    let point = |i: usize| [(i as f32).cos(), (i as f32).sin()];
    let features: Vec<f32> = (0..N).flat_map(point).collect();
    let labels: Vec<u32> = (0..N).map(|i| u32::from(point(i)[1] > 0.0)).collect();
    let groups: Vec<usize> = (0..N).map(|i| i % 2).collect();
    let facts = PublicFacts { n_records: N, n_inputs: 2, n_classes: 2, n_groups: 2 };
    let records = Records::new(&features, &labels, &groups, facts, DType::F32, &Device::Cpu)?;

    let delta = Delta::new(1e-5)?;
    let clipping = registry::find("dpsgd-f")?.config(&PresetParams { clip_norm: 0.5, ..PresetParams::default() })?;
    let model = ModelConfig::Mlp { hidden: vec![32], activation: Activation::Tanh };
    let batches = BatchPlan::exact(records.facts(), 200, 5)?; // Poisson batches of 200 on average, for 5 epochs
    let config = TrainConfig {
        privacy: Some(PrivacyConfig::new(clipping, NoiseMultiplier::new(1.0)?, delta)),
        ..TrainConfig::new(model, Loss::SoftmaxCrossEntropy, batches, LearningRate::Constant(1.0))
    };
    let plan = Plan::new(config, records.facts())?;
    let streams = Randomness::from_os()?.streams(0, 0)?;
    let mut trainer = Trainer::new(&plan, &records, streams, Execution::default())?;
    trainer.run(&mut Unobserved)?;
    println!("{}", trainer.statement("one person's record", delta)?);

    let model = trainer.model();
    let alone = model.predict(&features)?;
    let together: Vec<u32> = thread::scope(|scope| {
        let parts = features.chunks(features.len() / 4).map(|part| scope.spawn(move || model.predict(part)));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().map(|part| part.join().expect("a thread does not panic")).collect::<Result<Vec<_>, _>>()
    })?
    .concat();
    assert_eq!(alone, together);
    let n_right = alone.iter().zip(&labels).filter(|(answer, label)| answer == label).count();
    println!("{n_right} of {N} right, from one thread and from four");
    assert!(n_right > N * 9 / 10);
    Ok(())
}
