//! Least squares on features: noisy second moments, and noisy products of inputs and labels.

use std::f64::consts::SQRT_2;
use std::num::NonZeroUsize;

use anyhow::Context;
use dp_accounting::{Delta, DpEvent, Epsilon, Ledger, NoiseMultiplier};
use dp_data::Dataset;
use dp_linear::GaussianBudget;
use dp_linear::conditioning::{Conditioning, ConditioningConfig};
use dp_train::{Engine, Plan, RandomStream};

/// What the second moments have of `μ²`, and the products the rest: found on held-out training records of
/// Adult and Dutch.
const MOMENTS: f64 = 0.75;
/// No gradient of a softmax at 0 is longer, on a row of norm 1 and its constant: nothing is clipped.
pub(crate) const BOUND: f64 = SQRT_2;

/// The second moments of rows with a constant, `(x, 1)/√2`.
///
/// A linear model at 0 has the gradient `Σ (1/K − y) ⊗ (x, 1)`: the products of inputs and labels, less what all
/// classes share, which decides nothing. The inverse of the moments makes it the weights of least squares. Both
/// releases are those of conditioned training, and so is the ridge: twice the edge of the moments' noise.
///
/// **Source.** Mehta et al. 2023, "Differentially Private Image Classification from Features".
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SecondMoments {
    config: ConditioningConfig,
}

impl SecondMoments {
    /// Within their share of a budget, and the noise of the products.
    ///
    /// # Errors
    /// For an infinite ε.
    pub(crate) fn within(epsilon: Epsilon, delta: Delta) -> anyhow::Result<(Self, NoiseMultiplier)> {
        let budget = GaussianBudget::new(epsilon, delta)?;
        let covariance = Some(budget.noise_multiplier(MOMENTS, 1)?);
        let config = ConditioningConfig { covariance, ..ConditioningConfig::default() };
        Ok((Self { config }, budget.noise_multiplier(1.0 - MOMENTS, 1)?))
    }

    /// Everything that decides their release.
    pub(crate) fn config(&self) -> &ConditioningConfig {
        &self.config
    }

    /// Their release.
    pub(crate) fn events(&self) -> Vec<DpEvent> {
        self.config.events()
    }

    /// Releases them: `L`, row-major, with `L Lᵀ` the mean of the moments and their ridge.
    ///
    /// # Errors
    /// If the rows are refused.
    pub(crate) fn fit(&self, train: &Dataset, rng: &mut RandomStream) -> anyhow::Result<Vec<f64>> {
        let mut ledger = Ledger::new(Plan::RELATION);
        let half = std::f32::consts::FRAC_1_SQRT_2;
        let rows = train.features.rows();
        let rows: Vec<f32> =
            rows.into_iter().flat_map(|row| row.to_vec().into_iter().chain([1.0])).map(|value| value * half).collect();
        let moments =
            Conditioning::fit(&self.config, &rows, train.n_inputs() + 1, NonZeroUsize::MIN, rng, &mut ledger)?;
        Ok(moments.covariance_factor().context("second moments were released")?.to_vec())
    }
}

/// Makes the weights of least squares from the products in a linear model's parameters.
///
/// # Errors
/// If the device fails.
pub(crate) fn solve(factor: &[f64], engine: &mut Engine) -> anyhow::Result<()> {
    let (n_inputs, n_outputs) = (engine.model().n_inputs(), engine.model().n_outputs());
    let parameters = engine.model().parameters();
    let mut values = parameters.to_vec()?;
    let (weights, biases) = values.split_at_mut(n_inputs * n_outputs);
    for (weights, bias) in weights.chunks_exact_mut(n_inputs).zip(biases) {
        let products: Vec<f64> = weights.iter().chain([&*bias]).copied().collect();
        let solved = solved(factor, products);
        for (weight, solved) in weights.iter_mut().chain([bias]).zip(solved) {
            // The moments are those of rows over √2.
            *weight = solved / 2.0;
        }
    }
    Ok(parameters.set(&values)?)
}

/// `x` with `L Lᵀ x = b`, by substitution forwards and backwards.
fn solved(factor: &[f64], mut b: Vec<f64>) -> Vec<f64> {
    let size = b.len();
    for (i, row) in factor.chunks_exact(size).enumerate() {
        let before: f64 = row[..i].iter().zip(&b).map(|(l, x)| l * x).sum();
        b[i] = (b[i] - before) / row[i];
    }
    for (i, row) in factor.chunks_exact(size).enumerate().rev() {
        b[i] /= row[i];
        let (above, rest) = b.split_at_mut(i);
        for (value, l) in above.iter_mut().zip(row) {
            *value -= l * rest[0];
        }
    }
    b
}

#[cfg(test)]
mod tests {
    use dp_train::{DType, Device, Loss, ModelConfig, PublicFacts, Records};

    use super::*;

    /// L = [[2, 0], [1, 2]], L Lᵀ = [[4, 2], [2, 5]], and [[4, 2], [2, 5]] · (1, 3) = (10, 17).
    #[test]
    fn two_by_two_by_hand() {
        assert_eq!(solved(&[2.0, 0.0, 1.0, 2.0], vec![10.0, 17.0]), [1.0, 3.0]);
    }

    /// The same matrix times (0, 2) is (4, 10). Moments of rows over √2 are half of the rows'.
    #[test]
    fn each_class_has_its_weight_and_bias() {
        let facts = PublicFacts { n_records: 1, n_inputs: 1, n_classes: 2, n_groups: 1 };
        let records = Records::new(&[0.5], &[1], &[0], facts, DType::F64, &Device::Cpu).unwrap();
        let model = ModelConfig::LogisticRegression;
        let mut engine = Engine::new(&model, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu).unwrap();
        engine.model().parameters().set(&[10.0, 4.0, 17.0, 10.0]).unwrap();
        solve(&[2.0, 0.0, 1.0, 2.0], &mut engine).unwrap();
        assert_eq!(engine.model().parameters().to_vec().unwrap(), [0.5, 0.0, 1.5, 1.0]);
    }
}
