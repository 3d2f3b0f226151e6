//! Second derivatives against candle's double backward, the closed form of logistic regression, and
//! exact traces and eigenvalues.

use candle_core::{D, Tensor, Var};
use dp_train::analysis::Curvature;
use dp_train::{Activation, DType, Device, Engine, ImageShape, LayerConfig, Loss, ModelConfig, Records};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::convolution::{Network, oracle_logits};
use crate::support::{Data, mlp, norm, relative_error, whole_variables};

/// A Hessian-vector product by candle's autograd, twice: the gradient of `⟨∇L, v⟩`. `loss` makes
/// the mean loss from the variables.
fn double_backward(variables: &[Var], loss: impl Fn(&[Var]) -> Tensor, vector: &[f64]) -> Vec<f64> {
    // candle keeps the graph of its gradients only where this is set; nothing else in this program
    // reads it.
    #[expect(unsafe_code, reason = "setting a variable of the environment")]
    // SAFETY: everything in this program that reads the environment does so through the standard
    // library, which takes a lock.
    unsafe {
        std::env::set_var("CANDLE_GRAD_DO_NOT_DETACH", "1");
    }
    let first = loss(variables).backward().unwrap();
    let mut start = 0;
    let mut slope = Tensor::zeros((), DType::F64, &Device::Cpu).unwrap();
    for var in variables {
        let gradient = first.get(var.as_tensor()).unwrap().flatten_all().unwrap();
        let len = gradient.elem_count();
        let direction = Tensor::from_slice(&vector[start..start + len], len, &Device::Cpu).unwrap();
        slope = (slope + (gradient * direction).unwrap().sum_all().unwrap()).unwrap();
        start += len;
    }
    let second = slope.backward().unwrap();
    let of = |var: &Var| second.get(var.as_tensor()).unwrap().flatten_all().unwrap().to_vec1::<f64>().unwrap();
    variables.iter().flat_map(of).collect()
}

/// Mean softmax cross-entropy of rows of logits.
fn cross_entropy(logits: &Tensor, labels: &[u32]) -> Tensor {
    let log_sum = logits.exp().unwrap().sum_keepdim(D::Minus1).unwrap().log().unwrap();
    let labels = Tensor::from_slice(labels, (labels.len(), 1), &Device::Cpu).unwrap();
    (log_sum - logits.gather(&labels, 1).unwrap()).unwrap().mean_all().unwrap()
}

/// Logits of linear layers, each a weight and a bias, with tanh between them.
fn linear_logits(variables: &[Var], data: &Data) -> Tensor {
    let x = Tensor::from_slice(&data.features, (data.facts.n_records, data.facts.n_inputs), &Device::Cpu).unwrap();
    let mut hidden = x.to_dtype(DType::F64).unwrap();
    for (i, layer) in variables.chunks_exact(2).enumerate() {
        hidden = hidden.matmul(&layer[0].t().unwrap()).unwrap().broadcast_add(&layer[1]).unwrap();
        if 2 * (i + 1) < variables.len() {
            hidden = hidden.tanh().unwrap();
        }
    }
    hidden
}

/// A model with drawn parameters: its curvature there, and the same parameters as candle variables.
fn model(config: &ModelConfig, loss: Loss, records: &Records, seed: u64) -> (Curvature, Vec<Var>, Vec<f64>) {
    let engine = Engine::new(config, loss.clone(), records, &Device::Cpu).unwrap();
    engine.model().initialise(&mut ChaCha20Rng::seed_from_u64(seed)).unwrap();
    let parameters = engine.model().parameters().to_vec().unwrap();
    let mut curvature = Curvature::new(config, loss, records).unwrap();
    curvature.set_parameters(&parameters).unwrap();
    (curvature, whole_variables(engine.model()), parameters)
}

fn vector(len: usize, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..len).map(|_| rng.random_range(-1.0..1.0)).collect()
}

fn all(records: &Records) -> Vec<usize> {
    (0..records.len()).collect()
}

/// The Hessian, column by column.
fn hessian(curvature: &mut Curvature, records: &Records, n_params: usize) -> Vec<Vec<f64>> {
    let unit = |i: usize| (0..n_params).map(|j| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
    (0..n_params).map(|i| curvature.product(records, &all(records), &unit(i)).unwrap()).collect()
}

/// Products and quadratic forms along vectors of three lengths, to 1e-6.
fn compare(config: &ModelConfig, data: &Data, seed: u64, logits: impl Fn(&[Var]) -> Tensor) {
    let records = data.records(DType::F64);
    let (mut curvature, variables, parameters) = model(config, Loss::SoftmaxCrossEntropy, &records, seed);
    for length in [1e-3, 1.0, 50.0] {
        let v: Vec<f64> = vector(parameters.len(), seed + 10).iter().map(|v| v * length).collect();
        let expected = double_backward(&variables, |variables| cross_entropy(&logits(variables), &data.labels), &v);
        let product = curvature.product(&records, &all(&records), &v).unwrap();
        assert!(relative_error(&product, &expected) < 1e-6, "{}", relative_error(&product, &expected));
        let form: f64 = expected.iter().zip(&v).map(|(h, v)| h * v).sum();
        let forms = curvature.quadratic_forms(&records, &all(&records), &[&v, &v]).unwrap();
        let mean = forms[0].iter().sum::<f64>() / records.len() as f64;
        assert!((mean - form).abs() < 1e-6 * norm(&expected) * norm(&v), "{mean} {form}");
        assert!(relative_error(&forms[1], &forms[0]) < 1e-6);
    }
}

#[test]
fn linear_networks_agree_with_double_backward() {
    for (config, seed) in
        [(ModelConfig::LogisticRegression, 1), (mlp(&[7], Activation::Tanh), 2), (mlp(&[20, 16], Activation::Tanh), 3)]
    {
        let data = Data::random(30, 6, 3, 1, seed);
        compare(&config, &data, seed, |variables| linear_logits(variables, &data));
    }
}

/// Two convolutions, one with a stride, and a linear layer.
#[test]
fn convolutional_networks_agree_with_double_backward() {
    let image = ImageShape { height: 6, width: 6, channels: 2 };
    let strided = LayerConfig::Conv { outputs: 2, kernel: 2, stride: 2, padding: 0, groups: 1, bias: true };
    let network = Network::cnn(image, &[LayerConfig::conv(3, 3), strided], &[], Activation::Tanh);
    let data = Data::random(5, 72, 3, 1, 15);
    compare(&network.config, &data, 15, |variables| {
        let rows: Vec<Tensor> =
            data.features.chunks_exact(72).map(|x| oracle_logits(&network, variables, x).unwrap()).collect();
        Tensor::cat(&rows, 0).unwrap()
    });
}

/// The Hessian of logistic regression is the mean of `p(1 − p) (x, 1)ᵀ(x, 1)`, `p` the predicted
/// probability.
#[test]
fn logistic_regression_in_closed_form() {
    let data = Data::random(40, 5, 2, 1, 4);
    let records = data.records(DType::F64);
    let (mut curvature, _, parameters) = model(&ModelConfig::LogisticRegression, Loss::BceWithLogits, &records, 5);
    let mut expected = vec![vec![0.0; 6]; 6];
    for x in data.features.chunks_exact(5) {
        let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).chain([1.0]).collect();
        let z: f64 = x.iter().zip(&parameters).map(|(x, w)| x * w).sum();
        let p = 1.0 / (1.0 + (-z).exp());
        for (row, xi) in expected.iter_mut().zip(&x) {
            for (entry, xj) in row.iter_mut().zip(&x) {
                *entry += p * (1.0 - p) * xi * xj / 40.0;
            }
        }
    }
    let found = hessian(&mut curvature, &records, 6);
    for (found, expected) in found.iter().zip(&expected) {
        assert!(relative_error(found, expected) < 1e-7);
    }
    // The largest eigenvalue by many products of the closed form.
    let mut v = vec![1.0; 6];
    for _ in 0..10_000 {
        let next: Vec<f64> = expected.iter().map(|row| row.iter().zip(&v).map(|(h, v)| h * v).sum()).collect();
        v = next.iter().map(|x| x / norm(&next)).collect();
    }
    let largest = norm(&expected.iter().map(|row| row.iter().zip(&v).map(|(h, v)| h * v).sum()).collect::<Vec<f64>>());
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let eigenvalue = curvature.largest_eigenvalue(&records, &all(&records), 200, None, &mut rng).unwrap();
    assert!((eigenvalue.value / largest - 1.0).abs() < 1e-6, "{} {largest}", eigenvalue.value);
    assert!(eigenvalue.residual < 1e-4 * largest);
}

/// 400 random probes against the trace column by column. Beyond 3 standard errors by chance: 0.3 %
/// each; the seed is fixed.
#[test]
fn traces_are_within_three_standard_errors() {
    for (config, seed) in [(ModelConfig::LogisticRegression, 7), (mlp(&[6], Activation::Tanh), 8)] {
        let records = Data::random(30, 5, 3, 1, seed).records(DType::F64);
        let (mut curvature, _, parameters) = model(&config, Loss::SoftmaxCrossEntropy, &records, seed);
        let exact: f64 =
            hessian(&mut curvature, &records, parameters.len()).iter().enumerate().map(|(i, row)| row[i]).sum();
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let trace = curvature.trace(&records, &all(&records), 400, &mut rng).unwrap();
        let error = trace.standard_error.unwrap();
        assert!((trace.mean - exact).abs() < 3.0 * error, "{trace:?} {exact}");
        assert!(error < 0.1 * exact);
    }
}

/// At a saddle the eigenvalue of largest magnitude may be negative: the largest one is found all
/// the same. `L = −ln softmax` of two linear layers 1 → 1 → 2 around 0 has the Hessian of `w u`, an
/// indefinite form.
#[test]
fn the_largest_eigenvalue_of_an_indefinite_hessian() {
    let data = Data::random(20, 3, 2, 1, 9);
    let records = data.records(DType::F64);
    let (mut curvature, _, parameters) = model(&mlp(&[4], Activation::Tanh), Loss::SoftmaxCrossEntropy, &records, 9);
    let n = parameters.len();
    let found = hessian(&mut curvature, &records, n);
    // Largest eigenvalue of the matrix shifted to be positive, by many products.
    let shift: f64 = found.iter().map(|row| row.iter().map(|h| h.abs()).sum::<f64>()).fold(0.0, f64::max);
    let mut v = vector(n, 11);
    let mut largest = 0.0;
    for _ in 0..20_000 {
        let next: Vec<f64> = found
            .iter()
            .zip(&v)
            .map(|(row, x)| row.iter().zip(&v).map(|(h, v)| h * v).sum::<f64>() + shift * x)
            .collect();
        largest = norm(&next) - shift;
        v = next.iter().map(|x| x / norm(&next)).collect();
    }
    let mut rng = ChaCha20Rng::seed_from_u64(12);
    let eigenvalue = curvature.largest_eigenvalue(&records, &all(&records), 400, None, &mut rng).unwrap();
    assert!((eigenvalue.value - largest).abs() < 1e-4 * shift, "{} {largest}", eigenvalue.value);
    assert!(eigenvalue.value <= largest + 1e-7);
}

#[test]
fn zero_vectors_no_rows_and_single_precision() {
    let data = Data::random(4, 2, 2, 1, 13);
    let records = data.records(DType::F64);
    let (mut curvature, _, _) = model(&ModelConfig::LogisticRegression, Loss::BceWithLogits, &records, 14);
    assert_eq!(curvature.product(&records, &[0], &[0.0; 3]).unwrap(), [0.0; 3]);
    assert_eq!(curvature.product(&records, &[], &[1.0; 3]).unwrap(), [0.0; 3]);
    assert_eq!(curvature.quadratic_forms(&records, &[0, 1], &[&[0.0; 3]]).unwrap(), [[0.0; 2]]);
    let single = data.records(DType::F32);
    let error = Curvature::new(&ModelConfig::LogisticRegression, Loss::BceWithLogits, &single).err().unwrap();
    insta::assert_snapshot!(error, @"number type of analysed records: expected f64, got f32");
}
