//! Losses: a value per record, its gradient with respect to the logits, and the class they predict.

use std::ops::RangeInclusive;

use candle_core::{Error as TensorError, Result as TensorResult, Tensor};
use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result};
use crate::ops;
use crate::own::{OwnLoss, find_loss};

/// A loss by name: a value per record, never a mean over the batch, without regularisation.
///
/// A weighted loss is the plain one times the weight of the record's class. PyTorch divides the
/// mean of such losses by the sum of the weights in the batch; nothing here does, since that sum is
/// private.
///
/// **Units.** Nats.
///
/// **Edge cases.** Stable for finite logits of any size: no overflow, and no cancellation where the
/// answer is confident. Logits that are not finite are not hidden. Logits are rows: one per record
/// for the binary losses, as `[batch]` or `[batch, 1]`, which are the same thing here, since losses
/// pair values with labels one by one and never broadcast; two or more per record for a softmax,
/// where `[batch]` and `[batch, 1]` are refused.
///
/// **Example**
/// ```
/// use dp_engine::Loss;
/// assert_eq!(Loss::SoftmaxCrossEntropy.n_logits(5), Some(5));
/// assert_eq!(Loss::BceWithLogits.n_logits(2), Some(1));
/// assert_eq!(Loss::BceWithLogits.n_logits(5), None);
/// let weighted = Loss::WeightedSoftmaxCrossEntropy { class_weights: vec![0.5, 1.0] };
/// assert_eq!((weighted.n_logits(2), weighted.n_logits(3)), (Some(2), None));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Loss {
    /// `−ln softmax(z)[y]` over one logit per class.
    SoftmaxCrossEntropy,
    /// `ln(1 + e⁻ˢᶻ)` on one logit for two classes, `s = 1` for label 1 and `−1` for label 0.
    BceWithLogits,
    /// `−w_y ln softmax(z)[y]` over one logit per class: the `weight` of PyTorch's
    /// `CrossEntropyLoss`.
    WeightedSoftmaxCrossEntropy {
        /// `w`, one number from 1e-12 to 1e12 per class.
        class_weights: Vec<f64>,
    },
    /// `w ln(1 + e⁻ᶻ)` for label 1 and `ln(1 + eᶻ)` for label 0: the `pos_weight` of PyTorch's
    /// `BCEWithLogitsLoss`.
    WeightedBceWithLogits {
        /// `w`, a number from 1e-12 to 1e12.
        positive_weight: f64,
    },
    /// `−ln softmax(z + ln π)[y]` over one logit per class, with the classes' priors `π`.
    /// Predictions and logits are `z` alone: the model learns what distinguishes the classes, and
    /// the share of a class speaks for none of them, which is what helps rare ones.
    ///
    /// **Guarantee.** The gradient's bound is that of the plain loss. Priors are public: take them
    /// from `ClassCounts` of `dp_linear`, which releases them with noise, or
    /// from elsewhere than the records.
    ///
    /// **Source.** Menon et al. 2021, "Long-tail learning via logit adjustment", with τ = 1.
    PriorAdjustedCrossEntropy {
        /// `π`, one number from 1e-12 to 1e12 per class; only their ratios matter.
        priors: Vec<f64>,
    },
    /// A loss from outside of this crate ([`OwnLoss`](crate::OwnLoss)).
    Own {
        /// Its name, as [`register_loss`](crate::register_loss) was given it.
        loss: String,
    },
}

/// Weights and priors: gradients times these stay finite in single precision, where a class whose
/// gradients were not would be left out of every step.
const WEIGHTS: RangeInclusive<f64> = 1e-12..=1e12;

impl Loss {
    /// Logits a model must have for this many classes; `None` if the loss does not support this
    /// number of classes, or has weights for another one.
    pub fn n_logits(&self, n_classes: usize) -> Option<usize> {
        match self {
            Self::SoftmaxCrossEntropy => (n_classes >= 2).then_some(n_classes),
            Self::WeightedSoftmaxCrossEntropy { class_weights } => {
                (n_classes >= 2 && class_weights.len() == n_classes).then_some(n_classes)
            }
            Self::PriorAdjustedCrossEntropy { priors } => {
                (n_classes >= 2 && priors.len() == n_classes).then_some(n_classes)
            }
            Self::BceWithLogits | Self::WeightedBceWithLogits { .. } => (n_classes == 2).then_some(1),
            Self::Own { loss } => {
                let n_logits = find_loss(loss).ok()?.n_logits(n_classes)?;
                // What a prediction can be read from.
                (n_logits == n_classes || n_logits == 1 && n_classes == 2).then_some(n_logits)
            }
        }
    }

    /// An error unless every weight and every prior is from 1e-12 to 1e12, and a loss of one's own is
    /// registered.
    ///
    /// # Errors
    /// [`EngineError::InvalidParameter`] for the first that is not.
    pub fn check_weights(&self) -> Result<()> {
        let refused = |parameter, weight: f64| {
            EngineError::invalid(parameter, weight, format!("{:e} to {:e}", WEIGHTS.start(), WEIGHTS.end()))
        };
        let in_range = |weight: f64| WEIGHTS.contains(&weight);
        match self {
            Self::SoftmaxCrossEntropy | Self::BceWithLogits => Ok(()),
            Self::Own { loss } => find_loss(loss).map(|_| ()),
            Self::WeightedSoftmaxCrossEntropy { class_weights } => {
                match class_weights.iter().find(|&&w| !in_range(w)) {
                    Some(&weight) => Err(refused("loss.class_weights", weight)),
                    None => Ok(()),
                }
            }
            Self::PriorAdjustedCrossEntropy { priors } => match priors.iter().find(|&&prior| !in_range(prior)) {
                Some(&prior) => Err(refused("loss.priors", prior)),
                None => Ok(()),
            },
            Self::WeightedBceWithLogits { positive_weight } if in_range(*positive_weight) => Ok(()),
            Self::WeightedBceWithLogits { positive_weight } => Err(refused("loss.positive_weight", *positive_weight)),
        }
    }

    /// Writes the loss of each record to `losses`, `[batch]` in `f64`.
    pub(crate) fn losses(&self, logits: &Tensor, labels: &Tensor, losses: &Tensor) -> TensorResult<()> {
        match self {
            Self::SoftmaxCrossEntropy | Self::WeightedSoftmaxCrossEntropy { .. } => {
                ops::softmax_losses(losses, logits, labels)?;
            }
            Self::PriorAdjustedCrossEntropy { priors } => {
                let adjusted = log_priors(priors, logits)?;
                ops::axpy(&adjusted, logits, 1.0)?;
                ops::softmax_losses(losses, &adjusted, labels)?;
            }
            Self::BceWithLogits | Self::WeightedBceWithLogits { .. } => {
                ops::bce_losses(losses, logits, labels)?;
            }
            Self::Own { loss } => ops::own_losses(losses, logits, labels, registered(loss)?)?,
        }
        self.weigh(losses, labels)
    }

    /// Overwrites the logits with the gradient of each record's loss with respect to them.
    pub(crate) fn gradient_in_place(&self, logits: &Tensor, labels: &Tensor) -> TensorResult<()> {
        match self {
            Self::SoftmaxCrossEntropy | Self::WeightedSoftmaxCrossEntropy { .. } => {
                ops::softmax_gradient(logits, labels)?;
            }
            Self::PriorAdjustedCrossEntropy { priors } => {
                ops::axpy(logits, &log_priors(priors, logits)?, 1.0)?;
                ops::softmax_gradient(logits, labels)?;
            }
            Self::BceWithLogits | Self::WeightedBceWithLogits { .. } => ops::bce_gradient(logits, labels)?,
            Self::Own { loss } => ops::own_loss_gradient(logits, labels, registered(loss)?)?,
        }
        self.weigh(logits, labels)
    }

    /// Multiplies each record's row by the weight of its class.
    fn weigh(&self, rows: &Tensor, labels: &Tensor) -> TensorResult<()> {
        match self {
            Self::SoftmaxCrossEntropy
            | Self::BceWithLogits
            | Self::PriorAdjustedCrossEntropy { .. }
            | Self::Own { .. } => Ok(()),
            Self::WeightedSoftmaxCrossEntropy { class_weights } => ops::scale_by_label(rows, labels, class_weights),
            Self::WeightedBceWithLogits { positive_weight } => {
                ops::scale_by_label(rows, labels, &[1.0, *positive_weight])
            }
        }
    }
}

fn registered(loss: &str) -> TensorResult<&'static dyn OwnLoss> {
    find_loss(loss).map_err(|error| TensorError::Msg(error.to_string()))
}

/// `ln π` in every row, shaped as the logits.
fn log_priors(priors: &[f64], logits: &Tensor) -> TensorResult<Tensor> {
    let total: f64 = priors.iter().sum();
    let row: Vec<f64> = priors.iter().map(|prior| (prior / total).ln()).collect();
    let row = Tensor::from_vec(row, priors.len(), logits.device())?.to_dtype(logits.dtype())?;
    let rows = logits.zeros_like()?;
    // A tensor of no rows has nothing to repeat into.
    if rows.elem_count() > 0 {
        ops::repeat_row(&rows, &row)?;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};
    use proptest::prelude::*;

    use super::*;

    /// Losses and gradients, flat, of logits of this shape.
    fn apply(loss: &Loss, logits: &Tensor, labels: &[u32]) -> TensorResult<(Vec<f64>, Vec<f64>)> {
        // A copy: the gradient overwrites it.
        let logits = logits.copy()?;
        let labels = Tensor::from_slice(labels, labels.len(), &Device::Cpu)?;
        let losses = Tensor::zeros(labels.elem_count(), DType::F64, &Device::Cpu)?;
        loss.losses(&logits, &labels, &losses)?;
        loss.gradient_in_place(&logits, &labels)?;
        Ok((losses.to_vec1()?, logits.flatten_all()?.to_dtype(DType::F64)?.to_vec1()?))
    }

    fn matrix(rows: &[&[f64]], dtype: DType) -> Tensor {
        let values: Vec<f64> = rows.iter().flat_map(|row| row.iter().copied()).collect();
        let shape = (rows.len(), rows[0].len());
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap().to_dtype(dtype).unwrap()
    }

    fn assert_close(got: &[f64], expected: &[f64], tolerance: f64) {
        assert_eq!(got.len(), expected.len());
        for (a, b) in got.iter().zip(expected) {
            assert!((a - b).abs() <= tolerance * b.abs().max(1e-300), "{got:?} for {expected:?}");
        }
    }

    /// Logits ln 1, ln 2, ln 5 have probabilities 1/8, 2/8, 5/8. Label 2: loss ln(8/5), gradient
    /// (1/8, 2/8, 5/8 − 1). Label 0: loss ln 8, gradient (1/8 − 1, 2/8, 5/8).
    #[test]
    fn softmax_cross_entropy_by_hand() {
        let row = [0.0, 2_f64.ln(), 5_f64.ln()];
        for (dtype, tolerance) in [(DType::F64, 1e-15), (DType::F32, 3e-7)] {
            let logits = matrix(&[&row, &row], dtype);
            let (losses, gradient) = apply(&Loss::SoftmaxCrossEntropy, &logits, &[2, 0]).unwrap();
            assert_close(&losses, &[1.6_f64.ln(), 8_f64.ln()], tolerance);
            assert_close(&gradient, &[0.125, 0.25, -0.375, -0.875, 0.25, 0.625], tolerance);
        }
    }

    /// The logit ln 3 has probability 3/4. Label 1: loss ln(4/3), gradient 3/4 − 1. Label 0: loss
    /// ln 4, gradient 3/4.
    #[test]
    fn binary_cross_entropy_by_hand() {
        let z = 3_f64.ln();
        for (dtype, tolerance) in [(DType::F64, 2e-15), (DType::F32, 3e-7)] {
            let (losses, gradient) = apply(&Loss::BceWithLogits, &matrix(&[&[z], &[z]], dtype), &[1, 0]).unwrap();
            assert_close(&losses, &[(4.0_f64 / 3.0).ln(), 4_f64.ln()], tolerance);
            assert_close(&gradient, &[-0.25, 0.75], tolerance);
        }
    }

    /// Wrong by 2e4 (softmax) or 1e4 (binary): the loss is that number and the gradient 1. Right by
    /// as much: 0, up to the smallest normal numbers.
    #[test]
    fn logits_of_any_size_are_stable() {
        for dtype in [DType::F32, DType::F64] {
            let logits = matrix(&[&[1e4, -1e4], &[1e4, -1e4]], dtype);
            let (losses, gradient) = apply(&Loss::SoftmaxCrossEntropy, &logits, &[1, 0]).unwrap();
            assert_eq!((losses, gradient), (vec![2e4, 0.0], vec![1.0, -1.0, 0.0, 0.0]));
            let logits = matrix(&[&[1e4], &[1e4], &[-1e4], &[-1e4]], dtype);
            let (losses, gradient) = apply(&Loss::BceWithLogits, &logits, &[0, 1, 1, 0]).unwrap();
            assert_eq!(losses, [1e4, 0.0, 1e4, 0.0]);
            assert_eq!((gradient[0], gradient[2]), (1.0, -1.0));
            assert!(gradient[1].abs() < 2e-38 && gradient[3].abs() < 2e-38);
        }
    }

    /// Right by 40 in `f64`, where 1 − p rounds to 0: loss and gradient are still e⁻⁴⁰, to all
    /// digits.
    #[test]
    fn a_confident_answer_keeps_its_digits() {
        let tiny = (-40.0_f64).exp();
        let (losses, gradient) = apply(&Loss::BceWithLogits, &matrix(&[&[40.0]], DType::F64), &[1]).unwrap();
        assert_close(&losses, &[tiny], 1e-15);
        assert_close(&gradient, &[-tiny], 1e-15);
        let logits = matrix(&[&[40.0, 0.0]], DType::F64);
        let (losses, gradient) = apply(&Loss::SoftmaxCrossEntropy, &logits, &[0]).unwrap();
        assert_close(&losses, &[tiny], 1e-15);
        assert_close(&gradient, &[-tiny, tiny], 1e-15);
    }

    #[test]
    fn logits_that_are_no_numbers_are_not_hidden() {
        for bad in [f64::NAN, f64::INFINITY] {
            for dtype in [DType::F32, DType::F64] {
                let logits = matrix(&[&[0.0, bad]], dtype);
                let (losses, _) = apply(&Loss::SoftmaxCrossEntropy, &logits, &[0]).unwrap();
                assert!(!losses[0].is_finite());
                let (losses, _) = apply(&Loss::BceWithLogits, &matrix(&[&[bad]], dtype), &[0]).unwrap();
                assert!(!losses[0].is_finite());
            }
        }
    }

    #[test]
    fn one_logit_a_record_may_come_as_a_vector_and_a_softmax_needs_two() {
        let column = matrix(&[&[0.5], &[-2.0]], DType::F32);
        let vector = column.flatten_all().unwrap();
        let of = |logits| apply(&Loss::BceWithLogits, logits, &[1, 0]);
        assert_eq!(of(&column).unwrap(), of(&vector).unwrap());
        let of = |logits| apply(&Loss::SoftmaxCrossEntropy, logits, &[0, 0]).unwrap_err();
        insta::assert_snapshot!(of(&vector), @"logits per record of a softmax: expected at least 2, got 1");
        insta::assert_snapshot!(of(&column), @"logits per record of a softmax: expected at least 2, got 1");
        let of = |labels: &[u32]| apply(&Loss::BceWithLogits, &column, labels).unwrap_err();
        insta::assert_snapshot!(of(&[1, 2]), @"label 2 of record 1 of the batch: expected 0 or 1");
        insta::assert_snapshot!(of(&[1]), @"one logit per record: expected 1, got 2");
    }

    /// Weights multiply losses and gradients of the plain loss; one logit as `[batch]` or `[batch,
    /// 1]` changes nothing.
    #[test]
    fn weights_are_factors_by_class() {
        for dtype in [DType::F32, DType::F64] {
            let logits = matrix(&[&[0.5, -1.0, 3.0], &[1e4, -1e4, 0.0], &[0.0, 2.0, 0.0]], dtype);
            let plain = apply(&Loss::SoftmaxCrossEntropy, &logits, &[2, 1, 0]).unwrap();
            let weighted = Loss::WeightedSoftmaxCrossEntropy { class_weights: vec![0.5, 2.0, 4.0] };
            let (losses, gradient) = apply(&weighted, &logits, &[2, 1, 0]).unwrap();
            let factors = [4.0, 2.0, 0.5];
            // Powers of 2: exact.
            assert_eq!(losses, [0, 1, 2].map(|i| factors[i] * plain.0[i]));
            assert_eq!(gradient, (0..9).map(|j| factors[j / 3] * plain.1[j]).collect::<Vec<_>>());

            let column = matrix(&[&[0.25], &[-1e4], &[1e4], &[-7.0]], dtype);
            let labels = [0, 1, 0, 1];
            let plain = apply(&Loss::BceWithLogits, &column, &labels).unwrap();
            let weighted = Loss::WeightedBceWithLogits { positive_weight: 2.0 };
            let (losses, gradient) = apply(&weighted, &column, &labels).unwrap();
            let factors = [1.0, 2.0, 1.0, 2.0];
            assert_eq!(losses, [0, 1, 2, 3].map(|i| factors[i] * plain.0[i]));
            assert_eq!(gradient, [0, 1, 2, 3].map(|i| factors[i] * plain.1[i]));
            assert_eq!(apply(&weighted, &column.flatten_all().unwrap(), &labels).unwrap(), (losses, gradient));
            // A row per record in a single row is no batch of one: four logits, one label.
            let row = column.reshape((1, 4)).unwrap();
            let error = apply(&weighted, &row, &[1]).unwrap_err();
            assert_eq!(error.to_string(), "one logit per record: expected 1, got 4");
        }
    }

    /// Logits 0 with priors 1/8, 2/8, 5/8 have these probabilities: figures as without priors on
    /// their logarithms.
    #[test]
    fn priors_are_added_in_training_alone() {
        for (dtype, tolerance) in [(DType::F64, 1e-15), (DType::F32, 3e-7)] {
            let logits = matrix(&[&[0.0; 3], &[0.0; 3]], dtype);
            // Only ratios count.
            for priors in [vec![1.0, 2.0, 5.0], vec![125.0, 250.0, 625.0]] {
                let loss = Loss::PriorAdjustedCrossEntropy { priors };
                let (losses, gradient) = apply(&loss, &logits, &[2, 0]).unwrap();
                assert_close(&losses, &[1.6_f64.ln(), 8_f64.ln()], tolerance);
                assert_close(&gradient, &[0.125, 0.25, -0.375, -0.875, 0.25, 0.625], tolerance);
                assert_eq!((loss.n_logits(3), loss.n_logits(2)), (Some(3), None));
            }
        }
    }

    #[test]
    fn weights_out_of_range_are_refused() {
        for bad in [0.0, -1.0, 1e39, f64::NAN, f64::INFINITY] {
            let loss = Loss::WeightedSoftmaxCrossEntropy { class_weights: vec![1.0, bad] };
            let expected = format!("loss.class_weights = {bad}: expected 1e-12 to 1e12");
            assert_eq!(loss.check_weights().unwrap_err().to_string(), expected);
            let loss = Loss::PriorAdjustedCrossEntropy { priors: vec![1.0, bad] };
            let expected = format!("loss.priors = {bad}: expected 1e-12 to 1e12");
            assert_eq!(loss.check_weights().unwrap_err().to_string(), expected);
            let loss = Loss::WeightedBceWithLogits { positive_weight: bad };
            let expected = format!("loss.positive_weight = {bad}: expected 1e-12 to 1e12");
            assert_eq!(loss.check_weights().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn losses_know_how_many_logits_they_take() {
        let n_logits = |loss: Loss| [0, 1, 2, 3].map(|n_classes| loss.n_logits(n_classes));
        assert_eq!(n_logits(Loss::SoftmaxCrossEntropy), [None, None, Some(2), Some(3)]);
        assert_eq!(n_logits(Loss::BceWithLogits), [None, None, Some(1), None]);
        let weights = |n: usize| Loss::WeightedSoftmaxCrossEntropy { class_weights: vec![1.0; n] };
        assert_eq!(n_logits(weights(1)), [None; 4]);
        assert_eq!(n_logits(weights(3)), [None, None, None, Some(3)]);
        assert_eq!(n_logits(Loss::WeightedBceWithLogits { positive_weight: 2.0 }), [None, None, Some(1), None]);
    }

    proptest! {
        /// One logit `z` is two logits `0, z`.
        #[test]
        fn binary_is_softmax_against_zero(z in -800.0..800.0_f64, label in 0_u32..2) {
            let (binary, slope) = apply(&Loss::BceWithLogits, &matrix(&[&[z]], DType::F64), &[label]).unwrap();
            let (softmax, slopes) =
                apply(&Loss::SoftmaxCrossEntropy, &matrix(&[&[0.0, z]], DType::F64), &[label]).unwrap();
            prop_assert!((binary[0] - softmax[0]).abs() <= 1e-14 * softmax[0]);
            prop_assert!((slope[0] - slopes[1]).abs() <= 1e-13 * slopes[1].abs() + 1e-307);
        }

        /// The gradient is the slope of the loss (central difference, error of order h²), and its
        /// entries sum to 0.
        #[test]
        fn gradients_are_slopes(logits in prop::array::uniform4(-5.0..5.0_f64), label in 0_u32..4) {
            const H: f64 = 1e-5;
            let loss = |logits: &[f64]| apply(&Loss::SoftmaxCrossEntropy, &matrix(&[logits], DType::F64), &[label]).unwrap();
            let (_, gradient) = loss(&logits);
            for j in 0..4 {
                let (mut up, mut down) = (logits, logits);
                up[j] += H;
                down[j] -= H;
                let slope = (loss(&up).0[0] - loss(&down).0[0]) / (2.0 * H);
                prop_assert!((gradient[j] - slope).abs() < 1e-9);
            }
            prop_assert!(gradient.iter().sum::<f64>().abs() < 1e-15);
        }
    }
}
