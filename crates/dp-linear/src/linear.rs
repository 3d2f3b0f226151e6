//! The model that a training makes.

use crate::error::{LinearError, Result};
use crate::recall::RecallBiases;
use crate::rows::SparseRow;

/// A linear model on the features as they are.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Linear {
    /// `[n_outputs, width]`: one output for two classes, else one per class.
    pub weights: Vec<Vec<f64>>,
    /// One per output: what the class counts say.
    pub intercepts: Vec<f64>,
    /// Shares of the classes, from noisy counts.
    pub priors: Vec<f64>,
}

impl Linear {
    /// A model of these weights, intercepts and shares of the classes, which a later training may [start
    /// from](crate::Prepared::starting_from).
    ///
    /// # Errors
    /// [`LinearError::Mismatch`] unless there are as many intercepts as rows of weights, one output for two
    /// classes or a number, and one a class for more.
    pub fn new(weights: Vec<Vec<f64>>, intercepts: Vec<f64>, priors: Vec<f64>) -> Result<Self> {
        let n_outputs = if priors.len() > 2 { priors.len() } else { 1 };
        for n in [weights.len(), intercepts.len()] {
            if n != n_outputs {
                return Err(LinearError::mismatch("outputs of a model", n_outputs, n));
            }
        }
        Ok(Self { weights, intercepts, priors })
    }

    /// An output for a row.
    pub(crate) fn output(&self, output: usize, row: SparseRow<'_>) -> f64 {
        let weights = &self.weights[output];
        self.intercepts[output] + row.features().map(|(column, value)| weights[column] * value).sum::<f64>()
    }

    /// Adds its weights and intercepts to those of a correction.
    pub(crate) fn add_to(&self, weights: &mut [Vec<f64>], intercepts: &mut [f64]) {
        for (sum, value) in weights.iter_mut().flatten().zip(self.weights.iter().flatten()) {
            *sum += value;
        }
        for (sum, value) in intercepts.iter_mut().zip(&self.intercepts) {
            *sum += value;
        }
    }

    /// An error unless a training on rows of this width, towards these classes, can start from it.
    pub(crate) fn check_start(&self, width: usize, n_classes: usize) -> Result<()> {
        if let Some(row) = self.weights.iter().find(|row| row.len() != width) {
            return Err(LinearError::mismatch("weights of the model that a training starts from", width, row.len()));
        }
        if self.priors.len() != n_classes {
            let found = self.priors.len();
            return Err(LinearError::mismatch("classes of the model that a training starts from", n_classes, found));
        }
        Ok(())
    }

    /// Logits of every class for a row, less the logarithms of the classes' shares.
    pub(crate) fn adjusted_logits(&self, row: SparseRow<'_>, out: &mut [f64]) {
        let binary = self.priors.len() == 2;
        let first = usize::from(binary);
        for ((weights, intercept), out) in self.weights.iter().zip(&self.intercepts).zip(&mut out[first..]) {
            *out = intercept + row.features().map(|(column, value)| weights[column] * value).sum::<f64>();
        }
        if binary {
            out[0] = 0.0;
        }
        for (out, prior) in out.iter_mut().zip(&self.priors) {
            *out -= prior.ln();
        }
    }

    /// The same model with a class's bias added to its logit.
    #[must_use]
    pub fn with_biases(mut self, biases: &RecallBiases) -> Self {
        match (biases.biases(), &mut self.intercepts[..]) {
            ([negative, positive], [intercept]) => *intercept += positive - negative,
            (biases, intercepts) => intercepts.iter_mut().zip(biases).for_each(|(intercept, bias)| *intercept += bias),
        }
        self
    }
}
