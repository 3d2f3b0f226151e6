//! Batches without records, and records without a gradient.

use dp_clipping::PresetParams;
use dp_train::{Activation, DType, Loss, ModelConfig, Normalisation, TrainConfig};

use crate::support::{
    Data, Outcome, Run, batches, config, difference, mlp, norm, privacy, privacy_with, relative_error,
};

const BAD: [f32; 3] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];

fn models() -> Vec<ModelConfig> {
    vec![
        ModelConfig::LogisticRegression,
        mlp(&[6, 4], Activation::Tanh),
        mlp(&[6, 4], Activation::Relu),
        mlp(&[6, 4], Activation::Sigmoid),
        ModelConfig::SoleymaniComplex { normalisation: Normalisation::GroupNorm { groups: 8 } },
    ]
}

/// One record at rate 1e-9: no batch of a thousand holds it, but for one time in a million (the
/// seed is fixed). Each step then moves every parameter by 0.1 · N(0, 1) · 0.5 / 1e-9.
#[test]
fn an_empty_batch_is_a_step_of_noise() {
    const STEPS: u64 = 1_000;
    let data = Data::random(1, 20, 2, 1, 1);
    for dtype in [DType::F32, DType::F64] {
        let run =
            Run::new(config(ModelConfig::LogisticRegression, batches(1e-9, STEPS), Some(privacy("dpsgd"))), dtype);
        let outcome = run.on(&data);
        assert_eq!((outcome.counts.steps, outcome.counts.empty_batches, outcome.counts.records), (STEPS, STEPS, 0));
        let moved = difference(&outcome.parameters, &outcome.initial);
        assert!(moved.iter().all(|&m| m != 0.0));
        // 42 sums of 1000 steps. Their mean square has relative standard deviation √(2/42) = 0.218,
        // so 5 of them above is no more likely than 1e-5 (its tail is that of χ² with 42 degrees of
        // freedom), and the sixth below impossible.
        let expected = 0.1 * 0.5 / 1e-9 * (STEPS as f64).sqrt();
        let ratio = (norm(&moved) / expected).powi(2) / moved.len() as f64;
        assert!((1.0 / 6.0..1.0 + 5.0 * 0.218).contains(&ratio), "{ratio}");
    }
}

#[test]
fn an_empty_batch_without_privacy_changes_nothing() {
    let data = Data::random(1, 3, 2, 1, 1);
    let outcome = Run::new(config(ModelConfig::LogisticRegression, batches(1e-9, 10), None), DType::F32).on(&data);
    assert_eq!(outcome.counts.empty_batches, 10);
    assert_eq!(outcome.parameters, outcome.initial);
}

/// The run with a bad record is, bit for bit, the run in which that record is another bad one; and
/// the step is that of the other records alone.
#[test]
fn a_bad_record_contributes_exactly_zero_and_is_counted() {
    for model in models() {
        for (loss, method) in [
            (Loss::SoftmaxCrossEntropy, None),
            (Loss::BceWithLogits, None),
            (Loss::SoftmaxCrossEntropy, Some("dpsgd")),
            (Loss::BceWithLogits, Some("dpsgd-f")),
        ] {
            let config =
                TrainConfig { loss: loss.clone(), ..config(model.clone(), batches(1.0, 5), method.map(privacy)) };
            for dtype in [DType::F32, DType::F64] {
                let outcomes: Vec<_> = [0, 1]
                    .iter()
                    .flat_map(|&label| BAD.map(|bad| (label, bad)))
                    .map(|(label, bad)| {
                        let mut data = Data::random(8, 5, 2, 2, 2);
                        data.labels[3] = label;
                        data.features_of(3)[1] = bad;
                        Run::new(config.clone(), dtype).on(&data)
                    })
                    .collect();
                let first = &outcomes[0];
                assert_eq!((first.counts.non_finite, first.counts.records), (5, 40));
                assert!(first.parameters.iter().all(|p| p.is_finite()));
                for outcome in &outcomes[1..] {
                    assert_eq!(outcome, first, "{model:?} {loss:?} {method:?} {dtype:?}");
                }
            }
        }
    }
}

/// Seven records with an eighth that is bad, against the seven alone, at the same expected batch
/// size but for the factor 8/7.
#[test]
fn the_other_records_contribute_as_if_the_bad_one_were_absent() {
    for method in [None, Some("dpsgd")] {
        let mut without = Data::random(7, 5, 2, 2, 3);
        let mut with = without.clone();
        with.features.extend([1.0, f32::NAN, 0.0, f32::INFINITY, 2.0]);
        with.labels.push(1);
        with.groups.push(0);
        with.facts.n_records = 8;
        without.facts.n_records = 7;
        let privacy = method.map(|name| privacy_with(name, 1e-6, &PresetParams::default()));
        let config = config(mlp(&[6], Activation::Tanh), batches(1.0, 1), privacy);
        let moved = |data: &Data| {
            let outcome = Run::new(config.clone(), DType::F64).on(data);
            difference(&outcome.parameters, &outcome.initial)
        };
        let expected: Vec<f64> = moved(&without).iter().map(|m| m * 7.0 / 8.0).collect();
        // Noise multiplier 1e-6 against a sum of seven records.
        let tolerance = if method.is_some() { 1e-4 } else { 1e-12 };
        assert!(relative_error(&moved(&with), &expected) < tolerance);
    }
}

/// 1e38 is a number: its record is clipped like any other where its gradient is finite, and left
/// out where it overflows.
#[test]
fn a_record_near_the_end_of_the_range_leaves_a_private_run_finite() {
    for model in models() {
        for dtype in [DType::F32, DType::F64] {
            for size in [1e38, -1e38, f32::MAX] {
                let mut data = Data::random(8, 5, 2, 2, 4);
                data.features_of(3).fill(size);
                let config = config(model.clone(), batches(1.0, 20), Some(privacy("dpsgd")));
                let outcome = Run::new(config, dtype).on(&data);
                assert!(outcome.parameters.iter().all(|p| p.is_finite()), "{model:?} {dtype:?} {size}");
                assert_eq!(outcome.counts.steps, 20);
            }
        }
    }
}

/// A batch of which nothing is usable is a step of noise too.
#[test]
fn a_batch_of_bad_records_alone_is_a_step_of_noise() {
    let mut data = Data::random(4, 3, 2, 2, 5);
    data.features.fill(f32::NAN);
    let noisy =
        Run::new(config(ModelConfig::LogisticRegression, batches(1.0, 3), Some(privacy("dpsgd-f"))), DType::F32);
    let outcome = noisy.on(&data);
    assert_eq!(outcome.counts.non_finite, 12);
    assert!(outcome.parameters.iter().all(|p| p.is_finite()));
    assert_ne!(outcome.parameters, outcome.initial);
    let plain = Run::new(config(ModelConfig::LogisticRegression, batches(1.0, 3), None), DType::F32).on(&data);
    assert_eq!(plain.counts.non_finite, 12);
    assert_eq!(plain.parameters, plain.initial);
}

#[test]
fn a_batch_of_one_and_a_group_without_records_train() {
    for method in [None, Some("dpsgd"), Some("dpsgd-f"), Some("naive")] {
        let mut data = Data::random(1, 3, 2, 3, 6);
        data.groups[0] = 1;
        let mut run = Run::new(config(mlp(&[4], Activation::Relu), batches(1.0, 4), method.map(privacy)), DType::F32);
        run.wants_groups = true;
        let outcome = run.on(&data);
        assert_eq!((outcome.counts.records, outcome.counts.empty_batches), (4, 0));
        for norms in &outcome.group_gradient_norms {
            assert!(norms[0].is_none() && norms[1].is_some() && norms[2].is_none());
        }
        assert!(outcome.parameters.iter().all(|p| p.is_finite()));
    }
}

/// Of two records of a group one is bad: the mean is that of the other.
#[test]
fn bad_records_do_not_dilute_their_group_s_mean_gradient() {
    let mut data = Data::random(2, 3, 2, 2, 7);
    data.groups = vec![0, 0];
    let mut run = Run::new(config(ModelConfig::LogisticRegression, batches(1.0, 1), None), DType::F64);
    run.wants_groups = true;
    data.features_of(1).fill(f32::NAN);
    let with_bad = run.on(&data);
    data.features.truncate(3);
    data.labels.truncate(1);
    data.groups.truncate(1);
    data.facts.n_records = 1;
    let alone = run.on(&data);
    let norm = |outcome: &Outcome| outcome.group_gradient_norms[0][0].unwrap();
    assert!((norm(&with_bad) / norm(&alone) - 1.0).abs() < 1e-12);
}
