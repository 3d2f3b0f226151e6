//! The model that a training makes.

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
