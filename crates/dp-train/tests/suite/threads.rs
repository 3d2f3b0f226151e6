//! The number of threads changes a certified run not at all, another only by rounding.

use std::num::NonZeroUsize;

use dp_train::{Activation, DType, Device, Engine, ImageShape, LayerConfig, Loss, ModelConfig};

use crate::support::{Data, Outcome, Run, batches, config, mlp, parameters_of, privacy, relative_error};

fn on_threads(run: &Run, data: &Data, threads: usize) -> Outcome {
    Run { threads: NonZeroUsize::new(threads).unwrap(), wants_groups: true, ..run.clone() }.on(data)
}

/// Models and batches large enough for the parts to go to threads; more threads than this machine
/// may have.
#[test]
fn any_number_of_threads_gives_the_same_run() {
    let image = ImageShape { height: 10, width: 9, channels: 2 };
    let features = vec![LayerConfig::conv(12, 3), LayerConfig::max_pool(3, 2), LayerConfig::conv(20, 2)];
    let cnn = ModelConfig::Cnn { image, features, hidden: vec![30], activation: Activation::Relu };
    let mut data = Data::random(120, image.len(), 3, 2, 1);
    // One record that is left out, so that its part is done again.
    data.features_of(17)[2] = f32::NAN;
    for model in [mlp(&[64, 40], Activation::Tanh), cnn] {
        for method in [None, Some("dpsgd"), Some("dpsgd-f")] {
            let config = config(model.clone(), batches(0.9, 3), method.map(privacy));
            let (dtype, tolerance) = if method == Some("dpsgd") { (DType::F32, 1e-4) } else { (DType::F64, 1e-9) };
            let mut run = Run::new(config.clone(), dtype);
            run.micro_batch = 70;
            let one = on_threads(&run, &data, 1);
            assert!(one.counts.non_finite > 0);
            for threads in [2, 5] {
                let several = on_threads(&run, &data, threads);
                assert_eq!((several.counts, &several.ledger), (one.counts, &one.ledger));
                assert!(relative_error(&several.parameters, &one.parameters) <= tolerance);
                assert!(method.is_none() || several.parameters == one.parameters, "{threads} threads, {method:?}");
                let groups = several.group_gradient_norms.iter().flatten().flatten().copied();
                let expected = one.group_gradient_norms.iter().flatten().flatten().copied();
                assert!(relative_error(&groups.collect::<Vec<_>>(), &expected.collect::<Vec<_>>()) <= tolerance);
                assert_eq!(several, on_threads(&run, &data, threads));
            }
        }
    }
}

#[test]
fn an_engine_evaluates_alike_on_any_number_of_threads() {
    let data = Data::random(300, 20, 3, 2, 5);
    let records = data.records(DType::F32);
    let evaluate = |threads: usize, micro_batch| {
        let engine = Engine::new(&mlp(&[64, 64], Activation::Relu), Loss::SoftmaxCrossEntropy, &records, &Device::Cpu);
        let mut engine = engine.unwrap().with_threads(NonZeroUsize::new(threads).unwrap()).unwrap();
        engine.model().parameters().set(&parameters_of(&engine, 6)).unwrap();
        let rows: Vec<usize> = (0..300).rev().collect();
        (engine.evaluate(&records, micro_batch).unwrap(), engine.losses_of(&records, &rows).unwrap())
    };
    let (one, reversed) = evaluate(1, 300);
    for (threads, micro_batch) in [(2, 300), (3, 299), (4, 7)] {
        let (several, several_reversed) = evaluate(threads, micro_batch);
        assert_eq!(several.predictions, one.predictions);
        assert!(relative_error(&several.losses, &one.losses) < 1e-6);
        assert!(relative_error(&several_reversed, &reversed) < 1e-6);
    }
}
