//! What a model answers, without labels.

use candle_core::{DType, Tensor};

use super::Model;
use crate::error::{EngineError, Result};
use crate::layers::Mode;

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
    /// let mut model = Model::new(&ModelConfig::LogisticRegression, 2, 1, DType::F32, &Device::Cpu)?;
    /// model.parameters().set(&[1.0, -1.0, 0.5])?; // two weights and the bias
    /// assert_eq!(model.predict(&[1.0, 0.0, 0.0, 2.0])?, [1, 0]);
    /// assert_eq!(model.logits(&[1.0, 0.0, 0.0, 2.0])?, [1.5, -1.5]);
    /// # Ok::<(), dp_engine::EngineError>(())
    /// ```
    pub fn predict(&mut self, features: &[f32]) -> Result<Vec<u32>> {
        let logits = self.logits(features)?;
        Ok(logits.chunks_exact(self.n_outputs()).map(class).collect())
    }

    /// The logits of each record.
    ///
    /// **Shapes.** Features as in [`Self::predict`]; returns `[n_records, n_outputs]`, row-major.
    ///
    /// # Errors
    /// As [`Self::predict`].
    pub fn logits(&mut self, features: &[f32]) -> Result<Vec<f64>> {
        let n_inputs = self.n_inputs();
        let (n_records, rest) = (features.len() / n_inputs, features.len() % n_inputs);
        if rest != 0 {
            let expected = format!("a multiple of {n_inputs}, the inputs of a record");
            return Err(EngineError::mismatch("values of all features", expected, features.len()));
        }
        let flat = self.parameters().flat();
        let (dtype, device) = (flat.dtype(), flat.device().clone());
        let mut logits = Vec::with_capacity(n_records * self.n_outputs());
        self.begin(Mode::Whole);
        for rows in features.chunks(AT_ONCE * n_inputs) {
            let input = Tensor::from_slice(rows, (rows.len() / n_inputs, n_inputs), &device)?.to_dtype(dtype)?;
            logits.extend(self.forward(input)?.flatten_all()?.to_dtype(DType::F64)?.to_vec1::<f64>()?);
        }
        Ok(logits)
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
    use candle_core::Device;

    use super::*;
    use crate::models::ModelConfig;

    #[test]
    fn the_first_largest_logit_or_the_sign() {
        let answers = |rows: &[&[f64]]| rows.iter().map(|row| class(row)).collect::<Vec<u32>>();
        assert_eq!(answers(&[&[1.0, 3.0, 3.0], &[0.0, 0.0, 0.0], &[-1.0, -3.0, -0.5]]), [1, 0, 2]);
        assert_eq!(answers(&[&[1e-9], &[0.0], &[-5.0]]), [1, 0, 0]);
    }

    #[test]
    fn features_are_whole_records_of_any_number() {
        let mut model = Model::new(&ModelConfig::LogisticRegression, 3, 2, DType::F64, &Device::Cpu).unwrap();
        model.parameters().set(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]).unwrap();
        assert!(model.predict(&[]).unwrap().is_empty());
        let n_records = 2 * AT_ONCE + 7;
        let features: Vec<f32> = (0..n_records).flat_map(|i| [(i % 3) as f32, 1.0, 9.0]).collect();
        let expected: Vec<u32> = (0..n_records).map(|i| u32::from(i % 3 == 0)).collect();
        assert_eq!(model.predict(&features).unwrap(), expected);
        let error = model.predict(&features[1..]).unwrap_err();
        insta::assert_snapshot!(error, @"values of all features: expected a multiple of 3, the inputs of a record, got 6164");
    }
}
