//! What a model answers, without labels.

use candle_core::{DType, Tensor};

use super::Model;
use crate::error::{EngineError, Result};
use crate::layers::Mode;
use crate::threads::Threads;

/// Records that go through a model at once.
const AT_ONCE: usize = 1024;

impl Model {
    /// The class of each record: its largest logit (the first of equals), or, with a single logit,
    /// 1 where that is above 0.
    ///
    /// **Shapes.** Features row-major `[n_records, n_inputs]`, as in
    /// [`Records::new`](crate::Records::new); returns `[n_records]`.
    ///
    /// **Edge cases.** No unit is dropped. Features that are not finite give whatever class comes
    /// out.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if the features are not whole records; [`EngineError::Tensor`] if
    /// the device fails.
    ///
    /// **Example**
    /// ```
    /// use dp_engine::{DType, Device, Model, ModelConfig};
    /// let model = Model::new(&ModelConfig::LogisticRegression, 2, 1, DType::F32, &Device::Cpu)?;
    /// model.parameters().set(&[1.0, -1.0, 0.5])?; // two weights and the bias
    /// assert_eq!(model.predict(&[1.0, 0.0, 0.0, 2.0])?, [1, 0]);
    /// assert_eq!(model.logits(&[1.0, 0.0, 0.0, 2.0])?, [1.5, -1.5]);
    /// # Ok::<(), dp_engine::EngineError>(())
    /// ```
    pub fn predict(&self, features: &[f32]) -> Result<Vec<u32>> {
        Ok(self.classes(&self.logits(features)?))
    }

    /// The logits of each record.
    ///
    /// **Shapes.** Features as in [`Self::predict`]; returns `[n_records, n_outputs]`, row-major.
    ///
    /// # Errors
    /// As [`Self::predict`].
    pub fn logits(&self, features: &[f32]) -> Result<Vec<f64>> {
        self.whole_records(features)?;
        self.run(features)
    }

    /// [`Self::predict`] of a large batch on several threads: the same answers.
    ///
    /// # Errors
    /// As [`Self::predict`]; [`EngineError::InvalidParameter`] for more than one thread on a CUDA
    /// device, which has threads for that.
    ///
    /// **Example**
    /// ```
    /// use std::num::NonZeroUsize;
    /// use dp_engine::{DType, Device, Model, ModelConfig, Threads};
    /// let model = Model::new(&ModelConfig::LogisticRegression, 1, 1, DType::F32, &Device::Cpu)?;
    /// model.parameters().set(&[1.0, -5_000.0])?;
    /// let features: Vec<f32> = (0..10_000).map(|i| i as f32).collect();
    /// let four = Threads::new(NonZeroUsize::MIN.saturating_add(3))?;
    /// assert_eq!(model.predict_on(&four, &features)?, model.predict(&features)?);
    /// # Ok::<(), dp_engine::EngineError>(())
    /// ```
    pub fn predict_on(&self, threads: &Threads, features: &[f32]) -> Result<Vec<u32>> {
        Ok(self.classes(&self.logits_on(threads, features)?))
    }

    /// [`Self::logits`] of a large batch on several threads: the same numbers, bit for bit.
    ///
    /// # Errors
    /// As [`Self::predict_on`].
    pub fn logits_on(&self, threads: &Threads, features: &[f32]) -> Result<Vec<f64>> {
        let n_records = self.whole_records(features)?;
        if threads.count() > 1 && self.parameters().flat().device().is_cuda() {
            return Err(EngineError::invalid("threads", threads.count(), "1 on a CUDA device"));
        }
        let rows = n_records.div_ceil(threads.count()).max(1);
        let parts = threads.each(features.chunks(rows * self.n_inputs()), |part| self.run(part));
        Ok(parts.into_iter().collect::<Result<Vec<_>>>()?.concat())
    }

    /// The number of records that these features are of.
    fn whole_records(&self, features: &[f32]) -> Result<usize> {
        let n_inputs = self.n_inputs();
        if features.len().is_multiple_of(n_inputs) {
            return Ok(features.len() / n_inputs);
        }
        let expected = format!("a multiple of {n_inputs}, the inputs of a record");
        Err(EngineError::mismatch("values of all features", expected, features.len()))
    }

    fn classes(&self, logits: &[f64]) -> Vec<u32> {
        logits.chunks_exact(self.n_outputs()).map(class).collect()
    }

    /// The logits of whole records.
    fn run(&self, features: &[f32]) -> Result<Vec<f64>> {
        let n_inputs = self.n_inputs();
        let flat = self.parameters().flat();
        let (dtype, device) = (flat.dtype(), flat.device());
        self.with_network(|network| {
            let mut logits = Vec::with_capacity(features.len() / n_inputs * self.n_outputs());
            network.begin(Mode::Whole);
            for rows in features.chunks(AT_ONCE * n_inputs) {
                let input = Tensor::from_slice(rows, (rows.len() / n_inputs, n_inputs), device)?.to_dtype(dtype)?;
                logits.extend(network.forward(input)?.flatten_all()?.to_dtype(DType::F64)?.to_vec1::<f64>()?);
            }
            Ok(logits)
        })
    }
}

/// The class that a record's logits stand for.
pub(crate) fn class(logits: &[f64]) -> u32 {
    if let [logit] = logits {
        return u32::from(*logit > 0.0);
    }
    let mut best = 0;
    for (class, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = class;
        }
    }
    best as u32
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use candle_core::Device;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;
    use crate::models::{ImageShape, ModelConfig};

    #[test]
    fn the_first_largest_logit_or_the_sign() {
        let answers = |rows: &[&[f64]]| rows.iter().map(|row| class(row)).collect::<Vec<u32>>();
        assert_eq!(answers(&[&[1.0, 3.0, 3.0], &[0.0, 0.0, 0.0], &[-1.0, -3.0, -0.5]]), [1, 0, 2]);
        assert_eq!(answers(&[&[1e-9], &[0.0], &[-5.0]]), [1, 0, 0]);
    }

    #[test]
    fn features_are_whole_records_of_any_number() {
        let model = Model::new(&ModelConfig::LogisticRegression, 3, 2, DType::F64, &Device::Cpu).unwrap();
        model.parameters().set(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]).unwrap();
        assert!(model.predict(&[]).unwrap().is_empty());
        let n_records = 2 * AT_ONCE + 7;
        let features: Vec<f32> = (0..n_records).flat_map(|i| [(i % 3) as f32, 1.0, 9.0]).collect();
        let expected: Vec<u32> = (0..n_records).map(|i| u32::from(i % 3 == 0)).collect();
        assert_eq!(model.predict(&features).unwrap(), expected);
        let error = model.predict(&features[1..]).unwrap_err();
        insta::assert_snapshot!(error, @"values of all features: expected a multiple of 3, the inputs of a record, got 6164");
    }

    #[test]
    fn threads_share_a_model_and_give_the_bits_of_one() {
        const fn is_shared<T: Clone + Send + Sync + 'static>() {}
        const { is_shared::<Model>() };
        let image = ImageShape { height: 10, width: 10, channels: 1 };
        let model = Model::new(&ModelConfig::EsipovaCnn { image }, 100, 3, DType::F32, &Device::Cpu).unwrap();
        model.initialise(&mut ChaCha20Rng::seed_from_u64(5)).unwrap();
        let features: Vec<f32> = (0..203 * 100).map(|i| ((i * 37) % 101) as f32 / 101.0).collect();
        let alone = model.logits(&features).unwrap();
        // Four threads at the same time, each with its own batch: twice, so that buffers are reused.
        for _ in 0..2 {
            let together: Vec<f64> = std::thread::scope(|threads| {
                let parts: Vec<_> =
                    features.chunks(51 * 100).map(|part| threads.spawn(|| model.logits(part).unwrap())).collect();
                assert_eq!(parts.len(), 4);
                parts.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(together, alone);
        }
        // One batch on several threads; also fewer records than threads.
        for count in [1, 4] {
            let threads = Threads::new(NonZeroUsize::new(count).unwrap()).unwrap();
            assert_eq!(model.logits_on(&threads, &features).unwrap(), alone);
            assert_eq!(model.logits_on(&threads, &features[..200]).unwrap(), alone[..6]);
            assert!(model.predict_on(&threads, &[]).unwrap().is_empty());
        }
    }

    #[test]
    fn a_clone_follows_and_a_copy_stays() {
        let model = Model::new(&ModelConfig::LogisticRegression, 1, 1, DType::F32, &Device::Cpu).unwrap();
        let (clone, copy) = (model.clone(), model.copy().unwrap());
        model.parameters().set(&[2.0, 1.0]).unwrap();
        assert_eq!((clone.logits(&[3.0]).unwrap(), copy.logits(&[3.0]).unwrap()), (vec![7.0], vec![0.0]));
        insta::assert_snapshot!(format!("{model:?}"), @r#"Model { config: LogisticRegression, n_inputs: 1, n_outputs: 1, parameters: {"linear.weight": [1, 1], "linear.bias": [1]}, .. }"#);
    }
}
