//! Layers one after the other.

use std::ops::Range;

use candle_core::{Result, Tensor};

use super::blueprint::{Blueprint, BuildContext};
use super::stage::Stage;
use super::{Mode, ParameterSpec};

/// A layer to be, and the prefix of its parameters' names.
pub(crate) struct NamedLayer {
    name: String,
    blueprint: Blueprint,
}

impl NamedLayer {
    /// A layer whose parameters' names start with `name`.
    pub(crate) fn new(name: impl Into<String>, blueprint: Blueprint) -> Self {
        Self { name: name.into(), blueprint }
    }
}

/// Parameters of layers in order, with their full names.
pub(crate) fn parameters(layers: &[NamedLayer]) -> Vec<ParameterSpec> {
    let of_layer = |named: &NamedLayer| {
        let renamed =
            |spec: &ParameterSpec| ParameterSpec { name: format!("{}.{}", named.name, spec.name), ..spec.clone() };
        named.blueprint.parameters().iter().map(renamed).collect::<Vec<_>>()
    };
    layers.iter().flat_map(of_layer).collect()
}

/// Layers of which each takes the output of the one before.
pub(crate) struct Chain {
    stages: Vec<Member>,
}

/// A layer, and which parameters of its chain are its own.
struct Member {
    stage: Box<dyn Stage>,
    parameters: Range<usize>,
}

impl Chain {
    /// The layers with their parameters: views in the order of [`parameters`].
    pub(crate) fn new(layers: Vec<NamedLayer>, parameters: &[Tensor], context: BuildContext<'_>) -> Result<Self> {
        let mut stages = Vec::with_capacity(layers.len());
        let mut start = 0;
        for NamedLayer { blueprint, .. } in layers {
            let own = start..start + blueprint.parameters().len();
            start = own.end;
            stages.push(Member { stage: blueprint.build(&parameters[own.clone()], context)?, parameters: own });
        }
        Ok(Self { stages })
    }

    /// The members that have parameters.
    fn with_parameters(&mut self) -> impl Iterator<Item = &mut Member> {
        self.stages.iter_mut().filter(|member| !member.parameters.is_empty())
    }

    pub(crate) fn begin(&mut self, mode: Mode<'_>) {
        for member in &mut self.stages {
            member.stage.begin(mode);
        }
    }

    pub(crate) fn forward(&mut self, input: Tensor) -> Result<Tensor> {
        let mut x = input;
        for member in &mut self.stages {
            x = member.stage.forward(x)?;
        }
        Ok(x)
    }

    pub(crate) fn backward(&mut self, output_gradient: Tensor, wants_input_gradient: bool) -> Result<Option<Tensor>> {
        // Unless the chain's own input gradient is asked for, nothing before the first layer with
        // parameters needs one.
        let first = self.stages.iter().position(|member| wants_input_gradient || !member.parameters.is_empty());
        let mut gradient = Some(output_gradient);
        for (i, member) in self.stages.iter_mut().enumerate().skip(first.unwrap_or(usize::MAX)).rev() {
            let Some(output_gradient) = gradient else { break };
            gradient = member.stage.backward(output_gradient, wants_input_gradient || Some(i) > first)?;
        }
        Ok(gradient.filter(|_| wants_input_gradient))
    }

    pub(crate) fn add_sq_norms(&mut self, sq_norms: &Tensor) -> Result<()> {
        self.with_parameters().try_for_each(|member| member.stage.add_sq_norms(sq_norms))
    }

    pub(crate) fn weighted_sum(
        &mut self,
        rows: &Range<usize>,
        weights: &[f64],
        gradients: &[Tensor],
        accumulate: bool,
    ) -> Result<()> {
        self.weighted_sum_of(0..gradients.len(), rows, weights, gradients, accumulate)
    }

    /// [`Self::weighted_sum`] of the layers whose first parameter tensor is one of these.
    pub(crate) fn weighted_sum_of(
        &mut self,
        tensors: Range<usize>,
        rows: &Range<usize>,
        weights: &[f64],
        gradients: &[Tensor],
        accumulate: bool,
    ) -> Result<()> {
        let mut layers = self.with_parameters().filter(|member| tensors.contains(&member.parameters.start));
        layers.try_for_each(|Member { stage, parameters }| {
            stage.weighted_sum(rows.clone(), weights, &gradients[parameters.clone()], accumulate)
        })
    }

    /// The first parameter tensor of each layer that has any.
    pub(crate) fn first_tensors(&self) -> impl Iterator<Item = usize> {
        self.stages.iter().filter(|member| !member.parameters.is_empty()).map(|member| member.parameters.start)
    }

    pub(crate) fn chained_terms(&self) -> Vec<usize> {
        self.stages.iter().flat_map(|member| member.stage.chained_terms()).collect()
    }

    pub(crate) fn vocabulary(&self) -> Option<usize> {
        self.stages.first().and_then(|member| member.stage.vocabulary())
    }

    pub(crate) fn kept_values(&self) -> usize {
        self.stages.iter().map(|member| member.stage.kept_values()).sum()
    }
}
