//! Every layer against candle's autograd, one record at a time, in `f64`, and against finite
//! differences.
//!
//! The oracle is written from the definitions with candle's elementary operations only:
//! `candle_nn`'s normalisation cuts the graph.

use std::collections::HashMap;

use candle_core::{D, Tensor, Var};
use dp_train::{
    Activation, DType, Device, DropoutKey, Engine, ImageShape, InputShape, LayerConfig, Loss, Model, ModelConfig,
    Pooling, Records,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::support::{Data, norm, relative_error, trained_part, whole_variables};

type Vars = HashMap<String, Var>;

fn vars(model: &Model) -> Vars {
    let names = model.parameters().specs().iter().map(|spec| spec.name.clone());
    names.zip(whole_variables(model)).collect()
}

fn activate(x: &Tensor, function: Activation) -> candle_core::Result<Tensor> {
    match function {
        Activation::Tanh => x.tanh(),
        Activation::Relu => x.relu(),
        Activation::Sigmoid => (x.neg()?.exp()? + 1.0)?.recip(),
        Activation::Gelu => (x * 0.5)? * ((x / std::f64::consts::SQRT_2)?.erf()? + 1.0)?,
        Activation::GeluTanh => {
            let inner = ((x + (x.powf(3.0)? * 0.044_715)?)? * (2.0 / std::f64::consts::PI).sqrt())?;
            (x * 0.5)? * (inner.tanh()? + 1.0)?
        }
        other => unreachable!("{other:?} has no oracle"),
    }
}

/// One record, `[positions, channels]` with the positions of an image of `height` rows, through the
/// layers.
fn forward(
    layers: &[LayerConfig],
    prefix: &str,
    mut x: Tensor,
    mut height: usize,
    vars: &Vars,
) -> candle_core::Result<Tensor> {
    for (i, layer) in layers.iter().enumerate() {
        let of = |name: &str| vars[&format!("{prefix}{i}.{name}")].as_tensor();
        let (positions, channels) = x.dims2()?;
        let normalise = |x: &Tensor, shape: (usize, usize, usize)| {
            // [rows, values that are normalised together, …]: mean and variance over the last two.
            let x = x.reshape(shape)?;
            let centred = x.broadcast_sub(&x.mean_keepdim((0, 2))?)?;
            let variance = centred.sqr()?.mean_keepdim((0, 2))?;
            centred.broadcast_div(&(variance + 1e-5)?.sqrt()?)?.reshape((positions, channels))
        };
        x = match layer {
            LayerConfig::Linear { .. } => x.matmul(&of("weight").t()?)?.broadcast_add(of("bias"))?,
            LayerConfig::Embedding { vocabulary, .. } => {
                let mut one_hot = vec![0.0; positions * vocabulary];
                for (t, id) in x.flatten_all()?.to_vec1::<f64>()?.into_iter().enumerate() {
                    one_hot[t * vocabulary + id as usize] = 1.0;
                }
                Tensor::from_vec(one_hot, (positions, *vocabulary), x.device())?.matmul(of("weight"))?
            }
            LayerConfig::GroupNorm { groups } => normalise(&x, (positions, *groups, channels / groups))?
                .broadcast_mul(of("weight"))?
                .broadcast_add(of("bias"))?,
            LayerConfig::LayerNorm => {
                normalise(&x, (1, positions, channels))?.broadcast_mul(of("weight"))?.broadcast_add(of("bias"))?
            }
            LayerConfig::Activation { function } => activate(&x, *function)?,
            LayerConfig::Dropout { .. } => x,
            LayerConfig::Residual { branch, shortcut } => {
                let skipped = forward(shortcut, &format!("{prefix}{i}.shortcut."), x.clone(), height, vars)?;
                (forward(branch, &format!("{prefix}{i}.branch."), x, height, vars)? + skipped)?
            }
            LayerConfig::Conv { outputs, stride, padding, groups, bias, .. } => {
                let image = x.t()?.reshape((1, channels, height, positions / height))?;
                let weight = of("weight").permute((0, 3, 1, 2))?.contiguous()?;
                let image = image.contiguous()?.conv2d(&weight, *padding, *stride, 1, *groups)?;
                height = image.dim(2)?;
                let x = image.reshape((*outputs, ()))?.t()?;
                if *bias { x.broadcast_add(of("bias"))? } else { x.contiguous()? }
            }
            LayerConfig::GlobalAveragePool => x.mean_keepdim(0)?,
            LayerConfig::Flatten => x.t()?.contiguous()?.reshape((1, positions * channels))?,
            LayerConfig::Pool { .. } => unreachable!("tested with convolutions"),
            LayerConfig::BatchNorm => unreachable!("refused"),
            other => unreachable!("{other:?} has no oracle"),
        };
    }
    Ok(x)
}

fn loss(logits: &Tensor, label: u32) -> candle_core::Result<Tensor> {
    let logits = logits.flatten_all()?;
    let largest = logits.max_keepdim(D::Minus1)?.detach();
    let log_sum = logits.broadcast_sub(&largest)?.exp()?.sum_keepdim(D::Minus1)?.log()?;
    ((log_sum + largest)? - logits.narrow(0, label as usize, 1)?)?.sum_all()
}

struct Case {
    name: &'static str,
    positions: usize,
    channels: usize,
    /// Rows of an image; all positions of a sequence.
    height: usize,
    n_classes: usize,
    layers: Vec<LayerConfig>,
}

impl Case {
    fn model(&self) -> ModelConfig {
        let Self { positions, channels, height, .. } = *self;
        let input = if height == positions {
            InputShape::Sequence { positions, channels }
        } else {
            InputShape::Image(ImageShape { height, width: positions / height, channels })
        };
        ModelConfig::Sequential { input, layers: self.layers.clone() }
    }

    fn data(&self) -> Data {
        let mut data = Data::random(9, self.positions * self.channels, self.n_classes, 1, 3);
        if let Some(LayerConfig::Embedding { vocabulary, .. }) = self.layers.first() {
            // Ids, with repeats within a record.
            data.features.iter_mut().for_each(|x| *x = (x.midpoint(1.0) * *vocabulary as f32).floor());
        }
        data
    }

    /// An engine whose parameters, all of them, are away from their initial zeros and ones, and the
    /// same in both precisions.
    fn engine(&self, records: &Records) -> Engine {
        let engine = Engine::new(&self.model(), Loss::SoftmaxCrossEntropy, records, &Device::Cpu).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let values: Vec<f64> =
            (0..engine.model().parameters().len()).map(|_| f64::from(rng.random_range(-0.8..0.8_f32))).collect();
        engine.model().parameters().set(&values).unwrap();
        engine
    }
}

fn linear(outputs: usize) -> LayerConfig {
    LayerConfig::Linear { outputs }
}

fn activation(function: Activation) -> LayerConfig {
    LayerConfig::Activation { function }
}

fn residual(branch: &[LayerConfig], shortcut: &[LayerConfig]) -> LayerConfig {
    LayerConfig::Residual { branch: branch.to_vec(), shortcut: shortcut.to_vec() }
}

fn cases() -> Vec<Case> {
    let group_norm = |groups| LayerConfig::GroupNorm { groups };
    let case = |name, (positions, channels), n_classes, layers| {
        let height = positions;
        Case { name, positions, channels, height, n_classes, layers }
    };
    let relu = activation(Activation::Relu);
    let gelu = activation(Activation::Gelu);
    vec![
        // 2 · 2² ≤ 9 · 7: by Gram matrices; 2 · 6² > 5 · 4: formed.
        case("linear by gram", (2, 9), 6, vec![linear(7), activation(Activation::Tanh), linear(3)]),
        case("linear formed", (6, 5), 6, vec![linear(4), activation(Activation::Tanh), linear(1)]),
        case(
            "group norm of features",
            (1, 12),
            3,
            vec![linear(8), group_norm(2), activation(Activation::Relu), linear(3)],
        ),
        case("group norm over positions", (5, 6), 5, vec![group_norm(3), linear(8), group_norm(4), linear(1)]),
        case("one group", (4, 6), 4, vec![linear(5), group_norm(1), activation(Activation::Sigmoid), linear(1)]),
        case(
            "layer norm",
            (5, 6),
            5,
            vec![LayerConfig::LayerNorm, linear(8), LayerConfig::LayerNorm, gelu.clone(), linear(1)],
        ),
        case("layer norm of features", (1, 20), 4, vec![LayerConfig::LayerNorm, linear(4)]),
        case(
            "embedding",
            (7, 1),
            7,
            vec![
                LayerConfig::Embedding { vocabulary: 5, channels: 6 },
                linear(4),
                gelu.clone(),
                LayerConfig::LayerNorm,
                linear(1),
            ],
        ),
        case("gelu", (1, 6), 3, vec![linear(9), gelu.clone(), linear(3)]),
        case("gelu by tanh", (1, 6), 3, vec![linear(9), activation(Activation::GeluTanh), linear(3)]),
        case(
            "activations one after another, first and last",
            (1, 6),
            3,
            vec![
                activation(Activation::Tanh),
                gelu.clone(),
                linear(3),
                activation(Activation::Tanh),
                activation(Activation::Sigmoid),
            ],
        ),
        case(
            "residual",
            (1, 6),
            3,
            vec![
                linear(5),
                residual(&[activation(Activation::Tanh), linear(7), gelu.clone(), linear(5)], &[]),
                linear(3),
            ],
        ),
        case(
            "residual first, with a shortcut and one inside the other",
            (3, 6),
            3,
            vec![
                residual(
                    &[linear(8), group_norm(2), activation(Activation::Relu), residual(&[LayerConfig::LayerNorm], &[])],
                    &[linear(8), group_norm(4)],
                ),
                activation(Activation::Tanh),
                linear(1),
            ],
        ),
        case(
            "residual branches that end in activations",
            (1, 6),
            3,
            vec![
                residual(&[linear(6), activation(Activation::Tanh)], &[]),
                residual(&[linear(6), activation(Activation::Sigmoid), LayerConfig::Dropout { probability: 0.5 }], &[]),
                linear(3),
            ],
        ),
        case("flatten", (4, 3), 2, vec![linear(3), relu, LayerConfig::Flatten, linear(2)]),
        case("dropout outside of training", (1, 6), 3, vec![LayerConfig::Dropout { probability: 0.5 }, linear(3)]),
    ]
}

/// On a square image: candle pads the gradient of a strided convolution by its height in both
/// directions.
fn residual_network_on_images() -> Case {
    let group_norm = |groups| LayerConfig::GroupNorm { groups };
    let conv = |outputs, stride| LayerConfig::Conv { outputs, kernel: 3, stride, padding: 1, groups: 1, bias: false };
    let relu = activation(Activation::Relu);
    Case {
        name: "residual network on images",
        positions: 36,
        channels: 2,
        height: 6,
        n_classes: 3,
        layers: vec![
            conv(4, 1),
            group_norm(2),
            relu.clone(),
            residual(&[conv(4, 1), group_norm(2), relu.clone(), conv(4, 1), group_norm(4)], &[]),
            relu.clone(),
            residual(
                &[conv(6, 2), group_norm(3), relu.clone(), conv(6, 1), group_norm(2)],
                &[
                    LayerConfig::Conv { outputs: 6, kernel: 1, stride: 2, padding: 0, groups: 2, bias: true },
                    group_norm(2),
                ],
            ),
            relu.clone(),
            LayerConfig::GlobalAveragePool,
            linear(3),
        ],
    }
}

/// On an image that is not square, with padding, strides and groups, down to one pixel, which only
/// the middle of the last kernel meets.
fn convolutions_and_pools() -> Case {
    let conv =
        |outputs, stride, groups| LayerConfig::Conv { outputs, kernel: 3, stride, padding: 1, groups, bias: true };
    let pool = |pooling, stride, padding| LayerConfig::Pool { pooling, kernel: 2, stride, padding };
    Case {
        name: "convolutions and pools",
        positions: 20,
        channels: 2,
        height: 5,
        n_classes: 3,
        layers: vec![
            conv(4, 1, 2),
            activation(Activation::Tanh),
            pool(Pooling::Max, 1, 1),
            conv(6, 2, 1),
            activation(Activation::GeluTanh),
            pool(Pooling::Average, 2, 0),
            conv(3, 1, 1),
            LayerConfig::Flatten,
            linear(3),
        ],
    }
}

#[test]
fn layers_agree_with_autograd() {
    for case in cases().into_iter().chain([residual_network_on_images()]) {
        let data = case.data();
        let width = case.positions * case.channels;
        let rows = [0, 1, 2, 3, 4, 5, 6, 7, 8, 3];
        let weights = [0.5, -1.0, 2.0, 0.0, 1.0, -0.25, 1.5, 1.0, -2.0, 0.75];
        for (dtype, tolerance) in [(DType::F64, 1e-10), (DType::F32, 3e-5)] {
            let records = data.records(dtype);
            let mut engine = case.engine(&records);
            let vars = vars(engine.model());
            engine.differentiate(&records, &rows, &[]).unwrap();
            let (losses, norms) = (engine.losses().unwrap(), engine.gradient_norms().unwrap());
            let sum = engine.zero_gradient().unwrap();
            engine.weighted_sum(&weights, &sum, false).unwrap();

            let mut expected_sum = vec![0.0; sum.len()];
            let mut size = 0.0;
            for (i, (&row, weight)) in rows.iter().zip(weights).enumerate() {
                let x = &data.features[row * width..(row + 1) * width];
                let x = Tensor::from_slice(x, (case.positions, case.channels), &Device::Cpu).unwrap();
                let logits = match case.model() {
                    ModelConfig::Sequential { layers, .. } => {
                        forward(&layers, "", x.to_dtype(DType::F64).unwrap(), case.height, &vars)
                    }
                    other => panic!("{other:?}"),
                };
                let loss = loss(&logits.unwrap(), data.labels[row]).unwrap();
                let gradients = loss.backward().unwrap();
                let gradient: Vec<f64> = engine
                    .model()
                    .parameters()
                    .specs()
                    .iter()
                    .flat_map(|spec| trained_part(spec, gradients.get(vars[&spec.name].as_tensor()).unwrap()))
                    .collect();
                let loss = loss.to_scalar::<f64>().unwrap();
                assert!((losses[i] - loss).abs() <= tolerance * (1.0 + loss), "{} {dtype:?}", case.name);
                let expected = norm(&gradient);
                assert!(
                    (norms[i] - expected).abs() <= tolerance * expected,
                    "{} {dtype:?}: {} {expected}",
                    case.name,
                    norms[i]
                );
                expected_sum.iter_mut().zip(&gradient).for_each(|(total, g)| *total += weight * g);
                size += weight.abs() * expected;
            }
            let error = relative_error(&sum.to_vec().unwrap(), &expected_sum) * norm(&expected_sum) / size;
            assert!(error <= tolerance, "{} {dtype:?}: {error}", case.name);
        }
    }
}

/// Along random directions of length 1: needs no other implementation to be right. The error of a
/// central difference is of order h² and of order 1e-16/h.
#[test]
fn gradients_of_every_layer_are_slopes() {
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    for case in cases().into_iter().chain([residual_network_on_images(), convolutions_and_pools()]) {
        let (data, rows, weights) = (case.data(), [0, 2, 4, 6, 8], [0.5, -1.0, 2.0, 1.0, -0.25]);
        let records = data.records(DType::F64);
        let mut engine = case.engine(&records);
        let at = engine.model().parameters().to_vec().unwrap();
        let gradient = engine.zero_gradient().unwrap();
        engine.differentiate(&records, &rows, &[]).unwrap();
        engine.weighted_sum(&weights, &gradient, false).unwrap();
        let gradient = gradient.to_vec().unwrap();
        for _ in 0..4 {
            let direction: Vec<f64> = at.iter().map(|_| rng.random_range(-1.0..1.0)).collect();
            let length = norm(&direction);
            let mut total = |h: f64| {
                let moved: Vec<f64> = at.iter().zip(&direction).map(|(p, d)| p + h * d / length).collect();
                engine.model().parameters().set(&moved).unwrap();
                engine.differentiate(&records, &rows, &[]).unwrap();
                engine.losses().unwrap().iter().zip(weights).map(|(loss, weight)| loss * weight).sum::<f64>()
            };
            let slope = (total(1e-5) - total(-1e-5)) / 2e-5;
            let product = gradient.iter().zip(&direction).map(|(g, d)| g * d / length).sum::<f64>();
            assert!((slope - product).abs() <= 1e-8 * (1.0 + slope.abs()), "{}: {slope} {product}", case.name);
        }
    }
}

/// Along random directions, in training: the masks of one key are the same in every pass, forward
/// and backward. The error of a central difference is of order h² and of order 1e-16/h.
#[test]
fn gradients_are_slopes_with_dropout_in_force() {
    let dropout = || LayerConfig::Dropout { probability: 0.4 };
    let smooth = activation(Activation::Tanh);
    let layers = vec![
        dropout(),
        linear(8),
        smooth.clone(),
        dropout(),
        LayerConfig::GroupNorm { groups: 2 },
        residual(&[linear(6), dropout(), activation(Activation::Gelu), linear(8)], &[]),
        dropout(),
        linear(1),
    ];
    let case = Case { name: "dropout", positions: 3, channels: 5, height: 3, n_classes: 3, layers };
    let (data, rows) = (case.data(), [0, 2, 4, 6, 8]);
    let records = data.records(DType::F64);
    let mut engine = case.engine(&records);
    let at = engine.model().parameters().to_vec().unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let mut whole = Vec::new();
    for key in 0..3 {
        let key = (key > 0).then(|| DropoutKey::draw(&mut ChaCha20Rng::seed_from_u64(key)));
        engine.set_dropout(key);
        for _ in 0..5 {
            let direction: Vec<f64> = at.iter().map(|_| rng.random_range(-1.0..1.0)).collect();
            let mut total = |h: f64| {
                let moved: Vec<f64> = at.iter().zip(&direction).map(|(p, d)| p + h * d).collect();
                engine.model().parameters().set(&moved).unwrap();
                engine.differentiate(&records, &rows, &[]).unwrap();
                engine.losses().unwrap().iter().sum::<f64>()
            };
            let slope = (total(1e-5) - total(-1e-5)) / 2e-5;
            let here = total(0.0);
            let gradient = engine.zero_gradient().unwrap();
            engine.weighted_sum(&[1.0; 5], &gradient, false).unwrap();
            let product: f64 = gradient.to_vec().unwrap().iter().zip(&direction).map(|(g, d)| g * d).sum();
            assert!((slope - product).abs() <= 1e-7 * (1.0 + slope.abs()), "{slope} {product}");
            whole.push(here);
        }
    }
    // Without a key, with one, with another.
    assert!(whole[0] == whole[4] && whole[5] == whole[9] && whole[0] != whole[5] && whole[5] != whole[10]);
}

#[test]
fn ids_that_are_none_are_refused_and_ids_that_are_no_numbers_left_out() {
    let layers = vec![LayerConfig::Embedding { vocabulary: 5, channels: 2 }, linear(1)];
    let case = Case { name: "ids", positions: 3, channels: 1, height: 3, n_classes: 3, layers };
    let with = |id: f32| {
        let mut data = case.data();
        data.features_of(4)[1] = id;
        let records = data.records(DType::F32);
        let mut engine = Engine::new(&case.model(), Loss::SoftmaxCrossEntropy, &records, &Device::Cpu)?;
        engine.differentiate(&records, &[0, 4, 5], &[]).and_then(|()| engine.gradient_norms())
    };
    insta::assert_snapshot!(with(5.0).unwrap_err(), @"id at position 1 of record 4: expected a whole number in 0..5, got 5");
    insta::assert_snapshot!(with(-1.0).unwrap_err(), @"id at position 1 of record 4: expected a whole number in 0..5, got -1");
    insta::assert_snapshot!(with(1.5).unwrap_err(), @"id at position 1 of record 4: expected a whole number in 0..5, got 1.5");
    let norms = with(f32::NAN).unwrap();
    assert!(norms[0].is_finite() && norms[1].is_nan() && norms[2].is_finite());
    assert!(with(f32::INFINITY).unwrap()[1].is_nan());
}
