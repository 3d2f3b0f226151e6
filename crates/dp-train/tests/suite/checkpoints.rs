//! Runs that are interrupted and go on.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;

use dp_accounting::{Ledger, Mark};
use dp_train::{
    Activation, CheckpointInterval, Checkpoints, DType, EarlyStopping, Execution, LearningRate, Observer,
    OptimiserConfig, Plan, PrivacyConfig, Randomness, Records, RunCounts, StepView, StoppingCriterion, TrainConfig,
    Trainer, Unobserved,
};
use safetensors::SafeTensors;
use sha2::{Digest, Sha256};

use crate::support::{Data, batches, config, mlp, parameters, privacy, streams};

const STEPS: u64 = 12;

/// Everything a run leaves behind, thresholds of all its steps included.
#[derive(Debug, PartialEq)]
struct End {
    parameters: Vec<f64>,
    counts: RunCounts,
    ledger: Ledger,
    stopped: bool,
    thresholds: Vec<Vec<f64>>,
}

#[derive(Default)]
struct Thresholds(Vec<Vec<f64>>);

impl Observer for Thresholds {
    fn on_step(&mut self, view: &StepView<'_>) {
        self.0.truncate(view.step as usize);
        self.0.push(view.thresholds.to_vec());
    }
}

struct Study {
    plan: Plan,
    train: Records,
    validation: Records,
}

impl Study {
    fn new(change: impl FnOnce(&mut TrainConfig), dtype: DType) -> Self {
        let train = Data::random(80, 6, 2, 2, 1).records(dtype);
        let mut batches = batches(0.2, STEPS);
        batches.epochs = 4;
        let mut config = config(mlp(&[5], Activation::Tanh), batches, Some(privacy("dpsgd-global-adapt")));
        change(&mut config);
        let plan = Plan::new(config, train.facts()).unwrap();
        Self { plan, train, validation: Data::random(40, 6, 2, 2, 2).records(dtype) }
    }

    fn trainer(&self, seed: u64) -> Trainer<'_> {
        let trainer = Trainer::new(&self.plan, &self.train, streams(seed), Execution::default()).unwrap();
        trainer.with_validation(&self.validation).unwrap()
    }

    fn end(mut trainer: Trainer<'_>, mut observer: Thresholds) -> End {
        let counts = trainer.run(&mut observer).unwrap();
        End {
            parameters: parameters(&mut trainer),
            counts,
            ledger: trainer.ledger().clone(),
            stopped: trainer.stopped_early(),
            thresholds: observer.0,
        }
    }
}

fn optimisers() -> [OptimiserConfig; 5] {
    [
        OptimiserConfig::default(),
        OptimiserConfig::Momentum { momentum: 0.9, nesterov: true },
        OptimiserConfig::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8 },
        OptimiserConfig::AdamW { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8, weight_decay: 0.1 },
        OptimiserConfig::AdamBc { beta_1: 0.9, beta_2: 0.999, epsilon: 0.1 },
    ]
}

/// Interrupted before every step, continued in a trainer made with another seed: bit for bit the
/// uninterrupted run.
#[test]
fn a_run_goes_on_as_if_it_had_never_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let methods = [None, Some("dpsgd-global-adapt"), Some("naive"), Some("dpsgd-f"), Some("adaptive")];
    for (method, optimiser) in methods.into_iter().zip(optimisers()) {
        for dtype in [DType::F32, DType::F64] {
            let study = Study::new(
                |c| {
                    c.privacy = method.map(privacy);
                    c.optimiser = optimiser;
                    c.learning_rate = LearningRate::Cosine { first: 0.2, last: 0.0 };
                },
                dtype,
            );
            let whole = Study::end(study.trainer(1), Thresholds::default());
            for interrupted_after in 0..=STEPS {
                let (mut first, mut thresholds) = (study.trainer(1), Thresholds::default());
                for _ in 0..interrupted_after {
                    first.step(&mut thresholds).unwrap();
                }
                first.save_checkpoint(&path).unwrap();
                let mut second = study.trainer(2);
                second.restore_checkpoint(&path).unwrap();
                assert_eq!(Study::end(second, thresholds), whole, "{method:?} {dtype:?} {interrupted_after}");
            }
        }
    }
}

/// A run in three parts, each a program of its own, is the whole run; its checkpoint is that of the
/// part's last step.
#[test]
fn a_run_goes_on_from_where_it_was_to_pause() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let study = Study::new(|_| (), DType::F32);
    let whole = Study::end(study.trainer(1), Thresholds::default());
    let with_checkpoints = |seed| {
        study.trainer(seed).with_checkpoints(Checkpoints::new(&path, CheckpointInterval::Seconds(3_600))).unwrap()
    };
    let mut thresholds = Thresholds::default();
    let first = with_checkpoints(1).run_until(3, &mut thresholds).unwrap();
    assert_eq!((first.steps, thresholds.0.len()), (3, 3));
    let mut second = with_checkpoints(2);
    second.restore_checkpoint(&path).unwrap();
    assert_eq!(second.run_until(3, &mut thresholds).unwrap(), first, "nothing is left to do");
    for steps in [2, STEPS + 1] {
        let refusal = second.run_until(steps, &mut thresholds).unwrap_err().to_string();
        assert!(refusal.contains(&format!("{steps}")) && refusal.contains("3 (taken) to 12 (planned)"), "{refusal}");
    }
    assert_eq!(second.run_until(7, &mut thresholds).unwrap().steps, 7);
    let mut third = study.trainer(3);
    third.restore_checkpoint(&path).unwrap();
    assert_eq!(Study::end(third, thresholds), whole);
}

/// Without a seed the file alone holds the key: the restored run still takes the steps that the
/// first one went on to take.
#[test]
fn a_run_on_the_system_s_entropy_goes_on_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let study = Study::new(|_| (), DType::F32);
    let fresh = || {
        let streams = Randomness::from_os().unwrap().streams(0, 0).unwrap();
        Trainer::new(&study.plan, &study.train, streams, Execution::default()).unwrap()
    };
    let mut first = fresh();
    (0..5).for_each(|_| first.step(&mut Unobserved).unwrap());
    first.save_checkpoint(&path).unwrap();
    let mut second = fresh();
    second.restore_checkpoint(&path).unwrap();
    let end = |mut trainer: Trainer<'_>| {
        trainer.run(&mut Unobserved).unwrap();
        parameters(&mut trainer)
    };
    assert_eq!(end(first), end(second));
}

/// Whether its streams are private is a property of the run, whatever it is continued with.
#[test]
fn a_restored_run_is_as_private_as_the_one_that_wrote_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let study = Study::new(|_| (), DType::F32);
    let trainer = |randomness: Randomness| {
        Trainer::new(&study.plan, &study.train, randomness.streams(0, 0).unwrap(), Execution::default()).unwrap()
    };
    for (written, continued) in [
        (Randomness::from_os().unwrap(), Randomness::from_seed(1)),
        (Randomness::from_seed(1), Randomness::from_os().unwrap()),
    ] {
        let is_private = written.is_private();
        trainer(written).save_checkpoint(&path).unwrap();
        let mut restored = trainer(continued);
        assert_eq!(restored.is_private(), !is_private);
        restored.restore_checkpoint(&path).unwrap();
        assert_eq!(restored.is_private(), is_private);
        let mark = if is_private { Mark::Certified } else { Mark::Conditional };
        assert_eq!(restored.mark(), Some(mark));
    }
}

/// What a guarantee is conditional on is part of the run: without it, conditional would become
/// certified.
#[test]
fn conditions_are_not_lost_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let given = |conditions: &[&str]| {
        let study = Study::new(|_| (), DType::F32);
        Study { plan: study.plan.clone().with_conditions(conditions.iter().copied()), ..study }
    };
    let conditional = given(&["the scaling"]);
    conditional.trainer(1).save_checkpoint(&path).unwrap();
    conditional.trainer(2).restore_checkpoint(&path).unwrap();
    for (conditions, here) in [(&[][..], "[]"), (&["the bins"][..], r#"["the bins"]"#)] {
        let error = given(conditions).trainer(2).restore_checkpoint(&path).unwrap_err().to_string();
        let expected = format!(r#"is of another run: given: {here} here, ["the scaling"] in the checkpoint"#);
        assert!(error.ends_with(&expected), "{error}");
    }
}

/// Early stopping: losses, best parameters and the epochs since are part of the run.
#[test]
fn patience_survives_an_interruption() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let study = Study::new(
        |c| {
            c.learning_rate = LearningRate::Constant(3.0);
            c.early_stopping =
                Some(EarlyStopping { patience: 2, min_improvement: 0.0, criterion: StoppingCriterion::Loss });
        },
        DType::F32,
    );
    let whole = Study::end(study.trainer(1), Thresholds::default());
    assert!(whole.stopped && whole.ledger.entries()[0].count() == STEPS, "{whole:?}");
    // A checkpoint after every step; each run is cut short by an observer that cannot be told of a
    // later step.
    for until in 1..=whole.counts.steps {
        let checkpoints = Checkpoints::new(&path, CheckpointInterval::Steps(1));
        let mut first = study.trainer(1).with_checkpoints(checkpoints).unwrap();
        let cut = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| first.run(&mut CutBefore(until))));
        assert_eq!(cut.is_err(), until < whole.counts.steps);
        let mut second = study.trainer(2);
        second.restore_checkpoint(&path).unwrap();
        let thresholds = Thresholds(whole.thresholds[..until as usize].to_vec());
        assert_eq!(Study::end(second, thresholds), whole, "{until}");
    }
}

/// Interrupts a run in its step `0`, before anything of it is kept.
struct CutBefore(u64);

impl Observer for CutBefore {
    fn wants_group_gradients(&self, step: u64) -> bool {
        assert!(step < self.0, "the run is cut short here");
        false
    }
}

/// Thresholds of all steps, which a checkpoint keeps for it.
#[derive(Default)]
struct Kept(Vec<Vec<f64>>);

impl Observer for Kept {
    fn on_step(&mut self, view: &StepView<'_>) {
        self.0.push(view.thresholds.to_vec());
    }

    fn memory(&self) -> dp_train::Result<serde_json::Value> {
        Ok(serde_json::json!(self.0))
    }

    fn remember(&mut self, memory: serde_json::Value) -> dp_train::Result<()> {
        self.0 = serde_json::from_value(memory).unwrap();
        Ok(())
    }
}

/// A new observer knows of the steps before the checkpoint what the first one did.
#[test]
fn what_an_observer_kept_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let study = Study::new(|_| (), DType::F32);
    let whole = Study::end(study.trainer(1), Thresholds::default());
    let checkpoints = Checkpoints::new(&path, CheckpointInterval::Steps(3));
    let mut first = study.trainer(1).with_checkpoints(checkpoints).unwrap();
    let mut cut = (Kept::default(), Some(CutBefore(8)));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| first.run(&mut cut))).is_err());
    assert_eq!((cut.0.0.len(), steps_of(&path)), (8, Some(6)));
    let mut second = study.trainer(2);
    second.restore_checkpoint(&path).unwrap();
    let mut observer = (Kept::default(), None::<CutBefore>);
    second.run(&mut observer).unwrap();
    assert_eq!(observer.0.0, whole.thresholds);
    // One observer cannot remember for two.
    let mut third = study.trainer(2);
    third.restore_checkpoint(&path).unwrap();
    let error = third.run(&mut ((Kept::default(), Unobserved), Unobserved)).unwrap_err();
    insta::assert_snapshot!(error, @"memory of two observers: expected 2 values, got 6");
}

#[test]
fn checkpoints_are_written_when_due_and_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let study = Study::new(|_| (), DType::F32);
    for (interval, expected) in [
        (CheckpointInterval::Steps(5), vec![None, Some(5), Some(10)]),
        (CheckpointInterval::Seconds(0), (0..STEPS).map(|step| (step > 0).then_some(step)).collect()),
        (CheckpointInterval::Seconds(1_000), vec![None]),
    ] {
        let _ = std::fs::remove_file(&path);
        let checkpoints = Checkpoints::new(&path, interval);
        let mut trainer = study.trainer(1).with_checkpoints(checkpoints).unwrap();
        let mut seen = Seen(&path, Vec::new());
        trainer.run(&mut seen).unwrap();
        seen.1.dedup();
        assert_eq!(seen.1, expected, "{interval:?}");
        assert_eq!(steps_of(&path), Some(STEPS));
    }
    let checkpoints = Checkpoints::new(&path, CheckpointInterval::Steps(5)).not_at_the_end();
    study.trainer(1).with_checkpoints(checkpoints).unwrap().run(&mut Unobserved).unwrap();
    assert_eq!(steps_of(&path), Some(10));
    let never = Checkpoints::new(&path, CheckpointInterval::Steps(0));
    let error = study.trainer(1).with_checkpoints(never).err().unwrap();
    insta::assert_snapshot!(error, @"checkpoint interval in steps = 0: expected at least 1");
}

/// The revision of the code is written down; a run of another one may go on, for what decides the
/// bits is compared apart.
#[test]
fn the_revision_is_recorded_and_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let study = Study::new(|_| (), DType::F32);
    let with = |revision| Checkpoints::new(&path, CheckpointInterval::Steps(5)).noting_revision(revision);
    let mut trainer = study.trainer(1).with_checkpoints(with("abc")).unwrap();
    trainer.run(&mut Unobserved).unwrap();
    assert_eq!(header(&std::fs::read(&path).unwrap())["code_revision"], "abc");
    study.trainer(2).with_checkpoints(with("def")).unwrap().restore_checkpoint(&path).unwrap();
}

/// Which checkpoint is there at each step.
struct Seen<'a>(&'a Path, Vec<Option<u64>>);

impl Observer for Seen<'_> {
    fn on_step(&mut self, _: &StepView<'_>) {
        self.1.push(steps_of(self.0));
    }
}

fn header(bytes: &[u8]) -> serde_json::Value {
    let (_, metadata) = SafeTensors::read_metadata(bytes).unwrap();
    serde_json::from_str(&metadata.metadata().as_ref().unwrap()["dp-train checkpoint"]).unwrap()
}

fn steps_of(path: &Path) -> Option<u64> {
    header(&std::fs::read(path).ok()?)["counts"]["steps"].as_u64()
}

/// The file with another header.
fn with_header(bytes: &[u8], change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let mut header = header(bytes);
    change(&mut header);
    header.as_object_mut().unwrap().remove("digest");
    let open = header.to_string().strip_suffix('}').unwrap().to_owned() + r#","digest":""#;
    let mut tensors = SafeTensors::deserialize(bytes).unwrap().tensors();
    tensors.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let mut digest = Sha256::new();
    let mut part = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    part(open.as_bytes());
    for (name, view) in &tensors {
        part(name.as_bytes());
        part(view.data());
    }
    let header = format!(r#"{open}{}"}}"#, hex::encode(digest.finalize()));
    let metadata = HashMap::from([("dp-train checkpoint".to_owned(), header)]);
    safetensors::serialize(tensors, Some(metadata)).unwrap()
}

#[test]
fn parameters_are_there_under_their_own_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let study = Study::new(|c| c.optimiser = optimisers()[2], DType::F32);
    study.trainer(1).save_checkpoint(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.tensor("fc1.weight").unwrap().shape(), [5, 6]);
    let moments: Vec<&str> = file.names().into_iter().filter(|name| name.starts_with("optimiser/")).collect();
    assert_eq!(moments.len(), 8, "{moments:?}");
}

#[test]
fn a_checkpoint_of_another_run_is_refused_with_the_difference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let study = Study::new(|_| (), DType::F32);
    let mut trainer = study.trainer(1);
    (0..3).for_each(|_| trainer.step(&mut Unobserved).unwrap());
    trainer.save_checkpoint(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let refused = |study: &Study, bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let mut trainer = study.trainer(2);
        let before = parameters(&mut trainer);
        let error = trainer.restore_checkpoint(&path).unwrap_err().to_string();
        // Nothing of it is taken over.
        assert_eq!((parameters(&mut trainer), trainer.ledger().entries().len()), (before, 0));
        error.replace(path.to_str().unwrap(), "RUN")
    };
    let changed = |change: fn(&mut serde_json::Value)| refused(&study, &with_header(&bytes, change));

    let other = Study::new(
        |c| {
            c.l2 = 0.25;
            c.batches.steps = 13;
            c.privacy = Some(PrivacyConfig { require_guarantee: true, ..privacy("dpsgd-global-adapt") });
        },
        DType::F32,
    );
    insta::assert_snapshot!(refused(&other, &bytes), @"checkpoint RUN is of another run: config.batches.steps: 13 here, 12 in the checkpoint; config.l2: 0.25 here, 0.0 in the checkpoint; config.privacy.require_guarantee: true here, false in the checkpoint");
    // Another record; another number type; no validation.
    let mut data = Study::new(|_| (), DType::F32);
    data.train = Data::random(80, 6, 2, 2, 9).records(DType::F32);
    assert!(refused(&data, &bytes).starts_with("checkpoint RUN is of another run: sha256.records: "));
    let mut data = Study::new(|_| (), DType::F32);
    data.validation = Data::random(40, 6, 2, 2, 9).records(DType::F32);
    assert!(refused(&data, &bytes).starts_with("checkpoint RUN is of another run: sha256.validation: "));
    let double = Study::new(|_| (), DType::F64);
    assert!(refused(&double, &bytes).starts_with("checkpoint RUN is of another run: sha256.records: "));

    // Other roundings.
    insta::assert_snapshot!(changed(|h| h["execution"]["numerics"] = 1.into()), @"checkpoint RUN is of another run: execution.numerics: 5 here, 1 in the checkpoint");
    let elsewhere = changed(|h| h["execution"]["instruction_set"] = "x86_64 of another kind".into());
    assert!(
        elsewhere.contains("execution.instruction_set: \"") && elsewhere.contains("of another kind"),
        "{elsewhere}"
    );
    let elsewhere = changed(|h| h["execution"]["device"] = "cuda of another model".into());
    assert!(elsewhere.contains("execution.device: \"cpu\" here, \"cuda of another model\""), "{elsewhere}");

    // A ledger that does not follow from its entries, and one that holds less than was released.
    assert!(
        changed(|h| h["ledger"]["entries"][0]["count"] = 2.into())
            .starts_with("checkpoint RUN: header: ledger entry 0 does not match its digest")
    );
    insta::assert_snapshot!(changed(|h| h["counts"]["steps"] = 4.into()), @"checkpoint RUN is of another run: ledger after 4 steps: [4 × Poisson-sampled (rate 0.2) joint Gaussian (noise multipliers 1, 10)] (zero-out neighbours) here, [3 × Poisson-sampled (rate 0.2) joint Gaussian (noise multipliers 1, 10)] (zero-out neighbours) in the checkpoint");

    insta::assert_snapshot!(changed(|h| h["version"] = 0.into()), @"checkpoint RUN: version 0 of the format: expected 7");
    insta::assert_snapshot!(changed(|h| drop(h.as_object_mut().unwrap().remove("version"))), @"checkpoint RUN: no version of the format: expected 7");
    insta::assert_snapshot!(changed(|h| drop(h["streams"].as_object_mut().unwrap().remove("noise"))), @"checkpoint RUN: no random stream `noise`");
    insta::assert_snapshot!(changed(|h| h["method"] = serde_json::Value::Null), @"checkpoint RUN: the clipping method's state does not fit the configuration");
    insta::assert_snapshot!(changed(|h| h["method"]["threshold"] = (-1.0).into()), @"threshold = -1: expected a number in [2^-60, 2^60]");

    // Cut short, one bit turned, another file altogether, no file.
    insta::assert_snapshot!(refused(&study, &bytes[..bytes.len() / 2]), @"checkpoint RUN: not a safetensors file: invalid header length");
    let mut turned = bytes.clone();
    *turned.last_mut().unwrap() ^= 1;
    assert!(refused(&study, &turned).starts_with("checkpoint RUN: damaged: the digest is "));
    // Of what comes before the tensors every bit counts: a digit of a key, a counter, a name.
    let n_header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for place in 0..n_header {
        let mut turned = bytes.clone();
        turned[place] ^= 1 << (place % 8);
        std::fs::write(&path, &turned).unwrap();
        assert!(study.trainer(2).restore_checkpoint(&path).is_err(), "byte {place}");
    }
    insta::assert_snapshot!(refused(&study, b"weights"), @"checkpoint RUN: not a safetensors file: header too small");
    let plain = safetensors::serialize(SafeTensors::deserialize(&bytes).unwrap().tensors(), None).unwrap();
    insta::assert_snapshot!(refused(&study, &plain), @"checkpoint RUN: a safetensors file, but not a checkpoint");
    std::fs::remove_file(&path).unwrap();
    let error = study.trainer(1).restore_checkpoint(&path).unwrap_err().to_string();
    insta::assert_snapshot!(error.replace(path.to_str().unwrap(), "RUN"), @"cannot read `RUN`");
    let error = study.trainer(1).save_checkpoint(Path::new("/nowhere/run")).unwrap_err();
    insta::assert_snapshot!(error, @"cannot write `/nowhere/run`");
    insta::assert_snapshot!(error.source().unwrap(), @"No such file or directory (os error 2)");
}
