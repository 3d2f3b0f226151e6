//! A layer with the data that it holds between the passes of a step.

use std::ops::Range;

use candle_core::{Error, Result, Tensor};

use super::{Layer, Mode};

/// A [`Layer`] that remembers what its passes hand on, so that layers of all kinds can stand in a
/// row.
///
/// The passes are called in the order of a step: [`Self::forward`], [`Self::backward`], then norms
/// and sums as often as needed.
pub(crate) trait Stage: Send {
    /// See [`Layer::begin`].
    fn begin(&mut self, mode: Mode<'_>);
    /// See [`Layer::forward`].
    fn forward(&mut self, input: Tensor) -> Result<Tensor>;
    /// See [`Layer::backward`].
    fn backward(&mut self, output_gradient: Tensor, wants_input_gradient: bool) -> Result<Option<Tensor>>;
    /// See [`Layer::add_sq_norms`].
    fn add_sq_norms(&mut self, sq_norms: &Tensor) -> Result<()>;
    /// See [`Layer::weighted_sum`].
    fn weighted_sum(
        &mut self,
        rows: Range<usize>,
        weights: &[f64],
        gradients: &[Tensor],
        accumulate: bool,
    ) -> Result<()>;
    /// See [`Layer::chained_terms`].
    fn chained_terms(&self) -> Vec<usize>;
    /// See [`Layer::vocabulary`].
    fn vocabulary(&self) -> Option<usize>;
    /// See [`Layer::kept_values`].
    fn kept_values(&self) -> usize;
}

/// A layer with the data that it holds between the passes of a step. It refuses a pass out of order.
pub(super) struct StatefulLayer<L: Layer> {
    layer: L,
    state: PassState<L>,
}

enum PassState<L: Layer> {
    None,
    Forward(L::Pass),
    Both(L::Factors),
}

impl<L: Layer> StatefulLayer<L> {
    pub(super) fn new(layer: L) -> Self {
        Self { layer, state: PassState::None }
    }
}

impl<L: Layer> Stage for StatefulLayer<L> {
    fn begin(&mut self, mode: Mode<'_>) {
        self.layer.begin(mode);
    }

    fn forward(&mut self, input: Tensor) -> Result<Tensor> {
        let (output, pass) = self.layer.forward(input)?;
        self.state = PassState::Forward(pass);
        Ok(output)
    }

    fn backward(&mut self, output_gradient: Tensor, wants_input_gradient: bool) -> Result<Option<Tensor>> {
        let PassState::Forward(pass) = std::mem::replace(&mut self.state, PassState::None) else {
            return Err(Error::Msg("backward pass without a forward pass".into()));
        };
        let (input_gradient, factors) = self.layer.backward(pass, output_gradient, wants_input_gradient)?;
        self.state = PassState::Both(factors);
        Ok(input_gradient)
    }

    fn add_sq_norms(&mut self, sq_norms: &Tensor) -> Result<()> {
        let PassState::Both(factors) = &mut self.state else { return Err(before_backward()) };
        self.layer.add_sq_norms(factors, sq_norms)
    }

    fn weighted_sum(
        &mut self,
        rows: Range<usize>,
        weights: &[f64],
        gradients: &[Tensor],
        accumulate: bool,
    ) -> Result<()> {
        let PassState::Both(factors) = &self.state else { return Err(before_backward()) };
        self.layer.weighted_sum(factors, rows, weights, gradients, accumulate)
    }

    fn chained_terms(&self) -> Vec<usize> {
        self.layer.chained_terms()
    }

    fn vocabulary(&self) -> Option<usize> {
        self.layer.vocabulary()
    }

    fn kept_values(&self) -> usize {
        self.layer.kept_values()
    }
}

fn before_backward() -> Error {
    Error::Msg("per-sample gradients asked for before a backward pass".into())
}
