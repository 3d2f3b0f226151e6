//! Per-sample gradients against candle's autograd, one record at a time, in `f64`.
//!
//! The oracle shares nothing with the engine but the parameters: it is built from their names and
//! candle's own operations. Its losses are one formula, `ln Σ_j exp(z_j) − z_y`, with binary
//! cross-entropy as that of the logits `[0, z]`.

use candle_core::{D, Tensor, Var};
use dp_train::{Activation, DType, Device, Engine, Loss, Model, ModelConfig, Records};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::support::{Data, mlp, norm, relative_error};

/// A weight and a bias per linear layer.
fn oracle_layers(model: &Model) -> Vec<(Var, Var)> {
    let specs = model.parameters().specs();
    let views = model.parameters().views();
    let var = |i: usize, ending: &str| {
        assert!(specs[i].name.ends_with(ending), "{}", specs[i].name);
        Var::from_tensor(&views[i].to_dtype(DType::F64).unwrap().copy().unwrap()).unwrap()
    };
    (0..views.len()).step_by(2).map(|i| (var(i, ".weight"), var(i + 1, ".bias"))).collect()
}

fn activate(x: &Tensor, activation: Activation) -> candle_core::Result<Tensor> {
    match activation {
        Activation::Tanh => x.tanh(),
        Activation::Relu => x.relu(),
        Activation::Sigmoid => (x.neg()?.exp()? + 1.0)?.recip(),
        _ => unreachable!("tested with the other layers"),
    }
}

fn oracle_loss(logits: &Tensor, label: u32, loss: &Loss) -> candle_core::Result<Tensor> {
    let binary = || Tensor::cat(&[&logits.zeros_like()?, logits], 1);
    let (logits, weight) = match loss {
        Loss::SoftmaxCrossEntropy => (logits.clone(), 1.0),
        Loss::WeightedSoftmaxCrossEntropy { class_weights } => (logits.clone(), class_weights[label as usize]),
        Loss::BceWithLogits => (binary()?, 1.0),
        Loss::PriorAdjustedCrossEntropy { priors } => {
            let total: f64 = priors.iter().sum();
            let row: Vec<f64> = priors.iter().map(|prior| (prior / total).ln()).collect();
            (logits.broadcast_add(&Tensor::from_vec(row, (1, priors.len()), &Device::Cpu)?)?, 1.0)
        }
        Loss::WeightedBceWithLogits { positive_weight } => (binary()?, if label == 1 { *positive_weight } else { 1.0 }),
        other => unreachable!("{other:?} has no oracle"),
    };
    let largest = logits.max_keepdim(D::Minus1)?.detach();
    let log_sum = logits.broadcast_sub(&largest)?.exp()?.sum_keepdim(D::Minus1)?.log()?;
    ((log_sum + largest)? - logits.narrow(1, label as usize, 1)?)?.sum_all()? * weight
}

/// Loss and flat gradient of one record.
fn oracle_gradient(layers: &[(Var, Var)], config: &ModelConfig, loss: &Loss, x: &[f32], label: u32) -> (f64, Vec<f64>) {
    let mut hidden = Tensor::from_slice(x, (1, x.len()), &Device::Cpu).unwrap().to_dtype(DType::F64).unwrap();
    for (i, (weight, bias)) in layers.iter().enumerate() {
        hidden = hidden.matmul(&weight.t().unwrap()).unwrap().broadcast_add(bias).unwrap();
        if let ModelConfig::Mlp { activation, .. } = config
            && i + 1 < layers.len()
        {
            hidden = activate(&hidden, *activation).unwrap();
        }
    }
    if *config == ModelConfig::SquashedRegression {
        hidden = activate(&hidden, Activation::Sigmoid).unwrap();
    }
    let loss = oracle_loss(&hidden, label, loss).unwrap();
    let gradients = loss.backward().unwrap();
    let flat = layers.iter().flat_map(|(weight, bias)| [weight, bias]).flat_map(|var| {
        let gradient = gradients.get(var.as_tensor()).unwrap();
        gradient.flatten_all().unwrap().to_vec1::<f64>().unwrap()
    });
    (loss.to_scalar().unwrap(), flat.collect())
}

/// What the engine says of a whole batch.
struct Answer {
    losses: Vec<f64>,
    norms: Vec<f64>,
    weighted_sum: Vec<f64>,
}

fn ask(engine: &mut Engine, records: &Records, rows: &[usize], weights: &[f64]) -> Answer {
    engine.differentiate(records, rows, &[]).unwrap();
    let gradient = engine.zero_gradient().unwrap();
    let (losses, norms) = (engine.losses().unwrap(), engine.gradient_norms().unwrap());
    engine.weighted_sum(weights, &gradient, false).unwrap();
    Answer { losses, norms, weighted_sum: gradient.to_vec().unwrap() }
}

fn model() -> impl Strategy<Value = ModelConfig> {
    let activation = prop::sample::select(vec![Activation::Tanh, Activation::Relu, Activation::Sigmoid]);
    prop_oneof![
        1 => Just(ModelConfig::LogisticRegression),
        1 => Just(ModelConfig::SquashedRegression),
        3 => (prop::collection::vec(1_usize..20, 0..4), activation)
            .prop_map(|(hidden, activation)| mlp(&hidden, activation)),
    ]
}

fn loss() -> impl Strategy<Value = (Loss, usize)> {
    prop::sample::select(vec![
        (Loss::SoftmaxCrossEntropy, 2),
        (Loss::SoftmaxCrossEntropy, 5),
        (Loss::BceWithLogits, 2),
        (Loss::WeightedSoftmaxCrossEntropy { class_weights: vec![0.5, 3.0, 1.0] }, 3),
        (Loss::PriorAdjustedCrossEntropy { priors: vec![1.0, 6.0, 3.0] }, 3),
        (Loss::WeightedBceWithLogits { positive_weight: 2.0 }, 2),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_agrees_with_autograd(
        model in model(),
        (loss, n_classes) in loss(),
        n_inputs in 1_usize..40,
        rows in prop::collection::vec(0_usize..8, 1..40),
        weights in prop::collection::vec(-2.0..2.0_f64, 40),
        seed in any::<u64>(),
    ) {
        let data = Data::random(8, n_inputs, n_classes, 1, seed);
        let weights = &weights[..rows.len()];
        let records = data.records(DType::F64);
        let mut engine = Engine::new(&model, loss.clone(), &records, &Device::Cpu).unwrap();
        engine.model().initialise(&mut ChaCha20Rng::seed_from_u64(seed)).unwrap();
        // Values that f32 holds, so that both precisions start from the same model.
        let start: Vec<f64> =
            engine.model().parameters().to_vec().unwrap().iter().map(|&p| f64::from(p as f32)).collect();
        engine.model().parameters().set(&start).unwrap();
        let got = ask(&mut engine, &records, &rows, weights);

        let layers = oracle_layers(engine.model());
        let mut sum = vec![0.0; start.len()];
        let mut size = 0.0;
        for (i, (&row, weight)) in rows.iter().zip(weights).enumerate() {
            let x = &data.features[row * n_inputs..(row + 1) * n_inputs];
            let (expected_loss, gradient) = oracle_gradient(&layers, &model, &loss, x, data.labels[row]);
            prop_assert!((got.losses[i] - expected_loss).abs() <= 1e-12 * (1.0 + expected_loss));
            let expected_norm = norm(&gradient);
            prop_assert!((got.norms[i] - expected_norm).abs() <= 1e-10 * expected_norm);
            for (total, g) in sum.iter_mut().zip(&gradient) {
                *total += weight * g;
            }
            size += weight.abs() * expected_norm;
        }
        // Weights of both signs may cancel: the error is relative to what was added up, not to what
        // is left.
        let error = |answer: &[f64]| relative_error(answer, &sum) * norm(&sum) / size.max(f64::MIN_POSITIVE);
        prop_assert!(error(&got.weighted_sum) <= 1e-10);

        let records = data.records(DType::F32);
        let mut single = Engine::new(&model, loss.clone(), &records, &Device::Cpu).unwrap();
        single.model().parameters().set(&start).unwrap();
        let single = ask(&mut single, &records, &rows, weights);
        for (a, b) in single.norms.iter().zip(&got.norms) {
            prop_assert!((a - b).abs() <= 2e-5 * b, "{a} {b}");
        }
        prop_assert!(error(&single.weighted_sum) <= 2e-5);
    }
}

/// The model of the Adult study once, with its blocked products at full width.
#[test]
fn a_wide_model_agrees_with_autograd() {
    let model = mlp(&[256, 256], Activation::Tanh);
    let data = Data::random(70, 98, 2, 1, 5);
    let records = data.records(DType::F64);
    let mut engine = Engine::new(&model, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu).unwrap();
    engine.model().initialise(&mut ChaCha20Rng::seed_from_u64(6)).unwrap();
    let rows: Vec<usize> = (0..70).collect();
    let got = ask(&mut engine, &records, &rows, &vec![1.0; 70]);
    let layers = oracle_layers(engine.model());
    let mut sum = vec![0.0; 91_650];
    for (i, x) in data.features.chunks_exact(98).enumerate() {
        let (_, gradient) = oracle_gradient(&layers, &model, &Loss::SoftmaxCrossEntropy, x, data.labels[i]);
        assert!((got.norms[i] / norm(&gradient) - 1.0).abs() < 1e-10);
        sum.iter_mut().zip(gradient).for_each(|(total, g)| *total += g);
    }
    assert!(relative_error(&got.weighted_sum, &sum) < 1e-10);
}

#[test]
fn a_second_sum_is_added_where_asked() {
    let data = Data::random(3, 4, 2, 1, 7);
    let records = data.records(DType::F64);
    let mut engine =
        Engine::new(&ModelConfig::LogisticRegression, Loss::BceWithLogits, &records, &Device::Cpu).unwrap();
    let gradient = engine.zero_gradient().unwrap();
    let mut sum = |rows: &[usize], weights: &[f64], accumulate| {
        engine.differentiate(&records, rows, &[]).unwrap();
        engine.weighted_sum(weights, &gradient, accumulate).unwrap();
        gradient.to_vec().unwrap()
    };
    let whole = sum(&[0, 1, 2], &[0.5, -1.0, 2.0], false);
    sum(&[0], &[0.5], false);
    let pieces = sum(&[1, 2], &[-1.0, 2.0], true);
    assert!(relative_error(&pieces, &whole) < 1e-15);
    // Nothing added leaves it, nothing put there empties it.
    assert_eq!(sum(&[1], &[0.0], true), pieces);
    assert_eq!(sum(&[], &[], true), pieces);
    assert_eq!(sum(&[], &[], false), vec![0.0; 5]);
}
