//! Train, stop, and resume in another process: bit for bit the run that never stopped.
//!
//! ```sh
//! cargo run --release -p dp-train --example resume
//! ```

use std::error::Error;
use std::path::Path;

use dp_train::dp_accounting::Delta;
use dp_train::{
    CheckpointInterval, Checkpoints, DType, Device, Execution, Model, Plan, PublicFacts, Randomness, Records,
    TrainConfig, Trainer, Unobserved,
};

const FACTS: PublicFacts = PublicFacts { n_records: 1_000, n_inputs: 2, n_classes: 2, n_groups: 2 };

const CONFIG: &str = r#"
    model = { name = "mlp", hidden = [16], activation = "tanh" }
    loss = "bce-with-logits"
    learning_rate = { constant = 1.0 }
    batches = { expected_size = 100, epochs = 4 }
    privacy = { method = "dpsgd-global-adapt", noise_multiplier = 1.0, delta = 1e-5 }
"#;

/// Points on a circle; the upper half is class 1.
fn records() -> Result<Records, Box<dyn Error>> {
    let features: Vec<f32> = (0..FACTS.n_records).flat_map(|i| [(i as f32).cos(), (i as f32).sin()]).collect();
    let labels: Vec<u32> = features.chunks(2).map(|x| u32::from(x[1] > 0.0)).collect();
    let groups: Vec<usize> = (0..FACTS.n_records).map(|i| i % 2).collect();
    Ok(Records::new(&features, &labels, &groups, FACTS, DType::F32, &Device::Cpu)?)
}

/// Trains until `steps` steps are taken, from the checkpoint if there is one.
fn train(checkpoint: &Path, steps: u64, seed: u64) -> Result<Model, Box<dyn Error>> {
    let records = records()?;
    let plan = Plan::new(TrainConfig::from_toml(CONFIG, FACTS)?, FACTS)?;
    // A seed, to compare the two runs below. For a release: `Randomness::from_os()`.
    let streams = Randomness::from_seed(seed).streams(0, 0)?;
    let mut trainer = Trainer::new(&plan, &records, streams, Execution::default())?;
    if checkpoint.exists() {
        // Its random streams take the place of this trainer's, so that no noise is drawn twice.
        trainer.restore_checkpoint(checkpoint)?;
    }
    trainer = trainer.with_checkpoints(Checkpoints::new(checkpoint, CheckpointInterval::Steps(10)))?;
    trainer.run_until(steps, &mut Unobserved)?;
    let statement = trainer.statement("one person's record", Delta::new(1e-5)?)?;
    println!("After {steps} steps: epsilon {}.", statement.epsilon);
    Ok(trainer.model().clone())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (stopped, whole) = (folder.path().join("stopped.checkpoint"), folder.path().join("whole.checkpoint"));
    train(&stopped, 25, 1)?;
    // Whatever streams the second process begins with: the checkpoint has the run's.
    let resumed = train(&stopped, 40, 2)?;
    let uninterrupted = train(&whole, 40, 1)?;
    assert_eq!(resumed.parameters().to_vec()?, uninterrupted.parameters().to_vec()?);
    Ok(())
}
