//! The parameters of a model, or a gradient of the same layout: one flat tensor and named views
//! into it.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use rand::{CryptoRng, Rng};
use rand_distr::StandardNormal;

use crate::error::{EngineError, Result};
use crate::layers::{Initial, ParameterSpec};

/// Parameters, or a gradient: a flat vector `[n_params]` with one view per parameter tensor, in
/// layer order.
///
/// The sum of clipped gradients, its noise and the optimiser's update are single passes over the
/// flat vector.
///
/// A clone is another handle on the same values: what changes one changes both.
///
/// **Example**
/// ```
/// use dp_engine::{DType, Device, Model, ModelConfig};
/// let model = Model::new(&ModelConfig::LogisticRegression, 2, 1, DType::F32, &Device::Cpu)?;
/// let parameters = model.parameters();
/// parameters.set(&[1.0, -1.0, 0.5])?;
/// let named: Vec<(&str, &[usize])> = parameters.specs().iter().map(|s| (&*s.name, &*s.shape)).collect();
/// assert_eq!(named, [("linear.weight", &[1, 2][..]), ("linear.bias", &[1])]);
/// assert_eq!(parameters.to_vec()?, [1.0, -1.0, 0.5]);
/// # Ok::<(), dp_engine::EngineError>(())
/// ```
#[derive(Clone)]
pub struct ParameterVector {
    flat: Tensor,
    specs: Arc<[ParameterSpec]>,
    views: Arc<[Tensor]>,
}

/// Names and shapes, and no value.
impl std::fmt::Debug for ParameterVector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.specs.iter().map(|spec| (&spec.name, &spec.shape))).finish()
    }
}

impl ParameterVector {
    /// All zeros.
    pub(crate) fn zeros(specs: &[ParameterSpec], dtype: DType, device: &Device) -> Result<Self> {
        let n_params: usize = specs.iter().map(ParameterSpec::len).sum();
        let flat = Tensor::zeros(n_params, dtype, device)?;
        let mut start = 0;
        let mut views = Vec::with_capacity(specs.len());
        for spec in specs {
            views.push(flat.narrow(0, start, spec.len())?.reshape(spec.shape.as_slice())?);
            start += spec.len();
        }
        Ok(Self { flat, specs: specs.into(), views: views.into() })
    }

    /// An independent vector with the same values.
    pub(crate) fn copy(&self) -> Result<Self> {
        let copy = Self::zeros(&self.specs, self.flat.dtype(), self.flat.device())?;
        copy.flat.slice_set(&self.flat, 0, 0)?;
        Ok(copy)
    }

    /// Draws every value from the distribution its specification names.
    pub(crate) fn initialise(&self, rng: &mut dyn CryptoRng) -> Result<()> {
        let mut values: Vec<f64> = Vec::with_capacity(self.len());
        for spec in &*self.specs {
            let n = 0..spec.len();
            match spec.initial {
                Initial::Uniform { fan_in } => {
                    let bound = 1.0 / (fan_in.max(1) as f64).sqrt();
                    values.extend(n.map(|_| rng.random_range(-bound..=bound)));
                }
                Initial::Normal => values.extend(n.map(|_| rng.sample::<f64, _>(StandardNormal))),
                Initial::Ones => values.extend(n.map(|_| 1.0)),
                Initial::Zeros => values.extend(n.map(|_| 0.0)),
            }
        }
        self.set(&values)
    }

    /// Overwrites all values, in order.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if there are not as many values as parameters;
    /// [`EngineError::Tensor`] if the device fails.
    pub fn set(&self, values: &[f64]) -> Result<()> {
        if values.len() != self.len() {
            return Err(EngineError::mismatch("values of the parameters", self.len(), values.len()));
        }
        let source = Tensor::from_slice(values, values.len(), self.flat.device())?.to_dtype(self.flat.dtype())?;
        Ok(self.flat.slice_set(&source, 0, 0)?)
    }

    /// A copy of all values, in order.
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails.
    pub fn to_vec(&self) -> Result<Vec<f64>> {
        Ok(self.flat.to_dtype(DType::F64)?.to_vec1()?)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.flat.elem_count()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The flat vector, `[n_params]`.
    pub fn flat(&self) -> &Tensor {
        &self.flat
    }

    /// Some of the values, `[range]`.
    pub(crate) fn range(&self, range: &Range<usize>) -> Result<Tensor> {
        Ok(self.flat.narrow(0, range.start, range.len())?)
    }

    /// Views of the parameter tensors, in order, each of the shape in [`Self::specs`]. They share
    /// the vector's storage.
    pub fn views(&self) -> &[Tensor] {
        &self.views
    }

    /// Names and shapes, in order.
    pub fn specs(&self) -> &[ParameterSpec] {
        &self.specs
    }
}
