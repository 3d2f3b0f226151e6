//! One training step, private and not, in the same engine: `step/<model>/<mode>/<batch>x<params>`.
//!
//! Throughput is in records.

#![expect(clippy::unwrap_used, reason = "a bench has nobody to report an error to")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dp_accounting::{Delta, NoiseMultiplier};
use dp_clipping::{PresetParams, registry};
use dp_train::{
    Activation, BatchPlan, DType, Device, Execution, LearningRate, Loss, ModelConfig, Plan, PrivacyConfig, PublicFacts,
    Randomness, Records, TrainConfig, Trainer, Unobserved,
};
use rand::Rng;

const BATCH: usize = 256;

fn records(n_inputs: usize) -> Records {
    let n = 100 * BATCH;
    let mut rng = Randomness::from_seed(1).stream(dp_train::Purpose::Split, 0, 0).unwrap();
    let features: Vec<f32> = (0..n * n_inputs).map(|_| rng.random_range(-1.0..1.0)).collect();
    let labels: Vec<u32> = (0..n).map(|_| rng.random_range(0..2)).collect();
    let groups: Vec<usize> = (0..n).map(|_| rng.random_range(0..2)).collect();
    let facts = PublicFacts { n_records: n, n_inputs, n_classes: 2, n_groups: 2 };
    Records::new(&features, &labels, &groups, facts, DType::F32, &Device::Cpu).unwrap()
}

fn plan(model: ModelConfig, records: &Records, method: Option<&str>) -> Plan {
    let privacy = method.map(|name| {
        let params = PresetParams { clip_norm: 0.5, ..PresetParams::default() };
        let clipping = registry::find(name).unwrap().config(&params).unwrap();
        PrivacyConfig::new(clipping, NoiseMultiplier::new(1.0).unwrap(), Delta::new(1e-6).unwrap())
    });
    let batches = BatchPlan::exact(records.facts(), BATCH, 1_000).unwrap();
    let config = TrainConfig {
        privacy,
        ..TrainConfig::new(model, Loss::SoftmaxCrossEntropy, batches, LearningRate::Constant(0.01))
    };
    Plan::new(config, records.facts()).unwrap()
}

fn step(criterion: &mut Criterion) {
    let mlp = ModelConfig::Mlp { hidden: vec![256, 256], activation: Activation::Tanh };
    for (name, model, n_inputs) in
        [("mlp-2x256", mlp, 98), ("logistic-regression", ModelConfig::LogisticRegression, 58)]
    {
        let records = records(n_inputs);
        let mut group = criterion.benchmark_group(format!("step/{name}"));
        group.throughput(Throughput::Elements(BATCH as u64));
        for (mode, method) in [("plain", None), ("private", Some("dpsgd")), ("private-dpsgd-f", Some("dpsgd-f"))] {
            let plan = plan(model.clone(), &records, method);
            let streams = Randomness::from_seed(2).streams(0, 0).unwrap();
            let mut trainer = Trainer::new(&plan, &records, streams, Execution::default()).unwrap();
            trainer.step(&mut Unobserved).unwrap();
            let n_params = trainer.model().parameters().len();
            group.bench_function(BenchmarkId::new(mode, format!("{BATCH}x{n_params}")), |bencher| {
                bencher.iter(|| black_box(trainer.step(&mut Unobserved)).unwrap());
            });
        }
        group.finish();
    }
}

criterion_group!(benches, step);
criterion_main!(benches);
