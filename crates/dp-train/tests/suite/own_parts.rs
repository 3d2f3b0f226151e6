//! Layers and losses from outside of the engine do what its own do.

use std::sync::Once;

use dp_accounting::Mark;
use dp_engine::{Initial, OwnLayer, OwnLoss, OwnShape, ParameterSpec, register_layer, register_loss};
use dp_train::{Activation, DType, InputShape, LayerConfig, Loss, ModelConfig, Plan, TrainConfig};

use crate::support::{Data, Run, batches, config, privacy, relative_error};

/// `x Wᵀ + b`, as the engine's linear layer.
#[derive(Debug)]
struct Dense;

impl OwnLayer for Dense {
    fn name(&self) -> &'static str {
        "dense"
    }

    fn shape(&self, inputs: usize, settings: &[f64]) -> Result<OwnShape, String> {
        let &[outputs] = settings else { return Err("one setting, the number of outputs".into()) };
        let (outputs, initial) = (outputs as usize, Initial::Uniform { fan_in: inputs });
        let weight = ParameterSpec::new("weight", vec![outputs, inputs], initial, true);
        Ok(OwnShape { outputs, parameters: vec![weight, ParameterSpec::new("bias", vec![outputs], initial, false)] })
    }

    fn forward(&self, _: &[f64], parameters: &[&[f64]], input: &[f64], output: &mut [f64]) {
        for ((y, weights), bias) in output.iter_mut().zip(parameters[0].chunks(input.len())).zip(parameters[1]) {
            *y = weights.iter().zip(input).map(|(w, x)| w * x).sum::<f64>() + bias;
        }
    }

    fn backward(
        &self,
        _: &[f64],
        parameters: &[&[f64]],
        input: &[f64],
        by_output: &[f64],
        by_input: &mut [f64],
        by_parameters: &mut [&mut [f64]],
    ) {
        by_parameters[1].copy_from_slice(by_output);
        for (row, d) in by_output.iter().enumerate() {
            for (column, x) in input.iter().enumerate() {
                by_parameters[0][row * input.len() + column] = d * x;
                by_input[column] += d * parameters[0][row * input.len() + column];
            }
        }
    }
}

/// Softmax cross-entropy by its definition.
#[derive(Debug)]
struct Softmax;

impl OwnLoss for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn n_logits(&self, n_classes: usize) -> Option<usize> {
        Some(n_classes)
    }

    fn loss(&self, logits: &[f64], label: usize) -> f64 {
        logits.iter().map(|z| z.exp()).sum::<f64>().ln() - logits[label]
    }

    fn gradient(&self, logits: &[f64], label: usize, gradient: &mut [f64]) {
        let total: f64 = logits.iter().map(|z| z.exp()).sum();
        for (class, (g, z)) in gradient.iter_mut().zip(logits).enumerate() {
            *g = z.exp() / total - f64::from(u8::from(class == label));
        }
    }
}

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        register_layer(&Dense).unwrap();
        register_loss(&Softmax).unwrap();
    });
}

fn model(layer: impl Fn(usize) -> LayerConfig) -> ModelConfig {
    let tanh = LayerConfig::Activation { function: Activation::Tanh };
    ModelConfig::Sequential { input: InputShape::Features, layers: vec![layer(5), tanh, layer(4), layer(2)] }
}

fn linear() -> ModelConfig {
    model(|outputs| LayerConfig::Linear { outputs })
}

fn own() -> ModelConfig {
    model(|outputs| LayerConfig::Own { layer: "dense".into(), settings: vec![outputs as f64] })
}

/// The same run with and without privacy, but for the last digits.
#[test]
fn own_parts_train_as_the_engine_s_do() {
    register();
    let mut data = Data::random(60, 7, 2, 2, 4);
    data.features_of(31)[0] = f32::NAN;
    let own_loss = Loss::Own { loss: "softmax".into() };
    for method in [None, Some("dpsgd"), Some("dpsgd-f")] {
        let with = |model, loss: Option<&Loss>| {
            let config = config(model, batches(0.5, 6), method.map(privacy));
            let config = TrainConfig { loss: loss.unwrap_or(&config.loss).clone(), ..config };
            Run::new(config, DType::F64).on(&data)
        };
        let expected = with(linear(), None);
        for found in [with(own(), None), with(linear(), Some(&own_loss)), with(own(), Some(&own_loss))] {
            assert_eq!((&found.initial, found.counts), (&expected.initial, expected.counts), "{method:?}");
            let error = relative_error(&found.parameters, &expected.parameters);
            assert!(error < 1e-9, "{method:?}: {error}");
        }
    }
}

/// The same bits in any micro-batch and on any threads, in single precision.
#[test]
fn own_parts_have_the_same_bits_in_any_batch() {
    register();
    let data = Data::random(60, 7, 2, 2, 4);
    let config = TrainConfig {
        loss: Loss::Own { loss: "softmax".into() },
        ..config(own(), batches(0.5, 4), Some(privacy("dpsgd")))
    };
    let whole = Run::new(config, DType::F32);
    for (micro_batch, threads) in [(1, 1), (7, 3)] {
        let parts = Run { micro_batch, threads: threads.try_into().unwrap(), ..whole.clone() };
        assert_eq!(parts.on(&data), whole.on(&data));
    }
}

/// A plan names every part that is the user's own, and its ε is conditional.
#[test]
fn plans_name_what_is_the_user_s_own() {
    register();
    let facts = Data::random(60, 7, 2, 2, 4).facts;
    let config = TrainConfig {
        loss: Loss::Own { loss: "softmax".into() },
        ..config(own(), batches(0.5, 4), Some(privacy("dpsgd")))
    };
    let plan = Plan::new(config.clone(), facts).unwrap();
    assert!(plan.certified() && plan.mark(true) == Some(Mark::Conditional));
    let named: Vec<_> = ["layer `dense`", "loss `softmax`"]
        .map(|name| plan.conditions().iter().filter(|condition| condition.contains(name)).count())
        .into();
    assert_eq!(named, [3, 1]);
    let saved = serde_json::to_string(&config).unwrap();
    assert!(saved.contains(r#""name":"own","layer":"dense","settings":[5.0]"#), "{saved}");
    assert_eq!(serde_json::from_str::<TrainConfig>(&saved).unwrap(), config);
    let unknown = TrainConfig { loss: Loss::Own { loss: "hinge".into() }, ..config };
    let error = Plan::new(unknown, facts).unwrap_err().to_string();
    assert!(error.contains("loss.own = hinge: expected one that this program registers: softmax"), "{error}");
}
