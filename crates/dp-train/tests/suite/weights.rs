//! Weights go to candle's own layers and come back.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use candle_core::{Result, Tensor};
use candle_nn::{Module, VarBuilder, VarMap};
use dp_train::{
    Activation, DType, Device, Engine, Execution, ImageShape, LayerConfig, Loss, Model, ModelConfig, Normalisation,
    Plan, ResNetStem, Trainer, Unobserved,
};

use crate::support::{Data, batches, config, initial, mlp, privacy, relative_error, streams};

fn open(path: &Path) -> VarBuilder<'static> {
    let bytes = std::fs::read(path).unwrap();
    VarBuilder::from_buffered_safetensors(bytes, DType::F64, &Device::Cpu).unwrap()
}

/// Three linear layers with tanh between them, built by candle-nn.
fn candle_mlp(x: &Tensor, weights: &VarBuilder<'_>, widths: &[usize]) -> Result<Tensor> {
    let mut x = x.clone();
    for (i, sizes) in widths.windows(2).enumerate() {
        if i > 0 {
            x = x.tanh()?;
        }
        x = candle_nn::linear(sizes[0], sizes[1], weights.pp(format!("fc{}", i + 1)))?.forward(&x)?;
    }
    Ok(x)
}

fn features(data: &Data) -> Tensor {
    let shape = (data.facts.n_records, data.facts.n_inputs);
    Tensor::from_slice(&data.features, shape, &Device::Cpu).unwrap().to_dtype(DType::F64).unwrap()
}

#[test]
fn a_trained_model_opens_in_candle_nn_with_the_same_logits() {
    let data = Data::random(60, 6, 3, 2, 1);
    let records = data.records(DType::F64);
    let plan =
        Plan::new(config(mlp(&[9, 5], Activation::Tanh), batches(0.3, 20), Some(privacy("dpsgd"))), records.facts())
            .unwrap();
    let mut trainer = Trainer::new(&plan, &records, streams(1), Execution::default()).unwrap();
    trainer.run(&mut Unobserved).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    trainer.model().save_weights(&path, &BTreeMap::new()).unwrap();
    let ours = trainer.engine_mut().evaluate(&records, 17).unwrap().logits;
    let theirs = candle_mlp(&features(&data), &open(&path), &[6, 9, 5, 3]).unwrap();
    assert!(relative_error(&ours, &theirs.flatten_all().unwrap().to_vec1().unwrap()) < 1e-14);
}

#[test]
fn a_model_of_candle_nn_opens_here() {
    let data = Data::random(20, 6, 2, 1, 2);
    let records = data.records(DType::F64);
    let map = VarMap::new();
    let theirs = VarBuilder::from_varmap(&map, DType::F64, &Device::Cpu);
    let theirs = candle_mlp(&features(&data), &theirs, &[6, 4, 2]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    map.save(&path).unwrap();
    let model = mlp(&[4], Activation::Tanh);
    let mut engine = Engine::new(&model, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu).unwrap();
    assert!(engine.model().load_weights(&path).unwrap().is_empty());
    let ours = engine.evaluate(&records, 100).unwrap().logits;
    assert!(relative_error(&ours, &theirs.flatten_all().unwrap().to_vec1().unwrap()) < 1e-14);
}

/// GroupNorm and the names `gn1.weight`, …, through candle-nn's own layer (its forward pass is
/// right).
#[test]
fn normalised_models_open_in_candle_nn() {
    let data = Data::random(8, 10, 2, 1, 3);
    let records = data.records(DType::F64);
    let model = ModelConfig::SoleymaniComplex { normalisation: Normalisation::GroupNorm { groups: 4 } };
    let mut engine = Engine::new(&model, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu).unwrap();
    engine.model().initialise(&mut initial(4)).unwrap();
    let moved: Vec<f64> = engine
        .model()
        .parameters()
        .to_vec()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(i, p)| p + 0.1 * (i as f64).sin())
        .collect();
    engine.model().parameters().set(&moved).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    engine.model().save_weights(&path, &BTreeMap::new()).unwrap();
    let weights = open(&path);
    let mut x = features(&data);
    for (i, (inputs, outputs)) in [(10, 128), (128, 64), (64, 32), (32, 2)].into_iter().enumerate() {
        let n = i + 1;
        x = candle_nn::linear(inputs, outputs, weights.pp(format!("fc{n}"))).unwrap().forward(&x).unwrap();
        if n <= 2 {
            let norm = candle_nn::group_norm(4, outputs, 1e-5, weights.pp(format!("gn{n}"))).unwrap();
            // It wants a dimension after the channels.
            x = norm.forward(&x.unsqueeze(2).unwrap()).unwrap().squeeze(2).unwrap();
        }
        if n <= 3 {
            x = x.relu().unwrap();
        }
    }
    let ours = engine.evaluate(&records, 3).unwrap().logits;
    assert!(relative_error(&ours, &x.flatten_all().unwrap().to_vec1().unwrap()) < 1e-12);
}

/// Convolutions go from channels last to PyTorch's order and the flattened image is channel first:
/// candle-nn's network has the same logits. The way back restores every value.
#[test]
fn convolutional_models_open_in_candle_nn() {
    let image = ImageShape { height: 8, width: 7, channels: 2 };
    let data = Data::random(6, image.len(), 3, 1, 5);
    let records = data.records(DType::F64);
    let model = ModelConfig::EsipovaCnn { image };
    let mut engine = Engine::new(&model, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu).unwrap();
    engine.model().initialise(&mut initial(6)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    engine.model().save_weights(&path, &BTreeMap::new()).unwrap();
    let weights = open(&path);
    let conv = |inputs, outputs, name: &str| {
        candle_nn::conv2d(inputs, outputs, 3, candle_nn::Conv2dConfig::default(), weights.pp(name)).unwrap()
    };
    let x = features(&data).reshape((6, 8, 7, 2)).unwrap().permute((0, 3, 1, 2)).unwrap().contiguous().unwrap();
    let x = conv(2, 32, "conv1").forward(&x).unwrap().tanh().unwrap();
    let x = conv(32, 16, "conv2").forward(&x).unwrap().tanh().unwrap();
    let fc = candle_nn::linear(16 * 4 * 3, 3, weights.pp("fc1")).unwrap();
    let theirs = fc.forward(&x.flatten_from(1).unwrap()).unwrap();
    let ours = engine.evaluate(&records, 4).unwrap().logits;
    assert!(relative_error(&ours, &theirs.flatten_all().unwrap().to_vec1().unwrap()) < 1e-12);

    let saved = engine.model().parameters().to_vec().unwrap();
    engine.model().initialise(&mut initial(7)).unwrap();
    engine.model().load_weights(&path).unwrap();
    assert_eq!(engine.model().parameters().to_vec().unwrap(), saved);
}

/// 3 × 3 with padding on images of 1 × 1: files have whole kernels, with 0 around the middle as
/// written and anything as read.
#[test]
fn kernels_larger_than_the_image_are_whole_in_files() {
    let image = ImageShape { height: 1, width: 1, channels: 2 };
    let features = vec![LayerConfig::Conv { outputs: 4, kernel: 3, stride: 1, padding: 1, groups: 1, bias: true }];
    let config = ModelConfig::Cnn { image, features, hidden: vec![], activation: Activation::Tanh };
    let data = Data::random(5, image.len(), 3, 1, 6);
    let records = data.records(DType::F64);
    let mut engine = Engine::new(&config, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu).unwrap();
    engine.model().initialise(&mut initial(6)).unwrap();
    assert_eq!((engine.model().parameters().len(), engine.model().n_parameters()), (8 + 4 + 15, 72 + 4 + 15));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    engine.model().save_weights(&path, &BTreeMap::new()).unwrap();
    let weights = open(&path);
    let padded = candle_nn::Conv2dConfig { padding: 1, ..candle_nn::Conv2dConfig::default() };
    let conv = candle_nn::conv2d(2, 4, 3, padded, weights.pp("conv1")).unwrap();
    let x = self::features(&data).reshape((5, 2, 1, 1)).unwrap();
    let x = conv.forward(&x).unwrap().tanh().unwrap().flatten_from(1).unwrap();
    let theirs = candle_nn::linear(4, 3, weights.pp("fc1")).unwrap().forward(&x).unwrap();
    let ours = engine.evaluate(&records, 5).unwrap().logits;
    assert!(relative_error(&ours, &theirs.flatten_all().unwrap().to_vec1().unwrap()) < 1e-12);

    let mut tensors = candle_core::safetensors::load(&path, &Device::Cpu).unwrap();
    let weight = &tensors["conv1.weight"];
    let around = |x: &Tensor| x.pad_with_zeros(2, 1, 1)?.pad_with_zeros(3, 1, 1);
    let middle = Tensor::ones((4, 2, 1, 1), DType::F64, &Device::Cpu).unwrap();
    let other = (weight + (1.0 - around(&middle).unwrap()).unwrap()).unwrap();
    tensors.insert("conv1.weight".into(), other);
    candle_core::safetensors::save(&tensors, &path).unwrap();
    let saved = engine.model().parameters().to_vec().unwrap();
    engine.model().initialise(&mut initial(7)).unwrap();
    engine.model().load_weights(&path).unwrap();
    assert_eq!(engine.model().parameters().to_vec().unwrap(), saved);
}

#[test]
fn what_does_not_fit_is_listed_and_changes_nothing() {
    let model =
        |hidden: &[usize], dtype| Model::new(&mlp(hidden, Activation::Tanh), 3, 2, dtype, &Device::Cpu).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    let metadata = BTreeMap::from([("run".to_owned(), "7".to_owned()), ("data".to_owned(), "adult".to_owned())]);
    let saved = model(&[4], DType::F32);
    saved.save_weights(&path, &metadata).unwrap();
    let refusal = |model: Model| {
        model.parameters().set(&vec![0.5; model.parameters().len()]).unwrap();
        let error = model.load_weights(&path).unwrap_err().to_string();
        assert!(model.parameters().to_vec().unwrap().iter().all(|&p| p == 0.5));
        error.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
    };
    insta::assert_snapshot!(refusal(model(&[4, 4], DType::F32)), @"fc2.weight: expected shape [4, 4], got [2, 4]; fc2.bias: expected shape [4], got [2]; fc3.weight: missing, expected shape [2, 4]; fc3.bias: missing, expected shape [2]");
    insta::assert_snapshot!(refusal(model(&[], DType::F32)), @"fc1.weight: expected shape [2, 3], got [4, 3]; fc1.bias: expected shape [2], got [4]; fc2.bias: unexpected; fc2.weight: unexpected");
    insta::assert_snapshot!(refusal(model(&[4], DType::F64)), @"fc1.weight: expected f64, got f32; fc1.bias: expected f64, got f32; fc2.weight: expected f64, got f32; fc2.bias: expected f64, got f32");
    assert_eq!(model(&[4], DType::F32).load_weights(&path).unwrap(), metadata);

    std::fs::write(&path, b"no such format").unwrap();
    insta::assert_snapshot!(refusal(model(&[4], DType::F32)), @"header too large");
    std::fs::remove_file(&path).unwrap();
    let error = model(&[4], DType::F32).load_weights(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read `{}`", path.display()));
    insta::assert_snapshot!(error.source().unwrap(), @"No such file or directory (os error 2)");
    let nowhere = folder.path().join("no").join("folder");
    assert!(saved.save_weights(&nowhere, &metadata).is_err());
}

/// Every architecture comes back from its file alone, a network with kernels that are cropped among
/// them.
#[test]
fn a_saved_model_is_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let image = ImageShape { height: 8, width: 8, channels: 1 };
    let resnet =
        ModelConfig::Resnet18 { image, stem: ResNetStem::Small, normalisation: Normalisation::GroupNorm { groups: 2 } };
    let architectures = [
        (ModelConfig::LogisticRegression, 3, 1, Loss::WeightedBceWithLogits { positive_weight: 2.5 }),
        (mlp(&[5, 4], Activation::Relu), 3, 3, Loss::PriorAdjustedCrossEntropy { priors: vec![0.1, 0.2, 0.7] }),
        (ModelConfig::SoleymaniSimple, 6, 1, Loss::BceWithLogits),
        (resnet, 64, 10, Loss::SoftmaxCrossEntropy),
    ];
    for (config, n_inputs, n_outputs, loss) in architectures {
        for dtype in [DType::F32, DType::F64] {
            let model = Model::new(&config, n_inputs, n_outputs, dtype, &Device::Cpu).unwrap();
            model.initialise(&mut initial(3)).unwrap();
            model.save(&path, &loss, &BTreeMap::new()).unwrap();
            let features: Vec<f32> = (0..5 * n_inputs).map(|i| (i as f32).sin()).collect();
            let saved = Model::load(&path, &Device::Cpu).unwrap();
            assert_eq!((&saved.loss, saved.model.config()), (&loss, &config));
            assert_eq!(saved.model.logits(&features).unwrap(), model.logits(&features).unwrap());
            assert!(saved.metadata.is_empty());
        }
    }
}

#[test]
fn a_file_that_is_no_saved_model_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let model = Model::new(&mlp(&[4], Activation::Tanh), 3, 2, DType::F32, &Device::Cpu).unwrap();
    let refusal = |description: Option<&str>| {
        let metadata = description.map(|text| ("dp-train".to_owned(), text.to_owned()));
        model.save_weights(&path, &metadata.into_iter().collect()).unwrap();
        let error = Model::load(&path, &Device::Cpu).err().unwrap().to_string();
        error.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
    };
    let described = |width: &str, version: u32| {
        format!(
            r#"{{"version":{version},"model":{{"name":"mlp","hidden":[{width}],"activation":"tanh"}},
            "loss":"softmax-cross-entropy","n_inputs":3,"n_outputs":2,"single_precision":true}}"#
        )
    };
    insta::assert_snapshot!(refusal(None), @"metadata: no `dp-train`; a file of weights alone is read by `load_weights`");
    insta::assert_snapshot!(refusal(Some("{")), @"metadata `dp-train`: EOF while parsing an object at line 1 column 1");
    insta::assert_snapshot!(refusal(Some(&described("4", 2))), @"version 2: this program reads 1");
    insta::assert_snapshot!(refusal(Some(&described("99000000", 1))), @"metadata `dp-train`: a size of 99000000, expected at most 16777216");
    insta::assert_snapshot!(refusal(Some(&described("5", 1))), @"fc1.weight: expected shape [5, 3], got [4, 3]; fc1.bias: expected shape [5], got [4]; fc2.weight: expected shape [2, 5], got [2, 4]");
    let taken = BTreeMap::from([("dp-train".to_owned(), String::new())]);
    let error = model.save(&path, &Loss::SoftmaxCrossEntropy, &taken).unwrap_err();
    insta::assert_snapshot!(error, @"metadata = dp-train: expected other keys: this one holds the architecture");
}
