//! Train a model, save it, and answer from four threads.
//!
//! ```sh
//! cargo run --release -p dp-train --example serve
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::num::NonZeroUsize;
use std::thread;

use dp_engine::Threads;
use dp_train::{
    DType, Device, Execution, Model, Plan, PublicFacts, Randomness, Records, TrainConfig, Trainer, Unobserved,
};

const FACTS: PublicFacts = PublicFacts { n_records: 2_000, n_inputs: 2, n_classes: 2, n_groups: 1 };

const CONFIG: &str = r#"
    model = { name = "mlp", hidden = [32], activation = "tanh" }
    loss = "softmax-cross-entropy"
    learning_rate = { constant = 1.0 }
    batches = { expected_size = 100, epochs = 5 }
    privacy = { method = "dpsgd", target_epsilon = 3.0, delta = 1e-5 }
"#;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // Points on a circle; the upper half is class 1.
    let features: Vec<f32> = (0..FACTS.n_records).flat_map(|i| [(i as f32).cos(), (i as f32).sin()]).collect();
    let labels: Vec<u32> = features.chunks(2).map(|x| u32::from(x[1] > 0.0)).collect();
    let records = Records::new(&features, &labels, &vec![0; labels.len()], FACTS, DType::F32, &Device::Cpu)?;

    let plan = Plan::new(TrainConfig::from_toml(CONFIG, FACTS)?, FACTS)?;
    let streams = Randomness::from_os()?.streams(0, 0)?;
    let mut trainer = Trainer::new(&plan, &records, streams, Execution::default())?;
    trainer.run(&mut Unobserved)?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.safetensors");
    trainer.model().save(&path, &plan.config().loss, &BTreeMap::new())?;

    // One model for all threads, by reference; each asks when it likes.
    let model = Model::load(&path, &Device::Cpu)?.model;
    let questions: Vec<&[f32]> = features.chunks(2 * 500).collect();
    let answers: Result<Vec<Vec<u32>>, _> = thread::scope(|threads| {
        let asked: Vec<_> = questions.iter().map(|question| threads.spawn(|| model.predict(question))).collect();
        asked.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    let answers = answers?.concat();

    // One large batch on four threads: the same answers.
    let four = Threads::new(NonZeroUsize::MIN.saturating_add(3))?;
    assert_eq!(model.predict_on(&four, &features)?, answers);
    let n_right = answers.iter().zip(&labels).filter(|(answer, label)| answer == label).count();
    println!("{n_right} of {} are right.", labels.len());
    assert!(n_right > 1_900);
    Ok(())
}
