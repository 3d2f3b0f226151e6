//! The model does not depend on the number of ranks.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use dp_clipping::registry;
use dp_train::ranks::{Collective, in_process, on_threads};
use dp_train::{
    Activation, CheckpointInterval, Checkpoints, DType, Device, Execution, Observer, Plan, Records, Result, StepView,
    TrainConfig, TrainError, Trainer, Unobserved,
};

use crate::support::{Data, batches, config, mlp, parameters, privacy, streams};

/// What a rank ends with.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    parameters: Vec<f64>,
    ledger: String,
    thresholds: Vec<Vec<f64>>,
    n_records: u64,
}

#[derive(Default)]
struct Thresholds(Vec<Vec<f64>>);

impl Observer for Thresholds {
    fn on_step(&mut self, view: &StepView<'_>) {
        self.0.push(view.thresholds.to_vec());
    }
}

/// The records of a rank, and nobody else's.
fn held(data: &Data, held: Range<usize>) -> Records {
    let width = data.facts.n_inputs;
    let features = &data.features[held.start * width..held.end * width];
    let (labels, groups) = (&data.labels[held.clone()], &data.groups[held.clone()]);
    Records::part(features, labels, groups, held, data.facts, DType::F32, &Device::Cpu).unwrap()
}

/// One rank's part of a run.
fn rank(config: &TrainConfig, data: &Data, ranks: Arc<dyn Collective>, seed: u64) -> Result<Outcome> {
    let plan = Plan::new(config.clone(), data.facts)?;
    let records = held(data, plan.held_by(ranks.rank(), ranks.size()));
    let threads = NonZeroUsize::new(1 + ranks.rank() % 2).unwrap();
    let execution = Execution { micro_batch: Some(40 + 17 * ranks.rank()), threads, ranks, ..Execution::default() };
    let mut trainer = Trainer::new(&plan, &records, streams(seed), execution)?;
    let mut observer = Thresholds::default();
    let counts = trainer.run(&mut observer)?;
    let parameters = parameters(&mut trainer);
    Ok(Outcome { parameters, ledger: trainer.ledger().digest(), thresholds: observer.0, n_records: counts.records })
}

/// Something of every rank, each on a thread.
fn on_ranks<T: Send>(size: usize, each: impl Fn(Arc<dyn Collective>) -> T + Sync) -> Vec<T> {
    on_threads(size, |ranks| Ok(each(ranks))).unwrap()
}

fn data() -> Data {
    let mut data = Data::random(600, 5, 3, 3, 1);
    // One gradient is not finite, wherever it is held.
    data.features_of(411)[2] = f32::NAN;
    data
}

/// Eleven blocks, of which some ranks draw nothing in some steps.
fn training(method: &str) -> TrainConfig {
    let mut privacy = privacy(method);
    privacy.require_guarantee = false;
    let config = config(mlp(&[6], Activation::Tanh), batches(0.03, 70), Some(privacy));
    TrainConfig { block_records: Some(55), ..config }
}

#[test]
fn a_model_is_the_same_on_any_number_of_ranks() {
    let data = data();
    let mut n_methods = 0;
    for method in registry::methods() {
        let config = training(method.name);
        // FairLens and the analyses of one error have records act on each other.
        if !config.privacy.as_ref().is_some_and(|privacy| privacy.clipping.certified()) {
            continue;
        }
        n_methods += 1;
        let alone = on_ranks(1, |ranks| rank(&config, &data, ranks, 1).unwrap()).remove(0);
        for size in [2, 3, 13] {
            for (number, outcome) in on_ranks(size, |ranks| rank(&config, &data, ranks, 1).unwrap()).iter().enumerate()
            {
                assert_eq!(*outcome, alone, "{}: rank {number} of {size}", method.name);
            }
        }
    }
    assert!(n_methods >= 10, "{n_methods}");
}

/// Many parameters: each rank makes the noise of its range.
#[test]
fn a_large_model_is_the_same_on_any_number_of_ranks() {
    let data = data();
    for (method, rate) in [("dpsgd", 0.03), ("dpsgd-f", 0.2)] {
        let large = TrainConfig { model: mlp(&[513, 511], Activation::Tanh), ..training(method) };
        let config = TrainConfig { batches: batches(rate, 4), ..large };
        let alone = on_ranks(1, |ranks| rank(&config, &data, ranks, 1).unwrap()).remove(0);
        assert!(alone.parameters.len() > 1 << 18);
        for size in [2, 3, 13] {
            for (number, outcome) in on_ranks(size, |ranks| rank(&config, &data, ranks, 1).unwrap()).iter().enumerate()
            {
                assert!(*outcome == alone, "{method}: rank {number} of {size}");
            }
        }
    }
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    let data = data();
    let config = training("dpsgd-f");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let steps = |size: usize, from: Option<u64>, until: u64| {
        on_ranks(size, |ranks| {
            let plan = Plan::new(config.clone(), data.facts).unwrap();
            let records = held(&data, plan.held_by(ranks.rank(), ranks.size()));
            let execution = Execution { ranks, ..Execution::default() };
            let mut trainer = Trainer::new(&plan, &records, streams(1), execution).unwrap();
            if from.is_some() {
                trainer.restore_checkpoint(&path).unwrap();
            }
            for _ in from.unwrap_or(0)..until {
                trainer.step(&mut Unobserved).unwrap();
            }
            trainer.save_checkpoint(&path).unwrap();
            (parameters(&mut trainer), trainer.ledger().digest())
        })
        .remove(0)
    };
    let alone = steps(1, None, 20);
    steps(3, None, 7);
    steps(1, Some(7), 12);
    assert_eq!(steps(4, Some(12), 20), alone);
}

#[test]
fn a_run_of_ranks_writes_checkpoints_as_it_goes() {
    let (data, config) = (data(), training("dpsgd"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    on_ranks(2, |ranks| {
        let plan = Plan::new(config.clone(), data.facts).unwrap();
        let records = held(&data, plan.held_by(ranks.rank(), ranks.size()));
        let execution = Execution { ranks, ..Execution::default() };
        let trainer = Trainer::new(&plan, &records, streams(1), execution).unwrap();
        let checkpoints = Checkpoints::new(&path, CheckpointInterval::Seconds(0));
        trainer.with_checkpoints(checkpoints).unwrap().run(&mut Unobserved).unwrap();
    });
    assert!(path.exists());
}

/// The faults of others, planted: each rank with streams of its own, and a rank that skips a step
/// in which it drew nothing.
#[test]
fn ranks_that_drift_apart_are_stopped() {
    let (data, config) = (data(), training("dpsgd"));
    let outcomes = on_ranks(2, |ranks| {
        let seed = 1 + ranks.rank() as u64;
        rank(&config, &data, ranks, seed).unwrap_err().to_string()
    });
    for message in outcomes {
        assert!(message.starts_with("ranks: "), "{message}");
    }
    let outcomes = on_ranks(2, |ranks| {
        let plan = Plan::new(config.clone(), data.facts).unwrap();
        let records = held(&data, plan.held_by(ranks.rank(), ranks.size()));
        let skips = ranks.rank() == 1;
        let execution = Execution { ranks, ..Execution::default() };
        let mut trainer = Trainer::new(&plan, &records, streams(1), execution).unwrap();
        let steps = if skips { 60 } else { 64 };
        let taken = (0..steps).try_for_each(|_| trainer.step(&mut Unobserved));
        // A step that failed would have the noise of another batch if it were taken again.
        taken.err().map(|error| {
            let again = [trainer.step(&mut Unobserved), trainer.save_checkpoint(Path::new("never written"))];
            (error.to_string(), again.map(|outcome| outcome.unwrap_err().to_string()))
        })
    });
    let (failed, again) = outcomes[0].as_ref().unwrap();
    assert_eq!(failed, "ranks: rank 1 has ended");
    for message in again {
        assert_eq!(message, "step 60 failed, and cannot be taken again: restore a checkpoint, or start a new run");
    }
}

#[test]
fn what_ranks_cannot_share_is_refused() {
    let data = data();
    let config = TrainConfig { privacy: None, ..training("dpsgd") };
    for message in on_ranks(2, |ranks| rank(&config, &data, ranks, 1).unwrap_err().to_string()) {
        assert_eq!(message, "ranks = 2: expected 1: without a certified method a sum depends on how it is split");
    }
    let plan = Plan::new(training("dpsgd"), data.facts).unwrap();
    let whole = data.records(DType::F32);
    let execution = Execution { ranks: in_process(2).remove(1), ..Execution::default() };
    let Err(TrainError::Mismatch { what, expected, got }) = Trainer::new(&plan, &whole, streams(1), execution) else {
        panic!("records of other ranks are accepted")
    };
    assert_eq!((&*what, &*expected, &*got), ("records of rank 1 of 2", "275..600", "0..600"));
}
