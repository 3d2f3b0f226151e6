//! Groups that are drawn at rates of their own.

use std::num::NonZeroUsize;

use dp_accounting::{Accountant, Certainty, DpEvent, PldAccountant, SamplingRate};
use dp_clipping::PresetParams;
use dp_train::{
    DType, Execution, GroupSampling, LearningRate, ModelConfig, Observer, Plan, RatesByLoss, StepState, StepView,
    TrainConfig, Trainer, Unobserved,
};

use crate::support::{Data, Run, batches, config, parameters, privacy, privacy_with, streams};

/// `method` on batches with these rates, the largest of which draws the candidates.
fn by_group(method: &str, rates: &[f64], steps: u64, sigma: f64) -> TrainConfig {
    let largest = rates.iter().copied().fold(0.0, f64::max);
    let privacy = privacy_with(method, sigma, &PresetParams { clip_norm: 0.5, ..PresetParams::default() });
    let rates = rates.iter().map(|&rate| SamplingRate::new(rate).unwrap()).collect();
    let config = config(ModelConfig::LogisticRegression, batches(largest, steps), Some(privacy));
    TrainConfig { group_sampling: Some(GroupSampling::new(rates)), ..config }
}

/// `asc-by-loss` within these limits, with weights that move fast.
fn by_loss([least, largest]: [f64; 2], steps: u64, sigma: f64) -> TrainConfig {
    let params = PresetParams { clip_norm: 0.5, rate: Some(2.0), loss_bound: Some(4.0), ..PresetParams::default() };
    let [least, rate] = [least, largest].map(|rate| SamplingRate::new(rate).unwrap());
    let privacy = privacy_with("asc-by-loss", sigma, &params);
    let config = config(ModelConfig::LogisticRegression, batches(largest, steps), Some(privacy));
    TrainConfig { rates_by_loss: Some(RatesByLoss::new(least, rate)), ..config }
}

/// Shares of the bound that records of each group reached, and records of each group whose scale is 0.
#[derive(Default)]
struct Shares {
    reached: [f64; 2],
    left_out: [usize; 2],
    thresholds: Vec<f64>,
}

impl Observer for Shares {
    fn on_step(&mut self, view: &StepView<'_>) {
        for ((&group, norm), &scale) in view.groups.iter().zip(view.norms).zip(view.scales) {
            self.reached[group] = self.reached[group].max(scale * norm / 0.5);
            self.left_out[group] += usize::from(scale == 0.0);
        }
        self.thresholds = view.thresholds.to_vec();
    }
}

/// Rates ½ and 1 of 2,000 records: about half of the first group is left out, none of the second,
/// which reaches its share of the threshold and no more. None is counted as not finite.
#[test]
fn groups_are_thinned_and_clipped_by_their_shares() {
    let data = Data::random(2_000, 4, 2, 2, 1);
    let records = data.records(DType::F32);
    let plan = Plan::new(by_group("asc", &[0.5, 1.0], 1, 4.0), records.facts()).unwrap();
    let shares = plan.config().group_sampling.clone().unwrap().all_shares();
    assert!(shares[0] == 1.0 && (0.5..0.9).contains(&shares[1]), "{shares:?}");
    let mut trainer = Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
    let mut seen = Shares::default();
    let counts = trainer.run(&mut seen).unwrap();
    assert_eq!((counts.records, counts.non_finite), (2_000, 0));
    assert_eq!(seen.left_out[1], 0);
    // Half of some 1,000, five standard deviations of 16.
    assert!((420..580).contains(&seen.left_out[0]), "{:?}", seen.left_out);
    for (reached, share) in seen.reached.iter().zip(&shares) {
        assert!((0.999 * share..=*share).contains(reached), "{:?} {shares:?}", seen.reached);
    }
    assert_eq!(seen.thresholds, [0.5, 0.5 * shares[1]]);
    // The divisor is public: the number of candidates that is expected.
    assert_eq!(plan.expected_batch_size(), 2_000.0);
}

#[test]
fn the_ledger_has_an_alternative_for_each_group_that_holds_in_every_step() {
    let data = Data::random(200, 4, 2, 2, 1);
    let records = data.records(DType::F32);
    let plan = Plan::new(by_group("asc", &[0.1, 0.3], 20, 2.0), records.facts()).unwrap();
    let mut trainer = Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
    for step in 1..=20 {
        trainer.step(&mut Unobserved).unwrap();
        assert_eq!(trainer.ledger(), &plan.ledger(step).unwrap());
    }
    let [held] = trainer.ledger().entries() else { panic!("not one entry") };
    assert_eq!((held.event(), held.count()), (&plan.event(), 1));
    let event = plan.event();
    let DpEvent::OneOf(of_groups) = &event else { panic!("no alternatives") };
    let delta = plan.config().privacy.as_ref().unwrap().delta;
    let by_group: Vec<f64> = of_groups
        .iter()
        .map(|event| {
            let mut accountant = PldAccountant::new(Plan::RELATION);
            accountant.compose(event, 1).unwrap();
            accountant.epsilon(delta).unwrap().epsilon.get()
        })
        .collect();
    let bound = trainer.ledger().epsilon(delta).unwrap();
    assert_eq!((bound.epsilon.get(), bound.certainty), (by_group[0], Certainty::Bound));
    assert!(by_group[1] <= by_group[0] && by_group[1] > 0.99 * by_group[0], "{by_group:?}");
    assert_eq!(plan.events_by_group().unwrap().len(), 2);
    let statement = trainer.statement("one person's record", delta).unwrap();
    assert!(statement.to_string().contains("a record meets the alternative of its group"), "{statement}");
}

#[test]
fn a_run_is_the_same_in_any_pieces_and_from_its_checkpoint() {
    let data = Data::random(300, 4, 2, 2, 1);
    let records = data.records(DType::F32);
    for method in ["asc", "dpsgd-f", "group-dro", "asc-by-loss"] {
        let config =
            if method == "asc-by-loss" { by_loss([0.1, 0.4], 6, 3.0) } else { by_group(method, &[0.4, 0.2], 6, 3.0) };
        let whole = Run::new(config.clone(), DType::F32);
        let pieces = Run { micro_batch: 7, threads: NonZeroUsize::new(2).unwrap(), ..whole.clone() };
        assert_eq!(whole.on(&data), pieces.on(&data), "{method}");

        let plan = Plan::new(config, records.facts()).unwrap();
        let trainer = || Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (mut paused, mut resumed) = (trainer(), trainer());
        paused.run_until(3, &mut Unobserved).unwrap();
        paused.save_checkpoint(&folder.path().join("at-3")).unwrap();
        paused.run(&mut Unobserved).unwrap();
        resumed.restore_checkpoint(&folder.path().join("at-3")).unwrap();
        resumed.run(&mut Unobserved).unwrap();
        assert_eq!(parameters(&mut paused), parameters(&mut resumed), "{method}");
        assert_eq!(paused.ledger(), resumed.ledger());
    }
}

/// The labels of group 1 are noise: its loss stays, its rate rises to the limit and its threshold falls
/// with it. Rates of a step follow from the weights that the step before left.
#[test]
fn rates_follow_losses_and_thresholds_follow_rates() {
    struct Levels(Vec<(Vec<f64>, [f64; 2])>);
    impl Observer for Levels {
        fn wants_state(&self, _: u64) -> bool {
            true
        }
        fn before_step(&mut self, state: &StepState<'_>) -> dp_train::Result<()> {
            self.0.push((state.method.unwrap().weights.clone().unwrap(), [0.0; 2]));
            Ok(())
        }
        fn on_step(&mut self, view: &StepView<'_>) {
            self.0.last_mut().unwrap().1 = [view.thresholds[0], view.thresholds[1]];
        }
    }
    let mut data = Data::random(4_000, 4, 2, 2, 1);
    for (row, (label, group)) in data.labels.iter_mut().zip(&data.groups).enumerate() {
        let is_positive = if *group == 0 { data.features[row * 4] > 0.0 } else { row % 4 < 2 };
        *label = u32::from(is_positive);
    }
    let records = data.records(DType::F32);
    // Fast enough to learn the other group within the first steps.
    let config = TrainConfig { learning_rate: LearningRate::Constant(5.0), ..by_loss([0.1, 0.4], 40, 1.5) };
    let plan = Plan::new(config, records.facts()).unwrap();
    let mut trainer = Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
    let mut seen = Levels(Vec::new());
    trainer.run(&mut seen).unwrap();
    for (weights, thresholds) in &seen.0 {
        let rates = plan.rates_at(Some(weights)).unwrap();
        assert_eq!(*thresholds, [0.5 * rates[0].share, 0.5 * rates[1].share]);
    }
    let (first, last) = (plan.rates_at(None).unwrap(), plan.rates_at(Some(&seen.0[39].0)).unwrap());
    assert_eq!(first[0], first[1]);
    assert!(last[1].rate > first[1].rate && last[1].share < first[1].share, "{last:?}");
    assert!(last[0].rate < first[0].rate && last[0].share > first[0].share, "{last:?}");
    // One entry of steps that all cost the same, for every group.
    let [held] = trainer.ledger().entries() else { panic!("not one entry") };
    assert_eq!((held.event(), held.count()), (plan.step_event(), 40));
    assert!(matches!(plan.step_event(), DpEvent::RenyiAtOrder { .. }) && plan.events_by_group().is_none());
    let delta = plan.config().privacy.as_ref().unwrap().delta;
    let statement = trainer.statement("one person's record", delta).unwrap().to_string();
    assert!(statement.contains("these follow from the noisy losses of earlier steps"), "{statement}");
}

/// Weighted sampling by another method: every group has the whole threshold, and the group drawn most
/// often costs the most.
#[test]
fn without_shares_the_largest_rate_is_charged() {
    let facts = Data::random(200, 4, 2, 2, 1).facts;
    let epsilon = |config: TrainConfig| {
        let plan = Plan::new(config, facts).unwrap();
        let delta = plan.config().privacy.as_ref().unwrap().delta;
        plan.ledger(20).unwrap().epsilon(delta).unwrap().epsilon.get()
    };
    let uniform = config(ModelConfig::LogisticRegression, batches(0.3, 20), Some(privacy("dpsgd")));
    assert_eq!(epsilon(by_group("dpsgd", &[0.01, 0.3], 20, 1.0)), epsilon(uniform));
}

#[test]
fn a_target_holds_for_every_group() {
    let facts = Data::random(200, 4, 2, 2, 1).facts;
    let target = dp_accounting::Epsilon::new(2.0).unwrap();
    for method in ["asc", "dpsgd", "dpsgd-f", "asc-by-loss"] {
        let config =
            if method == "asc-by-loss" { by_loss([0.2, 0.3], 50, 1.0) } else { by_group(method, &[0.2, 0.3], 50, 1.0) };
        let mut spent = dp_accounting::Ledger::new(Plan::RELATION);
        spent.record(&DpEvent::gaussian_at(10.0).unwrap(), 1).unwrap();
        let accountant = PldAccountant::new(Plan::RELATION);
        let plan = Plan::calibrated(config, facts, target, accountant, Some(&spent)).unwrap();
        spent.merge(&plan.ledger(50).unwrap()).unwrap();
        let bound = spent.epsilon(plan.config().privacy.as_ref().unwrap().delta).unwrap();
        assert!(bound.epsilon <= target && bound.epsilon.get() > 1.99, "{method}: {bound:?}");
    }
}

#[test]
fn what_cannot_be_accounted_for_is_refused() {
    let facts = Data::random(200, 4, 2, 2, 1).facts;
    let refusal = |config| Plan::new(config, facts).unwrap_err().to_string();
    let fair = by_group("asc", &[0.1, 0.3], 5, 1.0);
    insta::assert_snapshot!(
        refusal(TrainConfig { privacy: None, ..fair.clone() }),
        @"batches.sampling = by group: expected none without privacy"
    );
    insta::assert_snapshot!(
        refusal(by_group("fairlens", &[0.1, 0.3], 5, 1.0)),
        @"batches.sampling = by group: expected none: records influence each other's gradients, and no rate could be accounted for"
    );
    insta::assert_snapshot!(
        refusal(TrainConfig { batches: batches(0.1, 5), ..fair.clone() }),
        @"batches.sampling_rate = 0.1: expected 0.3, the largest rate of a group"
    );
    insta::assert_snapshot!(
        refusal(by_group("asc-by-loss", &[0.1, 0.3], 5, 1.0)),
        @"batches.sampling = by group: expected by loss, which the weights `rates-by-loss` of the method are for"
    );
    let limits = by_loss([0.1, 0.3], 5, 1.0);
    insta::assert_snapshot!(
        refusal(TrainConfig { rates_by_loss: limits.rates_by_loss.clone(), ..fair }),
        @"batches.sampling = by group and by loss: expected one of the two"
    );
    insta::assert_snapshot!(
        refusal(TrainConfig { privacy: Some(privacy("asc")), ..limits }),
        @"batches.sampling = by loss: expected by group, or a method with the weights `rates-by-loss`, such as asc-by-loss"
    );
    let text = r#"
model = { name = "logistic-regression" }
loss = "bce-with-logits"
learning_rate = { constant = 2.0 }
batches = { sampling = { by = "group", rates = [0.1, 0.3] }, steps = 5 }
privacy = { method = "asc", target_epsilon = 2.0, delta = 1e-5 }
"#;
    let read = TrainConfig::from_toml(text, facts).unwrap();
    assert_eq!(read.batches.sampling_rate.get(), 0.3);
    assert_eq!(read.group_sampling.unwrap().shares.unwrap()[0], 1.0);
    let by_loss = text.replace(r#"by = "group", rates = [0.1, 0.3]"#, r#"by = "loss", least = 0.1, largest = 0.3"#);
    let read = TrainConfig::from_toml(&by_loss.replace(r#""asc""#, r#""asc-by-loss""#), facts).unwrap();
    assert_eq!((read.batches.sampling_rate.get(), read.rates_by_loss.unwrap().levels.unwrap().levels.len()), (0.3, 33));
    let error =
        TrainConfig::from_toml(&text.replace("steps = 5", "steps = 5, sampling_rate = 0.3"), facts).unwrap_err();
    insta::assert_snapshot!(
        error,
        @"line 5: batches.sampling = one of several: expected one of sampling_rate, expected_size and sampling"
    );
    let error = TrainConfig::from_toml(&text.replace("[0.1, 0.3]", "[0.3]"), facts).unwrap_err();
    insta::assert_snapshot!(error, @"line 5: batches.sampling.rates = 1 rates: expected one for each of 2 groups");
}
