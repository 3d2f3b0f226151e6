//! Residual blocks.

use std::ops::Range;

use candle_core::{Result, Tensor};

use super::blueprint::Blueprint;
use super::{Chain, Layer, Mode, NamedLayer, parameters};
use crate::buffer::RowBuffer;
use crate::ops;

/// `y = branch(x) + x`, or `branch(x) + shortcut(x)` where the branch changes the shape.
///
/// The first layer of either must leave its input alone, since both read it.
///
/// **Source.** He 2016.
pub(crate) struct Residual {
    branch: Chain,
    shortcut: Option<Chain>,
    /// How many of the parameters are the branch's; the others are the shortcut's.
    n_branch_parameters: usize,
    output_gradient: RowBuffer,
}

impl Residual {
    /// `width` is the number of outputs.
    pub(crate) fn blueprint(branch: Vec<NamedLayer>, shortcut: Option<Vec<NamedLayer>>, width: usize) -> Blueprint {
        let mut specs = parameters(&branch);
        let n_branch_parameters = specs.len();
        specs.extend(shortcut.iter().flat_map(|layers| parameters(layers)));
        Blueprint::new(specs, move |parameters, context| {
            let (of_branch, of_shortcut) = parameters.split_at(n_branch_parameters);
            Ok(Self {
                branch: Chain::new(branch, of_branch, context)?,
                shortcut: shortcut.map(|layers| Chain::new(layers, of_shortcut, context)).transpose()?,
                n_branch_parameters,
                output_gradient: context.rows(width)?,
            })
        })
    }
}

impl Layer for Residual {
    type Pass = ();
    type Factors = ();

    fn begin(&mut self, mode: Mode<'_>) {
        self.branch.begin(mode);
        if let Some(chain) = &mut self.shortcut {
            chain.begin(mode);
        }
    }

    fn forward(&mut self, input: Tensor) -> Result<(Tensor, ())> {
        let skipped = match &mut self.shortcut {
            Some(chain) => chain.forward(input.clone())?,
            None => input.clone(),
        };
        let output = self.branch.forward(input)?;
        ops::axpy(&output, &skipped, 1.0)?;
        Ok((output, ()))
    }

    fn backward(
        &mut self,
        (): (),
        output_gradient: Tensor,
        wants_input_gradient: bool,
    ) -> Result<(Option<Tensor>, ())> {
        // Both ways may overwrite the gradient they are given.
        let copy = self.output_gradient.rows(output_gradient.dim(0)?)?;
        ops::copy(&copy, &output_gradient)?;
        let skipped = match &mut self.shortcut {
            Some(chain) => chain.backward(output_gradient, wants_input_gradient)?,
            None => Some(output_gradient),
        };
        let gradient = self.branch.backward(copy, wants_input_gradient)?;
        if let (Some(gradient), Some(skipped)) = (&gradient, &skipped) {
            ops::axpy(gradient, skipped, 1.0)?;
        }
        Ok((gradient, ()))
    }

    fn add_sq_norms(&mut self, (): &mut (), sq_norms: &Tensor) -> Result<()> {
        self.branch.add_sq_norms(sq_norms)?;
        self.shortcut.as_mut().map_or(Ok(()), |chain| chain.add_sq_norms(sq_norms))
    }

    fn weighted_sum(
        &mut self,
        (): &(),
        rows: Range<usize>,
        weights: &[f64],
        gradients: &[Tensor],
        accumulate: bool,
    ) -> Result<()> {
        let (branch, shortcut) = gradients.split_at(self.n_branch_parameters);
        self.branch.weighted_sum(&rows, weights, branch, accumulate)?;
        match &mut self.shortcut {
            Some(chain) => chain.weighted_sum(&rows, weights, shortcut, accumulate),
            None => Ok(()),
        }
    }

    fn chained_terms(&self) -> Vec<usize> {
        let mut terms = self.branch.chained_terms();
        terms.extend(self.shortcut.iter().flat_map(Chain::chained_terms));
        terms
    }

    fn kept_values(&self) -> usize {
        self.branch.kept_values() + self.shortcut.as_ref().map_or(0, Chain::kept_values)
    }
}
