//! The layers of a model with their buffers, for one thread.

use std::cell::Cell;
use std::ops::Range;

use candle_core::Tensor;

use super::Model;
use crate::error::Result;
use crate::layers::{BuildContext, Chain, Mode};
use crate::parameters::ParameterVector;

/// A model's layers and buffers: what a thread needs to run it. The parameters are the model's.
pub(crate) struct Network {
    layers: Chain,
    /// Values of a record that the layers have room for.
    row_values: usize,
    n_parameters: usize,
    is_cpu: bool,
    /// Where the late layers begin.
    late: Start,
}

/// The first parameter of some layers: its tensor, and its place in the vector.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Start {
    tensor: usize,
    value: usize,
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

impl Network {
    /// Layers of the model for batches of `expected` records on average, if that is known.
    pub(crate) fn new(model: &Model, expected: Option<usize>) -> Result<Self> {
        let parameters = model.parameters();
        let flat = parameters.flat();
        let row_values = Cell::new(model.n_inputs());
        let context =
            BuildContext { dtype: flat.dtype(), device: flat.device(), expected, row_values: Some(&row_values) };
        let layers = Chain::new(model.layers()?, parameters.views(), context)?;
        let n_values = |tensors: &[Tensor]| tensors.iter().map(Tensor::elem_count).sum::<usize>();
        let are_most = |tensor: &usize| 4 * n_values(&parameters.views()[*tensor..]) >= 3 * parameters.len();
        let tensor = layers.first_tensors().filter(are_most).last().unwrap_or(0);
        let late = Start { tensor, value: n_values(&parameters.views()[..tensor]) };
        let (n_parameters, is_cpu) = (parameters.len(), flat.device().is_cpu());
        Ok(Self { layers, row_values: row_values.get(), n_parameters, is_cpu, late })
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
        self.late.value
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
            Layers::Late => self.late.tensor..views.len(),
            Layers::Early => 0..self.late.tensor,
        };
        Ok(self.layers.weighted_sum_of(tensors, &rows, weights, views, accumulate)?)
    }

    /// See [`Engine::chained_terms`](crate::Engine::chained_terms).
    pub(crate) fn chained_terms(&self) -> Vec<usize> {
        self.layers.chained_terms()
    }

    /// See [`Layer::vocabulary`](crate::layers::Layer::vocabulary).
    pub(crate) fn vocabulary(&self) -> Option<usize> {
        self.layers.vocabulary()
    }

    /// See [`Engine::row_values`](crate::Engine::row_values).
    pub(crate) fn row_values(&self) -> usize {
        self.row_values + self.kept_values()
    }

    /// See [`Engine::stretch`](crate::Engine::stretch).
    pub(crate) fn stretch(&self) -> usize {
        /// Values of a stretch: 8 MiB in single precision.
        const IN_CACHE: usize = 1 << 21;
        /// Parameters beyond which it does not pay: every stretch reads and writes as many several
        /// times.
        const MANY_PARAMETERS: usize = IN_CACHE / 16;
        if !self.is_cpu || self.n_parameters > MANY_PARAMETERS {
            return usize::MAX;
        }
        (IN_CACHE / self.row_values()).max(1)
    }

    /// See [`Engine::kept_values`](crate::Engine::kept_values).
    pub(crate) fn kept_values(&self) -> usize {
        self.layers.kept_values()
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;
    use crate::models::{ImageShape, ModelConfig, ZhaoCnnLayout};
    use crate::ops::Activation;

    fn network(config: &ModelConfig, n_inputs: usize, n_outputs: usize) -> Network {
        Network::new(&Model::new(config, n_inputs, n_outputs, DType::F32, &Device::Cpu).unwrap(), None).unwrap()
    }

    #[test]
    fn late_layers_have_most_of_the_parameters() {
        let image = ImageShape { height: 28, width: 28, channels: 1 };
        let zhao = ModelConfig::ZhaoCnn { image, layout: ZhaoCnnLayout::Text };
        // The convolutions come before: the layers behind the first linear one have 255,510 of
        // 805,578.
        assert_eq!(network(&zhao, 784, 10).late, Start { tensor: 4, value: 640 + 36_928 });
        let mlp = ModelConfig::Mlp { hidden: vec![3], activation: Activation::Tanh };
        assert_eq!(network(&mlp, 20, 2).late, Start { tensor: 0, value: 0 });
    }

    /// By hand: inputs; then of each layer the output, the gradient of its input, and that of its
    /// output times a scale. The activation works in place.
    #[test]
    fn rows_are_counted() {
        let mlp = ModelConfig::Mlp { hidden: vec![3], activation: Activation::Tanh };
        assert_eq!(network(&mlp, 20, 2).row_values(), 20 + (3 + 20 + 3) + (2 + 3 + 2));
    }
}
