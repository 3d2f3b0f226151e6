//! A loss from outside of this crate.

use std::fmt::Debug;

/// A loss from outside of this crate: a function of the logits and the label of one record.
///
/// **Guarantee.** The loss never sees a batch. A wrong gradient is a wrong direction, and clipped as any
/// other. One thing nothing enforces: a loss must be a function of what it is given, without a
/// memory. Plans name it as a condition.
///
/// It works on the CPU.
///
/// ```
/// use dp_engine::{Loss, OwnLoss, register_loss};
///
/// /// `½ (z − s)²` on one logit for two classes, `s = ±1`.
/// #[derive(Debug)]
/// struct Squared;
///
/// impl OwnLoss for Squared {
///     fn name(&self) -> &'static str {
///         "squared"
///     }
///     fn n_logits(&self, n_classes: usize) -> Option<usize> {
///         (n_classes == 2).then_some(1)
///     }
///     fn loss(&self, logits: &[f64], label: usize) -> f64 {
///         let s = if label == 1 { 1.0 } else { -1.0 };
///         0.5 * (logits[0] - s).powi(2)
///     }
///     fn gradient(&self, logits: &[f64], label: usize, gradient: &mut [f64]) {
///         gradient[0] = logits[0] - if label == 1 { 1.0 } else { -1.0 };
///     }
/// }
///
/// register_loss(&Squared)?;
/// let loss = Loss::Own { loss: "squared".into() };
/// assert_eq!((loss.n_logits(2), loss.n_logits(3)), (Some(1), None));
/// # Ok::<(), dp_engine::EngineError>(())
/// ```
pub trait OwnLoss: Debug + Send + Sync + 'static {
    /// Its name: lower-case letters, digits and hyphens.
    fn name(&self) -> &'static str;

    /// Logits that a model must have: 1 for two classes, whose sign predicts the class, or one per
    /// class, of which the largest does; `None` for a number of classes that it does not take.
    fn n_logits(&self, n_classes: usize) -> Option<usize>;

    /// The loss of one record.
    fn loss(&self, logits: &[f64], label: usize) -> f64;

    /// Writes its gradient with respect to the logits.
    fn gradient(&self, logits: &[f64], label: usize, gradient: &mut [f64]);
}
