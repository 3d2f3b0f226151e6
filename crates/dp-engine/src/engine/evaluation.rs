//! Answers of a model.

/// The outputs and losses of a model on each record of a data set, in the order of the records.
///
/// **Example**
/// ```
/// use dp_engine::{DType, Device, Engine, Loss, ModelConfig, PublicFacts, Records};
/// let facts = PublicFacts { n_records: 2, n_inputs: 1, n_classes: 2, n_groups: 1 };
/// let records = Records::new(&[3.0, 0.0], &[1, 0], &[0, 0], facts, DType::F64, &Device::Cpu)?;
/// let mut engine = Engine::new(&ModelConfig::LogisticRegression, Loss::BceWithLogits, &records, &Device::Cpu)?;
/// engine.model().parameters().set(&[1.0, -1.0])?;
///
/// let evaluation = engine.evaluate(&records, 1_024)?;
/// assert_eq!(evaluation.logits, [2.0, -1.0]);
/// assert_eq!(evaluation.predictions, [1, 0]);
/// assert_eq!(evaluation.losses[1], (1.0 + (-1_f64).exp()).ln());
/// # Ok::<(), dp_engine::EngineError>(())
/// ```
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
