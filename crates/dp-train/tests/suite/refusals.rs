//! Everything that is refused, and the words it is refused with.

use dp_accounting::{Delta, SamplingRate};
use dp_clipping::{CountNoise, PresetParams};
use dp_train::{
    Activation, BatchPlan, DType, Device, Engine, Execution, LearningRate, Loss, ModelConfig, OptimiserConfig, Plan,
    PoissonSampler, PrivacyConfig, PublicFacts, Records, TrainConfig, TrainError, Trainer, Unobserved,
};
use insta::assert_snapshot;

use crate::support::{Data, batches, config, mlp, privacy, privacy_with, streams};

const FACTS: PublicFacts = PublicFacts { n_records: 100, n_inputs: 3, n_classes: 2, n_groups: 2 };

fn base() -> TrainConfig {
    config(ModelConfig::LogisticRegression, batches(0.1, 10), Some(privacy("dpsgd")))
}

fn refused(change: impl FnOnce(&mut TrainConfig)) -> TrainError {
    let mut config = base();
    change(&mut config);
    Plan::new(config, FACTS).unwrap_err()
}

#[test]
fn batch_plans() {
    let error = |plan: Result<BatchPlan, TrainError>| plan.unwrap_err();
    let of = |n_records| PublicFacts { n_records, ..FACTS };
    assert_snapshot!(error(BatchPlan::exact(of(10), 0, 1)), @"batch_size = 0: expected 1 to 10, the number of records");
    assert_snapshot!(error(BatchPlan::exact(of(10), 11, 1)), @"batch_size = 11: expected 1 to 10, the number of records");
    assert_snapshot!(error(BatchPlan::exact(of(10), 5, 0)), @"epochs = 0: expected at least 1");
    assert_snapshot!(error(BatchPlan::loader(of(0), 1, 1)), @"n_records = 0: expected at least 1");
    assert_snapshot!(error(BatchPlan::loader(of(10), 0, 1)), @"batch_size = 0: expected 1 to 10, the number of records");
    assert_snapshot!(error(BatchPlan::loader(of(10), 5, 0)), @"epochs = 0: expected at least 1");
    let million = BatchPlan::exact(of(1_000_000), 100, 1).unwrap();
    assert_snapshot!(refused(|config| config.batches = million), @"records that the batches were planned for: expected 100, got 1000000");
}

#[test]
fn plans() {
    assert!(Plan::new(base(), FACTS).is_ok());
    assert_snapshot!(Plan::new(base(), PublicFacts { n_records: 0, ..FACTS }).unwrap_err(), @"n_records = 0: expected at least 1");
    assert_snapshot!(refused(|c| c.batches.steps = 0), @"batches.steps = 0: expected at least 1");
    assert_snapshot!(refused(|c| c.batches.epochs = 0), @"batches.epochs = 0: expected 1 to 10, the number of steps");
    assert_snapshot!(refused(|c| c.batches.epochs = 11), @"batches.epochs = 11: expected 1 to 10, the number of steps");
    assert_snapshot!(refused(|c| c.learning_rate = LearningRate::Constant(0.0)), @"learning_rate = 0: expected a finite number above 0");
    assert_snapshot!(refused(|c| c.learning_rate = LearningRate::Constant(f64::NAN)), @"learning_rate = NaN: expected a finite number above 0");
    assert_snapshot!(refused(|c| c.learning_rate = LearningRate::Step { first: 0.1, factor: 1.5, every: 1 }), @"learning_rate.factor = 1.5: expected above 0, at most 1");
    assert_snapshot!(refused(|c| c.learning_rate = LearningRate::Step { first: 0.1, factor: 0.5, every: 0 }), @"learning_rate.every = 0: expected at least 1");
    assert_snapshot!(refused(|c| c.learning_rate = LearningRate::Cosine { first: 0.1, last: -0.1 }), @"learning_rate.last = -0.1: expected a finite number of at least 0");
    assert_snapshot!(refused(|c| c.learning_rate = LearningRate::InverseSqrt { first: f64::INFINITY, hold: 1 }), @"learning_rate.first = inf: expected a finite number above 0");
    assert_snapshot!(refused(|c| c.optimiser = OptimiserConfig::Momentum { momentum: 1.0, nesterov: false }), @"optimiser.momentum = 1: expected at least 0, below 1");
    assert_snapshot!(refused(|c| c.optimiser = OptimiserConfig::Adam { beta_1: -0.1, beta_2: 0.999, epsilon: 1e-8 }), @"optimiser.beta_1 = -0.1: expected at least 0, below 1");
    assert_snapshot!(refused(|c| c.optimiser = OptimiserConfig::Adam { beta_1: 0.9, beta_2: f64::NAN, epsilon: 1e-8 }), @"optimiser.beta_2 = NaN: expected at least 0, below 1");
    assert_snapshot!(refused(|c| c.optimiser = OptimiserConfig::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 0.0 }), @"optimiser.epsilon = 0: expected a finite number above 0");
    assert_snapshot!(refused(|c| c.optimiser = OptimiserConfig::AdamBc { beta_1: 0.9, beta_2: 0.999, epsilon: 0.0 }), @"optimiser.epsilon = 0: expected a finite number above 0");
    assert_snapshot!(refused(|c| c.optimiser = OptimiserConfig::AdamW { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8, weight_decay: -1.0 }), @"optimiser.weight_decay = -1: expected a finite number of at least 0");
    assert_snapshot!(refused(|c| c.l2 = -1.0), @"l2 = -1: expected a finite number of at least 0");
    assert_snapshot!(refused(|c| c.l2 = f64::INFINITY), @"l2 = inf: expected a finite number of at least 0");
}

#[test]
fn privacy_settings() {
    let with = |privacy: PrivacyConfig| refused(|c| c.privacy = Some(privacy));
    let delta = |value: f64| PrivacyConfig { delta: Delta::new(value).unwrap(), ..privacy("dpsgd") };
    // δ = 1/n lets a mechanism publish a record at random.
    assert_snapshot!(with(delta(0.01)), @"privacy.delta = 0.01: expected less than 1/n = 1.000e-2");
    assert_snapshot!(with(delta(0.5)), @"privacy.delta = 0.5: expected less than 1/n = 1.000e-2");
    assert!(Plan::new(TrainConfig { privacy: Some(delta(0.0099)), ..base() }, FACTS).is_ok());

    let no_count_noise = PresetParams { count_noise: CountNoise::Multiplier(0.0), ..PresetParams::default() };
    assert_snapshot!(with(privacy_with("dpsgd-f", 1.0, &no_count_noise)), @"noise_multiplier = 0: expected a finite number of at least 1e-6");
    let no_clip_norm = PresetParams { clip_norm: 0.0, ..PresetParams::default() };
    assert_snapshot!(with(privacy_with("dpsgd", 1.0, &no_clip_norm)), @"threshold = 0: expected a number in [2^-60, 2^60]");
    let multi_class = PublicFacts { n_classes: 3, ..FACTS };
    let fairlens = Plan::new(TrainConfig { privacy: Some(privacy("fairlens")), ..base() }, multi_class);
    assert_snapshot!(fairlens.unwrap_err(), @"privacy.clipping.coupling = Fairlens { gamma_1: 1.0, gamma_2: 1.0, form: Paper }: expected None: FairLens is defined for two classes");
    let mut per_group = privacy("dpsgd-f");
    per_group.clipping.coupling = privacy("fairlens").clipping.coupling;
    assert_snapshot!(with(per_group), @"privacy.clipping.coupling = Fairlens { gamma_1: 1.0, gamma_2: 1.0, form: Paper }: expected None: FairLens needs clipping factors that depend on the record alone");
    let no_groups = Plan::new(base(), PublicFacts { n_groups: 0, ..FACTS });
    assert_snapshot!(no_groups.unwrap_err(), @"n_groups = 0: expected at least 1");
}

#[test]
fn records() {
    let facts = PublicFacts { n_records: 2, n_inputs: 3, n_classes: 2, n_groups: 2 };
    let error = |features: &[f32], labels: &[u32], groups: &[usize]| {
        Records::new(features, labels, groups, facts, DType::F32, &Device::Cpu).unwrap_err()
    };
    assert_snapshot!(error(&[0.0; 5], &[0, 1], &[0, 1]), @"values of all features: expected 6, got 5");
    assert_snapshot!(error(&[0.0; 6], &[0], &[0, 1]), @"labels: expected 2, got 1");
    assert_snapshot!(error(&[0.0; 6], &[0, 1], &[0, 1, 1]), @"groups: expected 2, got 3");
    assert_snapshot!(error(&[0.0; 6], &[0, 2], &[0, 1]), @"label of record 1: expected 0..2, got 2");
    assert_snapshot!(error(&[0.0; 6], &[0, 1], &[2, 1]), @"group of record 0: expected 0..2, got 2");
}

#[test]
fn trainers() {
    let refused = |config: TrainConfig, data: &Data, execution: Execution| {
        let plan = Plan::new(config, FACTS).unwrap();
        let records = data.records(DType::F32);
        let error = Trainer::new(&plan, &records, streams(1), execution).err().unwrap();
        error.to_string()
    };
    let fitting = Data::random(100, 3, 2, 2, 1);
    assert_snapshot!(refused(base(), &Data::random(99, 3, 2, 2, 1), Execution::default()), @"records of the plan: expected PublicFacts { n_records: 100, n_inputs: 3, n_classes: 2, n_groups: 2 }, got PublicFacts { n_records: 99, n_inputs: 3, n_classes: 2, n_groups: 2 }");
    assert_snapshot!(refused(base(), &fitting, Execution { micro_batch: Some(0), ..Execution::default() }), @"micro_batch = 0: expected at least 1");
    let no_width = TrainConfig { model: mlp(&[4, 0], Activation::Tanh), ..base() };
    assert_snapshot!(refused(no_width, &fitting, Execution::default()), @"model.hidden = [4, 0]: expected widths of at least 1");
}

#[test]
fn engines() {
    let data = Data::random(4, 3, 2, 2, 1);
    let records = data.records(DType::F32);
    let model = ModelConfig::LogisticRegression;
    let mut engine = Engine::new(&model, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu).unwrap();
    let gradient = engine.zero_gradient().unwrap();
    assert_snapshot!(engine.losses().unwrap_err(), @"batches differentiated: expected 1, got 0");
    assert_snapshot!(engine.gradient_norms().unwrap_err(), @"batches differentiated: expected 1, got 0");
    assert_snapshot!(engine.weighted_sum(&[1.0], &gradient, false).unwrap_err(), @"batches differentiated: expected 1, got 0");
    assert_snapshot!(engine.differentiate(&records, &[0, 4], &[]).unwrap_err(), @"tensor: row 4 of a table with 4 rows");
    engine.differentiate(&records, &[0, 1], &[]).unwrap();
    assert_snapshot!(engine.weighted_sum(&[1.0], &gradient, false).unwrap_err(), @"weights of a batch: expected 2, got 1");
    let wider = Data::random(4, 5, 2, 2, 1).records(DType::F32);
    assert_snapshot!(engine.evaluate(&wider, 4).unwrap_err(), @"inputs of a record: expected 3, got 5");
    let double = data.records(DType::F64);
    assert_snapshot!(engine.evaluate(&double, 4).unwrap_err(), @"number type of the records: expected f32, got f64");
    let more_classes = Data { labels: vec![0, 1, 2, 0], facts: PublicFacts { n_classes: 3, ..data.facts }, ..data };
    assert_snapshot!(engine.evaluate(&more_classes.records(DType::F32), 4).unwrap_err(), @"tensor: label 2 of record 2 of the batch: expected 0..2");
    assert_snapshot!(engine.model().parameters().set(&[0.0]).unwrap_err(), @"values of the parameters: expected 8, got 1");
}

#[test]
fn sampling_rates_and_runs() {
    assert_snapshot!(SamplingRate::new(0.0).map(|rate| PoissonSampler::new(1, rate)).unwrap_err(), @"sampling_rate = 0: expected a number in (0, 1]");
    let records = Data::random(100, 3, 2, 2, 1).records(DType::F32);
    let plan = Plan::new(TrainConfig { privacy: None, ..base() }, FACTS).unwrap();
    let mut trainer = Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
    // A finished run has nothing left to do.
    assert_eq!(trainer.run(&mut Unobserved).unwrap(), trainer.run(&mut Unobserved).unwrap());
}
