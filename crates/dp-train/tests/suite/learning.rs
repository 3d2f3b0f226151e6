//! Training learns.

use dp_clipping::PresetParams;
use dp_train::{
    Activation, DType, Execution, LearningRate, Loss, ModelConfig, OptimiserConfig, Plan, PrivacyConfig, TrainConfig,
    Trainer, Unobserved,
};

use crate::support::{Data, Run, batches, config, difference, mlp, norm, privacy_with, streams};

/// Share of a fresh test set that a trained model gets right.
fn accuracy(config: &TrainConfig) -> f64 {
    let (train, test) = (Data::separable(2_000, 1), Data::separable(1_000, 2));
    let (train, test) = (train.records(DType::F32), test.records(DType::F32));
    let plan = Plan::new(config.clone(), train.facts()).unwrap();
    let mut trainer = Trainer::new(&plan, &train, streams(3), Execution::default()).unwrap();
    trainer.run(&mut Unobserved).unwrap();
    let evaluation = trainer.engine_mut().evaluate(&test, 300).unwrap();
    assert_eq!(evaluation.losses.len(), 1_000);
    let right = evaluation.predictions.iter().zip(test.labels()).filter(|(p, y)| p == y).count();
    right as f64 / 1_000.0
}

fn study(model: ModelConfig, loss: Loss, privacy: Option<PrivacyConfig>) -> TrainConfig {
    TrainConfig { loss, learning_rate: LearningRate::Constant(0.5), ..config(model, batches(0.1, 200), privacy) }
}

#[test]
fn every_model_separates_what_is_separable() {
    for loss in [Loss::SoftmaxCrossEntropy, Loss::BceWithLogits] {
        let mut models = vec![ModelConfig::LogisticRegression];
        models.extend([Activation::Tanh, Activation::Relu].map(|activation| mlp(&[16], activation)));
        for model in models {
            let accuracy = accuracy(&study(model.clone(), loss.clone(), None));
            assert!(accuracy > 0.99, "{model:?} {loss:?}: {accuracy}");
        }
    }
}

#[test]
fn private_training_learns_too() {
    for method in ["dpsgd", "dpsgd-normalised", "dpsgd-f", "dpsgd-global-adapt", "naive", "soft-adaptive", "adaptive"] {
        let privacy = privacy_with(method, 1.0, &PresetParams { upper_bound: Some(2.0), ..PresetParams::default() });
        let accuracy = accuracy(&study(mlp(&[16], Activation::Tanh), Loss::SoftmaxCrossEntropy, Some(privacy)));
        assert!(accuracy > 0.97, "{method}: {accuracy}");
    }
}

#[test]
fn every_optimiser_learns_from_private_gradients() {
    for (optimiser, rate) in [
        (OptimiserConfig::Momentum { momentum: 0.9, nesterov: false }, 0.05),
        (OptimiserConfig::Momentum { momentum: 0.9, nesterov: true }, 0.05),
        (OptimiserConfig::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8 }, 0.02),
        (OptimiserConfig::AdamW { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8, weight_decay: 1e-3 }, 0.02),
        (OptimiserConfig::AdamBc { beta_1: 0.9, beta_2: 0.999, epsilon: 0.05 }, 0.02),
    ] {
        let privacy = Some(privacy_with("dpsgd", 1.0, &PresetParams::default()));
        let config = study(mlp(&[16], Activation::Tanh), Loss::SoftmaxCrossEntropy, privacy);
        let accuracy = accuracy(&TrainConfig { optimiser, learning_rate: LearningRate::Constant(rate), ..config });
        assert!(accuracy > 0.97, "{optimiser:?}: {accuracy}");
    }
}

/// Empty batches leave regularisation alone at work: the weights shrink by `∏ (1 − η_t λ)` over a
/// warm-up of two steps under a staircase, `η = ½·0.4, 0.4, 0.2, 0.2, 0.1`.
#[test]
fn the_rate_follows_schedule_and_warm_up() {
    let data = Data::random(1, 6, 2, 1, 1);
    let schedule = TrainConfig {
        l2: 0.5,
        learning_rate: LearningRate::Step { first: 0.4, factor: 0.5, every: 2 },
        warm_up_steps: 2,
        ..config(ModelConfig::LogisticRegression, batches(1e-9, 5), None)
    };
    let outcome = Run::new(schedule, DType::F64).on(&data);
    let factor: f64 = [0.2, 0.4, 0.2, 0.2, 0.1].iter().map(|rate| 1.0 - rate * 0.5).product();
    for (after, before) in outcome.parameters[..12].iter().zip(&outcome.initial) {
        assert!((after - before * factor).abs() < 1e-15);
    }
}

/// Empty batches leave regularisation alone at work: each step multiplies every weight by 1 − ηλ =
/// 1 − 0.1 · 0.5 and leaves the biases. The weights stay far above the clipping norm's reach, so it
/// is not clipped.
#[test]
fn l2_shrinks_weights_and_not_biases_and_is_not_clipped() {
    let data = Data::random(1, 6, 2, 1, 1);
    let records = data.records(DType::F64);
    let plain = TrainConfig { l2: 0.5, ..config(mlp(&[4], Activation::Tanh), batches(1e-9, 10), None) };
    let plan = Plan::new(plain.clone(), data.facts).unwrap();
    let mut trainer = Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
    let view = |trainer: &mut Trainer<'_>| -> Vec<Vec<f64>> {
        let views = trainer.model().parameters().views().to_vec();
        views.iter().map(|view| view.flatten_all().unwrap().to_vec1().unwrap()).collect()
    };
    let before = view(&mut trainer);
    trainer.run(&mut Unobserved).unwrap();
    let after = view(&mut trainer);
    let specs = trainer.model().parameters().specs().to_vec();
    for ((spec, before), after) in specs.iter().zip(&before).zip(&after) {
        let factor = if spec.name.ends_with("weight") { 0.95_f64.powi(10) } else { 1.0 };
        let expected: Vec<f64> = before.iter().map(|p| p * factor).collect();
        assert!(norm(&difference(after, &expected)) < 1e-14, "{}", spec.name);
    }

    // With privacy: a threshold a million times smaller than the weights, and hardly any noise.
    let params = PresetParams { clip_norm: 1e-6, ..PresetParams::default() };
    let private = TrainConfig { privacy: Some(privacy_with("dpsgd", 1e-6, &params)), ..plain };
    let private = TrainConfig { batches: batches(1.0, 10), ..private };
    let outcome = Run::new(private, DType::F64).on(&data);
    let weights = before.iter().zip(&specs).flat_map(|(values, spec)| {
        let factor = if spec.decays { 0.95_f64.powi(10) } else { 1.0 };
        values.iter().map(move |p| p * factor)
    });
    let expected: Vec<f64> = weights.collect();
    assert!(norm(&difference(&outcome.parameters, &expected)) < 1e-5);
}

/// Too high a learning rate ends in an error, not in parameters that are no numbers.
#[test]
fn divergence_is_reported() {
    let data = Data::random(50, 4, 2, 2, 1);
    let records = data.records(DType::F32);
    let config = config(mlp(&[8], Activation::Relu), batches(0.5, 40), None);
    let config = TrainConfig { l2: 1.0, learning_rate: LearningRate::Constant(1e6), ..config };
    let plan = Plan::new(config, data.facts).unwrap();
    let mut trainer = Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
    let error = trainer.run(&mut Unobserved).unwrap_err();
    insta::assert_snapshot!(error, @"parameters or gradients are not finite at step 39; lower the learning rate");
}

/// A step of noise alone. With β₁ = β₂ = 0 the moment is `g² − Φ`, negative where the noise `z` is
/// within one standard deviation: there a tiny ε makes the step thousands of times the rate. That
/// is 68.3 % of 2,010 parameters, within 5 % but for a chance of 2e-6.
#[test]
fn the_optimiser_knows_the_variance_of_the_noise() {
    let data = Data::random(10, 200, 10, 1, 1);
    let std = 1.0 / (1e-9 * 10.0);
    let private = config(
        ModelConfig::LogisticRegression,
        batches(1e-9, 1),
        Some(privacy_with("dpsgd", 1.0, &PresetParams::default())),
    );
    let only_noise = TrainConfig {
        optimiser: OptimiserConfig::AdamBc { beta_1: 0.0, beta_2: 0.0, epsilon: 1e-6 * std },
        learning_rate: LearningRate::Constant(1.0),
        ..private
    };
    let outcome = Run::new(only_noise, DType::F64).on(&data);
    let moved = difference(&outcome.parameters, &outcome.initial);
    let share = moved.iter().filter(|by| by.abs() > 1e3).count() as f64 / moved.len() as f64;
    assert!((share - 0.683).abs() < 0.05, "{share}");
}
