//! A model: layers one after the other, and their parameters.

use candle_core::{DType, Device, Tensor};
use rand::RngCore;

use super::{ModelConfig, Sizes};
use crate::error::{Result, TrainError};
use crate::layers::{Layer, ParameterSpec};
use crate::parameters::ParameterVector;

/// A layer, its name, and which of the model's parameters are its own.
pub(crate) struct NamedLayer {
    name: String,
    layer: Box<dyn Layer>,
    parameters: std::ops::Range<usize>,
}

impl NamedLayer {
    /// A layer whose parameters' names start with `name`.
    pub(crate) fn new(name: impl Into<String>, layer: impl Layer + 'static) -> Self {
        Self { name: name.into(), layer: Box::new(layer), parameters: 0..0 }
    }
}

/// A sequence of layers with their parameters.
pub struct Model {
    layers: Vec<NamedLayer>,
    parameters: ParameterVector,
    config: ModelConfig,
    n_inputs: usize,
    n_outputs: usize,
}

impl Model {
    /// Builds a model with all parameters zero.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] if the number of inputs or outputs or a width is 0.
    pub fn new(config: &ModelConfig, n_inputs: usize, n_outputs: usize, dtype: DType, device: &Device) -> Result<Self> {
        for (parameter, value) in [("n_inputs", n_inputs), ("n_outputs", n_outputs)] {
            if value == 0 {
                return Err(TrainError::invalid(parameter, value, "at least 1"));
            }
        }
        let mut layers = config.layers(&Sizes { n_inputs, n_outputs, dtype, device })?;
        let mut specs: Vec<ParameterSpec> = Vec::new();
        for named in &mut layers {
            let start = specs.len();
            specs.extend(named.layer.parameters().into_iter().map(|mut spec| {
                spec.name = format!("{}.{}", named.name, spec.name);
                spec
            }));
            named.parameters = start..specs.len();
        }
        let parameters = ParameterVector::zeros(&specs, dtype, device)?;
        for named in &mut layers {
            named.layer.bind(&parameters.views()[named.parameters.clone()]);
        }
        Ok(Self { layers, parameters, config: config.clone(), n_inputs, n_outputs })
    }

    /// Layers with buffers of their own and the very same parameters: what changes them changes both models.
    pub(crate) fn replica(&self) -> Result<Self> {
        let flat = self.parameters.flat();
        let mut replica = Self::new(&self.config, self.n_inputs, self.n_outputs, flat.dtype(), flat.device())?;
        replica.parameters = self.parameters.shared();
        for named in &mut replica.layers {
            named.layer.bind(&replica.parameters.views()[named.parameters.clone()]);
        }
        Ok(replica)
    }

    /// Draws the initial parameters: uniform in ±1/√fan_in, weights and biases, as PyTorch does.
    ///
    /// # Errors
    /// [`TrainError::Tensor`] if the device fails.
    pub fn initialise(&mut self, rng: &mut dyn RngCore) -> Result<()> {
        Ok(self.parameters.initialise(rng)?)
    }

    /// The parameters.
    pub fn parameters(&self) -> &ParameterVector {
        &self.parameters
    }

    /// Number of inputs of a record.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    pub(crate) fn forward(&mut self, input: Tensor) -> Result<Tensor> {
        let mut x = input;
        for named in &mut self.layers {
            x = named.layer.forward(x)?;
        }
        Ok(x)
    }

    pub(crate) fn backward(&mut self, logits_gradient: Tensor) -> Result<()> {
        // Nothing before the first layer with parameters needs a gradient.
        let first = self.layers.iter().position(|named| !named.parameters.is_empty()).unwrap_or(0);
        let mut gradient = logits_gradient;
        for (i, named) in self.layers.iter_mut().enumerate().skip(first).rev() {
            match named.layer.backward(gradient, i > first)? {
                Some(input_gradient) => gradient = input_gradient,
                None => break,
            }
        }
        Ok(())
    }

    pub(crate) fn add_sq_norms(&mut self, sq_norms: &Tensor) -> Result<()> {
        for named in &mut self.layers {
            named.layer.add_sq_norms(sq_norms)?;
        }
        Ok(())
    }

    pub(crate) fn weighted_sum(&mut self, weights: &[f64], gradient: &ParameterVector, accumulate: bool) -> Result<()> {
        for named in &mut self.layers {
            named.layer.weighted_sum(weights, &gradient.views()[named.parameters.clone()], accumulate)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{ImageShape, ZhaoCnnLayout};
    use crate::ops::Activation;

    fn n_params(config: &ModelConfig, inputs: usize, outputs: usize) -> usize {
        Model::new(config, inputs, outputs, DType::F32, &Device::Cpu).unwrap().parameters().len()
    }

    #[test]
    fn parameter_counts_are_the_papers() {
        let mlp = ModelConfig::Mlp { hidden: vec![256, 256], activation: Activation::Tanh };
        // Esipova 2023, Adult: 98·256 + 256 + 256·256 + 256 + 256·2 + 2.
        assert_eq!(n_params(&mlp, 98, 2), 91_650);
        // Esipova 2023: 320 + 4,624 + 24·24·16·10 + 10 and 896 + 4,624 + 60·60·16·2 + 2.
        let mnist = ImageShape { height: 28, width: 28, channels: 1 };
        let celeba = ImageShape { height: 64, width: 64, channels: 3 };
        assert_eq!(n_params(&ModelConfig::EsipovaCnn { image: mnist }, 784, 10), 97_114);
        assert_eq!(n_params(&ModelConfig::EsipovaCnn { image: celeba }, 12_288, 2), 120_722);
        // Xu: 20·26 + 50·501 + 800·500 + 500 + 5,010, "431K".
        assert_eq!(n_params(&ModelConfig::XuCnn { image: mnist }, 784, 10), 431_080);
        // Zhao: 640 + 36,928 + 1,024·500 + 500 + 250,500 + 5,010, and with 512 for 500.
        let zhao = |layout| ModelConfig::ZhaoCnn { image: mnist, layout };
        assert_eq!(n_params(&zhao(ZhaoCnnLayout::Text), 784, 10), 805_578);
        assert_eq!(n_params(&zhao(ZhaoCnnLayout::Code), 784, 10), 830_154);
        // Esipova 2023, Dutch: 59·2 + 2.
        assert_eq!(n_params(&ModelConfig::LogisticRegression, 59, 2), 120);
        assert_eq!(mlp.label(), "mlp-256x256-tanh");
    }

    #[test]
    fn names_are_stable() {
        let mlp = ModelConfig::Mlp { hidden: vec![3], activation: Activation::Relu };
        let model = Model::new(&mlp, 2, 2, DType::F32, &Device::Cpu).unwrap();
        let names: Vec<&str> = model.parameters().specs().iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]);
    }

    #[test]
    fn a_model_without_width_is_refused() {
        let mlp = ModelConfig::Mlp { hidden: vec![3, 0], activation: Activation::Relu };
        let error = Model::new(&mlp, 2, 2, DType::F32, &Device::Cpu).err().unwrap();
        insta::assert_snapshot!(error, @"model.hidden = [3, 0]: expected widths of at least 1");
    }
}
