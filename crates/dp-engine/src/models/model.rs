//! A model: an architecture and its parameters.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{DType, Device};
use rand::CryptoRng;

use super::network::Network;
use super::{ModelConfig, Sizes};
use crate::error::{EngineError, Result};
use crate::layers::NamedLayer;
use crate::parameters::ParameterVector;

/// An architecture and its parameters. Threads may share a model, by reference or as clones, and
/// predict at the same time.
///
/// A clone is another handle on the same parameters, as a clone of a tensor is: what changes them
/// (training, [`Self::initialise`], [`Self::load_weights`]) changes them for every clone.
/// [`Self::copy`] is independent.
///
/// **Example**
/// ```
/// use dp_engine::{DType, Device, Model, ModelConfig};
/// let model = Model::new(&ModelConfig::LogisticRegression, 2, 1, DType::F32, &Device::Cpu)?;
/// model.parameters().set(&[1.0, -1.0, 0.5])?; // two weights and the bias
/// let answers = std::thread::scope(|threads| {
///     let ask = |features: [f32; 2]| threads.spawn({ let model = model.clone(); move || model.predict(&features) });
///     [ask([1.0, 0.0]), ask([0.0, 2.0])].map(|thread| thread.join().expect("no thread panics"))
/// });
/// assert_eq!(answers.into_iter().collect::<Result<Vec<_>, _>>()?, [[1], [0]]);
/// # Ok::<(), dp_engine::EngineError>(())
/// ```
#[derive(Clone)]
pub struct Model {
    parameters: ParameterVector,
    config: ModelConfig,
    n_inputs: usize,
    n_outputs: usize,
    /// Layers that answered before and that no thread is using.
    idle: Arc<Mutex<Vec<Network>>>,
}

impl Model {
    /// Builds a model with all parameters zero.
    ///
    /// # Errors
    /// [`EngineError::InvalidParameter`] if the number of inputs or outputs or a width is 0, or if
    /// there is no layer with parameters.
    pub fn new(config: &ModelConfig, n_inputs: usize, n_outputs: usize, dtype: DType, device: &Device) -> Result<Self> {
        for (parameter, value) in [("n_inputs", n_inputs), ("n_outputs", n_outputs)] {
            if value == 0 {
                return Err(EngineError::invalid(parameter, value, "at least 1"));
            }
        }
        let specs = config.parameters(&Sizes { n_inputs, n_outputs })?;
        if specs.is_empty() {
            return Err(EngineError::invalid("model", config.label(), "at least one layer with parameters"));
        }
        let parameters = ParameterVector::zeros(&specs, dtype, device)?;
        Ok(Self { parameters, config: config.clone(), n_inputs, n_outputs, idle: Arc::default() })
    }

    /// An independent model with the same architecture and a copy of the parameters.
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device has no room for it.
    pub fn copy(&self) -> Result<Self> {
        Ok(Self { parameters: self.parameters.copy()?, idle: Arc::default(), ..self.clone() })
    }

    /// Draws the initial parameters from PyTorch's default distributions: see
    /// [`Initial`](crate::Initial).
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails.
    pub fn initialise(&self, rng: &mut dyn CryptoRng) -> Result<()> {
        self.parameters.initialise(rng)
    }

    /// The parameters.
    pub fn parameters(&self) -> &ParameterVector {
        &self.parameters
    }

    /// Number of parameters in the architecture's own terms, as others print it: with the weights
    /// of convolutions that meet no pixel of its images and are not among [`Self::parameters`]
    /// ([`KernelCrop`](crate::KernelCrop)).
    pub fn n_parameters(&self) -> usize {
        self.parameters.specs().iter().map(|spec| spec.whole_shape().iter().product::<usize>()).sum()
    }

    /// Number of inputs of a record.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// Number of logits of a record.
    pub fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// The architecture.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The layers to be, in order.
    pub(super) fn layers(&self) -> Result<Vec<NamedLayer>> {
        self.config.layers(&Sizes { n_inputs: self.n_inputs, n_outputs: self.n_outputs })
    }

    /// Lends layers that no other thread uses. After an error they are not used again.
    pub(super) fn with_network<R>(&self, use_it: impl FnOnce(&mut Network) -> Result<R>) -> Result<R> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut network = match idle {
            Some(network) => network,
            None => Network::new(self, None)?,
        };
        let result = use_it(&mut network)?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(network);
        Ok(result)
    }
}

/// Shapes, and no parameter.
impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { parameters, config, n_inputs, n_outputs, idle: _ } = self;
        f.debug_struct("Model")
            .field("config", config)
            .field("n_inputs", n_inputs)
            .field("n_outputs", n_outputs)
            .field("parameters", parameters)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{EncoderFamily, ImageShape, InputShape, LayerConfig, Normalisation, ZhaoCnnLayout};
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

    /// The papers print no counts: products by hand.
    #[test]
    fn parameter_counts_of_soleymani_s_networks() {
        // Adult, one logit: 98·256 + 256 + 256·256 + 256 + 256 + 1.
        assert_eq!(n_params(&ModelConfig::SoleymaniSimple, 98, 1), 91_393);
        let complex = ModelConfig::SoleymaniComplex { normalisation: Normalisation::GroupNorm { groups: 8 } };
        // 98·128 + 128 + 2·128, 128·64 + 64 + 2·64, 64·32 + 32, 32·2 + 2.
        assert_eq!(n_params(&complex, 98, 2), 12_928 + 8_384 + 2_080 + 66);
        let head = |encoder| n_params(&ModelConfig::FrozenEncoderHead { encoder }, 768, 4);
        assert_eq!(head(EncoderFamily::Bert), 768 * 4 + 4);
        assert_eq!(head(EncoderFamily::Distilbert), 768 * 768 + 768 + 768 * 4 + 4);
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

    #[test]
    fn a_model_without_parameters_is_refused() {
        let tanh = LayerConfig::Activation { function: Activation::Tanh };
        let error = |layers| {
            let empty = ModelConfig::Sequential { input: InputShape::Features, layers };
            Model::new(&empty, 2, 2, DType::F32, &Device::Cpu).unwrap_err()
        };
        insta::assert_snapshot!(error(vec![]), @"model = sequential-0: expected at least one layer with parameters");
        insta::assert_snapshot!(error(vec![tanh]), @"model = sequential-1: expected at least one layer with parameters");
    }
}
