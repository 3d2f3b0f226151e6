//! The CUDA path against the CPU's. Without a device, or in a build without the feature `cuda`,
//! each test says that it was skipped.

use dp_train::analysis::{Analyser, AnalysisSettings, DecompositionObserver, EigenvalueSearch};
use dp_train::ranks::on_threads;
use dp_train::{
    Activation, DType, Device, DropoutKey, EncoderFamily, Engine, Evaluation, Execution, ImageShape, InputShape,
    LayerConfig, Loss, ModelConfig, NoiseSource, Normalisation, OptimiserConfig, Plan, Pooling, Purpose, Randomness,
    Records, ResNetStem, TrainConfig, Trainer, Unobserved, ZhaoCnnLayout, cuda_device,
};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::rounding::Rounding;
use crate::support::{Data, batches, config, mlp, parameters, parameters_of, privacy, relative_error, streams};

/// The first CUDA device, or a line that says why there is none; a failure where `REQUIRE_CUDA` is
/// set.
pub(crate) fn device() -> Option<Device> {
    match cuda_device(0) {
        Ok(device) => Some(device),
        Err(error) => {
            assert!(std::env::var_os("REQUIRE_CUDA").is_none(), "no CUDA device: {error}");
            println!("skipped: no CUDA device ({error})");
            None
        }
    }
}

/// What a model is asked for: everything that a step and an evaluation use.
struct Answers {
    losses: Vec<f64>,
    norms: Vec<f64>,
    sum: Vec<f64>,
    evaluation: Evaluation,
    rounding: Rounding,
}

/// A batch with a repeated record, a blanked one and a negative weight, the sum taken in two parts.
fn answers(
    model: &ModelConfig,
    loss: &Loss,
    (data, positions): (&Data, usize),
    dtype: DType,
    device: &Device,
) -> Answers {
    let records = data.records_on(device, dtype);
    let mut engine = Engine::new(model, loss.clone(), &records, device).unwrap();
    engine.model().parameters().set(&parameters_of(&engine, 2)).unwrap();
    engine.set_dropout(Some(DropoutKey::draw(&mut ChaCha20Rng::seed_from_u64(3))));
    let sum = engine.zero_gradient().unwrap();
    engine.differentiate(&records, &[4, 1, 0, 1, 6], &[3]).unwrap();
    let (losses, norms) = (engine.losses().unwrap(), engine.gradient_norms().unwrap());
    engine.weighted_sum(&[0.5, 1.0, -2.0, 0.0, 0.25], &sum, false).unwrap();
    // Without norms, as in a run that is not private: the layers have nothing formed to sum.
    engine.differentiate(&records, &[5, 2], &[]).unwrap();
    engine.weighted_sum(&[1.0, 1.0], &sum, true).unwrap();
    let evaluation = engine.evaluate(&records, 3).unwrap();
    let rounding = Rounding::of(engine.model().parameters().specs(), 5 * positions, dtype);
    Answers { losses, norms, sum: sum.to_vec().unwrap(), evaluation, rounding }
}

fn assert_close(what: &str, a: &[f64], b: &[f64], tolerance: f64) {
    let error = relative_error(a, b);
    assert!(error <= tolerance, "{what}: {error:e}");
}

impl Answers {
    /// An error of rounding is all that may be between these and the CPU's.
    fn assert_close_to(&self, cpu: &Self, what: &str) {
        let Rounding { forward, backward } = cpu.rounding;
        assert_close(&format!("{what} losses"), &self.losses, &cpu.losses, forward);
        assert_close(&format!("{what} norms"), &self.norms, &cpu.norms, backward);
        assert_close(&format!("{what} sum"), &self.sum, &cpu.sum, backward);
        let (on_cuda, on_cpu) = (&self.evaluation, &cpu.evaluation);
        assert_close(&format!("{what} logits"), &on_cuda.logits, &on_cpu.logits, forward);
        assert_close(&format!("{what} evaluation"), &on_cuda.losses, &on_cpu.losses, forward);
        assert_eq!(on_cuda.predictions, on_cpu.predictions, "{what} predictions");
    }
}

/// Asks both devices, in both number types. With the data goes the largest number of positions that
/// a layer with weights has.
fn assert_same_answers(device: &Device, model: &ModelConfig, loss: &Loss, data: (&Data, usize)) {
    for dtype in [DType::F64, DType::F32] {
        let on_cuda = answers(model, loss, data, dtype, device);
        let on_cpu = answers(model, loss, data, dtype, &Device::Cpu);
        on_cuda.assert_close_to(&on_cpu, &format!("{} {loss:?} {dtype:?}", model.label()));
    }
}

fn sequential(input: InputShape, layers: Vec<LayerConfig>) -> ModelConfig {
    ModelConfig::Sequential { input, layers }
}

fn act(function: Activation) -> LayerConfig {
    LayerConfig::Activation { function }
}

#[test]
fn losses_are_the_cpu_s() {
    let Some(device) = device() else { return };
    let weights = vec![0.5, 1.0, 2.5];
    let binary = Data::random(7, 5, 2, 1, 1);
    for loss in [Loss::BceWithLogits, Loss::WeightedBceWithLogits { positive_weight: 3.0 }] {
        assert_same_answers(&device, &ModelConfig::LogisticRegression, &loss, (&binary, 1));
        assert_same_answers(&device, &ModelConfig::SquashedRegression, &loss, (&binary, 1));
    }
    let ternary = Data::random(7, 5, 3, 1, 2);
    for loss in [Loss::SoftmaxCrossEntropy, Loss::WeightedSoftmaxCrossEntropy { class_weights: weights }] {
        assert_same_answers(&device, &ModelConfig::LogisticRegression, &loss, (&ternary, 1));
    }
}

#[test]
fn vectors_are_the_cpu_s() {
    let Some(device) = device() else { return };
    let data = Data::random(7, 300, 3, 1, 1);
    for activation in [Activation::Tanh, Activation::Relu, Activation::Sigmoid, Activation::Gelu, Activation::GeluTanh]
    {
        assert_same_answers(&device, &mlp(&[270, 9], activation), &Loss::SoftmaxCrossEntropy, (&data, 1));
    }
    let models = [
        ModelConfig::SoleymaniSimple,
        ModelConfig::SoleymaniComplex { normalisation: Normalisation::GroupNorm { groups: 4 } },
        ModelConfig::FrozenEncoderHead { encoder: EncoderFamily::Distilbert },
    ];
    for model in models {
        assert_same_answers(&device, &model, &Loss::SoftmaxCrossEntropy, (&data, 1));
    }
}

#[test]
fn sequences_are_the_cpu_s() {
    let Some(device) = device() else { return };
    let input = InputShape::Sequence { positions: 6, channels: 4 };
    let residual = LayerConfig::Residual {
        branch: vec![act(Activation::Gelu), LayerConfig::Linear { outputs: 10 }, LayerConfig::LayerNorm],
        shortcut: vec![LayerConfig::Linear { outputs: 10 }],
    };
    let dense = vec![
        LayerConfig::Linear { outputs: 5 },
        act(Activation::Tanh),
        residual,
        LayerConfig::GroupNorm { groups: 5 },
        LayerConfig::Dropout { probability: 0.4 },
        // Wide enough for norms from Gram matrices.
        LayerConfig::Linear { outputs: 30 },
        act(Activation::GeluTanh),
        LayerConfig::LayerNorm,
        LayerConfig::GlobalAveragePool,
        LayerConfig::Linear { outputs: 3 },
    ];
    assert_same_answers(
        &device,
        &sequential(input, dense),
        &Loss::SoftmaxCrossEntropy,
        (&Data::random(7, 24, 3, 1, 1), 6),
    );

    let mut ids = Data::random(7, 11, 3, 1, 2);
    ids.features.iter_mut().for_each(|x| *x = (x.midpoint(1.0) * 5.0).floor());
    let embedded = vec![
        LayerConfig::Embedding { vocabulary: 5, channels: 35 },
        LayerConfig::LayerNorm,
        act(Activation::Relu),
        LayerConfig::Flatten,
        LayerConfig::Dropout { probability: 0.25 },
        LayerConfig::Linear { outputs: 3 },
    ];
    let input = InputShape::Sequence { positions: 11, channels: 1 };
    assert_same_answers(&device, &sequential(input, embedded), &Loss::SoftmaxCrossEntropy, (&ids, 11));
}

#[test]
fn images_are_the_cpu_s() {
    let Some(device) = device() else { return };
    let image = ImageShape { height: 9, width: 8, channels: 4 };
    let data = Data::random(7, image.len(), 3, 1, 1);
    let positions = image.height * image.width;
    let conv = |outputs, kernel, stride, padding, groups, bias| LayerConfig::Conv {
        outputs,
        kernel,
        stride,
        padding,
        groups,
        bias,
    };
    let pool = |pooling, kernel, stride, padding| LayerConfig::Pool { pooling, kernel, stride, padding };
    let layers = [
        vec![conv(6, 3, 1, 1, 1, true), pool(Pooling::Max, 3, 2, 1), act(Activation::Relu)],
        vec![conv(6, 3, 2, 2, 2, false), act(Activation::Tanh), pool(Pooling::Average, 2, 1, 1)],
        vec![conv(40, 1, 1, 0, 4, true), LayerConfig::GroupNorm { groups: 8 }, act(Activation::Gelu)],
        vec![conv(34, 5, 3, 0, 1, true), act(Activation::Sigmoid), pool(Pooling::Average, 2, 1, 0)],
    ];
    for mut layers in layers {
        layers.extend([LayerConfig::Flatten, LayerConfig::Linear { outputs: 3 }]);
        let model = sequential(InputShape::Image(image), layers);
        assert_same_answers(&device, &model, &Loss::SoftmaxCrossEntropy, (&data, positions));
    }
    let features = vec![LayerConfig::conv(12, 3), LayerConfig::max_pool(3, 2), LayerConfig::conv(20, 2)];
    let cnn = ModelConfig::Cnn { image, features, hidden: vec![30], activation: Activation::Relu };
    assert_same_answers(&device, &cnn, &Loss::SoftmaxCrossEntropy, (&data, positions));
}

/// The networks of the papers at their sizes. In `f64`: in `f32` a rounding can hand a pool's
/// gradient to another pixel.
#[test]
fn published_networks_are_the_cpu_s() {
    let Some(device) = device() else { return };
    let image = ImageShape { height: 28, width: 28, channels: 1 };
    let data = Data::random(7, image.len(), 10, 1, 1);
    let (loss, normalisation) = (Loss::SoftmaxCrossEntropy, Normalisation::GroupNorm { groups: 32 });
    for model in [
        ModelConfig::EsipovaCnn { image },
        ModelConfig::XuCnn { image },
        ModelConfig::ZhaoCnn { image, layout: ZhaoCnnLayout::Text },
        ModelConfig::Resnet18 { image, stem: ResNetStem::Imagenet, normalisation },
    ] {
        let all = (&data, image.height * image.width);
        let on_cuda = answers(&model, &loss, all, DType::F64, &device);
        let on_cpu = answers(&model, &loss, all, DType::F64, &Device::Cpu);
        on_cuda.assert_close_to(&on_cpu, &model.label());
    }
}

/// Of no record there is nothing, of one what the CPU says.
#[test]
fn batches_of_none_and_of_one_are_the_cpu_s() {
    let Some(device) = device() else { return };
    let image = ImageShape { height: 6, width: 6, channels: 1 };
    let data = Data::random(3, image.len(), 3, 1, 1);
    let features = vec![LayerConfig::conv(5, 3), LayerConfig::max_pool(2, 2)];
    let cnn = ModelConfig::Cnn { image, features, hidden: vec![4], activation: Activation::Tanh };
    for model in [ModelConfig::LogisticRegression, mlp(&[4], Activation::Relu), cnn] {
        let answer = |device: &Device| {
            let records = data.records_on(device, DType::F64);
            let mut engine = Engine::new(&model, Loss::SoftmaxCrossEntropy, &records, device).unwrap();
            engine.model().parameters().set(&parameters_of(&engine, 2)).unwrap();
            let sum = engine.zero_gradient().unwrap();
            sum.set(&vec![1.0; sum.len()]).unwrap();
            engine.differentiate(&records, &[], &[]).unwrap();
            assert!(engine.losses().unwrap().is_empty() && engine.gradient_norms().unwrap().is_empty());
            engine.weighted_sum(&[], &sum, false).unwrap();
            assert!(sum.to_vec().unwrap().iter().all(|&value| value == 0.0));
            engine.differentiate(&records, &[1], &[]).unwrap();
            let norms = engine.gradient_norms().unwrap();
            engine.weighted_sum(&norms, &sum, false).unwrap();
            sum.to_vec().unwrap()
        };
        assert_close(&model.label(), &answer(&device), &answer(&Device::Cpu), 1e-11);
    }
}

fn optimisers() -> [OptimiserConfig; 4] {
    [
        OptimiserConfig::default(),
        OptimiserConfig::Momentum { momentum: 0.9, nesterov: true },
        OptimiserConfig::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-3 },
        OptimiserConfig::AdamW { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-3, weight_decay: 0.1 },
    ]
}

/// Parameters after a run, and how many records had no finite gradient.
fn run(plan: &Plan, records: &Records, device: &Device, noise: NoiseSource) -> (Vec<f64>, u64) {
    let execution = Execution { micro_batch: Some(30), device: device.clone(), noise, ..Execution::default() };
    let mut trainer = Trainer::new(plan, records, streams(1), execution).unwrap();
    let counts = trainer.run(&mut Unobserved).unwrap();
    (parameters(&mut trainer), counts.non_finite)
}

/// The noise of a value depends on the step's key and the value's place alone, so that both end at
/// the same parameters. A record that is not a number is left out of both.
#[test]
fn a_run_is_the_cpu_s() {
    let Some(device) = device() else { return };
    let mut data = Data::random(60, 7, 3, 2, 1);
    data.features_of(17)[2] = f32::NAN;
    for method in [None, Some("dpsgd"), Some("dpsgd-f"), Some("dpsgd-global-adapt")] {
        for optimiser in optimisers() {
            let model = mlp(&[6], Activation::Tanh);
            let mut config = config(model, batches(0.7, 4), method.map(privacy));
            (config.optimiser, config.l2) = (optimiser, 0.01);
            let plan = Plan::new(config, data.facts).unwrap();
            let records = |device: &Device| data.records_on(device, DType::F64);
            let (on_cuda, left_out) = run(&plan, &records(&device), &device, NoiseSource::Device);
            let (on_cpu, expected) = run(&plan, &records(&Device::Cpu), &Device::Cpu, NoiseSource::Device);
            assert_eq!(left_out, expected);
            assert_close(&format!("{method:?} {optimiser:?}"), &on_cuda, &on_cpu, 1e-9);
        }
    }
}

/// The model does not depend on the number of devices. With the feature `nccl` sums go from device to
/// device, else over the host; a large model is divided there.
#[test]
fn a_run_of_ranks_is_that_of_one_device() {
    let Some(_) = device() else { return };
    let devices = match (0..3).map(cuda_device).collect::<Result<Vec<Device>, _>>() {
        Ok(devices) => devices,
        Err(error) => return println!("skipped: fewer than 3 CUDA devices ({error})"),
    };
    let mut data = Data::random(300, 5, 3, 2, 1);
    data.features_of(170)[2] = f32::NAN;
    for (method, hidden, noise) in [
        ("dpsgd", vec![6], NoiseSource::Device),
        ("dpsgd-f", vec![6], NoiseSource::Host),
        ("dpsgd", vec![513, 511], NoiseSource::Device),
    ] {
        let plain = config(mlp(&hidden, Activation::Tanh), batches(0.05, 5), Some(privacy(method)));
        let plan = Plan::new(TrainConfig { block_records: Some(30), ..plain }, data.facts).unwrap();
        let on_ranks = |size: usize| {
            on_threads(size, |ranks| {
                let (device, held) = (&devices[ranks.rank()], plan.held_by(ranks.rank(), size));
                let features = &data.features[held.start * 5..held.end * 5];
                let (labels, groups) = (&data.labels[held.clone()], &data.groups[held.clone()]);
                let records = Records::part(features, labels, groups, held, data.facts, DType::F32, device)?;
                let execution =
                    Execution { micro_batch: Some(40), device: device.clone(), noise, ranks, ..Execution::default() };
                let mut trainer = Trainer::new(&plan, &records, streams(1), execution)?;
                trainer.run(&mut Unobserved)?;
                Ok(parameters(&mut trainer))
            })
            .unwrap()
        };
        let alone = on_ranks(1).remove(0);
        for size in [2, 3] {
            for (rank, parameters) in on_ranks(size).iter().enumerate() {
                assert!(*parameters == alone, "{method} {hidden:?}: rank {rank} of {size}");
            }
        }
    }
}

/// FairLens works with finite differences, which leave fewer digits.
#[test]
fn a_run_with_coupled_records_is_the_cpu_s() {
    let Some(device) = device() else { return };
    let data = Data::random(60, 7, 2, 2, 1);
    for (method, tolerance) in [("fairlens", 1e-7), ("magnitude-only", 1e-9), ("direction-only", 1e-9)] {
        let config = config(mlp(&[6], Activation::Tanh), batches(0.7, 4), Some(privacy(method)));
        let plan = Plan::new(config, data.facts).unwrap();
        let end = |device: &Device| run(&plan, &data.records_on(device, DType::F64), device, NoiseSource::Device).0;
        assert_close(method, &end(&device), &end(&Device::Cpu), tolerance);
    }
}

/// The terms of the first step, from the same batches and probes.
#[test]
fn an_analysis_is_the_cpu_s() {
    let Some(device) = device() else { return };
    let data = Data::random(50, 4, 2, 2, 3);
    let config = config(mlp(&[5], Activation::Tanh), batches(0.5, 1), Some(privacy("dpsgd")));
    let plan = Plan::new(config, data.facts).unwrap();
    let search = EigenvalueSearch { iterations: 300, records: usize::MAX };
    let settings = AnalysisSettings { eigenvalues: Some(search), threads: 2, ..AnalysisSettings::default() };
    let terms = |device: &Device| -> Vec<f64> {
        let records = data.records_on(device, DType::F64);
        let mut rng = Randomness::from_seed(4).stream(Purpose::Analysis, 0, 0).unwrap();
        let mut observer = DecompositionObserver::new(Analyser::new(&plan, &records, settings, &mut rng).unwrap(), 1);
        let execution = Execution { device: device.clone(), ..Execution::default() };
        Trainer::new(&plan, &records, streams(3), execution).unwrap().step(&mut observer).unwrap();
        let step = observer.into_steps().remove(0);
        let of_group = step.groups.iter().flatten().flat_map(|group| {
            let eigenvalue = group.largest_eigenvalue.as_ref().unwrap().value;
            [group.clip.mean, group.magnitude.mean, group.direction.mean, group.noise.mean, eigenvalue]
        });
        of_group.collect()
    };
    let (on_cuda, on_cpu) = (terms(&device), terms(&Device::Cpu));
    for (i, (a, b)) in on_cuda.iter().zip(&on_cpu).enumerate() {
        assert_close(&format!("term {i}"), &[*a], &[*b], 1e-5);
    }
}

/// Bit for bit, wherever the noise is made; without any the run ends elsewhere.
#[test]
fn a_run_repeats() {
    let Some(device) = device() else { return };
    let data = Data::random(60, 7, 3, 2, 1);
    let of = |method: Option<&str>| config(mlp(&[6], Activation::Tanh), batches(0.7, 4), method.map(privacy));
    let records = data.records_on(&device, DType::F32);
    let private = Plan::new(of(Some("dpsgd")), data.facts).unwrap();
    let first = run(&private, &records, &device, NoiseSource::Device);
    assert_eq!(first, run(&private, &records, &device, NoiseSource::Device));
    assert_eq!(first, run(&private, &records, &device, NoiseSource::Host));
    let plain = Plan::new(of(None), data.facts).unwrap();
    assert!(relative_error(&first.0, &run(&plain, &records, &device, NoiseSource::Device).0) > 1e-3);
}

/// On one device the records that are computed at once do not change a bit of a certified run, and
/// neither do the records beside them.
#[test]
fn every_micro_batch_gives_the_same_run() {
    let Some(device) = device() else { return };
    let image = ImageShape { height: 6, width: 5, channels: 2 };
    let mut data = Data::random(60, image.len(), 3, 2, 1);
    // One record that is left out, so that the pieces beside it are done again.
    data.features_of(17)[2] = f32::NAN;
    let features = vec![LayerConfig::conv(5, 3), LayerConfig::max_pool(2, 2)];
    let models = [
        mlp(&[9, 5], Activation::Tanh),
        ModelConfig::Cnn { image, features, hidden: vec![4], activation: Activation::Relu },
    ];
    for model in models {
        for method in ["dpsgd", "dpsgd-f", "dpsgd-global-adapt"] {
            let of_method = config(model.clone(), batches(0.7, 3), Some(privacy(method)));
            let plan = Plan::new(TrainConfig { block_records: Some(8), ..of_method }, data.facts).unwrap();
            for dtype in [DType::F32, DType::F64] {
                let records = data.records_on(&device, dtype);
                let run = |micro_batch: Option<usize>| {
                    let execution = Execution { micro_batch, device: device.clone(), ..Execution::default() };
                    let mut trainer = Trainer::new(&plan, &records, streams(1), execution).unwrap();
                    let counts = trainer.run(&mut Unobserved).unwrap();
                    (parameters(&mut trainer), counts)
                };
                let whole = run(None);
                assert!(whole.1.non_finite > 0);
                for micro_batch in [1, 20, 33, 1_024] {
                    assert_eq!(run(Some(micro_batch)), whole, "{method} {dtype:?} {micro_batch}");
                }
            }
        }
    }
}

#[test]
fn passes_in_tf32_are_close_to_the_cpu_s() {
    if device().is_none() {
        return;
    }
    let device = dp_train::cuda_device_in_tf32(0).unwrap();
    let data = Data::random(7, 30, 3, 1, 1);
    let answers_on = |device: &Device| {
        answers(&mlp(&[20], Activation::Tanh), &Loss::SoftmaxCrossEntropy, (&data, 1), DType::F32, device)
    };
    let (in_tf32, on_cpu) = (answers_on(&device), answers_on(&Device::Cpu));
    let error = relative_error(&in_tf32.losses, &on_cpu.losses);
    assert!((1e-6..1e-2).contains(&error), "{error}");
}

/// With a variable that makes cuBLAS round factors, no device is opened. NVIDIA's cuBLAS of CUDA 13.0
/// heeds it in no product that was asked for in pedantic arithmetic; then the check at the start finds
/// exact products, and lets the device pass.
#[test]
fn a_device_whose_products_are_not_exact_is_refused() {
    if device().is_none() {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let run = std::process::Command::new(program)
        .env("NVIDIA_TF32_OVERRIDE", "1")
        .env("REQUIRE_CUDA", "1")
        .args(["--exact", "cuda::a_run_repeats"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    if std::env::var_os("EMULATED_CUDA").is_some() || !run.status.success() {
        assert!(!run.status.success() && text.contains("matrix products of the device in f32: expected "), "{text}");
        assert!(text.contains("Unset NVIDIA_TF32_OVERRIDE"), "{text}");
    }
}

/// The noise-only steps of a run whose batches are all empty: every parameter moves, by the noise's
/// standard deviation.
#[test]
fn steps_without_records_are_noise() {
    let Some(device) = device() else { return };
    let data = Data::random(50, 2_000, 2, 1, 1);
    let mut config = config(ModelConfig::LogisticRegression, batches(1e-9, 25), Some(privacy("dpsgd")));
    config.loss = Loss::SoftmaxCrossEntropy;
    let plan = Plan::new(config, data.facts).unwrap();
    for dtype in [DType::F32, DType::F64] {
        let records = data.records_on(&device, dtype);
        let execution = Execution { device: device.clone(), ..Execution::default() };
        let mut trainer = Trainer::new(&plan, &records, streams(1), execution).unwrap();
        let before = parameters(&mut trainer);
        trainer.run(&mut Unobserved).unwrap();
        // 25 steps of σS = 0.5 over the expected batch of 5e-8 at rate 0.1.
        let unit = 0.1 * 0.5 * 5.0 / 5e-8;
        let moves: Vec<f64> = parameters(&mut trainer).iter().zip(before).map(|(a, b)| (a - b) / unit).collect();
        let n = moves.len() as f64;
        let mean = moves.iter().sum::<f64>() / n;
        let variance = moves.iter().map(|m| m * m).sum::<f64>() / n;
        // Five standard errors either way; the seed is fixed, so a pass is a pass for ever.
        assert!(mean.abs() * n.sqrt() < 5.0, "{mean}");
        assert!((variance - 1.0).abs() * (n / 2.0).sqrt() < 5.0, "{variance}");
    }
}

#[test]
fn a_device_takes_one_thread_and_its_own_records() {
    let Some(device) = device() else { return };
    let data = Data::random(20, 3, 2, 1, 1);
    let plan = Plan::new(config(ModelConfig::LogisticRegression, batches(0.5, 2), None), data.facts).unwrap();
    let refused = |execution: Execution, records: &Records| {
        Trainer::new(&plan, records, streams(1), execution).err().unwrap().to_string()
    };
    let threads = std::num::NonZeroUsize::new(2).unwrap();
    let on_cuda = Execution { device: device.clone(), ..Execution::default() };
    let records = data.records_on(&device, DType::F32);
    let error = refused(Execution { threads, ..on_cuda.clone() }, &records);
    assert_eq!(error, "threads = 2: expected 1 on a CUDA device");
    let error = refused(on_cuda, &data.records(DType::F32));
    assert_eq!(error, "device of the records: expected Cuda { gpu_id: 0 }, got Cpu");

    let mut engine = Engine::new(&plan.config().model, plan.config().loss.clone(), &records, &device).unwrap();
    let of_another = data.records_on(&cuda_device(0).unwrap(), DType::F32);
    let error = engine.differentiate(&of_another, &[0], &[]).unwrap_err().to_string();
    let twice = "Cuda { gpu_id: 0 } opened a second time";
    assert_eq!(error, format!("device of the records: expected Cuda {{ gpu_id: 0 }}, got {twice}"));
}
