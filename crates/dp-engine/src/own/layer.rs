//! A layer from outside of this crate.

use std::fmt::Debug;

use crate::layers::ParameterSpec;

/// A layer from outside of this crate: functions of one record.
///
/// **Guarantee.** The layer never sees a batch. It is called with the values of one record at a time, in
/// `f64`, and hands back the gradient of that record. This crate keeps that gradient, takes the norm
/// of what it kept, and sums what it kept. A wrong gradient can therefore spoil a model, but a record
/// adds no more than its norm says. One thing nothing enforces: a layer must be a function of what it
/// is given, without a memory. Plans name it as a condition. `dp_audit::replay_layer` attacks it.
///
/// It works on the CPU. The gradients of all records of a micro-batch are in memory at once: a layer
/// with many parameters is better put together from the layers of this crate.
///
/// ```
/// use dp_engine::{
///     DType, Device, Initial, InputShape, LayerConfig, Model, ModelConfig, OwnLayer, OwnShape, ParameterSpec, register_layer,
/// };
///
/// /// Each value times a weight of its own.
/// #[derive(Debug)]
/// struct Scaling;
///
/// impl OwnLayer for Scaling {
///     fn name(&self) -> &'static str {
///         "scaling"
///     }
///     fn shape(&self, inputs: usize, _: &[f64]) -> Result<OwnShape, String> {
///         let weight = ParameterSpec::new("weight", vec![inputs], Initial::Ones, true);
///         Ok(OwnShape { outputs: inputs, parameters: vec![weight] })
///     }
///     fn forward(&self, _: &[f64], parameters: &[&[f64]], input: &[f64], output: &mut [f64]) {
///         for ((y, x), w) in output.iter_mut().zip(input).zip(parameters[0]) {
///             *y = w * x;
///         }
///     }
///     fn backward(
///         &self, _: &[f64], parameters: &[&[f64]], input: &[f64], by_output: &[f64], by_input: &mut [f64],
///         by_parameters: &mut [&mut [f64]],
///     ) {
///         for i in 0..input.len() {
///             by_input[i] = parameters[0][i] * by_output[i];
///             by_parameters[0][i] = input[i] * by_output[i];
///         }
///     }
/// }
///
/// register_layer(&Scaling)?;
/// let layers = vec![
///     LayerConfig::Own { layer: "scaling".into(), settings: Vec::new() },
///     LayerConfig::Linear { outputs: 2 },
/// ];
/// let config = ModelConfig::Sequential { input: InputShape::Features, layers };
/// let model = Model::new(&config, 5, 2, DType::F32, &Device::Cpu)?;
/// assert_eq!((model.n_parameters(), config.own_layers()), (5 + 5 * 2 + 2, vec!["scaling".to_owned()]));
/// # Ok::<(), dp_engine::EngineError>(())
/// ```
pub trait OwnLayer: Debug + Send + Sync + 'static {
    /// Its name: lower-case letters, digits and hyphens.
    fn name(&self) -> &'static str;

    /// Its parameters and outputs for a record of `inputs` values, under the settings of its
    /// configuration.
    ///
    /// # Errors
    /// In words, what is expected where it does not take such inputs or settings.
    fn shape(&self, inputs: usize, settings: &[f64]) -> Result<OwnShape, String>;

    /// The output of one record.
    fn forward(&self, settings: &[f64], parameters: &[&[f64]], input: &[f64], output: &mut [f64]);

    /// The gradient of one record with respect to the input and to each parameter tensor, from the
    /// gradient with respect to the output. What is to be written holds 0.
    fn backward(
        &self,
        settings: &[f64],
        parameters: &[&[f64]],
        input: &[f64],
        by_output: &[f64],
        by_input: &mut [f64],
        by_parameters: &mut [&mut [f64]],
    );
}

/// What a layer of one's own has and gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnShape {
    /// Values that it gives for a record, at least 1. As many as it takes keep their arrangement;
    /// others are at one position.
    pub outputs: usize,
    /// Its parameter tensors, with names that are local to it.
    pub parameters: Vec<ParameterSpec>,
}
