//! Losses against candle-nn's own, where those are stable: at logits of a few units.

use candle_core::{IndexOp, Tensor};
use candle_nn::loss::{binary_cross_entropy_with_logit, cross_entropy};
use dp_train::{DType, Device, Engine, Loss, ModelConfig};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::support::{Data, relative_error};

#[test]
fn mean_losses_are_candle_nn_s() {
    for (loss, n_classes) in [(Loss::SoftmaxCrossEntropy, 5), (Loss::BceWithLogits, 2)] {
        let data = Data::random(40, 6, n_classes, 2, 11);
        let records = data.records(DType::F64);
        let mut engine = Engine::new(&ModelConfig::LogisticRegression, loss.clone(), &records, &Device::Cpu).unwrap();
        engine.model().initialise(&mut ChaCha20Rng::seed_from_u64(12)).unwrap();
        let ours = engine.evaluate(&records, 7).unwrap().losses;

        let views = engine.model().parameters().views();
        let features = Tensor::from_slice(&data.features, (40, 6), &Device::Cpu).unwrap().to_dtype(DType::F64).unwrap();
        let logits = features.matmul(&views[0].t().unwrap()).unwrap().broadcast_add(&views[1]).unwrap();
        let labels = Tensor::new(data.labels.as_slice(), &Device::Cpu).unwrap();
        let theirs = if loss == Loss::SoftmaxCrossEntropy {
            cross_entropy(&logits, &labels).unwrap()
        } else {
            binary_cross_entropy_with_logit(&logits.i((.., 0)).unwrap(), &labels.to_dtype(DType::F64).unwrap()).unwrap()
        };
        let mean = ours.iter().sum::<f64>() / ours.len() as f64;
        let theirs = theirs.to_scalar::<f64>().unwrap();
        assert!(relative_error(&[mean], &[theirs]) < 1e-12, "{loss:?}");
    }
}
