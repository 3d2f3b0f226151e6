//! Losses: a value per record, its gradient with respect to the logits, and the class they predict.

use candle_core::{DType, Result as TensorResult, Tensor};
use serde::{Deserialize, Serialize};

use crate::ops::{BceGradient, BceLosses, SoftmaxGradient, SoftmaxLosses};

/// A loss by name. Natural logarithms; no regularisation; a value per record, never a mean over the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// `−ln softmax(z)[y]` over one logit per class.
    SoftmaxCrossEntropy,
    /// `ln(1 + e⁻ˢᶻ)`, `s = ±1`, on one logit for two classes.
    BceWithLogits,
}

impl Loss {
    /// Logits a model must have for this many classes; `None` if the loss cannot tell so many apart.
    pub fn n_logits(self, n_classes: usize) -> Option<usize> {
        match self {
            Self::SoftmaxCrossEntropy => (n_classes >= 2).then_some(n_classes),
            Self::BceWithLogits => (n_classes == 2).then_some(1),
        }
    }

    /// Writes the loss of each record to `losses`, `[batch]` in `f64`.
    pub(crate) fn losses(self, logits: &Tensor, labels: &Tensor, losses: &Tensor) -> TensorResult<()> {
        match self {
            Self::SoftmaxCrossEntropy => losses.inplace_op3(logits, labels, &SoftmaxLosses),
            Self::BceWithLogits => losses.inplace_op3(logits, labels, &BceLosses),
        }
    }

    /// Overwrites the logits with the gradient of each record's loss with respect to them.
    pub(crate) fn gradient_in_place(self, logits: &Tensor, labels: &Tensor) -> TensorResult<()> {
        match self {
            Self::SoftmaxCrossEntropy => logits.inplace_op2(labels, &SoftmaxGradient),
            Self::BceWithLogits => logits.inplace_op2(labels, &BceGradient),
        }
    }

    /// The class each row of logits predicts: the largest logit (the first of equals), or the sign of the only one.
    pub(crate) fn predictions(self, logits: &Tensor) -> TensorResult<Vec<u32>> {
        let rows = logits.to_dtype(DType::F64)?.to_vec2::<f64>()?;
        Ok(rows
            .into_iter()
            .map(|row| match self {
                Self::BceWithLogits => u32::from(row[0] > 0.0),
                Self::SoftmaxCrossEntropy => {
                    let mut best = 0;
                    for (class, z) in row.iter().enumerate() {
                        if *z > row[best] {
                            best = class;
                        }
                    }
                    best as u32
                }
            })
            .collect())
    }
}
