//! Stopping on validation.

use dp_train::{
    DType, EarlyStopping, Evaluation, Execution, LearningRate, Loss, ModelConfig, Observer, Plan, StoppingCriterion,
    TrainConfig, Trainer, Unobserved,
};

use crate::support::{Data, batches, config, parameters, privacy, streams};

/// Mean validation loss and parameters after each epoch.
#[derive(Default)]
struct Epochs(Vec<f64>);

impl Observer for Epochs {
    fn on_validation(&mut self, epoch: u64, validation: &Evaluation) {
        assert_eq!(epoch as usize, self.0.len() + 1);
        self.0.push(validation.losses.iter().sum::<f64>() / validation.losses.len() as f64);
    }
}

/// Labels without relation to features: what is learnt soon does not carry over to other records.
fn study(patience: u64) -> (Data, Data, TrainConfig) {
    let (train, validation) = (Data::random(60, 20, 2, 2, 1), Data::random(200, 20, 2, 2, 2));
    let mut batches = batches(0.5, 200);
    batches.epochs = 50;
    let config = TrainConfig {
        learning_rate: LearningRate::Constant(1.0),
        early_stopping: Some(EarlyStopping { patience, min_improvement: 0.0, criterion: StoppingCriterion::Loss }),
        ..config(ModelConfig::LogisticRegression, batches, Some(privacy("dpsgd")))
    };
    (train, validation, config)
}

#[test]
fn a_run_stops_and_goes_back_to_its_best_epoch() {
    let (train, validation, config) = study(3);
    let (train, validation) = (train.records(DType::F64), validation.records(DType::F64));
    let plan = Plan::new(config, train.facts()).unwrap();
    let mut trainer = Trainer::new(&plan, &train, streams(1), Execution::default()).unwrap();
    trainer = trainer.with_validation(&validation).unwrap();
    let mut epochs = Epochs::default();
    let counts = trainer.run(&mut epochs).unwrap();
    assert!(trainer.stopped_early() && counts.steps < 200, "{counts:?}");
    assert_eq!(counts.steps, 4 * epochs.0.len() as u64);
    // The best is the fourth from the end, and what the model says now is what it said then.
    let best = epochs.0.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(epochs.0[epochs.0.len() - 4], best);
    let now = trainer.engine_mut().evaluate(&validation, 64).unwrap().losses;
    assert!((now.iter().sum::<f64>() / 200.0 - best).abs() < 1e-12);
    // When to stop was learnt from the run: the whole plan is charged.
    assert_eq!(trainer.ledger().entries()[0].count(), 200);
    // A stopped run stays stopped.
    let stopped = parameters(&mut trainer);
    assert_eq!(trainer.run(&mut Unobserved).unwrap(), counts);
    assert_eq!((parameters(&mut trainer), trainer.ledger().entries()[0].count()), (stopped, 200));
}

/// A step more would be one of the best epoch's parameters, which no checkpoint could tell from a
/// step of the plan.
#[test]
fn a_stopped_run_takes_no_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let (train, validation, config) = study(3);
    let (train, validation) = (train.records(DType::F64), validation.records(DType::F64));
    let plan = Plan::new(config, train.facts()).unwrap();
    let trainer = || {
        let trainer = Trainer::new(&plan, &train, streams(1), Execution::default()).unwrap();
        trainer.with_validation(&validation).unwrap()
    };
    let mut stopped = trainer();
    let steps = stopped.run(&mut Unobserved).unwrap().steps;
    let before = (parameters(&mut stopped), stopped.ledger().clone());
    for _ in 0..2 {
        let error = stopped.step(&mut Unobserved).unwrap_err().to_string();
        assert_eq!(error, format!("the run stopped early after step {steps}: it takes no further step"));
    }
    stopped.save_checkpoint(&path).unwrap();
    let mut restored = trainer();
    restored.restore_checkpoint(&path).unwrap();
    assert!(restored.stopped_early() && restored.step(&mut Unobserved).is_err());
    assert_eq!((parameters(&mut restored), restored.ledger().clone()), before);
}

#[test]
fn validation_alone_changes_nothing() {
    let (train, validation, config) = study(1);
    let (train, validation) = (train.records(DType::F32), validation.records(DType::F32));
    let plan = Plan::new(TrainConfig { early_stopping: None, ..config }, train.facts()).unwrap();
    let run = |watched: bool| {
        let mut trainer = Trainer::new(&plan, &train, streams(1), Execution::default()).unwrap();
        if watched {
            trainer = trainer.with_validation(&validation).unwrap();
        }
        trainer.run(&mut Unobserved).unwrap();
        parameters(&mut trainer)
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn refusals() {
    let (train, _, config) = study(1);
    let train = train.records(DType::F32);
    let plan = Plan::new(config, train.facts()).unwrap();
    let trainer = || Trainer::new(&plan, &train, streams(1), Execution::default()).unwrap();
    insta::assert_snapshot!(trainer().run(&mut Unobserved).unwrap_err(), @"validation records for early stopping: expected some, got none");
    let narrow = Data::random(10, 3, 2, 2, 1).records(DType::F32);
    insta::assert_snapshot!(trainer().with_validation(&narrow).err().unwrap(), @"validation records: expected 20 inputs and 2 classes, got 3 inputs and 2 classes");
    let none = train.select(&[], DType::F32).unwrap();
    insta::assert_snapshot!(trainer().with_validation(&none).err().unwrap(), @"validation records: expected at least 1, got 0");
    let loss = Plan::new(
        TrainConfig { loss: Loss::BceWithLogits, ..plan.config().clone() },
        Data::random(60, 20, 3, 2, 1).facts,
    );
    insta::assert_snapshot!(loss.unwrap_err(), @"loss = BceWithLogits: expected a loss for 3 classes");
}
