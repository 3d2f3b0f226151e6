//! Convolutional networks against candle's autograd, one record at a time, in `f64`.
//!
//! The oracle has channels first and shares nothing with the engine but the parameters. Of candle's
//! own operations, max pooling has a wrong gradient, and convolution one of the wrong size where a
//! stride leaves pixels over. Here a convolution is a matrix product per tap, and the places of the
//! largest pixels of a pooling are searched by plain loops and read by `gather`.

use candle_core::{D, Tensor, Var};
use dp_train::{
    Activation, DType, Device, Engine, ImageShape, LayerConfig, Loss, Model, ModelConfig, Pooling, Records,
    ZhaoCnnLayout,
};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::support::{Data, norm, relative_error, trained_part, whole_variables};

/// A network as the oracle reads it: the parts that a named architecture leaves unsaid are said.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub(crate) config: ModelConfig,
    image: ImageShape,
    features: Vec<LayerConfig>,
    activation: Activation,
}

impl Network {
    pub(crate) fn cnn(image: ImageShape, features: &[LayerConfig], hidden: &[usize], activation: Activation) -> Self {
        let features = features.to_vec();
        let config = ModelConfig::Cnn { image, features: features.clone(), hidden: hidden.to_vec(), activation };
        Self { config, image, features, activation }
    }
}

fn activate(x: &Tensor, activation: Activation) -> candle_core::Result<Tensor> {
    match activation {
        Activation::Tanh => x.tanh(),
        Activation::Relu => x.relu(),
        Activation::Sigmoid => (x.neg()?.exp()? + 1.0)?.recip(),
        _ => unreachable!("tested with the other layers"),
    }
}

/// The largest pixel of each window, of `[1, channels, height, width]`.
fn max_pool(x: &Tensor, kernel: usize, stride: usize, padding: usize) -> candle_core::Result<Tensor> {
    let (_, channels, height, width) = x.dims4()?;
    let values = x.flatten_all()?.to_vec1::<f64>()?;
    let out = |size: usize| (size + 2 * padding - kernel) / stride + 1;
    let mut places = Vec::new();
    for channel in 0..channels {
        for y in 0..out(height) {
            for x in 0..out(width) {
                let inside = |position: usize, offset: usize, size: usize| {
                    (position * stride + offset).checked_sub(padding).filter(|&i| i < size)
                };
                let mut best: Option<usize> = None;
                for (ky, kx) in (0..kernel).flat_map(|ky| (0..kernel).map(move |kx| (ky, kx))) {
                    if let (Some(row), Some(column)) = (inside(y, ky, height), inside(x, kx, width)) {
                        let place = (channel * height + row) * width + column;
                        if best.is_none_or(|best| values[place] > values[best]) {
                            best = Some(place);
                        }
                    }
                }
                places.push(best.unwrap() as u32);
            }
        }
    }
    let n = places.len();
    let places = Tensor::from_vec(places, n, &Device::Cpu)?;
    x.flatten_all()?.gather(&places, 0)?.reshape((1, channels, out(height), out(width)))
}

/// What tap `(ky, kx)` of a window sees at every position, `[1, channels, out height, out width]`,
/// of an image with its padding.
fn seen(padded: &Tensor, (ky, kx): (usize, usize), kernel: usize, stride: usize) -> candle_core::Result<Tensor> {
    let places = |size: usize, offset: usize| {
        let places: Vec<u32> = (0..=(size - kernel) / stride).map(|i| (i * stride + offset) as u32).collect();
        Tensor::new(places.as_slice(), &Device::Cpu)
    };
    let (_, _, height, width) = padded.dims4()?;
    padded.index_select(&places(height, ky)?, 2)?.index_select(&places(width, kx)?, 3)
}

fn pad(x: &Tensor, padding: usize) -> candle_core::Result<Tensor> {
    x.pad_with_zeros(2, padding, padding)?.pad_with_zeros(3, padding, padding)
}

fn average_pool(x: &Tensor, kernel: usize, stride: usize, padding: usize) -> candle_core::Result<Tensor> {
    let x = pad(x, padding)?;
    let mut sum = seen(&x, (0, 0), kernel, stride)?;
    for tap in (0..kernel).flat_map(|ky| (0..kernel).map(move |kx| (ky, kx))).skip(1) {
        sum = (sum + seen(&x, tap, kernel, stride)?)?;
    }
    sum / (kernel * kernel) as f64
}

/// Convolution with a weight `[filters, kernel, kernel, channels / groups]`, one matrix product per
/// tap and group.
fn conv(x: &Tensor, weight: &Tensor, stride: usize, padding: usize, groups: usize) -> candle_core::Result<Tensor> {
    let x = pad(x, padding)?;
    let (filters, kernel, _, channels) = weight.dims4()?;
    let filters = filters / groups;
    let mut outputs = Vec::new();
    for group in 0..groups {
        let weight = weight.narrow(0, group * filters, filters)?;
        let x = x.narrow(1, group * channels, channels)?;
        let mut sum: Option<Tensor> = None;
        for (ky, kx) in (0..kernel).flat_map(|ky| (0..kernel).map(move |kx| (ky, kx))) {
            let weight = weight.narrow(1, ky, 1)?.narrow(2, kx, 1)?.reshape((filters, channels))?;
            let x = seen(&x, (ky, kx), kernel, stride)?;
            let (_, _, height, width) = x.dims4()?;
            let product = weight.matmul(&x.reshape((channels, height * width))?)?;
            let product = product.reshape((1, filters, height, width))?;
            sum = Some(match sum {
                Some(sum) => (sum + product)?,
                None => product,
            });
        }
        outputs.extend(sum);
    }
    Tensor::cat(&outputs, 1)
}

pub(crate) fn oracle_logits(network: &Network, variables: &[Var], x: &[f32]) -> candle_core::Result<Tensor> {
    let ImageShape { height, width, channels } = network.image;
    let image = Tensor::from_slice(x, (1, height, width, channels), &Device::Cpu)?.to_dtype(DType::F64)?;
    let mut hidden = image.permute((0, 3, 1, 2))?.contiguous()?;
    let (mut weights, mut biases) = (variables.iter().step_by(2), variables.iter().skip(1).step_by(2));
    for feature in &network.features {
        hidden = match *feature {
            LayerConfig::Conv { outputs: filters, stride, padding, groups, .. } => {
                let bias = biases.next().unwrap().reshape((1, filters, 1, 1))?;
                let output = conv(&hidden, weights.next().unwrap(), stride, padding, groups)?.broadcast_add(&bias)?;
                activate(&output, network.activation)?
            }
            LayerConfig::Pool { pooling: Pooling::Max, kernel, stride, padding } => {
                max_pool(&hidden, kernel, stride, padding)?
            }
            LayerConfig::Pool { pooling: Pooling::Average, kernel, stride, padding } => {
                average_pool(&hidden, kernel, stride, padding)?
            }
            LayerConfig::GlobalAveragePool => hidden.mean_keepdim(D::Minus1)?.mean_keepdim(D::Minus2)?,
            ref other => unreachable!("{other:?} in the convolutional part"),
        };
    }
    let mut hidden = hidden.flatten_from(1)?;
    let n_linear = weights.len();
    for (i, (weight, bias)) in weights.zip(biases).enumerate() {
        hidden = hidden.matmul(&weight.t()?)?.broadcast_add(bias)?;
        if i + 1 < n_linear {
            hidden = activate(&hidden, network.activation)?;
        }
    }
    Ok(hidden)
}

/// Loss (`ln Σ_j exp(z_j) − z_y`) and flat gradient of one record.
fn oracle_gradient(network: &Network, model: &Model, x: &[f32], label: u32) -> (f64, Vec<f64>) {
    let variables = whole_variables(model);
    let logits = oracle_logits(network, &variables, x).unwrap();
    let log_sum = logits.exp().unwrap().sum_all().unwrap().log().unwrap();
    let loss = (log_sum - logits.narrow(1, label as usize, 1).unwrap().sum_all().unwrap()).unwrap();
    let gradients = loss.backward().unwrap();
    let specs = model.parameters().specs();
    let flat = variables.iter().zip(specs).flat_map(|(variable, spec)| match gradients.get(variable.as_tensor()) {
        Some(gradient) => trained_part(spec, gradient),
        None => vec![0.0; spec.len()],
    });
    (loss.to_scalar().unwrap(), flat.collect())
}

/// What the engine says of a whole batch: losses, norms, the weighted sum, and that sum again, now
/// without norms.
struct Answer {
    losses: Vec<f64>,
    norms: Vec<f64>,
    weighted_sum: Vec<f64>,
    sum_without_norms: Vec<f64>,
}

fn ask(engine: &mut Engine, records: &Records, rows: &[usize], weights: &[f64]) -> Answer {
    let gradient = engine.zero_gradient().unwrap();
    engine.differentiate(records, rows, &[]).unwrap();
    engine.weighted_sum(weights, &gradient, false).unwrap();
    let sum_without_norms = gradient.to_vec().unwrap();
    engine.differentiate(records, rows, &[]).unwrap();
    let (losses, norms) = (engine.losses().unwrap(), engine.gradient_norms().unwrap());
    engine.weighted_sum(weights, &gradient, false).unwrap();
    Answer { losses, norms, weighted_sum: gradient.to_vec().unwrap(), sum_without_norms }
}

/// Engine and oracle on the same network and records, in both precisions.
fn compare(network: &Network, n_classes: usize, rows: &[usize], weights: &[f64], seed: u64) {
    let n_records = rows.iter().max().unwrap() + 1;
    let n_inputs = network.image.len();
    let data = Data::random(n_records, n_inputs, n_classes, 1, seed);
    let records = data.records(DType::F64);
    let mut engine = Engine::new(&network.config, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu).unwrap();
    engine.model().initialise(&mut ChaCha20Rng::seed_from_u64(seed)).unwrap();
    // Values that f32 holds, so that both precisions start from the same model.
    let start: Vec<f64> = engine.model().parameters().to_vec().unwrap().iter().map(|&p| f64::from(p as f32)).collect();
    engine.model().parameters().set(&start).unwrap();
    let got = ask(&mut engine, &records, rows, weights);

    let mut sum = vec![0.0; start.len()];
    let mut size = 0.0;
    for (i, (&row, weight)) in rows.iter().zip(weights).enumerate() {
        let x = &data.features[row * n_inputs..(row + 1) * n_inputs];
        let (expected_loss, gradient) = oracle_gradient(network, engine.model(), x, data.labels[row]);
        assert!((got.losses[i] - expected_loss).abs() <= 1e-12 * (1.0 + expected_loss), "{network:?}");
        let expected_norm = norm(&gradient);
        // Not below: where positions cancel it is more.
        assert!(got.norms[i] >= expected_norm * (1.0 - 1e-10), "{network:?}");
        for (total, g) in sum.iter_mut().zip(&gradient) {
            *total += weight * g;
        }
        size += weight.abs() * expected_norm;
    }
    // Weights of both signs may cancel: the error is relative to what was added up, not to what is
    // left.
    let error = |answer: &[f64]| relative_error(answer, &sum) * norm(&sum) / size.max(f64::MIN_POSITIVE);
    for answer in [&got.weighted_sum, &got.sum_without_norms] {
        assert!(error(answer) <= 1e-10, "{network:?}: {}", error(answer));
    }

    let records = data.records(DType::F32);
    let mut single = Engine::new(&network.config, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu).unwrap();
    single.model().parameters().set(&start).unwrap();
    let single = ask(&mut single, &records, rows, weights);
    for (a, b) in single.norms.iter().zip(&got.norms) {
        assert!((a - b).abs() <= 1e-4 * b, "{network:?}: {a} {b}");
    }
    for answer in [&single.weighted_sum, &single.sum_without_norms] {
        assert!(error(answer) <= 1e-4, "{network:?}: {}", error(answer));
    }
}

fn feature() -> impl Strategy<Value = LayerConfig> {
    let pooling = prop::sample::select(vec![Pooling::Max, Pooling::Average]);
    prop_oneof![
        3 => (1_usize..4, 1_usize..4, 1_usize..3, 0_usize..2, prop::sample::select(vec![1, 1, 2])).prop_map(
            |(filters, kernel, stride, padding, groups)| {
                LayerConfig::Conv { outputs: 2 * filters, kernel, stride, padding: padding.min(kernel - 1), groups, bias: true }
            }
        ),
        2 => (pooling, 1_usize..4, 1_usize..3, 0_usize..2).prop_map(|(pooling, kernel, stride, padding)| {
            LayerConfig::Pool { pooling, kernel, stride, padding: padding.min(kernel / 2) }
        }),
        1 => Just(LayerConfig::GlobalAveragePool),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Small images and whatever layers fit on them.
    #[test]
    fn small_networks_agree_with_autograd(
        (height, width, channels) in (1_usize..9, 1_usize..9, prop::sample::select(vec![2, 4])),
        features in prop::collection::vec(feature(), 1..4),
        hidden in prop::collection::vec(1_usize..6, 0..2),
        activation in prop::sample::select(vec![Activation::Tanh, Activation::Relu, Activation::Sigmoid]),
        rows in prop::collection::vec(0_usize..4, 1..6),
        weights in prop::collection::vec(-2.0..2.0_f64, 6),
        seed in any::<u64>(),
    ) {
        let image = ImageShape { height, width, channels };
        // Layers from the first that does not fit on are left out.
        let n = (1..=features.len()).take_while(|&n| {
            let config = Network::cnn(image, &features[..n], &hidden, activation).config;
            Model::new(&config, image.len(), 3, DType::F64, &Device::Cpu).is_ok()
        }).count();
        let network = Network::cnn(image, &features[..n], &hidden, activation);
        compare(&network, 3, &rows, &weights[..rows.len()], seed);
    }
}

/// The networks of the papers, whose shapes take the ways that small ones do not: without patches,
/// and with large weights.
#[test]
fn the_papers_networks_agree_with_autograd() {
    let mnist = ImageShape { height: 28, width: 28, channels: 1 };
    let conv = LayerConfig::conv;
    let max = LayerConfig::max_pool;
    let networks = [
        (ModelConfig::EsipovaCnn { image: mnist }, vec![conv(32, 3), conv(16, 3)], Activation::Tanh),
        (ModelConfig::XuCnn { image: mnist }, vec![conv(20, 5), max(2, 2), conv(50, 5), max(2, 2)], Activation::Relu),
        (
            ModelConfig::ZhaoCnn { image: mnist, layout: ZhaoCnnLayout::Text },
            vec![conv(64, 3), max(3, 2), conv(64, 3), max(3, 2)],
            Activation::Relu,
        ),
    ];
    for (config, features, activation) in networks {
        let network = Network { config, image: mnist, features, activation };
        compare(&network, 10, &[0, 1, 0], &[0.5, -1.0, 2.0], 3);
    }
}

/// Padding and strides at full width; few positions and a large weight (Gram), many and a small one
/// (kept).
#[test]
fn wide_networks_agree_with_autograd() {
    let image = ImageShape { height: 30, width: 22, channels: 17 };
    let conv = |filters, kernel, stride, padding| LayerConfig::Conv {
        outputs: filters,
        kernel,
        stride,
        padding,
        groups: 1,
        bias: true,
    };
    let features = [conv(18, 3, 1, 1), conv(33, 5, 1, 2), conv(40, 3, 2, 1), conv(70, 3, 4, 1), conv(65, 3, 1, 1)];
    for activation in [Activation::Tanh, Activation::Relu] {
        let network = Network::cnn(image, &features, &[], activation);
        compare(&network, 4, &[0, 1, 1, 2], &[0.5, -1.0, 2.0, 1.0], 4);
    }
}

#[test]
fn networks_that_do_not_fit_are_refused() {
    let image = ImageShape { height: 6, width: 5, channels: 3 };
    let refused = |features: &[LayerConfig]| {
        let config = Network::cnn(image, features, &[], Activation::Relu).config;
        Model::new(&config, 90, 2, DType::F32, &Device::Cpu).err().unwrap()
    };
    let conv = |filters, kernel, stride, padding, groups| LayerConfig::Conv {
        outputs: filters,
        kernel,
        stride,
        padding,
        groups,
        bias: true,
    };
    insta::assert_snapshot!(refused(&[conv(4, 6, 1, 0, 1)]), @"model.kernel = 6: expected 1 to 5, the smaller side of the padded image");
    insta::assert_snapshot!(refused(&[conv(4, 3, 0, 0, 1)]), @"model.stride = 0: expected at least 1");
    insta::assert_snapshot!(refused(&[conv(4, 3, 1, 3, 1)]), @"model.padding = 3: expected less than the kernel, 3");
    insta::assert_snapshot!(refused(&[conv(4, 3, 1, 0, 3)]), @"model.groups = 3: expected a divisor of 3 channels and 4 filters");
    insta::assert_snapshot!(refused(&[conv(0, 3, 1, 0, 1)]), @"model.filters = 0: expected at least 1");
    let pool = LayerConfig::Pool { pooling: Pooling::Max, kernel: 3, stride: 1, padding: 2 };
    insta::assert_snapshot!(refused(&[pool]), @"model.padding = 2: expected at most half of the window, 1");
    insta::assert_snapshot!(refused(&[LayerConfig::Flatten]), @"model.features = flatten: expected conv, pool or global-average-pool");
    let config = ModelConfig::EsipovaCnn { image };
    let error = Model::new(&config, 91, 2, DType::F32, &Device::Cpu).err().unwrap();
    insta::assert_snapshot!(error, @"model.image = 6 × 5 × 3: expected height × width × channels to be the 91 inputs of a record");
}
