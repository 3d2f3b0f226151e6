//! How far apart rounding can take the answers of two devices.

use dp_train::{DType, ParameterSpec};

/// Bounds on relative differences in the 2-norm between two devices.
///
/// - *A sum* of `n` products in floating point is off by at most `γ_n Σ|xᵢyᵢ|`, in whatever order
///   it is taken, with `γ_n = nu / (1 − nu)` and the unit roundoff `u` (Higham, "Accuracy and
///   Stability of Numerical Algorithms", 2nd edition, section 3.1).
/// - *Magnitudes.* `Σ|xᵢyᵢ| ≤ ‖x‖‖y‖`. The tests' parameters have independent signs and one size,
///   so that sums are about `‖x‖‖y‖ / √n` in the mean square. The bound is thus `γ_n √n` relative
///   to a vector of such sums.
/// - *A layer* passes on the relative error of its input, adds that of its sum and, for what is done
///   value by value, [`OF_VALUES`] roundings.
/// - *Both devices* are off.
///
/// There is no bound at a kink: where rounding takes a value to the other side of a ReLU's zero, or
/// makes another pixel the largest of a window, a gradient goes elsewhere. The seeds of the tests
/// are such that no value is near one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounding {
    /// Of logits and losses.
    pub(crate) forward: f64,
    /// Of norms and gradients.
    pub(crate) backward: f64,
}

/// Roundings of a value on its way through a bias, an activation or a normalisation, and the loss.
const OF_VALUES: f64 = 16.0;

impl Rounding {
    /// For a model with these parameters, whose gradients are sums over `terms` positions of
    /// records.
    pub(crate) fn of(specs: &[ParameterSpec], terms: usize, dtype: DType) -> Self {
        let unit = if dtype == DType::F32 { f64::from(f32::EPSILON) / 2.0 } else { f64::EPSILON / 2.0 };
        let of_sum = |n: usize| {
            let n = n as f64;
            n * unit / (1.0 - n * unit) * n.sqrt()
        };
        let weights = specs.iter().filter(|spec| spec.shape.len() > 1);
        let (mut forward, mut input_gradients) = (0.0, 0.0);
        for spec in weights {
            let (n, outputs, inputs) = (spec.shape.iter().product(), spec.shape[0], spec.shape[spec.shape.len() - 1]);
            let n: usize = n;
            // A bias is one term more.
            forward += of_sum(n / outputs + 1) + OF_VALUES * unit;
            input_gradients += of_sum(n / inputs) + OF_VALUES * unit;
        }
        let backward = forward + input_gradients + of_sum(terms);
        Self { forward: 2.0 * forward, backward: 2.0 * backward }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dp_train::{Engine, Loss, ModelConfig};

    use crate::support::Data;

    /// One logit of two inputs and a bias: sums of three terms, of one output and of five records.
    #[test]
    fn the_bound_of_logistic_regression_by_hand() {
        let records = Data::random(5, 2, 2, 1, 1).records(DType::F64);
        let engine =
            Engine::new(&ModelConfig::LogisticRegression, Loss::BceWithLogits, &records, &dp_train::Device::Cpu)
                .unwrap();
        let unit = 2.0_f64.powi(-24);
        let bound = Rounding::of(engine.model().parameters().specs(), 5, DType::F32);
        let forward = 3.0 * 3.0_f64.sqrt() + 16.0;
        let backward = forward + 1.0 + 16.0 + 5.0 * 5.0_f64.sqrt();
        assert!((bound.forward / (2.0 * unit * forward) - 1.0).abs() < 1e-6, "{bound:?}");
        assert!((bound.backward / (2.0 * unit * backward) - 1.0).abs() < 1e-6, "{bound:?}");
    }
}
