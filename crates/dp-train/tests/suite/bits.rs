//! The bits of a certified run: what they may not depend on, and what they are.

use std::num::NonZeroUsize;

use dp_clipping::internal::instruction_set;
use dp_train::{
    Activation, DType, Device, Engine, ImageShape, InputShape, LayerConfig, Loss, ModelConfig, NUMERICS, Normalisation,
    Pooling, Records,
};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use crate::cuda::device;
use crate::support::{Data, Outcome, Run, batches, config, mlp, parameters_of, privacy, relative_error};

/// One model of each kind of layer, with the number of its inputs.
fn models() -> Vec<(&'static str, ModelConfig, usize)> {
    let image = ImageShape { height: 8, width: 7, channels: 2 };
    let pooled = vec![LayerConfig::conv(12, 3), LayerConfig::max_pool(2, 2), LayerConfig::conv(6, 2)];
    let averaged = vec![
        LayerConfig::conv(4, 3),
        LayerConfig::Pool { pooling: Pooling::Average, kernel: 2, stride: 2, padding: 0 },
        LayerConfig::Conv { outputs: 40, kernel: 2, stride: 1, padding: 1, groups: 2, bias: true },
        LayerConfig::GlobalAveragePool,
    ];
    let cnn = |features| ModelConfig::Cnn { image, features, hidden: vec![9], activation: Activation::Relu };
    let sequence = |positions, channels, layers| ModelConfig::Sequential {
        input: InputShape::Sequence { positions, channels },
        layers,
    };
    let linear = |outputs| LayerConfig::Linear { outputs };
    // Its pieces are several stretches.
    let large = ModelConfig::EsipovaCnn { image: ImageShape { height: 28, width: 28, channels: 1 } };
    let sequential = sequence(3, 6, vec![linear(8), LayerConfig::GlobalAveragePool, linear(2)]);
    vec![
        ("logistic regression", ModelConfig::LogisticRegression, 20),
        ("one input", ModelConfig::LogisticRegression, 1),
        ("mlp", mlp(&[33, 9], Activation::Relu), 30),
        (
            "norms and dropout",
            ModelConfig::SoleymaniComplex { normalisation: Normalisation::GroupNorm { groups: 8 } },
            11,
        ),
        ("max pooling", cnn(pooled), image.len()),
        ("average pooling", cnn(averaged), image.len()),
        ("large images", large, 784),
        ("sequence", sequential, 18),
        ("sequence, long", sequence(9, 2, vec![linear(3), LayerConfig::GlobalAveragePool, linear(2)]), 18),
    ]
}

fn run(model: &ModelConfig, n_inputs: usize, method: &str, [micro_batch, threads]: [usize; 2]) -> Outcome {
    let mut data = Data::random(150, n_inputs, 2, 2, 4);
    data.features_of(31)[0] = f32::NAN;
    data.features_of(90).iter_mut().for_each(|x| *x *= 1e30);
    let config = config(model.clone(), batches(0.6, 4), Some(privacy(method)));
    let mut run = Run::new(config, DType::F32);
    (run.micro_batch, run.threads) = (micro_batch, NonZeroUsize::new(threads).unwrap());
    run.on(&data)
}

#[test]
fn threads_and_chunks_change_no_bit() {
    for (name, model, n_inputs) in models() {
        for method in ["dpsgd", "dpsgd-f", "dpsgd-global-adapt"] {
            let whole = run(&model, n_inputs, method, [1_024, 1]);
            assert!(whole.parameters.iter().all(|p| p.is_finite()), "{name}, {method}");
            for execution in [[1, 1], [50, 1], [1_024, 2], [70, 3]] {
                assert_eq!(run(&model, n_inputs, method, execution), whole, "{name}, {method}, {execution:?}");
            }
        }
    }
}

/// Models in which some layer's gradients are not formed: what a record adds to a sum there is
/// exact, and the sum is rounded after each of its terms.
const CHAINED: [&str; 3] = ["max pooling", "average pooling", "sequence"];

/// Loss and norm of a record, as bits, and its scaled gradient.
fn answers(engine: &mut Engine, records: &Records, rows: &[usize], row: usize) -> ([u64; 2], Vec<f64>) {
    engine.differentiate(records, rows, &[]).unwrap();
    let place = rows.iter().position(|&r| r == row).unwrap();
    let (loss, norm) = (engine.losses().unwrap()[place], engine.gradient_norms().unwrap()[place]);
    let mut weights = vec![0.0; rows.len()];
    weights[place] = 0.37;
    let sum = engine.zero_gradient().unwrap();
    engine.weighted_sum(&weights, &sum, false).unwrap();
    ([loss.to_bits(), norm.to_bits()], sum.to_vec().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Loss, norm and contribution of a record: the same bits alone and in any batch.
    #[test]
    fn a_record_is_the_same_alone_and_in_any_batch(
        others in prop::collection::vec(0_usize..300, 0..300),
        place in 0_usize..300,
        seed in any::<u64>(),
    ) {
        for (name, model, n_inputs) in models() {
            let data = Data::random(301, n_inputs, 2, 1, seed);
            let records = data.records(DType::F32);
            let mut engine = Engine::new(&model, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu).unwrap();
            engine.model().parameters().set(&parameters_of(&engine, seed)).unwrap();
            let alone = answers(&mut engine, &records, &[300], 300);
            let mut rows = others.clone();
            rows.insert(place.min(others.len()), 300);
            let in_company = answers(&mut engine, &records, &rows, 300);
            prop_assert_eq!(in_company.0, alone.0, "{} in {}", name, rows.len());
            if CHAINED.contains(&name) {
                prop_assert!(relative_error(&in_company.1, &alone.1) < 1e-5, "{}", name);
            } else {
                prop_assert_eq!(in_company.1, alone.1, "{} in {}", name, rows.len());
            }
        }
    }
}

/// On a GPU, in both number types: loss and norm of a record. What it adds to a sum there is exact
/// or rounded with the others.
#[test]
fn a_record_is_the_same_alone_and_in_any_batch_on_a_device() {
    let Some(device) = device() else { return };
    for (name, model, n_inputs) in models() {
        let data = Data::random(301, n_inputs, 2, 1, 7);
        for dtype in [DType::F32, DType::F64] {
            let records = data.records_on(&device, dtype);
            let mut engine = Engine::new(&model, Loss::SoftmaxCrossEntropy, &records, &device).unwrap();
            engine.model().parameters().set(&parameters_of(&engine, 7)).unwrap();
            let alone = answers(&mut engine, &records, &[300], 300);
            for (n_others, place) in [(1, 0), (5, 3), (130, 129), (299, 64)] {
                let mut rows: Vec<usize> = (0..n_others).collect();
                rows.insert(place, 300);
                let in_company = answers(&mut engine, &records, &rows, 300);
                assert_eq!(in_company.0, alone.0, "{name} in {}, {dtype:?}", rows.len());
                assert!(relative_error(&in_company.1, &alone.1) < 1e-5, "{name} in {}, {dtype:?}", rows.len());
            }
        }
    }
}

/// What four steps make of each model. When this fails, the arithmetic has changed: raise
/// [`NUMERICS`] and take the new digest over. The bits are those of the processors named; others
/// are not compared.
#[test]
fn the_bits_are_those_of_this_version_of_the_arithmetic() {
    let mut hasher = Sha256::new();
    for (_, model, n_inputs) in models() {
        for value in run(&model, n_inputs, "dpsgd-global-adapt", [1_024, 1]).parameters {
            hasher.update(value.to_le_bytes());
        }
    }
    let golden = format!("numerics {NUMERICS}: {}", hex::encode(hasher.finalize()));
    let processor = format!("{} {}", std::env::consts::ARCH, instruction_set());
    println!("{processor}: {golden}");
    if processor.contains("AVX-512") {
        insta::assert_snapshot!(golden, @"numerics 5: c8e0fec867a961aa439c9a6eb70f54972d0e83be8ab74afb13d4fec5e898874a");
    }
}
