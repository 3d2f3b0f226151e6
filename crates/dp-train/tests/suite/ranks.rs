//! The model does not depend on the number of ranks.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use dp_accounting::{DpEvent, Mark, NoiseMultiplier};
use dp_clipping::registry;
use dp_train::ranks::{Collective, in_process, on_threads};
use dp_train::{
    Activation, CheckpointInterval, Checkpoints, DType, Device, EarlyStopping, Execution, Generators, LearningRate,
    Observer, OptimiserConfig, Plan, PublicFacts, Purpose, RandomStreams, Randomness, Records, Result, StepState,
    StepView, StoppingCriterion, TrainConfig, TrainError, Trainer, Unobserved,
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

/// A rank's trainer, and what becomes of it; the plan and the streams are the rank's own.
fn with_trainer<T>(
    ranks: Arc<dyn Collective>,
    (plan, data): (&Plan, &Data),
    streams: RandomStreams,
    then: impl FnOnce(Trainer<'_>) -> Result<T>,
) -> Result<T> {
    let records = held(data, plan.held_by(ranks.rank(), ranks.size()));
    then(Trainer::new(plan, &records, streams, Execution { ranks, ..Execution::default() })?)
}

/// What each of two ranks is told whose plans, data or streams differ: before the first step.
fn refusals(make: impl Fn(usize) -> (Plan, Data, RandomStreams) + Sync) -> [String; 2] {
    let errors = on_ranks(2, |ranks| {
        let (plan, data, streams) = make(ranks.rank());
        with_trainer(ranks, (&plan, &data), streams, |_| Ok(())).err().map_or_else(String::new, |e| e.to_string())
    });
    errors.try_into().unwrap()
}

/// Every place of a configuration that holds a number, a text or a choice.
fn leaves(value: &serde_json::Value, path: &str) -> Vec<String> {
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().flat_map(|(name, value)| leaves(value, &format!("{path}/{name}"))).collect()
        }
        serde_json::Value::Array(values) => {
            values.iter().enumerate().flat_map(|(i, value)| leaves(value, &format!("{path}/{i}"))).collect()
        }
        _ => vec![path.to_owned()],
    }
}

/// Other values for a leaf, of which some plan takes one.
fn others(leaf: &serde_json::Value) -> Vec<serde_json::Value> {
    use serde_json::{Value, json};
    match leaf {
        Value::Bool(value) => vec![json!(!value)],
        Value::Number(number) if number.is_f64() => {
            let value = number.as_f64().unwrap();
            vec![json!(value * 0.999), json!(value + 0.001)]
        }
        Value::Number(number) => {
            let value = number.as_u64().unwrap();
            vec![json!(value + 1), json!(value.saturating_sub(1))]
        }
        Value::String(_) => ["relu", "f1", "multiclass-hinge"].map(Into::into).into(),
        _ => Vec::new(),
    }
}

/// Ranks with one field of the configuration changed: noise, rate, steps, method, model, whatever it
/// is, they are refused, and the field is named.
#[test]
fn ranks_that_differ_in_any_field_of_the_plan_take_no_step() {
    let data = data();
    let mut n_changed = BTreeMap::new();
    for (method, optimiser) in [
        ("dpsgd-f", OptimiserConfig::Momentum { momentum: 0.9, nesterov: true }),
        ("dpsgd-global-adapt", OptimiserConfig::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8 }),
        ("soft-adaptive", OptimiserConfig::default()),
    ] {
        let base = TrainConfig {
            early_stopping: Some(EarlyStopping {
                patience: 2,
                min_improvement: 0.1,
                criterion: StoppingCriterion::Loss,
            }),
            learning_rate: LearningRate::Cosine { first: 0.1, last: 0.01 },
            warm_up_steps: 3,
            l2: 0.01,
            optimiser,
            ..training(method)
        };
        let tree = serde_json::to_value(&base).unwrap();
        for path in leaves(&tree, "") {
            let with = |other: &serde_json::Value| {
                if tree.pointer(&path) == Some(other) {
                    return None;
                }
                let mut tree = tree.clone();
                *tree.pointer_mut(&path).unwrap() = other.clone();
                Plan::new(serde_json::from_value(tree).ok()?, data.facts).ok()
            };
            let Some(changed) = others(tree.pointer(&path).unwrap()).iter().find_map(with) else { continue };
            let plans = [Plan::new(base.clone(), data.facts).unwrap(), changed];
            let errors = refusals(|rank| (plans[rank].clone(), data.clone(), streams(1)));
            // Elements of a list are named by the list.
            let list = path.rsplit_once('/').filter(|(_, last)| last.parse::<usize>().is_ok());
            let named = list.map_or(&*path, |(list, _)| list).replace('/', ".");
            for error in errors {
                let expected = format!("rank 1 differs from rank 0: run.config{named}: ");
                assert!(error.starts_with(&expected), "{path}: {error}");
            }
            *n_changed.entry(path).or_insert(0) += 1;
        }
    }
    for path in
        ["/privacy/noise_multiplier", "/privacy/delta", "/batches/sampling_rate", "/batches/steps", "/block_records"]
    {
        assert_eq!(n_changed[path], 3, "{n_changed:?}");
    }
    assert!(n_changed.len() >= 25, "{n_changed:?}");
}

/// Planted: noise of 20 on one rank and next to none on the other. The statement of the first would
/// be that of an honest run.
#[test]
fn ranks_with_unlike_noise_take_no_step() {
    let data = data();
    let plan = |sigma: f64| {
        let mut config = training("dpsgd");
        config.privacy.as_mut().unwrap().noise_multiplier = NoiseMultiplier::new(sigma).unwrap();
        Plan::new(config, data.facts).unwrap()
    };
    let errors = refusals(|rank| (plan([20.0, 1e-3][rank]), data.clone(), streams(1)));
    // The ledger follows from the noise.
    for error in errors {
        assert!(
            error.starts_with(
                "rank 1 differs from rank 0: run.config.privacy.noise_multiplier: 20.0 on rank 0, 0.001 on rank 1; run.ledger: "
            ),
            "{error}"
        );
    }
}

#[test]
fn ranks_that_differ_in_facts_conditions_data_or_streams_take_no_step() {
    type Change = fn(&mut PublicFacts);
    let data = data();
    let config = training("dpsgd");
    let plan = |data: &Data| Plan::new(config.clone(), data.facts).unwrap();
    let other = |change: Change| {
        let mut facts = data.facts;
        change(&mut facts);
        Data { facts, ..Data::random(facts.n_records, facts.n_inputs, facts.n_classes, facts.n_groups, 1) }
    };
    let facts: [(&str, Change); 4] = [
        ("facts.n_records: 600 on rank 0, 601 on rank 1", |facts| facts.n_records += 1),
        ("facts.n_inputs: 5 on rank 0, 6 on rank 1", |facts| facts.n_inputs += 1),
        ("facts.n_classes: 3 on rank 0, 4 on rank 1", |facts| facts.n_classes += 1),
        ("facts.n_groups: 3 on rank 0, 4 on rank 1", |facts| facts.n_groups += 1),
    ];
    for (named, change) in facts {
        let errors = refusals(|rank| {
            let data = if rank == 1 { other(change) } else { data.clone() };
            (plan(&data), data, streams(1))
        });
        assert_eq!(errors, [format!("rank 1 differs from rank 0: run.{named}"), errors[0].clone()]);
    }
    let given = ["the scaling"];
    let errors = refusals(|rank| (plan(&data).with_conditions(given.into_iter().take(rank)), data.clone(), streams(1)));
    assert_eq!(errors[0], r#"rank 1 differs from rank 0: run.given: [] on rank 0, ["the scaling"] on rank 1"#);
    let paid = [DpEvent::gaussian(NoiseMultiplier::new(5.0).unwrap())];
    let errors =
        refusals(|rank| (plan(&data).with_prior_releases(paid.iter().take(rank).cloned()), data.clone(), streams(1)));
    assert!(errors[0].starts_with("rank 1 differs from rank 0: run.ledger: "), "{errors:?}");

    // Keys, runs and whether they are private; what differs is not shown.
    let generators = || {
        let stream = |purpose| Randomness::from_seed(1).stream(purpose, 0, 0).unwrap();
        Generators {
            initialisation: stream(Purpose::Initialisation),
            sampling: stream(Purpose::Sampling),
            noise: stream(Purpose::Noise),
            counts: stream(Purpose::Counts),
            dropout: stream(Purpose::Dropout),
        }
    };
    let seed = |seed: u64, run, variant| Randomness::from_seed(seed).streams(run, variant).unwrap();
    let differing: [&(dyn Fn(usize) -> RandomStreams + Sync); 5] = [
        &|rank| seed(1 + rank as u64, 0, 0),
        &|rank| seed(1, rank as u32, 0),
        &|rank| seed(1, 0, rank as u16),
        &|rank| RandomStreams::from_generators(generators(), rank == 1).unwrap(),
        &|_| Randomness::from_os().unwrap().streams(0, 0).unwrap(),
    ];
    for streams in differing {
        let errors = refusals(|rank| (plan(&data), data.clone(), streams(rank)));
        assert_eq!(errors, ["ranks: random streams: rank 1 differs from rank 0"; 2]);
    }
    let errors = on_ranks(2, |ranks| {
        let plan = plan(&data);
        let dtype = [DType::F32, DType::F64][ranks.rank()];
        let (range, width) = (plan.held_by(ranks.rank(), 2), data.facts.n_inputs);
        let features = &data.features[range.start * width..range.end * width];
        let (labels, groups) = (&data.labels[range.clone()], &data.groups[range.clone()]);
        let records = Records::part(features, labels, groups, range, data.facts, dtype, &Device::Cpu).unwrap();
        Trainer::new(&plan, &records, streams(1), Execution { ranks, ..Execution::default() })
            .err()
            .unwrap()
            .to_string()
    });
    assert_eq!(errors[1], r#"rank 1 differs from rank 0: run.numbers: "F32" on rank 0, "F64" on rank 1"#);
}

/// Streams from the system are one rank's, and the others'.
#[test]
fn ranks_without_a_seed_share_streams() {
    let (data, config) = (data(), training("dpsgd-f"));
    let plan = Plan::new(config, data.facts).unwrap();
    let outcomes = on_ranks(3, |ranks| {
        let streams = Randomness::from_os().unwrap().streams(0, 0).unwrap().shared_by(&*ranks).unwrap();
        with_trainer(ranks, (&plan, &data), streams, |mut trainer| {
            trainer.run(&mut Unobserved)?;
            Ok((parameters(&mut trainer), trainer.ledger().digest(), trainer.mark()))
        })
        .unwrap()
    });
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
    assert_eq!(outcomes[0].2, Some(Mark::Certified));
}

/// An early stop is that of one process, and all ranks agree on it.
#[test]
fn ranks_stop_early_together_and_differ_in_nothing_that_decides_when() {
    let data = data();
    let [validation, other] = [2, 3].map(|seed| Data::random(50, 5, 3, 3, seed).records(DType::F32));
    let mut config = TrainConfig {
        early_stopping: Some(EarlyStopping { patience: 1, min_improvement: 0.0, criterion: StoppingCriterion::Loss }),
        learning_rate: LearningRate::Constant(2.0),
        ..training("dpsgd")
    };
    config.batches.epochs = 35;
    let plan = Plan::new(config, data.facts).unwrap();
    let run = |ranks: Arc<dyn Collective>, validation| {
        with_trainer(ranks, (&plan, &data), streams(1), |trainer| {
            let mut trainer = trainer.with_validation(validation)?;
            let counts = trainer.run(&mut Unobserved)?;
            Ok((trainer.stopped_early(), counts.steps, parameters(&mut trainer), trainer.ledger().digest()))
        })
    };
    let alone = on_ranks(1, |ranks| run(ranks, &validation).unwrap()).remove(0);
    assert!(alone.0 && alone.1 < 70);
    for outcome in on_ranks(2, |ranks| run(ranks, &validation).unwrap()) {
        assert!(outcome == alone);
    }
    for error in on_ranks(2, |ranks| {
        let validation = [&validation, &other][ranks.rank()];
        run(ranks, validation).unwrap_err().to_string()
    }) {
        assert!(error.starts_with("rank 1 differs from rank 0: what to run.validation records: "), "{error}");
    }
}

/// Whatever ranks are asked for, they are asked for the same: none meets the others within a step.
#[test]
fn ranks_that_are_to_do_different_things_do_none_of_them() {
    let data = data();
    let plan = Plan::new(training("dpsgd"), data.facts).unwrap();
    let told = |act: &(dyn Fn(&mut Trainer<'_>, usize) -> Result<()> + Sync)| {
        let errors = on_ranks(2, |ranks| {
            let rank = ranks.rank();
            with_trainer(ranks, (&plan, &data), streams(1), |mut trainer| {
                let error = act(&mut trainer, rank).unwrap_err().to_string();
                assert_eq!(trainer.ledger().entries().len(), 0, "no step was taken");
                Ok(error)
            })
            .unwrap()
        });
        <[String; 2]>::try_from(errors).unwrap()
    };
    let until = told(&|trainer, rank| trainer.run_until(3 + rank as u64, &mut Unobserved).map(drop));
    assert_eq!(until, ["rank 1 differs from rank 0: what to run.until step: 3 on rank 0, 4 on rank 1"; 2]);
    let step_or_run = told(&|trainer, rank| {
        if rank == 0 { trainer.step(&mut Unobserved) } else { trainer.run(&mut Unobserved).map(drop) }
    });
    assert_eq!(
        step_or_run,
        [
            "ranks: a step: rank 1 is at another place of its run",
            "ranks: what to run: rank 0 is at another place of its run"
        ]
    );
    let parameters = told(&|trainer, rank| {
        let parameters = trainer.model().parameters();
        parameters.set(&vec![rank as f64; parameters.len()])?;
        trainer.run(&mut Unobserved).map(drop)
    });
    let differ = "ranks: parameters, thresholds, ledger and random streams after step 0: rank 1 differs from rank 0";
    assert_eq!(parameters, [differ; 2]);
}

/// Ranks that drift apart between two calls are stopped by the next one that returns.
#[test]
fn ranks_that_drift_apart_are_stopped() {
    let data = data();
    let plan = Plan::new(training("dpsgd"), data.facts).unwrap();
    let errors = on_ranks(2, |ranks| {
        let rank = ranks.rank();
        with_trainer(ranks, (&plan, &data), streams(1), |mut trainer| {
            trainer.step(&mut Unobserved)?;
            if rank == 1 {
                let parameters = trainer.model().parameters();
                parameters.set(&vec![0.25; parameters.len()])?;
            }
            trainer.step(&mut Unobserved)
        })
        .unwrap_err()
        .to_string()
    });
    let differ = "ranks: parameters, thresholds, ledger and random streams after step 2: rank 1 differs from rank 0";
    assert_eq!(errors, [differ; 2]);
}

/// Ends a rank at the beginning of its step `0`, when the others have begun theirs.
struct FailsAt(u64);

impl Observer for FailsAt {
    fn wants_state(&self, step: u64) -> bool {
        step == self.0
    }

    fn before_step(&mut self, _: &StepState<'_>) -> Result<()> {
        Err(TrainError::Ranks("planted".to_owned()))
    }
}

#[test]
fn a_step_that_one_rank_leaves_out_is_not_taken_again() {
    let data = data();
    let plan = Plan::new(training("dpsgd"), data.facts).unwrap();
    let outcomes = on_ranks(2, |ranks| {
        let fails = ranks.rank() == 1;
        let mut observer = FailsAt(if fails { 60 } else { u64::MAX });
        with_trainer(ranks, (&plan, &data), streams(1), |mut trainer| {
            let taken = (0..64).try_for_each(|_| trainer.step(&mut observer)).unwrap_err().to_string();
            // The other one is still in its step.
            let again = if fails { Ok(()) } else { trainer.save_checkpoint(Path::new("never written")) };
            Ok([taken, again.err().map_or_else(String::new, |error| error.to_string())])
        })
        .unwrap()
    });
    let broken = "step 60 failed, and cannot be taken again: restore a checkpoint, or start a new run";
    assert_eq!(outcomes, [["ranks: rank 1 has ended", broken], ["ranks: planted", ""]]);
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
