//! The number of records that are computed at once changes a certified run not at all, another only
//! by rounding.

use dp_train::{Activation, DType, Loss, ModelConfig, Normalisation, TrainConfig};
use proptest::prelude::*;

use crate::support::{Data, Outcome, Run, batches, config, mlp, privacy, relative_error};

fn with_pieces(config: &TrainConfig, dtype: DType, data: &Data, micro_batch: usize) -> Outcome {
    let mut run = Run::new(config.clone(), dtype);
    run.micro_batch = micro_batch;
    run.wants_groups = true;
    run.on(data)
}

fn assert_same(pieces: &Outcome, whole: &Outcome, tolerance: f64) {
    assert_eq!(pieces.counts, whole.counts);
    assert_eq!(pieces.ledger, whole.ledger);
    if pieces.bounds.iter().any(|&bound| bound > 0.0) {
        assert_eq!(pieces.parameters, whole.parameters);
        assert_eq!(pieces.thresholds, whole.thresholds);
    }
    let error = relative_error(&pieces.parameters, &whole.parameters);
    assert!(error <= tolerance, "parameters: {error}");
    assert_eq!(pieces.group_gradient_norms.len(), whole.group_gradient_norms.len());
    for (a, b) in pieces.group_gradient_norms.iter().flatten().zip(whole.group_gradient_norms.iter().flatten()) {
        match (a, b) {
            (Some(a), Some(b)) => assert!((a - b).abs() <= tolerance * b, "group gradient: {a} {b}"),
            (a, b) => assert_eq!(a, b),
        }
    }
    for (a, b) in pieces.thresholds.iter().zip(&whole.thresholds) {
        assert!(relative_error(a, b) <= tolerance, "thresholds: {a:?} {b:?}");
    }
}

/// A sampling rate of 1 makes every batch the whole of 40 records, so that the sizes around it are
/// met exactly.
#[test]
fn every_size_gives_the_same_run() {
    let mut data = Data::random(40, 6, 3, 2, 1);
    // One record that is left out, so that the piece with it is done again.
    data.features_of(17)[2] = f32::NAN;
    let methods =
        [None, Some("dpsgd"), Some("dpsgd-f"), Some("dpsgd-global-adapt"), Some("naive"), Some("soft-adaptive")];
    for method in methods {
        let model = mlp(&[9, 5], Activation::Tanh);
        let config = config(model, batches(1.0, 15), method.map(privacy));
        for (dtype, tolerance) in [(DType::F64, 1e-9), (DType::F32, 1e-4)] {
            let whole = with_pieces(&config, dtype, &data, 1_024);
            assert_eq!(whole.counts.non_finite, 15);
            for micro_batch in [1, 7, 39, 40, 41] {
                assert_same(&with_pieces(&config, dtype, &data, micro_batch), &whole, tolerance);
            }
        }
    }
}

/// Dropout masks belong to records, not to their place in a piece; both passes over a piece draw
/// the same ones.
#[test]
fn every_size_gives_the_same_run_with_dropout() {
    let mut data = Data::random(40, 6, 2, 2, 8);
    data.features_of(17)[2] = f32::NAN;
    for method in [None, Some("dpsgd"), Some("dpsgd-f")] {
        let model = ModelConfig::SoleymaniComplex { normalisation: Normalisation::GroupNorm { groups: 8 } };
        let config = config(model, batches(0.5, 8), method.map(privacy));
        let whole = with_pieces(&config, DType::F64, &data, 1_024);
        for micro_batch in [1, 7, 19] {
            assert_same(&with_pieces(&config, DType::F64, &data, micro_batch), &whole, 1e-9);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// The law, over random Poisson batches, sizes and models.
    #[test]
    fn the_size_does_not_matter(
        hidden in prop::collection::vec(1_usize..8, 0..3),
        method in prop::sample::select(vec![None, Some("dpsgd"), Some("dpsgd-f"), Some("fixed-soft")]),
        loss in prop::sample::select(vec![Loss::SoftmaxCrossEntropy, Loss::BceWithLogits]),
        rate in 0.01..1.0_f64,
        micro_batch in 1_usize..40,
        seed in any::<u64>(),
    ) {
        let data = Data::random(50, 4, 2, 3, seed);
        let model = if hidden.is_empty() { ModelConfig::LogisticRegression } else { mlp(&hidden, Activation::Sigmoid) };
        let config = TrainConfig { loss, ..config(model, batches(rate, 6), method.map(privacy)) };
        let whole = with_pieces(&config, DType::F64, &data, 1_024);
        assert_same(&with_pieces(&config, DType::F64, &data, micro_batch), &whole, 1e-9);
    }
}
