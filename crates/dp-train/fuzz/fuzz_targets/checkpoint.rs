//! Checkpoints: an error leaves the trainer as it was.
#![no_main]

use dp_train::{
    BatchPlan, DType, Device, Execution, LearningRate, Loss, ModelConfig, Plan, PublicFacts, Randomness, Records,
    TrainConfig, Trainer,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run.safetensors");
    std::fs::write(&path, bytes).expect("writable");
    let facts = PublicFacts { n_records: 8, n_inputs: 2, n_classes: 2, n_groups: 1 };
    let records = Records::new(&[0.5; 16], &[0, 1, 0, 1, 0, 1, 0, 1], &[0; 8], facts, DType::F32, &Device::Cpu);
    let records = records.expect("eight records");
    let batches = BatchPlan::exact(facts, 4, 1).expect("batches");
    let config =
        TrainConfig::new(ModelConfig::LogisticRegression, Loss::BceWithLogits, batches, LearningRate::Constant(0.1));
    let plan = Plan::new(config, facts).expect("a plan");
    let streams = Randomness::from_seed(1).streams(0, 0).unwrap();
    let mut trainer = Trainer::new(&plan, &records, streams, Execution::default()).expect("a trainer");
    let before = trainer.model().parameters().to_vec().expect("parameters");
    if trainer.restore_checkpoint(&path).is_err() {
        let after = trainer.model().parameters().to_vec().expect("parameters");
        assert_eq!(before, after);
    }
});
