//! Dropout.

use candle_core::{Result, Tensor};

use super::blueprint::{Blueprint, BuildContext};
use super::{Layer, Mode};
use crate::buffer::RowBuffer;
use crate::dropout::DropoutKey;
use crate::ops;

/// Sets each unit to 0 with probability `p` and divides the others by `1 − p`; outside of training
/// it changes nothing.
///
/// The output has a separate buffer in either case, because the layer before may need its own
/// output.
pub(crate) struct Dropout {
    probability: f64,
    /// Which of the model's dropout layers this is: their masks are independent.
    index: u32,
    key: Option<DropoutKey>,
    records: Vec<usize>,
    output: RowBuffer,
    input_gradient: RowBuffer,
}

impl Dropout {
    pub(crate) fn blueprint(probability: f64, index: u32, width: usize) -> Blueprint {
        Blueprint::new(Vec::new(), move |_, context| Self::new(probability, index, width, context))
    }

    fn new(probability: f64, index: u32, width: usize, context: BuildContext<'_>) -> Result<Self> {
        let (output, input_gradient) = (context.rows(width)?, context.rows(width)?);
        Ok(Self { probability, index, key: None, records: Vec::new(), output, input_gradient })
    }

    fn apply(&self, key: DropoutKey, destination: &Tensor, source: &Tensor) -> Result<()> {
        let Self { probability, index: layer, ref records, .. } = *self;
        ops::dropout(destination, source, key, layer, records, probability)
    }
}

impl Layer for Dropout {
    type Pass = ();
    type Factors = ();

    fn begin(&mut self, mode: Mode<'_>) {
        self.records.clear();
        self.key = None;
        if let Mode::Dropping { key, records } = mode {
            self.records.extend_from_slice(records);
            self.key = Some(key);
        }
    }

    fn forward(&mut self, input: Tensor) -> Result<(Tensor, ())> {
        let output = self.output.rows(input.dim(0)?)?;
        match self.key {
            Some(key) => self.apply(key, &output, &input)?,
            None => ops::copy(&output, &input)?,
        }
        Ok((output, ()))
    }

    fn backward(
        &mut self,
        (): (),
        output_gradient: Tensor,
        wants_input_gradient: bool,
    ) -> Result<(Option<Tensor>, ())> {
        if !wants_input_gradient {
            return Ok((None, ()));
        }
        let Some(key) = self.key else { return Ok((Some(output_gradient), ())) };
        let gradient = self.input_gradient.rows(output_gradient.dim(0)?)?;
        self.apply(key, &gradient, &output_gradient)?;
        Ok((Some(gradient), ()))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    fn layer(probability: f64, width: usize, dtype: DType) -> Dropout {
        Dropout::new(
            probability,
            0,
            width,
            BuildContext { dtype, device: &Device::Cpu, expected: None, row_values: None },
        )
        .unwrap()
    }

    fn ones(rows: usize, width: usize, dtype: DType) -> Tensor {
        Tensor::ones((rows, width), dtype, &Device::Cpu).unwrap()
    }

    fn values(tensor: &Tensor) -> Vec<f64> {
        tensor.flatten_all().unwrap().to_dtype(DType::F64).unwrap().to_vec1().unwrap()
    }

    fn key(seed: u64) -> DropoutKey {
        DropoutKey::draw(&mut ChaCha20Rng::seed_from_u64(seed))
    }

    /// 300,000 units: the number dropped beyond 5 of its standard deviations by chance: 6e-7 for
    /// each probability.
    #[test]
    fn units_are_dropped_at_the_rate_and_keep_their_mean() {
        for (probability, dtype) in [(0.3, DType::F32), (0.5, DType::F64), (0.0, DType::F32), (0.999, DType::F64)] {
            let mut layer = layer(probability, 3_000, dtype);
            let records: Vec<usize> = (0..100).collect();
            layer.begin(Mode::Dropping { key: key(1), records: &records });
            let forward = values(&layer.forward(ones(100, 3_000, dtype)).unwrap().0);
            let backward = values(&layer.backward((), ones(100, 3_000, dtype), true).unwrap().0.unwrap());
            assert_eq!(forward, backward);
            let n_dropped = forward.iter().filter(|&&v| v == 0.0).count() as f64;
            let spread = (300_000.0 * probability * (1.0 - probability)).sqrt();
            assert!((n_dropped - 300_000.0 * probability).abs() <= 5.0 * spread, "{n_dropped} at {probability}");
            let kept = 1.0 / (1.0 - probability);
            assert!(forward.iter().all(|&v| v == 0.0 || (v / kept - 1.0).abs() < 1e-6));
        }
    }

    #[test]
    fn a_mask_belongs_to_step_and_record_not_to_the_batch() {
        let mask = |seed, records: &[usize]| {
            let mut layer = layer(0.5, 1_100, DType::F32);
            layer.begin(Mode::Dropping { key: key(seed), records });
            let (output, ()) = layer.forward(ones(records.len(), 1_100, DType::F32)).unwrap();
            output.to_vec2::<f32>().unwrap()
        };
        let batch = mask(1, &[9, 4, 7]);
        assert_eq!(mask(1, &[4]), batch[1..2]);
        assert_eq!(mask(1, &[7, 9]), [batch[2].clone(), batch[0].clone()]);
        assert_ne!(batch[0], batch[1]);
        assert_ne!(mask(2, &[9]), batch[..1]);
    }

    #[test]
    fn nothing_is_dropped_outside_of_training() {
        let mut layer = layer(0.5, 8, DType::F32);
        layer.begin(Mode::Dropping { key: key(1), records: &[0] });
        layer.begin(Mode::Whole);
        assert_eq!(values(&layer.forward(ones(1, 8, DType::F32)).unwrap().0), [1.0; 8]);
        assert_eq!(values(&layer.backward((), ones(1, 8, DType::F32), true).unwrap().0.unwrap()), [1.0; 8]);
    }
}
