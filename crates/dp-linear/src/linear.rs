//! The model that a training makes.

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
