//! The decomposition beside the training it observes: `decomposition/<setting>/<part>`, at the
//! sizes and intervals of Esipova 2023.
//!
//! `training` is the steps between two evaluations, on one thread; `evaluation-1` and
//! `evaluation-2` are one evaluation on one thread and on two. Generated records: only sizes matter
//! for the time, and how many records are alike, which is as in training parts of the censuses.

#![expect(clippy::unwrap_used, reason = "a bench has nobody to report an error to")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use dp_accounting::{Delta, NoiseMultiplier};
use dp_clipping::{MethodState, PresetParams, registry};
use dp_train::analysis::{Analyser, AnalysisSettings};
use dp_train::{
    Activation, BatchPlan, DType, Device, Execution, LearningRate, Loss, ModelConfig, Observer, Plan, PrivacyConfig,
    PublicFacts, Purpose, Randomness, Records, Result, StepState, TrainConfig, Trainer, Unobserved,
};
use rand::Rng;

struct Setting {
    name: &'static str,
    model: ModelConfig,
    n_records: usize,
    /// Different ones among them.
    n_distinct: usize,
    n_inputs: usize,
    interval: u64,
}

fn records(setting: &Setting) -> Records {
    let &Setting { n_records, n_distinct, n_inputs, .. } = setting;
    let mut rng = Randomness::from_seed(1).stream(Purpose::Split, 0, 0).unwrap();
    let mut distinct: Vec<(Vec<f32>, u32, usize)> = Vec::new();
    for _ in 0..n_distinct {
        let features = (0..n_inputs).map(|_| rng.random_range(-1.0..1.0)).collect();
        distinct.push((features, rng.random_range(0..2), rng.random_range(0..2)));
    }
    let drawn = || distinct.iter().cycle().take(n_records);
    let features: Vec<f32> = drawn().flat_map(|(features, ..)| features.iter().copied()).collect();
    let labels: Vec<u32> = drawn().map(|(_, label, _)| *label).collect();
    let groups: Vec<usize> = drawn().map(|(.., group)| *group).collect();
    let facts = PublicFacts { n_records, n_inputs, n_classes: 2, n_groups: 2 };
    Records::new(&features, &labels, &groups, facts, DType::F32, &Device::Cpu).unwrap()
}

fn plan(setting: &Setting, records: &Records) -> Plan {
    let clipping =
        registry::find("dpsgd").unwrap().config(&PresetParams { clip_norm: 0.5, ..PresetParams::default() }).unwrap();
    let batches = BatchPlan::loader(records.facts(), 256, 20).unwrap();
    let rate = LearningRate::Constant(0.01);
    let config = TrainConfig {
        privacy: Some(PrivacyConfig::new(clipping, NoiseMultiplier::new(1.0).unwrap(), Delta::new(1e-6).unwrap())),
        ..TrainConfig::new(setting.model.clone(), Loss::SoftmaxCrossEntropy, batches, rate)
    };
    Plan::new(config, records.facts()).unwrap()
}

/// Keeps the state of the first step.
#[derive(Default)]
struct Start {
    parameters: Vec<f64>,
    method: Option<MethodState>,
}

impl Observer for Start {
    fn wants_state(&self, step: u64) -> bool {
        step == 0
    }

    fn before_step(&mut self, state: &StepState<'_>) -> Result<()> {
        self.parameters = state.parameters.to_vec();
        self.method = state.method.cloned();
        Ok(())
    }
}

fn decomposition(criterion: &mut Criterion) {
    let mlp = ModelConfig::Mlp { hidden: vec![256, 256], activation: Activation::Tanh };
    let lr = ModelConfig::LogisticRegression;
    let settings = [
        Setting { name: "adult", model: mlp, n_records: 22_400, n_distinct: 20_479, n_inputs: 98, interval: 50 },
        Setting { name: "dutch", model: lr, n_records: 48_336, n_distinct: 15_991, n_inputs: 59, interval: 100 },
    ];
    for setting in settings {
        let records = records(&setting);
        let plan = plan(&setting, &records);
        let streams = Randomness::from_seed(2).streams(0, 0).unwrap();
        let mut trainer = Trainer::new(&plan, &records, streams, Execution::default()).unwrap();
        let mut start = Start::default();
        trainer.step(&mut start).unwrap();
        let mut group = criterion.benchmark_group(format!("decomposition/{}", setting.name));
        group.sample_size(10);
        group.bench_function("training", |bencher| {
            bencher.iter(|| {
                for _ in 0..setting.interval {
                    trainer.step(&mut Unobserved).unwrap();
                }
            });
        });
        let state =
            StepState { step: 0, learning_rate: 0.01, parameters: &start.parameters, method: start.method.as_ref() };
        for threads in [1, 2] {
            let mut rng = Randomness::from_seed(3).stream(Purpose::Analysis, 0, 0).unwrap();
            let settings = AnalysisSettings { threads, ..AnalysisSettings::default() };
            let mut analyser = Analyser::new(&plan, &records, settings, &mut rng).unwrap();
            group.bench_function(format!("evaluation-{threads}"), |bencher| {
                bencher.iter(|| black_box(analyser.analyse(&state)).unwrap());
            });
        }
        group.finish();
    }
}

criterion_group!(benches, decomposition);
criterion_main!(benches);
