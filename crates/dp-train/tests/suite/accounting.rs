//! What is released, what is recorded, and how much noise really is added.

use dp_accounting::{Delta, DpEvent, Ledger, Mark, MarkedEpsilon, NoiseMultiplier, SamplingRate};
use dp_clipping::{CountNoise, PresetParams, registry};
use dp_train::{
    Activation, BatchPlan, DType, Device, Engine, Execution, LearningRate, Loss, ModelConfig, OptimiserConfig, Plan,
    PublicFacts, Randomness, TrainConfig, Trainer, Unobserved,
};

use crate::support::{Data, Run, batches, config, difference, mlp, norm, parameters, privacy, privacy_with, streams};

fn sigma(value: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(value).unwrap()
}

#[test]
fn the_ledger_holds_what_the_plan_announced() {
    let data = Data::random(100, 4, 2, 2, 1);
    let records = data.records(DType::F32);
    for entry in registry::methods().iter().filter(|entry| entry.default_config().certified()) {
        let config = config(ModelConfig::LogisticRegression, batches(0.2, 12), Some(privacy(entry.name)));
        let plan = Plan::new(config, records.facts()).unwrap();
        let mut trainer = Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
        assert!(trainer.ledger().entries().is_empty());
        trainer.run(&mut Unobserved).unwrap();
        trainer.ledger().verify().unwrap();
        let [held] = trainer.ledger().entries() else { panic!("{}: not one entry", entry.name) };
        assert_eq!((held.event(), held.count()), (plan.step_event(), 12), "{}", entry.name);
        assert_eq!(plan.event(), held.event().clone().repeated(12));
        assert!(plan.certified());
    }
}

#[test]
fn a_run_that_stops_early_has_recorded_what_it_released() {
    let records = Data::random(100, 4, 2, 2, 1).records(DType::F32);
    let plan =
        Plan::new(config(ModelConfig::LogisticRegression, batches(0.2, 12), Some(privacy("dpsgd-f"))), records.facts())
            .unwrap();
    let mut trainer = Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
    for _ in 0..5 {
        trainer.step(&mut Unobserved).unwrap();
    }
    assert_eq!(trainer.ledger().entries()[0].count(), 5);
    // The rest of the run is the rest of its steps.
    assert_eq!(trainer.run(&mut Unobserved).unwrap().steps, 12);
    assert_eq!(trainer.ledger().entries()[0].count(), 12);
}

/// DPSGD-F with counts at 10 σ, σ = 1: one Poisson-sampled Gaussian pair, worth a multiplier of
/// (1 + 0.01)^(-1/2).
#[test]
fn gradient_and_counts_are_one_sampled_event() {
    let facts = Data::random(100, 4, 2, 2, 1).facts;
    let rate = SamplingRate::new(0.2).unwrap();
    let event = |method| {
        let config = config(ModelConfig::LogisticRegression, batches(0.2, 12), Some(privacy(method)));
        Plan::new(config, facts).unwrap().step_event().clone()
    };
    assert_eq!(event("dpsgd"), DpEvent::gaussian(sigma(1.0)).poisson_sampled(rate));
    let pair = DpEvent::joint_gaussian(vec![sigma(1.0), sigma(10.0)]).poisson_sampled(rate);
    for method in ["naive", "dpsgd-f", "dpsgd-global-adapt", "adaptive", "bounded-adaptive", "soft-adaptive"] {
        assert_eq!(event(method), pair, "{method}");
    }
}

#[test]
fn a_statement_knows_what_is_left_out() {
    let facts = Data::random(100, 4, 2, 2, 1).facts;
    let scope = |method| {
        let config = config(ModelConfig::LogisticRegression, batches(0.2, 12), Some(privacy(method)));
        Plan::new(config, facts).unwrap().scope("one person's record", true)
    };
    assert_eq!(scope("magnitude-only"), None);
    let plain = scope("dpsgd").unwrap();
    assert!(plain.covered[0].contains("rounded exactly to a public grid"));
    assert_eq!((plain.covered.len(), plain.not_covered.len()), (1, 1));
    let counting = scope("dpsgd-f").unwrap();
    assert_eq!((counting.covered.len(), counting.not_covered.len()), (2, 1));
    assert!(counting.covered[1].contains("noisy counts, rounded to a grid alike"));
}

/// The papers' scaling: a proof for what follows, given constants that one record moves.
#[test]
fn constants_taken_from_the_records_make_a_guarantee_conditional() {
    let facts = Data::random(100, 4, 2, 2, 1).facts;
    let plan = |method| {
        let config = config(ModelConfig::LogisticRegression, batches(0.2, 12), Some(privacy(method)));
        Plan::new(config, facts).unwrap()
    };
    let scaling = "the scaling, which was fitted on the private records";
    assert_eq!(plan("dpsgd").mark(true), Some(Mark::Certified));
    let given = plan("dpsgd").with_conditions([scaling]);
    assert_eq!(given.mark(true), Some(Mark::Conditional));
    assert_eq!(given.scope("one person's record", true).unwrap().conditions, [scaling]);
    assert_eq!(given.with_conditions(["the vocabulary"]).conditions(), [scaling, "the vocabulary"]);
    assert_eq!(plan("fairlens").with_conditions([scaling]).mark(true), Some(Mark::Nominal));
    let config = config(ModelConfig::LogisticRegression, batches(0.2, 12), None);
    assert_eq!(Plan::new(config, facts).unwrap().mark(true), None);
}

/// A seed takes the noise off again: its run is never certified, and its statement says why.
#[test]
fn a_seeded_run_is_not_private_and_says_so() {
    let data = Data::random(100, 4, 2, 2, 1);
    let records = data.records(DType::F32);
    let config = config(ModelConfig::LogisticRegression, batches(0.2, 12), Some(privacy("dpsgd")));
    let plan = Plan::new(config, data.facts).unwrap().with_conditions(["the bins"]);
    let plain = Plan::new(plan.config().clone(), data.facts).unwrap();
    let statement = |plan: &Plan, randomness: Randomness| {
        let streams = randomness.streams(0, 0).unwrap();
        let mut trainer = Trainer::new(plan, &records, streams, Execution::default()).unwrap();
        trainer.run(&mut Unobserved).unwrap();
        let scope = trainer.scope("one person's record").unwrap();
        let bound = trainer.ledger().epsilon(plan.config().privacy.as_ref().unwrap().delta).unwrap();
        let marked = MarkedEpsilon::new(&bound, &scope);
        assert_eq!(Some(marked.mark()), trainer.mark());
        format!("{marked:#.2}")
    };
    let (certified, conditional) = ("(certified)", "(conditional: given the bins)");
    assert!(statement(&plain, Randomness::from_os().unwrap()).ends_with(certified));
    assert!(statement(&plan, Randomness::from_os().unwrap()).ends_with(conditional));
    for plan in [&plain, &plan] {
        let seeded = statement(plan, Randomness::from_seed(7));
        let expected = "(conditional: given the secrecy of the seed that batches and noise follow from: this run is not private, \
                        because whoever knows the seed can take the noise off";
        assert!(seeded.contains(expected), "{seeded}");
        assert_eq!(seeded.ends_with("; the bins)"), !plan.conditions().is_empty(), "{seeded}");
    }
}

/// Noisy constants: their event is in the ledger of the run, of its checkpoints and of its plan,
/// before the steps.
#[test]
fn constants_that_were_paid_for_are_in_the_ledger() {
    let data = Data::random(100, 4, 2, 2, 1);
    let records = data.records(DType::F32);
    let config = config(ModelConfig::LogisticRegression, batches(0.2, 12), Some(privacy("dpsgd")));
    let bought = DpEvent::gaussian(sigma(20.0));
    // None paid for later takes the place of an earlier one.
    let plan =
        Plan::new(config, records.facts()).unwrap().with_prior_releases([bought.clone()]).with_prior_releases([]);
    let mut trainer = Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
    trainer.run(&mut Unobserved).unwrap();
    let [first, steps] = trainer.ledger().entries() else { panic!("not two entries") };
    assert_eq!((first.event(), first.count(), steps.count()), (&bought, 1, 12));
    assert_eq!(trainer.ledger(), &plan.ledger(12).unwrap());
    let mut whole = Ledger::new(Plan::RELATION);
    whole.record(&plan.event(), 1).unwrap();
    assert_eq!(&whole, trainer.ledger());
    assert_eq!(plan.mark(true), Some(Mark::Certified));
}

#[test]
fn a_run_without_privacy_says_so() {
    let data = Data::random(100, 4, 2, 2, 1);
    let plan = Plan::new(config(ModelConfig::LogisticRegression, batches(0.2, 12), None), data.facts).unwrap();
    assert_eq!(plan.step_event(), &DpEvent::NonPrivate);
    assert!(!plan.certified());
    assert!(plan.count_noise_multipliers().is_empty());
    assert_eq!(plan.scope("one person's record", true), None);
}

#[test]
fn a_run_without_a_guarantee_states_none() {
    let data = Data::random(40, 3, 2, 2, 1);
    let records = data.records(DType::F32);
    let plan = Plan::new(config(ModelConfig::LogisticRegression, batches(0.5, 2), None), data.facts).unwrap();
    let trainer = Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
    let error = trainer.statement("one person's record", Delta::new(1e-5).unwrap()).unwrap_err();
    insta::assert_snapshot!(error, @"privacy = none: expected a certified method: there is no guarantee to state");
}

/// n = 1000, b = 256 for 20 epochs. Xu: q = b/n, T = ⌊20 · 1000/256⌋ = ⌊78.125⌋. Opacus:
/// ⌈1000/256⌉ = 4 batches an epoch.
#[test]
fn batch_plans_are_the_papers() {
    let facts = Data::random(1_000, 1, 2, 1, 1).facts;
    let exact = BatchPlan::exact(facts, 256, 20).unwrap();
    assert_eq!((exact.sampling_rate.get(), exact.steps), (0.256, 78));
    let loader = BatchPlan::loader(facts, 256, 20).unwrap();
    assert_eq!((loader.sampling_rate.get(), loader.steps), (0.25, 80));
    for (batches, expected) in [(exact, 256.0), (loader, 250.0)] {
        let plan = Plan::new(config(ModelConfig::LogisticRegression, batches, None), facts).unwrap();
        assert!((plan.expected_batch_size() - expected).abs() < 1e-9);
    }
    // Esipova's Adult: 20 · 92 steps of 1/92.
    let adult = BatchPlan::loader(PublicFacts { n_records: 2 * 14_695 * 4 / 5, ..facts }, 256, 20).unwrap();
    assert_eq!((adult.sampling_rate.get(), adult.steps), (1.0 / 92.0, 1_840));
}

/// 2⁶² epochs of four batches are 2⁶⁴ steps: one more than 64 bits count.
#[test]
fn more_steps_than_can_be_counted_are_refused() {
    let most = (1_u64 << 62) - 1;
    let of = |n_records| PublicFacts { n_records, n_inputs: 1, n_classes: 2, n_groups: 1 };
    for plan in [BatchPlan::loader, BatchPlan::exact] {
        assert_eq!(plan(of(1_000), 250, most).unwrap().steps, 4 * most);
        for epochs in [most + 1, u64::MAX] {
            let error = plan(of(1_000), 250, epochs).unwrap_err().to_string();
            assert_eq!(error, format!("epochs = {epochs}: expected at most {most}, whose steps 64 bits can count"));
        }
        assert_eq!(plan(of(250), 250, u64::MAX).unwrap().steps, u64::MAX);
    }
    // ⌊e · 10/4⌋ ≤ 2⁶⁴ − 1 up to e = ⌊(4 · 2⁶⁴ − 1)/10⌋.
    let most = 7_378_697_629_483_820_646;
    assert_eq!(BatchPlan::exact(of(10), 4, most).unwrap().steps, u64::MAX);
    assert!(BatchPlan::exact(of(10), 4, most + 1).is_err());
}

/// The noise of one step, on 91,650 parameters, has standard deviation rate · σ · S / B: batches
/// are empty at a rate of 1e-9, so that nothing else moves a parameter. The estimate's relative
/// standard deviation is 1/√(2 · 91,650) = 0.23 %; fourteen of them beyond 5 of those by chance:
/// 8e-6.
#[test]
fn the_noise_is_the_multiplier_times_the_bound_over_the_expected_batch() {
    let data = Data::random(1, 98, 2, 2, 1);
    for (dtype, sigma, method) in [
        (DType::F32, 0.7, "dpsgd"),
        (DType::F64, 0.7, "dpsgd"),
        (DType::F32, 3.0, "dpsgd-normalised"),
        (DType::F32, 1.0, "dpsgd-f"),
        (DType::F32, 1.0, "naive"),
        (DType::F32, 1.0, "dpsgd-global-adapt"),
        (DType::F32, 1.0, "bounded-adaptive"),
    ] {
        let params = PresetParams { clip_norm: 0.25, ..PresetParams::default() };
        let privacy = privacy_with(method, sigma, &params);
        let config = config(mlp(&[256, 256], Activation::Tanh), batches(1e-9, 1), Some(privacy));
        let outcome = Run::new(config, dtype).on(&data);
        assert_eq!(outcome.counts.empty_batches, 1);
        let moved = difference(&outcome.parameters, &outcome.initial);
        let n = moved.len() as f64;
        let std = 0.1 * sigma * outcome.bounds[0] / 1e-9;
        if method == "dpsgd" {
            assert_eq!(outcome.bounds[0], 0.25);
        }
        let (measured, mean) = (norm(&moved) / n.sqrt(), moved.iter().sum::<f64>() / n);
        assert!((measured / std - 1.0).abs() < 5.0 / (2.0 * n).sqrt(), "{method} {dtype:?}: {measured} for {std}");
        assert!(mean.abs() < 5.0 * std / n.sqrt(), "{method}: mean {mean}");
    }
}

/// DPSGD-F's noise follows the largest group bound even where the batch holds no record of that
/// group (Esipova's code takes the largest among those present).
#[test]
fn the_noise_follows_the_bound_of_absent_groups() {
    // Counts with almost no noise; three groups, of which the records are all in group 0, above the
    // base threshold.
    let mut data = Data::random(30, 4, 2, 3, 2);
    data.groups.fill(0);
    data.features.iter_mut().for_each(|x| *x *= 100.0);
    let params = PresetParams { clip_norm: 0.5, count_noise: CountNoise::Multiplier(1e-6), ..PresetParams::default() };
    let config = config(ModelConfig::LogisticRegression, batches(1.0, 1), Some(privacy_with("dpsgd-f", 1e-6, &params)));
    let outcome = Run::new(config, DType::F64).on(&data);
    assert_eq!(outcome.thresholds[0].len(), 3);
    let largest = outcome.thresholds[0].iter().copied().fold(0.0, f64::max);
    assert_eq!(outcome.bounds[0], largest);
}

/// Fifty equal records, each in a batch with probability ½: a step moves the parameters by |batch|
/// · s · g / (½ · 50), not by s · g.
#[test]
fn sums_are_divided_by_the_expected_batch() {
    let mut data = Data::random(50, 3, 2, 1, 3);
    let first = data.features_of(0).to_vec();
    data.features = first.repeat(50);
    data.labels.fill(1);
    let records = data.records(DType::F64);
    let mut realised = Vec::new();
    for seed in 0..5 {
        for private in [false, true] {
            let privacy = private
                .then(|| privacy_with("dpsgd", 1e-6, &PresetParams { clip_norm: 0.1, ..PresetParams::default() }));
            let config = config(ModelConfig::LogisticRegression, batches(0.5, 1), privacy);
            let mut run = Run::new(config, DType::F64);
            run.streams = (Randomness::from_seed(seed), 0, 0);
            let outcome = run.on(&data);
            realised.push(outcome.counts.records);

            let mut engine =
                Engine::new(&ModelConfig::LogisticRegression, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu)
                    .unwrap();
            engine.model().parameters().set(&outcome.initial).unwrap();
            engine.differentiate(&records, &[0], &[]).unwrap();
            let gradient_norm = engine.gradient_norms().unwrap()[0];
            let length = if private { 0.1 } else { gradient_norm };
            let expected = 0.1 * outcome.counts.records as f64 * length / 25.0;
            let moved = norm(&difference(&outcome.parameters, &outcome.initial));
            // The headroom of the clipping bound is 4e-6, the noise 1e-6.
            assert!((moved / expected - 1.0).abs() < 1e-4, "{moved} for {expected}");
        }
    }
    // Where the two denominators agree nothing is shown.
    assert!(realised.iter().filter(|&&n| n != 25).count() >= 6, "{realised:?}");
}

/// Neither regularisation nor the learning rate enters the event: both act on what was released.
#[test]
fn the_event_does_not_depend_on_the_optimiser() {
    let facts = Data::random(100, 4, 2, 2, 1).facts;
    let base = config(ModelConfig::LogisticRegression, batches(0.2, 16), Some(privacy("dpsgd")));
    let other = TrainConfig {
        l2: 0.5,
        learning_rate: LearningRate::InverseSqrtSteps,
        warm_up_steps: 5,
        optimiser: OptimiserConfig::Momentum { momentum: 0.9, nesterov: true },
        ..base.clone()
    };
    assert_eq!(Plan::new(base, facts).unwrap().event(), Plan::new(other, facts).unwrap().event());
}

#[test]
fn a_configuration_survives_serialisation() {
    let config =
        TrainConfig { l2: 0.01, ..config(mlp(&[5], Activation::Relu), batches(0.5, 3), Some(privacy("dpsgd-f"))) };
    let json = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<TrainConfig>(&json).unwrap(), config);
    let error =
        serde_json::from_str::<TrainConfig>(&json.replace(r#""noise_multiplier":1.0"#, r#""noise_multiplier":-1.0"#));
    let message = error.unwrap_err().to_string();
    assert!(message.starts_with("noise_multiplier = -1: expected a finite number of at least 1e-6 at line 1"));
}

#[test]
fn parameters_are_there_before_the_first_step() {
    let records = Data::random(10, 4, 2, 2, 1).records(DType::F32);
    let plan = Plan::new(config(mlp(&[5], Activation::Relu), batches(0.5, 1), None), records.facts()).unwrap();
    let mut trainer = Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
    let start = parameters(&mut trainer);
    // Uniform in ±1/√4 for fc1, ±1/√5 for fc2.
    assert!(start[..25].iter().all(|p| p.abs() <= 0.5) && start[25..].iter().all(|p| p.abs() <= 0.4473));
    assert!(start.iter().any(|&p| p > 0.0) && start.iter().any(|&p| p < 0.0));
}
