//! Answers of a model.

/// The outputs and losses of a model on each record of a data set, in the order of the records.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Evaluation {
    /// Loss of each record in nats, `[n_records]`; not finite where a record is not.
    pub losses: Vec<f64>,
    /// Predicted class of each record, `[n_records]`: the largest logit, the first of equals.
    pub predictions: Vec<u32>,
    /// The model's output for each record, row-major `[n_records, n_logits]`.
    pub logits: Vec<f64>,
}
