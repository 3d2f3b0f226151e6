//! A model: layers one after the other, and their parameters.

use std::cell::Cell;
use std::ops::Range;

use candle_core::{DType, Device, Tensor};
use rand::CryptoRng;

use super::{ModelConfig, Sizes};
use crate::error::{EngineError, Result};
use crate::layers::{BuildContext, Chain, Mode};
use crate::parameters::ParameterVector;

/// A sequence of layers with their parameters.
pub struct Model {
    layers: Chain,
    /// Records that a batch is expected to have, if that is known.
    expected: Option<usize>,
    /// Values of a record that the layers have room for.
    row_values: usize,
    parameters: ParameterVector,
    /// The first parameter tensor of the late layers.
    first_late: usize,
    config: ModelConfig,
    n_inputs: usize,
    n_outputs: usize,
}

/// Some of the layers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Layers {
    All,
    /// The fewest from the end that have three quarters of the parameters. Those before them have
    /// more positions, and most of the arithmetic.
    Late,
    /// Those before.
    Early,
}

impl Model {
    /// Builds a model with all parameters zero.
    ///
    /// # Errors
    /// [`EngineError::InvalidParameter`] if the number of inputs or outputs or a width is 0.
    pub fn new(config: &ModelConfig, n_inputs: usize, n_outputs: usize, dtype: DType, device: &Device) -> Result<Self> {
        for (parameter, value) in [("n_inputs", n_inputs), ("n_outputs", n_outputs)] {
            if value == 0 {
                return Err(EngineError::invalid(parameter, value, "at least 1"));
            }
        }
        let specs = config.parameters(&Sizes { n_inputs, n_outputs })?;
        Self::with(ParameterVector::zeros(&specs, dtype, device)?, config, (n_inputs, n_outputs), None)
    }

    /// A model of these parameters.
    fn with(
        parameters: ParameterVector,
        config: &ModelConfig,
        (n_inputs, n_outputs): (usize, usize),
        expected: Option<usize>,
    ) -> Result<Self> {
        let flat = parameters.flat();
        let row_values = Cell::new(n_inputs);
        let context =
            BuildContext { dtype: flat.dtype(), device: flat.device(), expected, row_values: Some(&row_values) };
        let layers = Chain::new(config.layers(&Sizes { n_inputs, n_outputs })?, parameters.views(), context)?;
        let len_from = |tensor: usize| parameters.views()[tensor..].iter().map(Tensor::elem_count).sum::<usize>();
        let are_most = |tensor: &usize| 4 * len_from(*tensor) >= 3 * parameters.len();
        let first_late = layers.first_tensors().filter(are_most).last().unwrap_or(0);
        let row_values = row_values.get();
        Ok(Self { layers, expected, row_values, parameters, first_late, config: config.clone(), n_inputs, n_outputs })
    }

    /// Layers with buffers of their own and the very same parameters: what changes them changes
    /// both models.
    pub(crate) fn replica(&self) -> Result<Self> {
        self.replica_for(self.expected)
    }

    /// The same for batches that are expected to have so many records.
    pub(crate) fn replica_for(&self, expected: Option<usize>) -> Result<Self> {
        Self::with(self.parameters.shared(), &self.config, (self.n_inputs, self.n_outputs), expected)
    }

    /// Draws the initial parameters from PyTorch's default distributions: see
    /// [`Initial`](crate::Initial).
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails.
    pub fn initialise(&mut self, rng: &mut dyn CryptoRng) -> Result<()> {
        Ok(self.parameters.initialise(rng)?)
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

    /// What the passes that follow are for.
    pub(crate) fn begin(&mut self, mode: Mode<'_>) {
        self.layers.begin(mode);
    }

    pub(crate) fn forward(&mut self, input: Tensor) -> Result<Tensor> {
        Ok(self.layers.forward(input)?)
    }

    pub(crate) fn backward(&mut self, logits_gradient: Tensor) -> Result<()> {
        self.layers.backward(logits_gradient, false)?;
        Ok(())
    }

    pub(crate) fn add_sq_norms(&mut self, sq_norms: &Tensor) -> Result<()> {
        Ok(self.layers.add_sq_norms(sq_norms)?)
    }

    /// The place of the first parameter of the late layers.
    pub(crate) fn late_from(&self) -> usize {
        self.parameters.views()[..self.first_late].iter().map(Tensor::elem_count).sum()
    }

    /// The part that these layers have in the weighted sum of the gradients of some records.
    pub(crate) fn weighted_sum(
        &mut self,
        layers: Layers,
        rows: Range<usize>,
        weights: &[f64],
        gradient: &ParameterVector,
        accumulate: bool,
    ) -> Result<()> {
        let views = gradient.views();
        let tensors = match layers {
            Layers::All => 0..views.len(),
            Layers::Late => self.first_late..views.len(),
            Layers::Early => 0..self.first_late,
        };
        Ok(self.layers.weighted_sum_of(tensors, &rows, weights, views, accumulate)?)
    }

    /// For each tensor to whose sum a record contributes several terms one by one, rather than its
    /// whole gradient at once: how many.
    pub fn chained_terms(&self) -> Vec<usize> {
        self.layers.chained_terms()
    }

    /// See [`Layer::vocabulary`].
    pub(crate) fn vocabulary(&self) -> Option<usize> {
        self.layers.vocabulary()
    }

    /// Values that a record takes in a batch, its inputs among them: what layers put out, gradients
    /// on the way back, and its own gradient where that is kept.
    pub fn row_values(&self) -> usize {
        self.row_values + self.kept_values()
    }

    /// Values of each record's gradient that are kept from the norms to the sum.
    pub fn kept_values(&self) -> usize {
        self.layers.kept_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{EncoderFamily, ImageShape, Normalisation, ZhaoCnnLayout};
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
    fn late_layers_have_most_of_the_parameters() {
        let image = ImageShape { height: 28, width: 28, channels: 1 };
        let zhao = ModelConfig::ZhaoCnn { image, layout: ZhaoCnnLayout::Text };
        let zhao = Model::new(&zhao, 784, 10, DType::F32, &Device::Cpu).unwrap();
        // The convolutions come before: the layers behind the first linear one have 255,510 of
        // 805,578.
        assert_eq!((zhao.first_late, zhao.late_from()), (4, 640 + 36_928));
        let mlp = ModelConfig::Mlp { hidden: vec![3], activation: Activation::Tanh };
        let mlp = Model::new(&mlp, 20, 2, DType::F32, &Device::Cpu).unwrap();
        assert_eq!((mlp.first_late, mlp.late_from()), (0, 0));
    }

    /// By hand: inputs; then of each layer the output, the gradient of its input, and that of its
    /// output times a scale. The activation works in place.
    #[test]
    fn rows_are_counted() {
        let mlp = ModelConfig::Mlp { hidden: vec![3], activation: Activation::Tanh };
        let mlp = Model::new(&mlp, 20, 2, DType::F32, &Device::Cpu).unwrap();
        assert_eq!(mlp.row_values(), 20 + (3 + 20 + 3) + (2 + 3 + 2));
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
